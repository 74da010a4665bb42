"""The items into which all formats are read, and a tally of the fields that were kept and lost."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz
from typing import Any

from pydantic import JsonValue

from mindstream.clock import DAY_S, EARLIEST, LATEST, Moment, parse_iso
from mindstream.errors import clipped
from mindstream.json_values import JsonObject
from mindstream.memory.store.record import Kind, Triple

MAX_EXAMPLE = 80
"""Maximum number of characters that are shown of a value that an import does not store."""
MAX_FIELDS = 1_000
"""Maximum number of names of kept fields that are counted, and of names of lost fields."""
EPOCH = re.compile(r"-?\d{9,19}(\.\d+)?")
"""Matches a time since 1970 as text, in seconds, milliseconds, microseconds or nanoseconds."""
MAIL_DATE = re.compile(r"(?:\w{3}, )?\d{1,2} \w{3} \d{4} ")
MILLISECONDS = 1e11
"""A number above this is not in seconds (which would be after the year 5138) but in milliseconds or smaller units."""
REEMBEDDED = "texts are embedded again, by the embedder of this memory"
DERIVED: Mapping[str, str] = {
    "embedding": REEMBEDDED,
    "vector": REEMBEDDED,
    "score": "a score is only valid for one search",
}
"""Fields that an import does not keep, in any format, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A memory read from a file of another program.

    Attributes:
        source_id: the memory's id in the other program; "": it has none, and its text identifies it.
        by: the author; "": the user whose memory it is.
        user: the user whose memory it was, according to the file; "": not named.
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
    """A field that was not kept: the number of times (`count`), the first value (`example`), and the reason (`why`)."""

    count: int
    example: str
    why: str


@dataclass(slots=True)
class Tally:
    """How often each field was kept or lost."""

    kept: Counter[str] = field(default_factory=Counter)
    lost: dict[str, Lost] = field(default_factory=dict)

    def keep(self, name: str) -> None:
        """Count a field that is kept."""
        if name in self.kept or len(self.kept) < MAX_FIELDS:
            self.kept[name] += 1

    def lose(self, name: str, value: object, why: str) -> None:
        """Count a field that is not kept, with its first value and the reason. Names beyond the first MAX_FIELDS are
        not counted."""
        found = self.lost.get(name)
        if found is not None:
            found.count += 1
        elif len(self.lost) < MAX_FIELDS:
            self.lost[name] = Lost(1, shown(value), why)


def shown(value: object) -> str:
    """Return a value as a short printable text."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = f"a value of the type {type(value).__name__}"
    return clipped("".join(each if each.isprintable() else " " for each in text[: MAX_EXAMPLE + 1]), MAX_EXAMPLE)


class Fields:
    """An object of a file. Each method that reads a field removes and counts it; empty fields count as missing.

    Args:
        within: prefix of the field names in the tally.
    """

    def __init__(self, raw: Mapping[str, Any], tally: Tally, within: str = "") -> None:
        self._left = {name: value for name, value in raw.items() if value is not None and value not in ("", [], {})}
        self._tally, self._within = tally, within

    def value(self, name: str) -> Any:
        """Read a field, and count it as kept; None if it is missing."""
        value = self._left.pop(name, None)
        if value is not None:
            self._tally.keep(self._within + name)
        return value

    def text(self, *names: str) -> str:
        """Read the first of these fields that is a text; "" if none is."""
        for name in names:
            if isinstance(self._left.get(name), str):
                return str(self.value(name))
        return ""

    def name(self, name: str) -> str:
        """Read a field that is a text or an integer, as text; "" if it is neither."""
        value = self._left.get(name)
        return str(self.value(name)) if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def moment(self, name: str) -> Moment | None:
        """Read a date in any format that `read_moment` accepts; None if it is missing or not valid."""
        value = self._left.get(name)
        if value is None:
            return None
        at = read_moment(value)
        if at is None:
            self.lose(name, "not a valid date")
        else:
            self.value(name)
        return at

    def mapping(self, name: str) -> dict[str, Any]:
        """Read a field that is an object; {} if it is not."""
        return self.value(name) if isinstance(self._left.get(name), dict) else {}

    def list(self, name: str) -> list[Any]:
        """Read a field that is a list; [] if it is not."""
        return self.value(name) if isinstance(self._left.get(name), list) else []

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the texts in a field that is a list; () if the field is not a list."""
        return tuple(each for each in self.list(name) if isinstance(each, str))

    def lose(self, name: str, why: str) -> None:
        """Count a field as lost, if it exists."""
        if name in self._left:
            self._tally.lose(self._within + name, self._left.pop(name), why)

    def lose_rest(self, why: str) -> None:
        """Count the remaining fields as lost."""
        for name in list(self._left):
            self.lose(name, DERIVED.get(name, why))

    def rest(self, **left_out: str) -> JsonObject:
        """Return the remaining fields, and count them as kept.

        Args:
            left_out: fields that are counted as lost instead, each with the reason.
        """
        for name, why in {**DERIVED, **left_out}.items():
            self.lose(name, why)
        for name in self._left:
            self._tally.keep(self._within + name)
        return self._left


def read_moment(value: object) -> Moment | None:
    """Parse a date: ISO 8601, RFC 5322, or seconds, milli-, micro- or nanoseconds since 1970; None for anything else.

    The value may also be an object with such a date, as databases export it: `{"$date": …}`, `{"seconds": …}`.
    """
    if isinstance(value, dict):
        value = next((value[key] for key in ("$date", "$numberLong", "seconds", "_seconds") if key in value), None)
        return None if value is None or (isinstance(value, dict) and len(value) > 1) else read_moment(value)
    if isinstance(value, str) and not EPOCH.fullmatch(value):
        try:
            return parse_iso(value)
        except (ValueError, OverflowError):
            return _read_mail_date(value)
    at = float(value) if isinstance(value, str) else value
    if isinstance(at, bool) or not isinstance(at, int | float):
        return None
    if isinstance(at, int) and 19_000_101 <= at <= 99_991_231:  # digits such as 20240501 are a date, not a time in 1970
        return read_moment(str(at))
    at = float(at)
    while abs(at) > MILLISECONDS and abs(at) != math.inf and not LATEST <= at <= LATEST + DAY_S:
        at /= 1000  # milli-, micro- or nanoseconds
    # other programs write dates in the years 9999 and 1 for "never" and "always"
    if LATEST <= at <= LATEST + DAY_S or EARLIEST - DAY_S <= at <= EARLIEST:
        at = min(max(at, EARLIEST), LATEST)
    return at if EARLIEST <= at <= LATEST else None


def _read_mail_date(text: str) -> Moment | None:
    """Parse a date as in mails and HTTP headers (Wed, 01 May 2024 12:00:00 GMT). None: the text is not such a date."""
    found = parsedate_tz(text) if MAIL_DATE.match(text) else None
    if found is None:
        return None
    try:
        return float(mktime_tz(found))
    except (ValueError, OverflowError):
        return None


def present(**data: JsonValue) -> JsonObject:
    """Return the given entries that are not empty."""
    return {name: value for name, value in data.items() if value is not None and value not in ("", [], {})}


def is_deleted(raw: Mapping[str, Any]) -> bool:
    """Return whether an object says that it was deleted in its own program."""
    flags = (raw.get(name) for name in ("deleted", "is_deleted", "isDeleted", "deleted_at", "deletedAt"))
    words = (raw.get(name) for name in ("event", "state", "status"))
    return any(flags) or any(str(each).casefold() in ("delete", "deleted") for each in words)


def branch(parents: Mapping[str, object], at: object) -> list[str]:
    """Return the ids of the messages of a branch, from its beginning to `at`.

    Args:
        parents: for each message, the id of its parent.
    """
    found: dict[str, None] = {}
    while isinstance(at, str) and at in parents and at not in found:  # a damaged file may contain cycles
        found[at] = None
        at = parents[at]
    return list(reversed(found))


def objects(values: Iterable[object], tally: Tally, what: str) -> Iterator[dict[str, Any]]:
    """Yield the values that are objects; count the others as lost."""
    for value in values:
        if isinstance(value, dict):
            yield value
        else:
            tally.lose(what, value, "it is not a JSON object")
