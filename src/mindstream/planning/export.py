"""Plans as training data for planners: task to plan, no tool called (Xu 2023, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from mindstream.models.model import ToolSpec
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import MakePlan, describe


class ChatMessage(TypedDict):
    """A message of a chat for training."""

    role: str
    content: str


class ChatExample(TypedDict):
    """One line of a file for chat fine-tuning."""

    messages: list[ChatMessage]


class InstructionExample(TypedDict):
    """One item in the form of the paper authors' planner data."""

    instruction: str
    input: str
    output: str


def to_example(plan: Plan, tools: Sequence[ToolSpec] = ()) -> ChatExample:
    """Return a plan as the chat in which the planner is asked for it."""
    asked = MakePlan(task=plan.task, tools=tuple(map(describe, tools))).messages()
    written = write_plan(plan, tools, with_task=False).rstrip("\n")
    return {
        "messages": [
            *(ChatMessage(role=message.role, content=message.text) for message in asked),
            ChatMessage(role="assistant", content=written),
        ]
    }


def to_instruction(plan: Plan, tools: Sequence[ToolSpec] = ()) -> InstructionExample:
    """Return a plan in the form of the paper authors' data: instruction, input, output."""
    told, _, written = (message["content"] for message in to_example(plan, tools)["messages"])
    return {"instruction": told, "input": plan.task, "output": written}


def solved_plans(runs: Iterable[RunCheckpoint]) -> list[Plan]:
    """Return the plans of runs that answered the whole task with the planner's original plan, each once.

    Revised, given and remembered plans are left out, and those of stopped or partly answered runs.
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
