"""What is worth keeping of the oldest turns, before they fade from M2's context."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt


class FoldTurns(Prompt[str]):
    """Write down what must be known of these turns later."""

    role: ClassVar[str] = "M2"
    reply_tokens: ClassVar[int] = 600
    trim_order: ClassVar = (("turns", "last"),)

    goal: str
    turns: tuple[str, ...]
    language: str = "en"
