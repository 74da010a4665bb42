"""Validation of everything that is written to a memory: `retain`, commits and imports all use it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

import numpy as np

from mindstream.clock import EARLIEST, LATEST, Moment, format_iso, out_of_range
from mindstream.errors import InputError
from mindstream.identifiers import normal_name
from mindstream.memory.store.record import KINDS, SLOTTED, Kind, Record, Triple, Vector, nfc

if TYPE_CHECKING:
    from pydantic import JsonValue

    from mindstream.memory.store.store import Commit, Entry, Revision

MAX_TEXT, MAX_UTTERANCE = 100_000, 32_000
"""Maximum length of a record's text, and of one message to a mind, a life or a town, in characters (Unicode code
points, like in Python and JSON Schema). The REST and MCP schemas use these values as `maxLength`."""
MAX_COUNT = 2**63 - 1
"""Maximum number of records that a call can request."""
MAX_NAME, MAX_KEYWORDS, MAX_EVIDENCE = 500, 1_000, 100_000
"""MAX_NAME: maximum length of a name, a keyword or a part of a triple, in characters. MAX_KEYWORDS, MAX_EVIDENCE:
maximum number of a record's keywords, and of its ids of evidence."""
MAX_VALUES, MAX_NESTING = 20_000, 40
"""Maximum number of values, and of nesting levels, in a record's data."""
MAX_LEVEL, MAX_DEPTH, MAX_VERSION = 32_000, 1_000_000, 2**53

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ID = re.compile(r"[\w-]{6,64}")


def checked_text(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text in the form in which it is stored: NFC, trimmed, no control characters except tab and line break.

    Raises:
        InputError: nothing is left, or the text has more than `longest` characters.
    """
    _require(isinstance(text, str), "text", "a text", text)
    clean = _clean(text)
    if not clean:
        raise InputError("the text has nothing to read: it is empty or has only spaces and control characters")
    size = max(len(text), len(clean))  # JSON Schema limits the length before cleaning
    if size > longest:
        raise InputError(
            f"the text is too long: {size:,} characters, and at most {longest:,} are accepted;"
            " shorten it or send it in parts"
        )
    return clean


def _clean(text: str) -> str:
    text = text if text.isprintable() else CONTROL.sub("", text.replace("\r\n", "\n"))
    return nfc(text).strip()


def shortened(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text; if it is cut, it ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"


def fitted_text(text: str) -> str:
    """Clean a text that a model wrote, as `checked_text` does, but shorten it if it is too long.

    Raises:
        InputError: nothing is left.
    """
    return checked_text(shortened(_clean(text), MAX_TEXT) if len(text) > MAX_TEXT else text)


def checked_kinds(kinds: Collection[Kind]) -> tuple[Kind, ...]:
    """Return kinds of records.

    Raises:
        InputError: `kinds` is not a list of kinds, or one of them does not exist.
    """
    _require(
        isinstance(kinds, Collection) and not isinstance(kinds, str | bytes), "kinds", 'a list such as ["note"]', kinds
    )
    for kind in kinds:
        _require(kind in KINDS, "kinds", f"some of {', '.join(KINDS)}", kind)
    return tuple(kinds)


def checked_fields(fields: Mapping[str, JsonValue] | None, name: str) -> dict[str, JsonValue]:
    """Return fields by name, {} for None.

    Raises:
        InputError: `fields` is not a mapping.
    """
    _require(fields is None or isinstance(fields, Mapping), name, 'a mapping such as {"city": "Ulm"}', fields)
    return dict(fields or {})


def checked_words(text: str, name: str) -> str:
    """Check only the type of a text that is not stored, such as a question; return it unchanged.

    Raises:
        InputError: `text` is not a text.
    """
    _require(isinstance(text, str), name, "a text", text)
    return text


def checked_importance(importance: float | None) -> float | None:
    """Return an importance between 1 and 10, or None; otherwise raise InputError."""
    if importance is not None and not (_is_number(importance) and 1 <= importance <= 10):
        raise InputError(f"importance must be a number from 1 to 10, not {_shown(importance)}")
    return importance


def checked_record(record: Record) -> Record:
    """Check a record that is to be written, and return it without control characters.

    Raises:
        InputError: a field is invalid; the message names the field.
    """
    is_id = isinstance(record.id, str) and _ID.fullmatch(record.id)
    _require(is_id, "id", "6 to 64 letters, digits, _ and -", record.id)
    if record.kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, not {_shown(record.kind)}")
    _check_times(record, created=0.0, accessed=0.0, forgotten=0.0, valid_from=EARLIEST, valid_until=EARLIEST)
    checked_importance(record.importance)
    check_whole(record.level, "level", -1, MAX_LEVEL)
    check_whole(record.depth, "depth", 0, MAX_DEPTH)
    _require(isinstance(record.lasting, bool), "lasting", "true or false", record.lasting)
    if (record.slot is None) != (record.version is None):
        raise InputError("slot and version must be given together: only one of them is set")
    if record.slot is not None:
        check_whole(record.version, "version", 1, MAX_VERSION)
        if record.kind not in SLOTTED:
            raise InputError(f"slot: only beliefs and plans have one, not a {record.kind}")
        _require(record.slot and _name(record.slot, "slot") == record.slot, "slot", "a name", record.slot)
    _check_links(record)
    _check_data(record)
    check_vector(record.vector)
    return legible_record(record)


def legible_record(record: Record) -> Record:
    """Return a record whose text, keywords and triple are in NFC, and whose names have no control characters.

    Raises:
        InputError: one of these is invalid; the message names it.
    """
    text, by, episode = checked_text(record.text), _name(record.by, "by"), _name(record.episode, "episode")
    keywords = tuple(nfc(_name(each, "keywords")) for each in record.keywords) if record.keywords else record.keywords
    about = record.about
    if about:
        _require(isinstance(about, Triple), "about", "subject, predicate and object", about)
        about = Triple(*(nfc(_name(each, "about")) for each in about))
    if (text, by, episode, keywords, about) == (record.text, record.by, record.episode, record.keywords, record.about):
        return record
    return replace(record, text=text, by=by, episode=episode, keywords=keywords, about=about)


def checked_moment(at: Moment, what: str, earliest: Moment = 0.0) -> Moment:
    """Return a time if a calendar can express it; otherwise raise InputError."""
    if not (_is_number(at) and earliest <= at <= LATEST):
        raise InputError(f"{what}: {out_of_range(at, 1970 if earliest >= 0 else 1)}")
    return at


def check_interval(begins: Moment | None, ends: Moment | None) -> None:
    """Raise InputError unless `valid_until` (`ends`, the first moment after the validity) is after `valid_from`."""
    if begins is not None and ends is not None and ends <= begins:
        raise InputError(
            f"valid_until: expected a time after valid_from ({format_iso(begins)}), not {format_iso(ends)}; the end is"
            " not included, and a date without a time means its first moment"
        )


def _check_times(holder: Record | Revision, **earliest: Moment) -> None:
    """Check the times in the named fields, if they are set; the value of each argument is the earliest allowed time."""
    for name, first in earliest.items():
        if (at := getattr(holder, name)) is not None:
            checked_moment(at, name, first)


def _check_links(record: Record) -> None:
    for name, most in (("keywords", MAX_KEYWORDS), ("evidence", MAX_EVIDENCE)):
        found = getattr(record, name)
        if not isinstance(found, tuple) or len(found) > most:
            raise InputError(f"{name}: expected a tuple of at most {most:,} values, not {_shown(found)}")
    others = record.evidence if record.superseded_by is None else (*record.evidence, record.superseded_by)
    for other in others:
        is_id = isinstance(other, str) and 0 < len(other) <= 64 and other.isprintable()
        _require(is_id, "evidence, superseded_by", "ids of records", other)
        if other == record.id:
            raise InputError(f"the record {record.id} cannot be derived from itself, nor superseded by itself")


def _check_data(record: Record) -> None:
    """Raise InputError if the data is not JSON, or has too many values or levels."""
    _require(isinstance(record.data, dict | Mapping), "data", "fields by name", record.data)
    level, values = list[object]([record.data]), 0
    for _ in range(MAX_NESTING):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict | Mapping):  # the check for dict is faster
                for key in value:
                    _check_text(key)
                below += value.values()
            elif isinstance(value, list | tuple):
                below += value
            elif isinstance(value, str):
                _check_text(value)
            else:
                _require(value is None or isinstance(value, bool) or _is_number(value), "data", "JSON", value)
        level, values = below, values + len(below)
        if values > MAX_VALUES:
            raise InputError(f"data: expected at most {MAX_VALUES:,} values; store large data elsewhere")
        if not level:
            return
    raise InputError(f"data: values are nested more than {MAX_NESTING} levels deep")


def _check_text(text: object) -> None:
    is_text = isinstance(text, str) and (text.isprintable() or not re.search(r"[\ud800-\udfff]", text))
    _require(is_text, "data", "texts without unpaired surrogates", text)


def check_vector(row: Vector | None) -> None:
    """Raise InputError if a vector is not a one-dimensional array of finite float16 numbers."""
    if row is not None and not (row.dtype == np.float16 and row.ndim == 1 and len(row) and is_finite(row)):
        raise InputError("vector: expected one row of finite float16 numbers")


def is_finite(row: Vector) -> bool:
    """Return whether the length of a vector, and so each of its numbers, is finite in 32 bits."""
    numbers = row.astype(np.float32)
    return math.isfinite(numbers.dot(numbers))


def check_whole(number: object, what: str, least: int, most: int) -> None:
    """Raise InputError unless a number is a whole one in this range, both ends included."""
    if not (isinstance(number, int) and not isinstance(number, bool) and least <= number <= most):
        raise InputError(f"{what}: expected a whole number from {least} to {most:,}, not {_shown(number)}")


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < 1e300


def _name(name: str, what: str) -> str:
    """Return a name without control characters."""
    _require(isinstance(name, str), what, "a text", name)
    if len(name) > MAX_NAME:
        raise InputError(f"{what}: expected at most {MAX_NAME} characters, not {len(name):,}")
    return name if name.isprintable() else " ".join(CONTROL.sub("", name).split())


def session_names(session: str) -> tuple[str, ...]:
    """Return the normal form of a session's name, under which it is stored, and the form as it was typed, if it
    differs: records of earlier versions may have that form.

    Raises:
        InputError: the name is not a text, or is too long.
    """
    plain = _name(session, "session")
    return tuple(dict.fromkeys((normal_name(plain), plain)))


def _require(is_valid: object, what: str, expected: str, found: object) -> None:
    if not is_valid:
        raise InputError(f"{what}: expected {expected}, not {_shown(found)}")


def _shown(value: object) -> str:
    """Return a value as text for an error message, shortened."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or deeply nested lists
        text = f"something of the type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def checked_commit(commit: Commit) -> Commit:
    """Check a commit and return it with cleaned records; every store calls this before it writes.

    Raises:
        InputError: a value is invalid, or belongs to another stream.
    """
    checked_moment(commit.at, "at")
    if commit.fence and not commit.fence.work:
        raise InputError(
            "a fence makes the commit depend on a lease, so it must name the leased work; this one names none"
        )
    if commit.unique and not commit.entries:
        raise InputError(f"the unique name {commit.unique!r} needs an event that uses it, and this commit has no event")
    for revision in commit.revisions:
        checked_importance(revision.importance)
        if odd := set(revision.emptied) - {"forgotten", "valid_until", "superseded_by"}:
            raise InputError(f"only forgotten, valid_until and superseded_by can be emptied, not {sorted(odd)}")
        if revision.level is not None:
            check_whole(
                revision.level, "level", -1, MAX_LEVEL + 1
            )  # recall may raise a record one level above MAX_LEVEL
        _check_times(revision, accessed=0.0, forgotten=0.0, valid_until=EARLIEST)
        check_vector(revision.vector)
    entries = tuple(_checked_entry(entry, commit.mind) for entry in commit.entries)
    return commit if all(map(is_, entries, commit.entries)) else replace(commit, entries=entries)


def _checked_entry(entry: Entry, mind: str) -> Entry:
    for record in entry.records:
        if record.stream != mind:
            raise InputError(f"a record of the stream {record.stream!r} cannot be written by the mind {mind!r}")
    records = tuple(map(checked_record, entry.records))
    return entry if all(map(is_, records, entry.records)) else replace(entry, records=records)
