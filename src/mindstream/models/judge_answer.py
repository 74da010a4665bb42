"""The prompt `JudgeAnswer`: is an answer right? It needs a model: comparing words, as a rule would, is not enough."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class Judgement(BaseModel):
    """Whether an answer is right, and why."""

    model_config = ConfigDict(frozen=True)

    why: str = Field("", max_length=2_000)
    right: bool


class JudgeAnswer(Prompt[Judgement]):
    """Is an answer right, compared with known right answers?

    Attributes:
        expected: right answers, any of which is enough. If there are none, the sources do not contain the answer, and
            a right answer says so.
        points: the content of a right answer, if the data lists it.
    """

    role: ClassVar[str] = "judge"
    reply_tokens: ClassVar[int] = 300

    question: str
    answer: str
    expected: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
