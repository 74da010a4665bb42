"""Reads a plan while it is written: pieces come in, steps come out as soon as their line is complete."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue, ValidationError

from mindstream.models.legible import without_controls
from mindstream.models.prompt import complaints
from mindstream.planning.plan import PlannedStep

LONGEST_LINE = 120_000
"""Maximum length of a line; the rest is ignored."""
MOST_NOTES, SHOWN = 100, 80


@dataclass
class Findings:
    """Results of a reader: steps by id, the task if the text names it, and notes about skipped text."""

    task: str = ""
    steps: dict[str, PlannedStep] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    line: int = 0

    def note(self, why: str, text: str) -> None:
        """Note why a part of the current line was skipped, unless it is blank."""
        if text.strip() and len(self.notes) < MOST_NOTES:
            self.notes.append(f"line {self.line}: {why}: {text.strip()[:SHOWN]!r}")

    def add(
        self, id: str, tool: str, arguments: dict[str, JsonValue], why: str = "", after: tuple[str, ...] = ()
    ) -> list[PlannedStep]:
        """Return the step in a list; [] if it is repeated or invalid. `check` reports two steps of one id."""
        try:
            step = PlannedStep(id=id, tool=tool, arguments=arguments, why=why, after=after)
        except ValidationError as error:
            self.note(f"no step ({complaints(error)[:SHOWN]})", f"{id} = {tool}")
            return []
        if self.steps.get(id) == step:
            self.note("the same step again", f"{id} = {tool}")
            return []
        self.steps.setdefault(id, step)
        return [step]


class LineFormat(Protocol):
    """A plan format that is read line by line."""

    found: Findings

    def read_line(self, line: str) -> list[PlannedStep]:
        """Read a line, and return the steps that are complete now."""

    def end(self) -> list[PlannedStep]:
        """Return the steps that waited for more lines."""


@dataclass
class StepReader:
    """Reads a plan in one format from pieces of any length; never raises."""

    format: LineFormat
    _pieces: list[str] = field(default_factory=list, init=False)
    _length: int = field(default=0, init=False)

    @property
    def task(self) -> str:
        """The task, if the text names it."""
        return self.format.found.task

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about skipped text."""
        return tuple(self.format.found.notes)

    def feed(self, text: str) -> list[PlannedStep]:
        """Read a piece, and return the steps that are complete now."""
        *whole, rest = text.split("\n")
        steps: list[PlannedStep] = []
        for line in whole:
            self._keep(line)
            steps += self._read_line()
        self._keep(rest)
        return steps

    def close(self) -> list[PlannedStep]:
        """Return the steps that were incomplete when the text ended."""
        return [*(self._read_line() if self._length else ()), *self.format.end()]

    def _keep(self, text: str) -> None:
        self._length += len(text)
        if self._length - len(text) < LONGEST_LINE:
            self._pieces.append(text)

    def _read_line(self) -> list[PlannedStep]:
        line, length = "".join(self._pieces), self._length
        self._pieces, self._length = [], 0
        found = self.format.found
        found.line += 1
        if length > LONGEST_LINE:
            found.note(f"{length - LONGEST_LINE} characters of the line are left out", line)
        return self.format.read_line(without_controls(line[:LONGEST_LINE]))
