"""What does the model know itself of what a tool could not find? (Xu 2023, 4.3: ReWOO where tools fail.)"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class OwnKnowledge(BaseModel):
    """What a model knows itself: `text` is "" where that is nothing."""

    model_config = ConfigDict(frozen=True)

    text: str = Field("", max_length=2_000)


class KnowInstead(Prompt[OwnKnowledge]):
    """Say what you know of it; nobody stands in."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 500

    why: str
    call: str
