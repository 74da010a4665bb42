"""Memories and places in the form in which prompts show them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from mindstream.frozen import Frozen
from mindstream_town.residents.person import Appointment

MATTERS = 5.0
"""Minimum importance of a memory that residents without a model tell others."""


class Memory(Frozen):
    """A memory in a prompt; a plain text is accepted instead.

    Attributes:
        written: the day on which the memory was created, in words; "": not shown.
        importance: from 1 to 10; 0: not rated.
        appointment: the appointment that the memory is about. where: the place of the appointment in words.
    """

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
        """The text of the memory, preceded by its day."""
        return f"({self.written}) {self.text}" if self.written else self.text

    @property
    def line(self) -> str:
        """The text with its appointment: `Ada bakes a cake (having tea, at the Inn, Wednesday 2024-05-01 16:00 to
        17:00, host: Ada, comes: Ben)`."""
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


def _names(given: Any) -> Any:
    """Accept a single name or number as a list of one, and None or "" as an empty list."""
    if given is None or given == "":
        return []
    return [str(given)] if isinstance(given, str | int) else [str(each) for each in given]


Where = Annotated[list[str], BeforeValidator(_names), Field(max_length=4)]
"""A path of names such as `["Oak Cafe", "cafe", "counter"]`; `[]`: nowhere in particular.

A number alone refers to a line of the list in the prompt; small models may use it instead of spelling names.
"""


def path_of(names: object) -> str:
    """Return a place as prompts show it: `Oak Cafe > cafe > counter`."""
    return " > ".join(str(names).split(":")[1:])
