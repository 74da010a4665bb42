"""What every form is read into: items, and a tally of what was kept of the file and what was not."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from mindstream.clock import EARLIEST, LATEST, Moment, parse_iso
from mindstream.memory.store.record import Kind, Triple

EXAMPLE = 80
"""So many characters of a lost value are shown."""
FIELDS = 1_000
"""So many fields are told apart by name; a file that has more is not what it says."""
EPOCH = re.compile(r"-?\d{9,19}(\.\d+)?")
"""Seconds or milliseconds since 1970, written as a text."""
MILLISECONDS = 1e11
"""A number above counts milliseconds, not seconds: in seconds it would be the year 5138."""
DERIVED: Mapping[str, str] = {
    "embedding": "vectors are made anew, by the embedder of this memory",
    "vector": "vectors are made anew, by the embedder of this memory",
    "score": "it belongs to a search",
}
"""What no form keeps, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that another program remembered.

    Attributes:
        source_id: by which its own program knows it; "": by what it says.
        by: who said it or came to it; "": whose memory it is.
        user: whose memory it was in, as the file says.
    """

    text: str
    source_id: str = ""
    kind: Kind = "note"
    created: Moment | None = None
    by: str = ""
    user: str = ""
    episode: str = ""
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    about: Triple | None = None
    keywords: tuple[str, ...] = ()
    data: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(slots=True)
class Lost:
    """What was not kept of a field: how often, the first of it, and why."""

    count: int
    example: str
    why: str


@dataclass(slots=True)
class Tally:
    """What was kept and what was not, by field."""

    kept: Counter[str] = field(default_factory=Counter)
    lost: dict[str, Lost] = field(default_factory=dict)

    def keep(self, name: str) -> None:
        """Count a field that is kept."""
        if name in self.kept or len(self.kept) < FIELDS:
            self.kept[name] += 1

    def lose(self, name: str, value: object, why: str) -> None:
        """Count a field that is not."""
        found = self.lost.get(name)
        if found is not None:
            found.count += 1
        elif len(self.lost) < FIELDS:
            self.lost[name] = Lost(1, shown(value), why)


def shown(value: object) -> str:
    """Write a value as shortly as a line can bear, in letters that move no cursor."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = f"something of the type {type(value).__name__}"
    text = "".join(each if each.isprintable() else " " for each in text[: EXAMPLE + 1])
    return text if len(text) <= EXAMPLE else f"{text[: EXAMPLE - 1]}…"


class Fields:
    """One object of a file, whose fields are taken one by one; what is empty is no field.

    Args:
        within: stands before its fields' names in the tally.
    """

    def __init__(self, raw: Mapping[str, Any], tally: Tally, within: str = "") -> None:
        self._left = {name: value for name, value in raw.items() if value is not None and value not in ("", [], {})}
        self._tally, self._within = tally, within

    def value(self, name: str) -> Any:
        """Take whatever stands there; None: nothing does."""
        value = self._left.pop(name, None)
        if value is not None:
            self._tally.keep(self._within + name)
        return value

    def text(self, *names: str) -> str:
        """Take the first of these that is a text; "": none is."""
        for name in names:
            if isinstance(self._left.get(name), str):
                return str(self.value(name))
        return ""

    def name(self, name: str) -> str:
        """Take a name, or a number that stands for one."""
        value = self._left.get(name)
        return str(self.value(name)) if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def moment(self, name: str) -> Moment | None:
        """Take a date, in any of the ways in which programs write them."""
        value = self._left.get(name)
        if value is None:
            return None
        at = read_moment(value)
        if at is None:
            self.lose(name, "it is no date that a calendar has")
        else:
            self.value(name)
        return at

    def mapping(self, name: str) -> dict[str, Any]:
        """Take an object; {}: there is none."""
        return self.value(name) if isinstance(self._left.get(name), dict) else {}

    def list(self, name: str) -> list[Any]:
        """Take a list; []: there is none."""
        return self.value(name) if isinstance(self._left.get(name), list) else []

    def texts(self, name: str) -> tuple[str, ...]:
        """Take the texts of a list; (): there is none."""
        return tuple(each for each in self.list(name) if isinstance(each, str))

    def lose(self, name: str, why: str) -> None:
        """Leave a field out, if it is there."""
        if name in self._left:
            self._tally.lose(self._within + name, self._left.pop(name), why)

    def lose_rest(self, why: str) -> None:
        """Leave out what nobody took."""
        for name in list(self._left):
            self.lose(name, DERIVED.get(name, why))

    def rest(self, **left_out: str) -> dict[str, JsonValue]:
        """Take what nobody took, but for what is left out, and why."""
        for name, why in {**DERIVED, **left_out}.items():
            self.lose(name, why)
        for name in self._left:
            self._tally.keep(self._within + name)
        return self._left


def read_moment(value: object) -> Moment | None:
    """Read a date as ISO 8601, or as seconds, milli-, micro- or nanoseconds since 1970; None: it is none."""
    try:
        at = (float(value) if EPOCH.fullmatch(value) else parse_iso(value)) if isinstance(value, str) else value
    except (ValueError, OverflowError):
        return None
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    while abs(at) > MILLISECONDS and abs(at) != math.inf:  # milli-, micro- or nanoseconds
        at = float(at) / 1000
    at = float(at)
    return at if EARLIEST <= at <= LATEST else None


def present(**data: JsonValue) -> dict[str, JsonValue]:
    """Return what is there of these entries."""
    return {name: value for name, value in data.items() if value is not None and value not in ("", [], {})}


def objects(values: Iterator[object], tally: Tally, what: str) -> Iterator[dict[str, Any]]:
    """Yield those that are objects."""
    for value in values:
        if isinstance(value, dict):
            yield value
        else:
            tally.lose(what, value, "an object is wanted")
