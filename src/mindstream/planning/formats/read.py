"""Any text read as a plan, in one of the published forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from mindstream.errors import InputError
from mindstream.models.model import ToolSpec
from mindstream.planning.formats.compiler import Compiler
from mindstream.planning.formats.inputs import find_spec
from mindstream.planning.formats.json_plan import read_json_plan
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


def read_other(text: str, tools: Sequence[ToolSpec]) -> Plan | None:
    """Read a planner's text that holds no step in ReWOO's form: as JSON, or as LLMCompiler's calls.

    None where it is neither, or names a tool that is not there: it was meant as something else.
    """
    try:
        plan = read_json_plan(text, tools)
    except (InputError, ValidationError):
        plan = read(text, tools, "compiler").plan
    return plan if plan.steps and all(find_spec(step.tool, tools) for step in plan.steps) else None


def read_any(text: str, tools: Sequence[ToolSpec] = ()) -> ReadPlan:
    """Read a plan that somebody wrote: JSON, or the first of the three forms that finds a step in the text.

    Raises:
        InputError: no step stands in it, or the JSON is no plan; the message says where.
    """
    if text.lstrip().startswith("{"):
        try:
            return ReadPlan(Plan.load(text))
        except InputError:
            try:
                return ReadPlan(read_json_plan(text, tools))
            except (InputError, ValidationError):
                pass
            raise
    tried = [read(text, tools, format) for format in FORMATS]
    for found in tried:
        if found.plan.steps:
            return found
    where = next((f": {found.notes[0]}" for found in tried if found.notes), "")
    raise InputError(
        f'no step of a plan stands in it{where}; a step looks like `#E1 = Tool[input]`, `1. tool("input")`, '
        "or is an item of a numbered list"
    )
