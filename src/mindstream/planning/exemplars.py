"""Exemplars: solved tasks for the planner's prompt.

They are shipped with the package, read from a file, or found in a pool. The plans of past runs can be exported in the
same form, as training data for planners (Xu 2023, section 3.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

from mindstream.errors import InputError
from mindstream.memory.recall.exemplars import SHOTS, Example, Exemplars
from mindstream.models.model import ToolSpec
from mindstream.planning.formats.read import read, read_named
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import MakePlan, describe
from mindstream.tools.call import UntrustedText

MOST = 64
"""Maximum number of exemplars in a file."""

SHIPPED, NONE = "shipped", "none"
SHIPPED_FILE = Path(__file__).with_name("exemplars.txt")
SEARCH = "search"
"""Name that stands for any tool with an argument `query` in the shipped exemplars."""


class LessonText(str):
    """Lessons of a pool as one text in the prompts of planner and solver.

    Attributes:
        ids: the ids of the lessons.
        foreign: whether a lesson was learned from work that contained third-party content.
    """

    ids: tuple[str, ...]
    foreign: bool

    def __new__(cls, example: Example) -> LessonText:
        """Create the text from an example that contains lessons."""
        made = super().__new__(cls, example.text)
        made.ids, made.foreign = example.lessons, example.foreign
        return made


async def find_exemplars(given: Sequence[str] | Exemplars, task: str) -> tuple[str, ...]:
    """Return the exemplars for a task: the given texts, or the best ones that a source finds.

    Third-party exemplars are returned as `UntrustedText`; a plan based on them is untrusted (`Plan.foreign`).
    """
    found = given if isinstance(given, Sequence) else await given.examples(task, SHOTS)
    return tuple(each if isinstance(each, str) else _as_text(each) for each in found)


def _as_text(example: Example) -> str:
    if example.lessons:
        return LessonText(example)
    return UntrustedText(example.text) if example.foreign else example.text


def choose_exemplars(named: str, tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return exemplars by name: `shipped`, `none` (or ""), or a file.

    Raises:
        InputError: the file cannot be read, or contains no exemplar.
    """
    if named in ("", NONE):
        return ()
    return shipped_exemplars(tools) if named == SHIPPED else read_exemplars(read_named(Path(named)))


def shipped_exemplars(tools: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return the shipped exemplars that use only tools in `tools`. SEARCH in an exemplar stands for the first of these
    tools that has an argument `query`; the tool's name replaces it."""
    search = next((each.name for each in tools if "query" in each.arguments), "")
    names = {each.name for each in tools} | ({SEARCH} if search else set())
    return tuple(
        each.replace(f"= {SEARCH}[", f"= {search}[")
        for each in read_exemplars(SHIPPED_FILE.read_text("utf-8"))
        if {step.tool for step in read(each).plan.steps} <= names
    )


BETWEEN = re.compile(r"^-{3,}[ \t]*$", re.MULTILINE)


def read_exemplars(text: str) -> tuple[str, ...]:
    """Read exemplars: texts separated by lines of `---`, or JSON Lines as `mindstream plan export` writes them.

    Raises:
        InputError: there are no exemplars, or more than MOST; or a line of JSON is not an exemplar (the message has the
            number of the line).
    """
    if text.lstrip().startswith("{"):
        numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        found = [_parse(line, number) for number, line in numbered]
    else:
        found = [part.strip() for part in BETWEEN.split(text) if part.strip()]
    if not 0 < len(found) <= MOST:
        raise InputError(
            f"expected 1 to {MOST} exemplars, as JSON Lines or separated by lines of ---; found {len(found)}"
        )
    return tuple(found)


def _parse(line: str, number: int) -> str:
    try:
        given = json.loads(line)
        if "messages" in given:
            by_role = {message["role"]: str(message["content"]) for message in given["messages"]}
            task, plan = by_role["user"].strip(), by_role["assistant"]
            task = task.removeprefix("<task>").removesuffix("</task>").strip()  # the prompt puts the tags around it
        else:
            task, plan = str(given["input"]), str(given["output"])
    except (ValueError, LookupError, TypeError, RecursionError):
        wanted = '{"messages": […]} or {"input": …, "output": …}'
        raise InputError(f"line {number} is not an exemplar; expected {wanted}, as `plan export` writes it") from None
    return f"Question: {task}\n{plan}"


class ChatMessage(TypedDict):
    """A message of a training example in chat form."""

    role: str
    content: str


class ChatExample(TypedDict):
    """A training example in chat form: one line of a file for fine-tuning."""

    messages: list[ChatMessage]


class InstructionExample(TypedDict):
    """A training example in the form of the planner data published with Xu 2023."""

    instruction: str
    input: str
    output: str


def to_example(plan: Plan, tools: Sequence[ToolSpec] = ()) -> ChatExample:
    """Return a plan as a training example in chat form: the planner's prompt, and the plan as the reply."""
    asked = MakePlan(task=plan.task, tools=tuple(map(describe, tools))).messages()
    written = write_plan(plan, tools, with_task=False).rstrip("\n")
    return {
        "messages": [
            *(ChatMessage(role=message.role, content=message.text) for message in asked),
            ChatMessage(role="assistant", content=written),
        ]
    }


def to_instruction(plan: Plan, tools: Sequence[ToolSpec] = ()) -> InstructionExample:
    """Return a plan as a training example in the form of Xu 2023: instruction, input, output."""
    told, _, written = (message["content"] for message in to_example(plan, tools)["messages"])
    return {"instruction": told, "input": plan.task, "output": written}


def solved_plans(runs: Iterable[RunCheckpoint]) -> list[Plan]:
    """Return the plans of the runs that answered their whole task with the planner's original plan; each plan once.

    Left out are runs that were stopped, that answered only a part of the task, that used ReAct, or that began to revise
    their plan. Plans that the caller gave, or that were remembered from another task, are left out, too.
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
