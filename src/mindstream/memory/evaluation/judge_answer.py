"""Is an answer right, by the one that is expected?"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from mindstream.models.prompt import Prompt


class Judgement(BaseModel):
    """Whether an answer is right, and why, in a few words."""

    model_config = ConfigDict(frozen=True)

    why: str
    right: bool


class JudgeAnswer(Prompt[Judgement]):
    """Does this answer say what is expected?

    Attributes:
        expected: "": the talk does not tell.
        points: what a right answer holds, where the data says so.
    """

    role: ClassVar[str] = "judge"
    reply_tokens: ClassVar[int] = 300

    question: str
    answer: str
    expected: str = ""
    points: tuple[str, ...] = ()
