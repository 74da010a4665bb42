"""Which of two answers would this person more believably have given? No rule stands in: nobody but a reader can say."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt

Better = Literal["first", "second", "equal"]


class Verdict(BaseModel):
    """Which answer is more believable, and why."""

    model_config = ConfigDict(frozen=True)

    why: str = Field(max_length=400, description="One sentence: what decides.")
    better: Better = Field(description="The more believable answer; equal: neither is.")


class JudgePair(Prompt[Verdict]):
    """Which of two answers to a question is more believable for a resident?"""

    role: ClassVar[str] = "judge"

    who: str
    when: str
    facts: tuple[str, ...]
    """Who the person is, and what it does, plans and remembers, a line each."""
    question: str
    first: str
    second: str
