"""What M2's context is made of: turns, folds of older ones, news; and what a life has spent."""

from __future__ import annotations

from pydantic import BaseModel, Field

from mindstream.clock import Moment
from mindstream.life.ledger import Task
from mindstream.models.model import Message


class Turn(BaseModel):
    """A turn in M2's context."""

    number: int
    because: str = ""
    messages: list[Message] = Field(default_factory=list)
    tainted: bool = False
    """Words of strangers stand in it."""


class News(BaseModel):
    """Something that others did: the row of the log where it stands, a line, and whether the user did it."""

    row: int
    line: str
    by_user: bool = True


class Fold(BaseModel):
    """What became of older turns."""

    text: str
    tainted: bool = False


class Opened(BaseModel):
    """How it stood when the newest turn began, the same at each of its steps; and what was told of others in it."""

    at: Moment = 0.0
    tasks: list[Task] = Field(default_factory=list)
    news: list[str] = Field(default_factory=list)


class LifeSpent(BaseModel):
    """What a life has spent so far: all in all, and on the day of the last call."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    day: str = ""
    usd_today: float = 0.0
    tokens_today: int = 0
    words_today: int = 0
    """Words that it said unasked."""
