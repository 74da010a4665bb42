"""A plan written in ReWOO's form, so that it reads back to the same plan."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.arguments import TEXT, parse_part
from mindstream.planning.formats.inputs import find_spec, main_argument
from mindstream.planning.formats.reader import StepReader
from mindstream.planning.formats.rewoo import Rewoo, scan_text
from mindstream.planning.plan import Plan, PlannedStep


def write_plan(plan: Plan, tools: Sequence[ToolSpec] = (), with_task: bool = True) -> str:
    """Return the text: words as they are where they read back the same, else as JSON."""
    lines = [_write_task(plan.task)] if with_task and plan.task else []
    for step in plan.steps:
        lines += [_write_why(step.why), _write_step(step, tools)]
    return "".join(f"{line}\n" for line in lines)


def _write_task(task: str) -> str:
    plain = f"Question: {task}"
    reader = StepReader(Rewoo())
    steps = [*reader.feed(f"{plain}\n"), *reader.close()]
    return plain if reader.task == task and not steps and not reader.notes else f"Question: {_quote(task)}"


def _write_why(why: str) -> str:
    plain = f"Plan: {why}".rstrip()
    step = PlannedStep(id="E1", tool="t", why=why)
    return plain if _read(f"{plain}\n#E1 = t[]\n") == [step] else f"Plan: {_quote(why)}"


def _write_step(step: PlannedStep, tools: Sequence[ToolSpec]) -> str:
    after = f" after {', '.join(f'#{id}' for id in step.after)}" if step.after else ""
    head = f"#{step.id}{after} = {step.tool}"
    bare = step.model_copy(update={"why": ""})
    plain = (f"{head}[{text}]" for text in _plain_inputs(step, tools))
    return next((line for line in plain if _read(f"{line}\n", tools) == [bare]), f"{head}[{_write_json(step)}]")


def _plain_inputs(step: PlannedStep, tools: Sequence[ToolSpec]) -> Iterable[str]:
    if not step.arguments:
        yield ""
    if [*step.arguments] == [main_argument(find_spec(step.tool, tools))]:
        (value,) = step.arguments.values()
        part = parse_part(value)
        yield str(part) if part else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_json(step: PlannedStep) -> str:
    return json.dumps({name: _as_written(each) for name, each in step.arguments.items()}, ensure_ascii=False)


def _as_written(value: JsonValue) -> JsonValue:
    """Return JSON whose texts, searched for references, give the value again."""
    if (part := parse_part(value)) is not None:
        return str(part) if scan_text(str(part)) == value else value
    if isinstance(value, str):
        return value if scan_text(value) == value else {TEXT: [value]}
    if isinstance(value, list):
        return [_as_written(each) for each in value]
    return {key: _as_written(each) for key, each in value.items()} if isinstance(value, dict) else value


def _read(text: str, tools: Sequence[ToolSpec] = ()) -> list[PlannedStep]:
    reader = StepReader(Rewoo(tools))
    return [*reader.feed(text), *reader.close()]


def _quote(words: str) -> str:
    """Return words as one JSON text in which no step can be seen."""
    quoted = json.dumps(words, ensure_ascii=False)
    return quoted.replace("#", "\\u0023").replace("＃", "\\uff03")
