"""What somebody remembers, as prompts show it: its words, and the appointment that it tells of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from mindstream.town.residents.appointment import Appointment

MATTERS = 5.0
"""So important a memory is worth telling, without a model."""


class Memory(BaseModel):
    """Something that somebody remembers; a text alone may stand for one.

    Attributes:
        written: the day on which it was written down, in words; "" where that does not matter.
        importance: 1 to 10.
        appointment: what takes place, where it tells of that. where: its place, in words.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    written: str = ""
    importance: float = 0.0
    appointment: Appointment | None = None
    where: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        return {"text": given} if isinstance(given, str) else given

    @property
    def said(self) -> str:
        """Its words, after the day on which they were written down."""
        return f"({self.written}) {self.text}" if self.written else self.text

    @property
    def line(self) -> str:
        """All of it: `Ada bakes a cake (having tea, at the Inn, 2024-05-01 16:00 to 17:00, host: Ada, comes: Ben)`."""
        at = self.appointment
        if at is None:
            return self.said
        until = f"{at.end:%H:%M}" if at.end.date() == at.start.date() else f"{at.end:%Y-%m-%d %H:%M}"
        unnamed = [name for name in at.who if name not in self.text]
        parts = (
            at.what not in self.text and at.what,
            self.where and f"at {self.where}",
            f"{at.start:%A %Y-%m-%d %H:%M} to {until}",
            at.host and f"host: {at.host}",
            unnamed and f"comes: {', '.join(at.who)}",
        )
        return f"{self.said} ({', '.join(part for part in parts if part)})"
