"""A cell is one answer of an experiment; a ledger keeps them in a file, and a run that was ended goes on there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

from mindstream.errors import InputError
from mindstream.private_files import append_private
from mindstream.sharing.events import Form

STAGES = 5
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
    """

    def __init__(self, file: Path | None, header: Mapping[str, Any]) -> None:
        self.file = file
        self.answers: dict[str, CellAnswer] = {}
        if file is None:
            return
        header = json.loads(json.dumps(header))
        try:
            if not self._read(file, header):
                self._write({"experiment": header})
        except OSError as error:
            raise InputError(f"{file} cannot be used: {error.strerror}") from None

    def keep(self, key: str, answer: CellAnswer) -> None:
        """Keep an answer: a cell's, or what an agent gave to what streamed in."""
        self.answers[key] = answer
        self._write({"cell": key, "text": answer.text, "model": answer.model, "shown": answer.shown})

    def _read(self, file: Path, header: Mapping[str, Any]) -> bool:
        """Read what is there; whether anything was. A last line that was broken off is cut away."""
        if not file.exists():
            return False
        whole = file.read_bytes()
        lines = whole.split(b"\n")
        try:
            rows = [json.loads(line) for line in lines[:-1]]
            if rows and rows[0]["experiment"] != header:
                raise InputError(f"{file}: {_difference(rows[0]['experiment'], header)}; name another file with --out")
            for row in rows[1:]:
                self.answers[row["cell"]] = CellAnswer(row["text"], row["model"], tuple(row["shown"]))
        except (ValueError, LookupError, TypeError):
            raise InputError(f"{file} is no experiment's file; name another one with --out") from None
        if lines[-1]:
            os.truncate(file, len(whole) - len(lines[-1]))
        return bool(rows)

    def _write(self, row: Mapping[str, Any]) -> None:
        if self.file is not None:
            with append_private(self.file) as out:
                out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _difference(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    name = next((name for name in wanted if there.get(name) != wanted[name]), "")
    return f"its {name} is {there.get(name)!r}, and now it is {wanted.get(name)!r}"
