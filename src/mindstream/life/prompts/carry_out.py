"""M1: carry out a concrete task (the M0, M1, M2 system)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt


class CarryOut(Prompt[str]):
    """Break the task into questions, solve them one by one, and give the result.

    Attributes:
        exemplars: how like tasks were carried out, for a model.
        tools: what is attached from outside, for rules; a model is told of it with its other tools.
    """

    role: ClassVar[str] = "M1"

    task: str
    context: str = ""
    exemplars: tuple[str, ...] = ()
    language: str = "en"
    tools: tuple[ToolSpec, ...] = ()
