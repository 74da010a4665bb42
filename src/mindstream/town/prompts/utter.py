"""What does somebody say next in a conversation? (Park 2023, 4.3.2)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import MATTERS, Memory


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
    memories: tuple[Memory, ...] = ()
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


@rule(Utter)
def tell_the_next(ask: Utter) -> Utterance:
    """Stand in for a model: greet, and tell what matters most of what the other was not told, as it is remembered.

    Each tells one thing, to whom one knows two.
    """
    mine = sum(line.startswith(f"{ask.who}: ") for line in ask.lines)
    untold = [n for n, each in enumerate(ask.memories, 1) if n not in ask.told and each.importance >= MATTERS]
    tells = max(untold, key=lambda n: ask.memories[n - 1].importance, default=0)
    if mine >= (2 if ask.relation else 1):
        tells = 0
    words = ["" if mine else f"Hello, {ask.other}.", ask.memories[tells - 1].text if tells else ""]
    said = " ".join(word for word in words if word) or f"See you, {ask.other}."
    return Utterance(text=said[:600], passes_on=[tells] if tells else [], ends=not tells and bool(ask.lines))
