"""What does a conversation leave in somebody's mind, and what does it mean for its plans?"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class Taken(BaseModel):
    """What is kept of a conversation."""

    model_config = ConfigDict(frozen=True)

    about: str = Field(min_length=1, max_length=200, description='What it was about, as in "the new bakery".')
    memo: str = Field("", max_length=400, description="What was learned of the other, in one sentence; empty: nothing.")
    plan: str = Field(
        "", max_length=400,
        description="What one will do oneself, a sentence for each: name first, with day, time and place.",
    )  # fmt: skip


class TakeFromTalk(Prompt[Taken]):
    """What does somebody keep of a conversation?"""

    role: ClassVar[str] = "reasoner"

    who: str
    other: str
    identity: str = ""
    date: str
    lines: tuple[str, ...]
