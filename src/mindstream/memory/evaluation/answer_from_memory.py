"""Answer a question from what is remembered of a talk, and from nothing else."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt, rule


class AnswerFromMemory(Prompt[str]):
    """What is the answer, by these lines alone?

    Attributes:
        recalled: lines of the talk, in the order in which they were said.
        asked: the day on which it is asked.
    """

    role: ClassVar[str] = "reader"
    reply_tokens: ClassVar[int] = 300

    recalled: tuple[str, ...]
    question: str
    asked: str = ""


@rule(AnswerFromMemory)
def answer_nothing(ask: AnswerFromMemory) -> str:
    """Say that nobody can: to read wants a model."""
    return f"No model reads here; {len(ask.recalled)} lines were recalled."
