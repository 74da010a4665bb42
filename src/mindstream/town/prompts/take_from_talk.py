"""What does a conversation leave in somebody's mind, and what was agreed on in it?"""

from __future__ import annotations

import datetime
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mindstream import chance
from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.plan_day import Clock


class Learned(BaseModel):
    """Something that was learned of the other."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=400, description="One sentence.")
    of: int = Field(0, ge=0, le=100, description="The number of the news that it tells of; 0: none.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given


class Agreed(BaseModel):
    """Something that the person has agreed to, or has declined."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=400, description="One sentence: who does what, when and where.")
    comes: bool = Field(True, description="The person will; false: has declined.")
    of: int = Field(0, ge=0, le=100, description="The number of the news that it is about; the rest is then left out.")
    what: str = Field("", max_length=200, description='What is done then, as in "having lunch with Ada".')
    place: int = Field(0, ge=0, le=10_000, description="The number of the place; 0: none of them.")
    day: datetime.date | None = Field(None, description="As YYYY-MM-DD.")
    start: Clock | None = None
    end: Clock | None = None
    who: list[str] = Field(default_factory=list, max_length=20, description="Names of all who have agreed to it.")
    host: str = Field("", max_length=100, description="Who gives it, if somebody does.")


class Taken(BaseModel):
    """What is kept of a conversation."""

    model_config = ConfigDict(frozen=True)

    about: str = Field(min_length=1, max_length=200, description='What it was about, as in "the new bakery".')
    memo: list[Learned] = Field(default_factory=list, max_length=6, description="What was learned of the other.")
    agreed: list[Agreed] = Field(default_factory=list, max_length=6, description="What was really agreed on.")

    @field_validator("memo", mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return [each for each in [given] if each] if isinstance(given, str) else given


class TakeFromTalk(Prompt[Taken]):
    """What does somebody keep of a conversation?"""

    role: ClassVar[str] = "reasoner"

    who: str
    other: str
    identity: str = ""
    date: str
    lines: tuple[str, ...]
    told: tuple[Memory, ...] = ()
    """What the other has passed on of its memories, numbered from 1."""
    busy: tuple[int, ...] = ()
    """The numbers of those at whose hours the person usually works, or is at school."""
    places: tuple[str, ...] = ()
    """Where the two can meet, in words, numbered from 1."""
    day: tuple[str, ...] = ()
    """The day in broad strokes, as `HH:MM what`."""


COMES = 0.6
"""How probable it is, without a model, that somebody comes who was told of something."""


@rule(TakeFromTalk)
def keep_what_was_told(ask: TakeFromTalk) -> Taken:
    """Stand in for a model: the news as it was told; to what takes place one comes or not, by a draw of one's own."""
    kept, agreed = list[Learned](), list[Agreed]()
    for number, news in enumerate(ask.told[:6], 1):
        at, text = news.appointment, news.text[:400]
        if at is None or ask.who in (at.host, *at.who):
            kept.append(Learned(text=text, of=number))
        else:
            comes = chance.fraction("comes", ask.who, at.what, at.host, at.start.isoformat()) < COMES
            comes = comes and number not in ask.busy
            agreed.append(Agreed(text=text, comes=comes, of=number))
    last = next((line for line in reversed(ask.lines) if line.startswith(f"{ask.other}: ")), f": {ask.other}")
    about = ask.told[0].text if ask.told else last.partition(": ")[2]
    return Taken(about=about[:200], memo=kept, agreed=agreed)
