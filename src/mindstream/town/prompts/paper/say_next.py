"""What does somebody say next to another, if anything? (Park 2023, 4.3.2)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import MATTERS, Memory

Manner = Literal["talks", "ends", "declines", "walks on", "leaves"]


class Line(BaseModel):
    """What is said, and whether one goes on talking."""

    model_config = ConfigDict(frozen=True)

    says: str = Field("", max_length=600)
    does: Manner = "talks"
    passes_on: list[int] = Field(default_factory=list, max_length=20)

    @model_validator(mode="after")
    def _has_words(self) -> Line:
        """Only who walks on says nothing."""
        if not self.says.strip() and self.does != "walks on":
            raise ValueError('says is empty: only who "walks on" says nothing')
        return self


class SayNext(Prompt[Line]):
    """What does somebody say next?"""

    role: ClassVar[str] = "talker"

    who: str
    identity: str
    other: str
    relation: str = ""
    standing: str = ""
    """How it stands to the other, in a sentence or two."""
    situation: str
    memories: tuple[Memory, ...] = ()
    """What comes to mind, numbered from 1: of the other, of what was just said, and of what could be told."""
    told: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    """The conversation so far, `name: words`."""
    last_talk: str = ""
    plan: tuple[str, ...] = ()
    """The rest of its day, as `HH:MM what`."""
    left: int = 8


@rule(SayNext)
def say_the_next(ask: SayNext) -> Line:
    """Stand in for a model: greet, and tell what matters most of what the other was not told, as it is remembered."""
    mine = sum(line.startswith(f"{ask.who}: ") for line in ask.lines)
    untold = [n for n, each in enumerate(ask.memories, 1) if n not in ask.told and each.importance >= MATTERS]
    tells = max(untold, key=lambda n: ask.memories[n - 1].importance, default=0)
    if mine >= (2 if ask.relation else 1):
        tells = 0
    words = ["" if mine else f"Hello, {ask.other}.", ask.memories[tells - 1].text if tells else ""]
    said = " ".join(word for word in words if word) or f"See you, {ask.other}."
    ends = not tells and bool(ask.lines)
    return Line(says=said[:600], passes_on=[tells] if tells else [], does="ends" if ends else "talks")
