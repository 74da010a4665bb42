"""Answers for blind readers: with exemplars and without, side by side, in an order that only the key tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mindstream import chance
from mindstream.errors import InputError
from mindstream.private_files import make_private_folder, write_private
from mindstream.sharing.experiment.agents import Cast
from mindstream.sharing.experiment.cells import Cell, CellAnswer, zero_shot
from mindstream.sharing.experiment.studies import Design

PAIRS, KEY = "pairs.jsonl", "key.json"


def write_blind(folder: Path, cast: Cast, design: Design, answers: Mapping[str, CellAnswer]) -> int:
    """Write the pairs and their key into a folder; return how many there are.

    Raises:
        InputError: answers without exemplars, or with them, are missing.
    """
    rows, key = list[dict[str, str]](), dict[str, str]()
    tests = [(agent, at) for agent in cast.agents for at in range(design.tests_of(agent))]
    for agent, at in chance.sample(tests, len(tests), design.seed, "blind"):
        with_them = Cell(agent.name, at, design.most, form=design.forms[0])
        found = [answers.get(each.key) for each in (with_them, zero_shot(agent.name, at))]
        if None in found:
            raise InputError("--blind compares answers with exemplars and without: --studies shots --shots 0,3")
        first = chance.fraction(design.seed, "blind", with_them.key) < 0.5
        texts = [each.text for each in found if each]
        number = str(len(rows) + 1)
        rows.append({"n": number, "question": agent.tests[at].query, "a": texts[not first], "b": texts[first]})
        key[number] = "a" if first else "b"
    make_private_folder(folder)
    for name in (PAIRS, KEY):  # of the same experiment, before more was answered
        (folder / name).unlink(missing_ok=True)
    write_private(folder / PAIRS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    write_private(folder / KEY, json.dumps({"with exemplars": key}, indent=1).encode())
    return len(rows)
