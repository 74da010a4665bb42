"""The model itself as a tool: the `LLM` of ReWOO's planners (Xu 2023)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import StringConstraints

from mindstream.errors import ModelError, ToolError
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt
from mindstream.tools.tool import FunctionTool, Traits, tool

Instruction = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40_000)]
A_DAY_S = 86_400.0
"""Timeout of a call in seconds; the model has its own, which is shorter."""


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
