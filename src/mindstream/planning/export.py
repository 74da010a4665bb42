"""Export plans as training data for planners: each example maps a task to a plan (Xu 2023, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from mindstream.models.model import ToolSpec
from mindstream.planning.formats.rewoo import write_plan
from mindstream.planning.journal import RunCheckpoint
from mindstream.planning.plan import Plan
from mindstream.planning.prompts import MakePlan, describe


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
    """Return the plans of runs that answered their whole task with the original plan of the planner, each plan once.

    Runs are left out if they were stopped, gave only a part of the answer, used ReAct, or had a plan that was revised,
    given by the caller or remembered.
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
