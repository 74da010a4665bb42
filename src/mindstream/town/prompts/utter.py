"""What does somebody say next in a conversation? (Park 2023, 4.3.2)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class Utterance(BaseModel):
    """What is said."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=600)
    passes_on: list[int] = Field(default_factory=list, max_length=20, description="Numbers of memories that it tells.")
    ends: bool = Field(False, description="The conversation is over with it.")


class Utter(Prompt[Utterance]):
    """What does somebody say next?"""

    role: ClassVar[str] = "talker"

    who: str
    identity: str
    other: str
    relation: str = ""
    situation: str
    memories: tuple[str, ...] = ()
    """What comes to mind, numbered from 1: of the other, and of what could be told."""
    told: tuple[int, ...] = ()
    """Which of them the other was told already."""
    lines: tuple[str, ...] = ()
    """The conversation so far, `name: words`."""
    last_talk: str = ""
    """When the two talked before: "today", "before"; "" never."""
    day: tuple[str, ...] = ()
    """The day in broad strokes, as `HH:MM what`."""
    left: int = 8
    """So many lines can still be said, this one included."""
