"""Any text read as a plan, in one of the published forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mindstream.models.model import ToolSpec
from mindstream.planning.formats.compiler import Compiler
from mindstream.planning.formats.numbered import Numbered
from mindstream.planning.formats.reader import LineFormat, StepReader
from mindstream.planning.formats.rewoo import Rewoo
from mindstream.planning.plan import Plan

FormatName = Literal["rewoo", "compiler", "numbered"]
FORMATS: dict[FormatName, Callable[[Sequence[ToolSpec]], LineFormat]] = {
    "rewoo": Rewoo,
    "compiler": Compiler,
    "numbered": Numbered,
}


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan as it was read, and notes of what was skipped and why."""

    plan: Plan
    notes: tuple[str, ...] = ()


def open_reader(format: FormatName = "rewoo", tools: Sequence[ToolSpec] = ()) -> StepReader:
    """Return a reader to be fed; `tools` say which arguments the inputs are for."""
    return StepReader(FORMATS[format](tools))


def read(text: str, tools: Sequence[ToolSpec] = (), format: FormatName = "rewoo", task: str = "") -> ReadPlan:
    """Read a whole text; `task` is the plan's where the text names none. No text makes it raise."""
    reader = open_reader(format, tools)
    steps = (*reader.feed(text), *reader.close())
    return ReadPlan(Plan(task=reader.task or task, steps=steps), reader.notes)
