"""A cell is one answer of an experiment; a ledger keeps them in a file, and a run that was ended goes on there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Literal

from mindstream import ledger
from mindstream.errors import InputError
from mindstream.sharing.events import Form

STAGES = 5
HEADER = "experiment"
"""The first row of a file: what its answers depend on."""
PoolKind = Literal["none", "domain", "single"]
Control = Literal["", "random", "shuffled"]


@dataclass(frozen=True)
class Cell:
    """One test, answered by one agent.

    Attributes:
        pool: whose exemplars are recalled: those of its domain, of all agents, or nobody's (zero-shot).
        form: what of them was embedded.
        stage: how many fifths of the stream have come in.
        control: exemplars are drawn at random, or have the answers of others.
    """

    agent: str
    test: int
    shots: int
    pool: PoolKind = "domain"
    form: Form = "composed"
    stage: int = STAGES
    control: Control = ""

    @property
    def key(self) -> str:
        """What it is called in a file."""
        return "/".join(map(str, astuple(self)))


def zero_shot(agent: str, test: int) -> Cell:
    """Return the cell without exemplars: no pool, and so no form and no stage."""
    return Cell(agent, test, 0, "none", "bare", 0)


@dataclass(frozen=True)
class CellAnswer:
    """What was answered.

    Attributes:
        model: who answered.
        shown: whose exemplars stood before the question, the nearest first.
    """

    text: str
    model: str
    shown: tuple[str, ...] = ()


class Ledger:
    """Answers by cell; with a file each is written as it comes, a line of JSON.

    Args:
        header: what the answers depend on: a file of another experiment is refused.
        part: see `mindstream.ledger.Ledger`.

    Raises:
        InputError: the file cannot be used, or is another experiment's.
    """

    def __init__(self, file: Path | None, header: Mapping[str, Any], part: str = "") -> None:
        self._kept = ledger.Ledger(file, part=part)
        header, there = json.loads(json.dumps(header)), self._kept.find(HEADER)
        if there is None and self._kept.rows:
            raise InputError(f"{file} is no experiment's file; name another one with --out")
        if there is None:
            self._kept.keep(HEADER, dict(header))
        elif there != header:
            raise InputError(f"{file}: {_difference(there, header)}; name another file with --out")
        self.answers = dict[str, CellAnswer]()
        self._read()

    def keep(self, key: str, answer: CellAnswer) -> None:
        """Keep an answer: a cell's, or what an agent gave to what streamed in."""
        self.answers[key] = answer
        self._kept.keep(key, asdict(answer))

    def take_in(self) -> None:
        """Take in what workers kept beside the file, when none of them is at it any more."""
        self._kept.take_in()
        self._read()

    def _read(self) -> None:
        for key, row in self._kept.rows.items():
            if key != HEADER:
                self.answers[key] = CellAnswer(row["text"], row["model"], tuple(row["shown"]))


def _difference(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    name = next((name for name in wanted if there.get(name) != wanted[name]), "")
    return f"its {name} is {there.get(name)!r}, and now it is {wanted.get(name)!r}"
