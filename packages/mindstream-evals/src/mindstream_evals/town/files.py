"""Read and write the files that people edit: questions, answers, verdicts."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mindstream_town.formats.files import write_text

from mindstream.encodings import csv_text, decode_clear, read_csv
from mindstream.errors import InputError, prefixed
from mindstream.paths import read_bytes
from mindstream_evals.town.questions import LARGEST, Answer, Item

WORTH = {"1": 1.0, "2": 0.0, "=": 0.5}
"""Points of the answer shown first, by typed verdict."""


def read_person(file: Path, names: Iterable[str], ids: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return a person's answers by resident and question id, from CSV with a header or a JSON list of objects.

    Empty answers are ignored.

    Raises:
        InputError: the file cannot be read, names an unknown resident or question, or has no answer.
    """
    people, questions = {each.casefold(): each for each in names}, set(ids)
    found: dict[tuple[str, str], str] = {}
    for at, row in enumerate(_rows(file, ("resident", "question", "answer")), 1):
        name, question = people.get(row["resident"].strip().casefold()), row["question"].strip()
        if name is None:
            raise InputError(
                f"{file}, row {at}: unknown resident {row['resident']!r:.99}; use one of: {', '.join(people.values())}"
            )
        if question not in questions:
            raise InputError(
                f"{file}, row {at}: unknown question {question!r:.99}; use: {', '.join(sorted(questions))}"
            )
        if row["answer"].strip():
            found[name, question] = row["answer"].strip()
    if not found:
        raise InputError(f"{file}: all answers are empty; fill in the column `answer`")
    return found


def read_verdicts(files: Iterable[Path]) -> list[tuple[str, float]]:
    """Return people's verdicts: the id of each pair, and the points of its first answer.

    Raises:
        InputError: a file cannot be read, or a verdict is not 1, 2 or =.
    """
    found = []
    for file in files:
        for at, row in enumerate(_rows(file, ("pair", "verdict")), 1):
            verdict = row["verdict"].strip().lstrip("'")
            if verdict not in WORTH:
                raise InputError(f"{file}, row {at}: a verdict is one of {', '.join(WORTH)}, not {verdict!r:.20}")
            found.append((row["pair"].strip(), WORTH[verdict]))
    return found


def write_questions(file: Path, items: Iterable[Item]) -> None:
    """Write the questions as CSV, with an empty column for a person's answers."""
    rows = ((each.resident, each.question.id, each.question.text, "") for each in items)
    write_text(file, csv_text(("resident", "question", "text", "answer"), rows))


def write_answers(file: Path, answers: Iterable[Answer]) -> None:
    """Write all answers as CSV, with resident, question and condition."""
    rows = (
        (
            each.item.resident,
            each.item.question.id,
            each.item.question.category,
            each.condition,
            each.item.question.text,
            each.text,
        )
        for each in answers
    )
    write_text(file, csv_text(("resident", "question", "category", "condition", "text", "answer"), rows))


def _rows(file: Path, wanted: tuple[str, ...]) -> list[Mapping[str, str]]:
    with prefixed(file):
        text = decode_clear(read_bytes(file, LARGEST))
    try:
        rows: Any = json.loads(text) if file.suffix.casefold() == ".json" else read_csv(text)
    except (ValueError, csv.Error) as error:
        raise InputError(f"{file} is not valid CSV or JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{file}: expected a JSON list of objects")
    for at, row in enumerate(rows, 1):
        missing = [name for name in wanted if not isinstance(row.get(name), str)]
        if missing:
            raise InputError(f"{file}, row {at}: the field {missing[0]} is missing; expected {', '.join(wanted)}")
    return list(rows)
