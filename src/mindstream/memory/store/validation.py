"""Validation of everything that is written to a memory: `retain`, commits and imports all use it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

import numpy as np

from mindstream.clock import EARLIEST, LATEST, Moment, format_iso, out_of_range
from mindstream.errors import InputError
from mindstream.memory.store.record import KINDS, SLOTTED, Record, Triple, Vector, nfc

if TYPE_CHECKING:
    from mindstream.memory.store.store import Commit, Entry, Revision

MAX_TEXT, MAX_UTTERANCE = 100_000, 32_000
"""Maximum length of a record's text, and of one message to a mind, a life or a town, in characters (Unicode code
points, as Python and JSON Schema count them). The REST and MCP schemas take their `maxLength` from here."""
MAX_NAME, MAX_KEYWORDS, MAX_EVIDENCE = 500, 1_000, 100_000
"""Maximum length of a name, a keyword or a part of a triple; maximum number of keywords, and of evidence."""
MAX_VALUES, MAX_NESTING = 20_000, 40
"""Maximum number of values in a record's data, and of levels of nesting."""
MAX_LEVEL, MAX_DEPTH, MAX_VERSION = 32_000, 1_000_000, 2**53

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ID = re.compile(r"[\w-]{6,64}")


def checked_text(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text as it is stored: in NFC, trimmed, without control characters except tab and line break.

    Raises:
        InputError: nothing is left, or it has more than `longest` characters.
    """
    _require(isinstance(text, str), "text", "a text", text)
    clean = _clean(text)
    if not clean:
        raise InputError("there is nothing to read in that text: it is empty, or holds control characters only")
    size = max(len(text), len(clean))  # before as after cleaning, as JSON Schema counts it
    if size > longest:
        raise InputError(
            f"that text is too long: {size:,} characters, and at most {longest:,} are accepted;"
            " shorten it or send it in parts"
        )
    return clean


def _clean(text: str) -> str:
    text = text if text.isprintable() else CONTROL.sub("", text.replace("\r\n", "\n"))
    return nfc(text).strip()


def shortened(text: str, longest: int) -> str:
    """Return a text of at most `longest` characters; a cut end is visible."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"


def fitted_text(text: str) -> str:
    """Return a generated text as `checked_text` does, but shorten it if it is too long.

    Raises:
        InputError: nothing is left.
    """
    return checked_text(shortened(_clean(text), MAX_TEXT) if len(text) > MAX_TEXT else text)


def checked_importance(importance: float | None) -> float | None:
    """Return an importance between 1 and 10, or None; otherwise raise InputError."""
    if importance is not None and not (_is_number(importance) and 1 <= importance <= 10):
        raise InputError(f"importance goes from 1 to 10, not {_shown(importance)}")
    return importance


def checked_record(record: Record) -> Record:
    """Return a valid record, without control characters.

    Raises:
        InputError: a field is invalid; the message names it.
    """
    is_id = isinstance(record.id, str) and _ID.fullmatch(record.id)
    _require(is_id, "id", "6 to 64 letters, digits, _ and -", record.id)
    if record.kind not in KINDS:
        raise InputError(f"there is no kind of record {_shown(record.kind)}; the kinds are {', '.join(KINDS)}")
    _check_times(record, created=0.0, accessed=0.0, forgotten=0.0, valid_from=EARLIEST, valid_until=EARLIEST)
    checked_importance(record.importance)
    check_whole(record.level, "level", -1, MAX_LEVEL)
    check_whole(record.depth, "depth", 0, MAX_DEPTH)
    _require(isinstance(record.lasting, bool), "lasting", "true or false", record.lasting)
    if (record.slot is None) != (record.version is None):
        raise InputError("slot and version go together")
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
        InputError: one of them is invalid; the message names it.
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
    """Return a time that a calendar can write; otherwise raise InputError."""
    if not (_is_number(at) and earliest <= at <= LATEST):
        raise InputError(f"{what}: {out_of_range(at, 1970 if earliest >= 0 else 1)}")
    return at


def check_interval(begins: Moment | None, ends: Moment | None) -> None:
    """Raise InputError if a record would end before or as it begins: `valid_from` is included, `valid_until` not."""
    if begins is not None and ends is not None and ends <= begins:
        raise InputError(
            f"valid_until: expected a time after valid_from ({format_iso(begins)}), not {format_iso(ends)}; the end is"
            " not included, and a date alone is its first moment"
        )


def _check_times(holder: Record | Revision, **earliest: Moment) -> None:
    """Check the fields of these names, if they are set; a record may have been true long before it was written."""
    for name, first in earliest.items():
        if (at := getattr(holder, name)) is not None:
            checked_moment(at, name, first)


def _check_links(record: Record) -> None:
    for name, most in (("keywords", MAX_KEYWORDS), ("evidence", MAX_EVIDENCE)):
        found = getattr(record, name)
        if not isinstance(found, tuple) or len(found) > most:
            raise InputError(f"{name}: expected at most {most:,} in a tuple, not {_shown(found)}")
    others = record.evidence if record.superseded_by is None else (*record.evidence, record.superseded_by)
    for other in others:
        is_id = isinstance(other, str) and 0 < len(other) <= 64 and other.isprintable()
        _require(is_id, "evidence, superseded_by", "ids of records", other)
        if other == record.id:
            raise InputError(f"the record {record.id} cannot be derived from itself, nor superseded by itself")


def _check_data(record: Record) -> None:
    """Raise InputError if data is not JSON, or too much of it."""
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
            raise InputError(f"data: at most {MAX_VALUES:,} values can be kept")
        if not level:
            return
    raise InputError(f"data: values are nested more than {MAX_NESTING} levels deep")


def _check_text(text: object) -> None:
    is_text = isinstance(text, str) and (text.isprintable() or not re.search(r"[\ud800-\udfff]", text))
    _require(is_text, "data", "texts that can be encoded", text)


def check_vector(row: Vector | None) -> None:
    """Raise InputError if a vector cannot be compared with others."""
    if row is not None and not (row.dtype == np.float16 and row.ndim == 1 and len(row) and is_finite(row)):
        raise InputError("vector: expected one row of finite float16")


def is_finite(row: Vector) -> bool:
    """Return whether all numbers of a vector are finite."""
    numbers = row.astype(np.float32)
    return math.isfinite(numbers.dot(numbers))


def check_whole(number: object, what: str, least: int, most: int) -> None:
    """Raise InputError if a number is not a whole one in this range, both ends included."""
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


def _require(is_valid: object, what: str, expected: str, found: object) -> None:
    if not is_valid:
        raise InputError(f"{what}: expected {expected}, not {_shown(found)}")


def _shown(value: object) -> str:
    """Return a value as a message shows it."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, a list of lists of lists
        text = f"something of the type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def checked_commit(commit: Commit) -> Commit:
    """Return a valid commit; every store calls this before it writes.

    Raises:
        InputError: a value is invalid, or belongs to another stream.
    """
    checked_moment(commit.at, "at")
    if commit.fence and not commit.fence.work:
        raise InputError("a fence names work that must still be its owner's, and this one names none")
    if commit.unique and not commit.entries:
        raise InputError(f"{commit.unique!r} is taken by an event, and this commit has none")
    for revision in commit.revisions:
        checked_importance(revision.importance)
        if odd := set(revision.emptied) - {"forgotten", "valid_until", "superseded_by"}:
            raise InputError(f"only forgotten, valid_until and superseded_by can be emptied, not {sorted(odd)}")
        if revision.level is not None:
            check_whole(revision.level, "level", -1, MAX_LEVEL + 1)  # a recall may raise it above that of a new record
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
