"""What is the answer, by what the model knows itself? Direct prompting and chain of thought, as in Xu 2023, 4.1."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt


class AnswerAlone(Prompt[str]):
    """Answer without any tool; nobody stands in. `exemplars`: solved tasks. `reasons`: think first (Wei 2022)."""

    role: ClassVar[str] = "worker"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    exemplars: tuple[str, ...] = ()
    reasons: bool = False
