"""Which question does an answer answer? People have answers more often (Gao 2024, A.3). There is no rule for it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.errors import ReplyInvalid
from mindstream.memory.store.record import normalised
from mindstream.models.prompt import Prompt

LONGEST = 2_000


class DraftedQuestion(BaseModel):
    """The question to an answer."""

    model_config = ConfigDict(frozen=True)

    question: Annotated[str, Field(min_length=3, max_length=LONGEST)]


class DraftQuestion(Prompt[DraftedQuestion]):
    """Write the question to an answer."""

    role: ClassVar[str] = "scorer"
    reply_tokens: ClassVar[int] = 800
    trim_order = (("examples", "first"),)

    domain: str
    answer: str
    examples: tuple[str, ...] = ()

    def parse(self, text: str) -> DraftedQuestion:
        """Read the question, which is not the answer once more."""
        reply = super().parse(text)
        if normalised(reply.question) == normalised(self.answer):
            raise ReplyInvalid("That is the answer. Write the question to it.")
        return reply
