"""Which question does an answer answer? People have answers more often than questions (Gao 2024, A.3). There is no rule."""

from __future__ import annotations

from typing import ClassVar

from mindstream.errors import ReplyInvalid
from mindstream.memory.record import normalised
from mindstream.models.prompt import Prompt

LONGEST = 2_000


class DraftQuestion(Prompt[str]):
    """Write the question to an answer."""

    role: ClassVar[str] = "scorer"
    reply_tokens: ClassVar[int] = 500
    lets_go = (("examples", "first"),)

    domain: str
    answer: str
    examples: tuple[str, ...] = ()

    def parse(self, text: str) -> str:
        """Read the question: neither the answer once more, nor a long text."""
        question = super().parse(text).strip()
        if normalised(question) == normalised(self.answer) or len(question) > LONGEST:
            raise ReplyInvalid(f"That is no question to the answer. Write one, of at most {LONGEST:,} characters.")
        return question
