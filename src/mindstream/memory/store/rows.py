"""Rows of the table of records: how a record is written, read, protected by checksums, and recovered.

If a field is damaged or invalid, it gets a safe value, so that the words of its record are not lost: an unknown kind
becomes a document, an impossible time becomes the time of writing, and an invalid vector is dropped. `mindstream
doctor` finds damage by checksums of the values that never change.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from mindstream.clock import EARLIEST, LATEST, Moment
from mindstream.identifiers import StreamKey
from mindstream.json_values import parsed, parsed_or_none
from mindstream.log.events import printable
from mindstream.memory.store.record import (
    CONTROL,
    KINDS,
    MAX_DEPTH,
    MAX_EVIDENCE,
    MAX_KEYWORDS,
    MAX_LEVEL,
    MAX_NAME,
    MAX_VERSION,
    SLOTTED,
    UNIQUE,
    Kind,
    Record,
    Triple,
    Vector,
    filled_record,
    same_words,
)


def sum_of_event(mind: str, at: float, by: str, kind: str, payload: str, system: int = 0) -> int:
    """Return the checksum of a row of the log."""
    row = (mind, float(at), by, kind, payload)
    return _sum((*row, system) if system else row)


def sum_of_record(row: tuple[Any, ...]) -> int:
    """Return the checksum of a record's row (COLUMNS), without the values that may change after it was written, such as
    its strength, its importance and the end of its validity, and without its vector."""
    id_, stream, kind, text, created, _accessed, by, episode = row[:8]
    valid_from, (depth, slot, version, data, seq) = row[11], row[20:25]
    words = (
        id_,
        stream,
        kind,
        text,
        float(created),
        by,
        episode,
        valid_from if valid_from is None else float(valid_from),
    )
    return _sum((*words, *row[15:20], depth, slot, version, data, seq))


def sum_of_vector(vector: bytes | None) -> int | None:
    """Return the checksum of a vector."""
    return None if vector is None else zlib.crc32(vector)


def _sum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


UNREADABLE = "(what stood here cannot be read any more)"


def salvage(row: tuple[Any, ...]) -> Record:
    """Return the record of a damaged row (COLUMNS), with safe values in place of those that cannot be read."""
    (
        id_, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,
        superseded_by, forgotten, subject, predicate, object_, keywords, evidence, depth, slot, version, data, seq,
        embedder, vector,
    ) = row  # fmt: skip
    known: Kind = kind if kind in KINDS else "document"
    written = moment(created) if moment(created) is not None else moment(accessed)
    written = 0.0 if written is None else written
    slotted = known in SLOTTED and isinstance(slot, str) and slot and _whole(version, 1, MAX_VERSION, 0)
    about = (subject, predicate, object_)
    other = _ids([superseded_by], id_)
    return Record(
        id=printable(id_),
        stream=StreamKey(printable(stream)),
        kind=known,
        text=printable(text) or UNREADABLE,
        created=written,
        accessed=_or(moment(accessed), written),
        by=name(by),
        episode=name(episode),
        importance=float(importance) if _is_number(importance) and 1 <= importance <= 10 else None,
        level=_whole(level, -1, MAX_LEVEL + 1, 0),
        lasting=lasting == 1,
        valid_from=moment(valid_from, EARLIEST),
        valid_until=None if valid_until is None else _or(moment(valid_until, EARLIEST), written),
        superseded_by=other[0] if other else None,
        forgotten=None if forgotten is None else _or(moment(forgotten), written),
        about=Triple(*map(name, about)) if all(isinstance(each, str) for each in about) else None,
        keywords=tuple(map(name, texts(keywords)[:MAX_KEYWORDS])),
        evidence=_ids(texts(evidence)[:MAX_EVIDENCE], id_),
        depth=_whole(depth, 0, MAX_DEPTH, 0),
        slot=name(slot) if slotted else None,
        version=version if slotted else None,
        data=fields(data),
        seq=_whole(seq, 0, 2**62, 0),
        embedder=name(embedder),
        vector=finite(vector),
    )


def is_sound(record: Record) -> bool:
    """Return whether a record's values are in their ranges (as in validation.checked_record).

    Raises:
        TypeError: a value has a wrong type and cannot be compared.
    """
    return (
        record.kind in KINDS
        and type(record.text) is type(record.by) is type(record.episode) is type(record.id) is str
        and type(record.data) is dict
        and 0 <= record.created <= LATEST
        and 0 <= record.accessed <= LATEST
        and -1 <= record.level <= MAX_LEVEL + 1
        and record.depth >= 0
        and record.seq >= 0
        and (record.importance is None or 1 <= record.importance <= 10)
        and (record.forgotten is None or 0 <= record.forgotten <= LATEST)
        and (record.valid_from is None or EARLIEST <= record.valid_from <= LATEST)
        and (record.valid_until is None or EARLIEST <= record.valid_until <= LATEST)
        and (record.slot is None or (record.kind in SLOTTED and 1 <= (record.version or 0) <= MAX_VERSION))
        and all(type(each) is str for each in (*record.keywords, *record.evidence, *(record.about or ())))
        and bool(record.text)
    )


def moment(value: Any, earliest: Moment = 0.0) -> Moment | None:
    """Return a time if a calendar can express it; None if it is invalid."""
    return float(value) if _is_number(value) and earliest <= value <= LATEST else None


def name(value: object) -> str:
    """Return a value as a printable name of limited length."""
    text = printable(value)
    return (" ".join(CONTROL.sub(" ", text).split()) if CONTROL.search(text) else text)[:MAX_NAME]


def fields(text: object) -> dict[str, Any]:
    """Return a record's data; if its JSON is invalid or not an object, its text under the name `unreadable`."""
    if text is None:
        return {}
    found = parsed_or_none(text)
    return found if isinstance(found, dict) else {"unreadable": printable(text)}


def finite(content: object) -> Vector | None:
    """Return the vector in a row; None if it is missing or invalid."""
    if not isinstance(content, bytes) or not content or len(content) % 2:
        return None
    vector = np.frombuffer(content, np.float16)
    return vector if np.isfinite(vector).all() else None


def _ids(found: Sequence[object], own: object) -> tuple[str, ...]:
    """Return the found values that are valid ids of records other than `own`."""
    texts = (each for each in found if isinstance(each, str) and 0 < len(each) <= 64 and each.isprintable())
    return tuple(each for each in texts if each != own)


def texts(text: object) -> list[str]:
    """Return the texts in a JSON list; none if the JSON is invalid."""
    return [each for each in parsed(text, list) if isinstance(each, str)]


def _whole(value: object, least: int, most: int, otherwise: int) -> int:
    return value if isinstance(value, int) and least <= value <= most else otherwise


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int)


def _or(value: Moment | None, otherwise: Moment) -> Moment:
    return otherwise if value is None else value


COLUMNS = (
    "id, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,"
    " superseded_by, forgotten, subject, predicate, object, keywords, evidence, depth, slot, version, data, seq,"
    " embedder, vector"
)
FIELDS = COLUMNS.split(", ")
_shared: Callable[[Any], Any] = sys.intern
"""Returns the same string object for equal strings, because many records share a kind, an episode or an author."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
INSERT = (
    f"INSERT INTO records ({COLUMNS}, changed, same, words_sum, vector_sum) VALUES ({','.join('?' * 31)})"
    " ON CONFLICT DO NOTHING"
)
"""SQL that writes a record, unless its id or its version of a slot exists already."""


def row_of(record: Record, seq: int) -> tuple[Any, ...]:
    """Return the row of a record: the values of COLUMNS."""
    about = record.about
    return (
        record.id, record.stream, record.kind, record.text, record.created, record.accessed, record.by, record.episode,
        record.importance, record.level, record.lasting, record.valid_from, record.valid_until, record.superseded_by,
        record.forgotten, about and about.subject, about and about.predicate, about and about.object,
        _encoded_texts(record.keywords), _encoded_texts(record.evidence), record.depth, record.slot, record.version,
        _encoded(dict(record.data)), seq, record.embedder, None if record.vector is None else record.vector.tobytes(),
    )  # fmt: skip


def insertion(record: Record, seq: int, changed: int) -> tuple[Any, ...]:
    """Return the values of INSERT for a record."""
    row = row_of(record, seq)
    same = same_words(record.text) if record.kind in UNIQUE else None
    return (*row, changed, same, sum_of_record(row), sum_of_vector(row[-1]))


def _encoded_texts(texts: Sequence[str]) -> str | None:
    """Return texts as a JSON list, in a quarter of the encoder's time."""
    return f"[{', '.join(map(encode_basestring, texts))}]" if texts else None


def _encoded(value: Any) -> str | None:
    return _encode(value) if value else None


def record_of(row: tuple[Any, ...]) -> Record:
    """Return the record of a row; damaged values are replaced by safe ones."""
    try:
        record = _read(row)
        return record if is_sound(record) else salvage(row)
    except (ValueError, TypeError, RecursionError):
        return salvage(row)


def _read(row: tuple[Any, ...]) -> Record:
    (
        id_, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,
        superseded_by, forgotten, subject, predicate, object_, keywords, evidence, depth, slot, version, data, seq,
        embedder, vector,
    ) = row  # fmt: skip
    values = (
        id_,
        _shared(stream),
        _shared(kind),
        text,
        created,
        accessed,
        _shared(by),
        _shared(episode),
        importance,
        level,
        bool(lasting),
        valid_from,
        valid_until,
        superseded_by,
        forgotten,
        None if subject is None else Triple(subject, predicate, object_),
        tuple(json.loads(keywords)) if keywords else (),
        tuple(json.loads(evidence)) if evidence else (),
        depth,
        slot,
        version,
        json.loads(data) if data else {},
        seq,
        _shared(embedder),
        None if vector is None else np.frombuffer(vector, np.float16),
    )
    return filled_record(values)
