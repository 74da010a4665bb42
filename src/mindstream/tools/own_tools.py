"""A mind's own model and memory as tools: `LLM` (the name in ReWOO's plans, Xu 2023), and `recall`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from mindstream.errors import ModelError, ToolError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, is_tainted
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt
from mindstream.tools.call import UntrustedText
from mindstream.tools.tool import FunctionTool, Traits, Words, tool

Instruction = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40_000)]
A_DAY_S = 86_400.0
"""Timeout of a call in seconds; the model's own timeout is shorter."""


class AskModel(Prompt[str]):
    """What is the result of one instruction?"""

    role: ClassVar[str] = "worker"

    instruction: str


def model_tool(model: Model) -> FunctionTool:
    """Make the tool `LLM`, which asks a model."""

    async def LLM(instruction: Instruction) -> str:  # noqa: N802 (the name that planners know)
        """Let a language model do what needs no look-up: reason, compare, extract, sum up; give it all it needs."""
        try:
            return await ask(model, AskModel(instruction=instruction))
        except ModelError as error:
            raise ToolError(f"the model did not answer: {error}") from None

    return tool(LLM, Traits(timeout_s=A_DAY_S, concludes=True))


MAX_TEXT = 1_000
"""Maximum number of characters of a record that are shown."""
Count = Annotated[int, Field(ge=1, le=20)]


def recall_tool(stream: Memory) -> FunctionTool:
    """Make the tool `recall` over one memory: its searches strengthen no record; tainted results are untrusted."""

    async def recall(query: Words, count: Count = 5) -> str:
        """Look in memory; returns what fits best, each with its day and what it is."""
        found = await stream.recall(query, count, touch=False)
        if not found:
            raise ToolError("nothing is remembered")
        text = "\n".join(_line(each.record) for each in found)
        return UntrustedText(text) if any(is_tainted(each.record) for each in found) else text

    return tool(recall)


def _line(record: Record) -> str:
    day = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d")
    by = f" by {record.by}" if record.by else ""
    mark = ", from outside" if is_tainted(record) else ""
    return f"{day} ({record.kind}{by}{mark}): {' '.join(record.text[:MAX_TEXT].split())}"
