"""A conversation as prompts show it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from mindstream.clock import written
from mindstream.memory.record import Record
from mindstream.models.model import Message

USER, AGENT = "user", "coach"


class Line(BaseModel):
    """One thing that was said."""

    model_config = ConfigDict(frozen=True)

    by_user: bool
    text: str

    def __str__(self) -> str:
        text = self.text.replace("\n", "\n    ")  # a line break in what was said cannot begin a line of somebody else
        return f"{USER if self.by_user else AGENT}: {text}"

    @property
    def message(self) -> Message:
        """The line as a message of a request."""
        return Message("user" if self.by_user else "assistant", self.text)


class Note(BaseModel):
    """Something that memory holds, with the day it was learnt."""

    model_config = ConfigDict(frozen=True)

    day: str
    text: str

    def __str__(self) -> str:
        return f"{self.day}: {self.text}"


def note(record: Record) -> Note:
    """Read a record as a note."""
    return Note(day=written(record.created)[:10], text=record.text)


def lines(records: Sequence[Record]) -> tuple[Line, ...]:
    """Read chat records as lines."""
    return tuple(Line(by_user=bool(record.data.get("by_user")), text=record.text) for record in records)
