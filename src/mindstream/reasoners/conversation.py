"""A conversation as prompts show it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from mindstream.memory.record import Record
from mindstream.models.model import Message

USER, AGENT = "user", "coach"


class Line(BaseModel):
    """One thing that was said."""

    model_config = ConfigDict(frozen=True)

    by_user: bool
    text: str

    def __str__(self) -> str:
        return f"{USER if self.by_user else AGENT}: {self.text}"

    @property
    def message(self) -> Message:
        """The line as a message of a request."""
        return Message("user" if self.by_user else "assistant", self.text)


def lines(records: Sequence[Record]) -> tuple[Line, ...]:
    """Read chat records as lines."""
    return tuple(Line(by_user=bool(record.data.get("by_user")), text=record.text) for record in records)
