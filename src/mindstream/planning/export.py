"""Plans as examples to train a planner on: task to plan, no tool called (Xu 2023, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.arguments import fill, find_references
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import MakePlan, describe

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChatMessage(TypedDict):
    """A message as chat models are trained on."""

    role: str
    content: str


class ChatExample(TypedDict):
    """One line of a file for chat fine-tuning."""

    messages: list[ChatMessage]


class InstructionExample(TypedDict):
    """One item in the form of the authors' planner data."""

    instruction: str
    input: str
    output: str


def to_example(plan: Plan, tools: Sequence[ToolSpec] = ()) -> ChatExample:
    """Return a plan as the chat in which the runtime asks for it: what a planner is told, the task, the plan."""
    asked = MakePlan(task=plan.task, tools=tuple(map(describe, tools))).messages()
    written = write_plan(plan, tools, with_task=False).rstrip("\n")
    return {
        "messages": [
            *(ChatMessage(role=message.role, content=message.text) for message in asked),
            ChatMessage(role="assistant", content=written),
        ]
    }


def to_instruction(plan: Plan, tools: Sequence[ToolSpec] = ()) -> InstructionExample:
    """Return a plan in the form in which the authors publish theirs: instruction, input, output."""
    told, _, written = (message["content"] for message in to_example(plan, tools)["messages"])
    return {"instruction": told, "input": plan.task, "output": written}


def solved_plans(runs: Iterable[RunCheckpoint]) -> list[Plan]:
    """Return the plans of runs that answered their whole task by the plan as a planner wrote it, each once.

    What was mended, given by a caller, remembered, stopped or left a part unanswered is none of them.
    """
    plans = {
        run.plan.save(): run.plan.model_copy(update={"task": run.task})
        for run in runs
        if run.plan
        and run.plan.steps
        and run.how != "react"
        and run.given is None
        and not run.replans
        and run.answer
        and not run.stopped
        and not run.unanswered
        and not run.remembered
    }
    return list(plans.values())


LONGEST = 80
ESCAPES = str.maketrans({'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "})


def draw(plan: Plan) -> str:
    """Return a flowchart: an arrow where a step takes what another found, a dotted one where it only waits for it."""
    lines = ["flowchart TD"]
    for step in plan.steps:
        why = f"<br/>{_escape(step.why)}" if step.why.strip() else ""
        lines.append(f'    {step.id}["{step.id} · {_escape(step.tool)}{why}"]')
    for step in plan.steps:
        taken = {reference.step for reference in find_references(step.arguments)}
        lines += [f"    {need} {'-->' if need in taken else '-.->'} {step.id}" for need in step.needs]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return shown.translate(ESCAPES)


def outline(plan: Plan) -> str:
    """Return a plan as lines: each step is indented as deep as the chain of steps that it waits for is long."""
    depth: dict[str, int] = {}
    lines = []
    for step in plan.steps:
        depth[step.id] = 1 + max((depth[need] for need in step.needs if need in depth), default=-1)
        after = f"  ← {', '.join(step.needs)}" if step.needs else ""
        indent = "   " * depth[step.id]
        lines.append(f"{indent}{step.id} {step.tool}[{describe_arguments(step.arguments)}]{after}")
        if step.why.strip():
            lines.append(f"{indent}   {' '.join(step.why.split())}")
    return "\n".join(lines)


def table_rows(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """Return of each step its id, tool, arguments, what it waits for, and why."""
    return [
        (step.id, step.tool, describe_arguments(step.arguments), ", ".join(step.needs), step.why) for step in plan.steps
    ]


def describe_arguments(arguments: Mapping[str, JsonValue]) -> str:
    """Return arguments in a line for people, references as `#E1`; their names only where there are several."""
    shown = {name: fill(value, str) for name, value in arguments.items()}
    if len(shown) == 1:
        return " ".join(str(next(iter(shown.values()))).split())
    return " ".join(", ".join(f"{name}={value}" for name, value in shown.items()).split())
