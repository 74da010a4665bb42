"""M0: think deeply about one concrete question (the M0, M1, M2 system; chain of thought, Wei 2022)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt


class ThinkDeeply(Prompt[str]):
    """Think a question through, and give what comes of it."""

    role: ClassVar[str] = "M0"
    reply_tokens: ClassVar[int] = 2_000

    question: str
    context: str = ""
    language: str = "en"
