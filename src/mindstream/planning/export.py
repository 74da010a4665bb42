"""Plans as examples to train a planner on: task to plan, no tool called (Xu 2023, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from mindstream.models.model import ToolSpec
from mindstream.planning.formats.inputs import main_argument
from mindstream.planning.formats.rewoo_text import write_plan
from mindstream.planning.plan import Plan


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


def write_instruction(tools: Sequence[ToolSpec]) -> str:
    """Return what a planner is told, whatever its task: the form of a plan, and the tools."""
    listed = "\n".join(f"{spec.name}[{main_argument(spec)}]: {' '.join(spec.description.split())}" for spec in tools)
    return (
        "Make a plan that solves the task step by step, before anything is done. For each step write why it is needed, "
        "`Plan: …`, and on the next line the tool with its input, `#E1 = Tool[input]`. What a step finds is called "
        f"#E1, #E2 and so on, and the inputs of later steps may name it.\n\nTools:\n{listed or '(none)'}"
    )


def to_example(plan: Plan, tools: Sequence[ToolSpec] = ()) -> ChatExample:
    """Return a plan as a chat: what a planner is told, the task, the plan."""
    instruction = to_instruction(plan, tools)
    return {
        "messages": [
            {"role": "system", "content": instruction["instruction"]},
            {"role": "user", "content": instruction["input"]},
            {"role": "assistant", "content": instruction["output"]},
        ]
    }


def to_instruction(plan: Plan, tools: Sequence[ToolSpec] = ()) -> InstructionExample:
    """Return a plan as the authors publish theirs: instruction, input, output."""
    output = write_plan(plan, tools, with_task=False)
    return {"instruction": write_instruction(tools), "input": plan.task, "output": output.rstrip("\n")}
