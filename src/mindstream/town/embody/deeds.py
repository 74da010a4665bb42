"""What a person who lives as somebody can do in a step."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

LONGEST_SAID = 600
"""So many characters are said at once."""
LONGEST_DONE = 300
MOST_MINUTES = 1_440
Way = Literal["up", "down", "left", "right"]
WAYS: dict[Way, tuple[int, int]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""On a map of tiles, whose y goes down."""


class _Deed(BaseModel):
    model_config = ConfigDict(frozen=True)


class Begin(_Deed):
    """Live as somebody from now on.

    Attributes:
        place: the address where a visitor comes in.
    """

    person: str
    place: str = ""


class Go(_Deed):
    """Walk to a place, by its address."""

    place: str


class Step(_Deed):
    """Take one step, to a spot beside one's own."""

    spot: tuple[int, int]


class Do(_Deed):
    """Do something for so many minutes, there or (by its address) elsewhere."""

    what: str = Field(min_length=1, max_length=LONGEST_DONE)
    minutes: int = Field(15, ge=1, le=MOST_MINUTES)
    place: str = ""


class Say(_Deed):
    """Say something to somebody, by the whole name; `to_all`: all who are near and free hear and remember it."""

    text: str = Field(min_length=1, max_length=LONGEST_SAID)
    to: str
    to_all: bool = False


class End(_Deed):
    """Talk no more; where one has said nothing yet: do not answer."""


class Leave(_Deed):
    """Live as somebody no longer."""


Deed: TypeAlias = Begin | Go | Step | Do | Say | End | Leave
