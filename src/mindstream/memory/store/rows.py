"""The rows of the table of records."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mindstream.memory.store.record import UNIQUE, Record, Triple, same_words
from mindstream.memory.store.salvage import is_sound, salvage
from mindstream.memory.store.sums import sum_of_record, sum_of_vector

COLUMNS = (
    "id, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,"
    " superseded_by, forgotten, subject, predicate, object, keywords, evidence, depth, slot, version, data, seq,"
    " embedder, vector"
)
FIELDS = COLUMNS.split(", ")
_shared: Callable[[Any], Any] = sys.intern
"""Returns one string object for equal strings: many records have the same kind, episode or author."""
_encode = json.JSONEncoder(ensure_ascii=False).encode
INSERT = (
    f"INSERT INTO records ({COLUMNS}, changed, same, words_sum, vector_sum) VALUES ({','.join('?' * 31)})"
    " ON CONFLICT DO NOTHING"
)
"""It writes no record whose id, or whose version of a slot, exists."""


def row_of(record: Record, seq: int) -> tuple[Any, ...]:
    """Return a record's row: the values of COLUMNS."""
    about = record.about
    return (
        record.id, record.stream, record.kind, record.text, record.created, record.accessed, record.by, record.episode,
        record.importance, record.level, record.lasting, record.valid_from, record.valid_until, record.superseded_by,
        record.forgotten, about and about.subject, about and about.predicate, about and about.object,
        _json(record.keywords), _json(record.evidence), record.depth, record.slot, record.version,
        _json(dict(record.data)), seq, record.embedder, None if record.vector is None else record.vector.tobytes(),
    )  # fmt: skip


def insertion(record: Record, seq: int, changed: int) -> tuple[Any, ...]:
    """Return the values of INSERT."""
    row = row_of(record, seq)
    same = same_words(record.text) if record.kind in UNIQUE else None
    return (*row, changed, same, sum_of_record(row), sum_of_vector(row[-1]))


def _json(value: Any) -> str | None:
    return _encode(value) if value else None


def record_of(row: tuple[Any, ...]) -> Record:
    """Return the record of a row; damaged values are replaced."""
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
    return Record(
        id=id_,
        stream=_shared(stream),
        kind=_shared(kind),
        text=text,
        created=created,
        accessed=accessed,
        by=_shared(by),
        episode=_shared(episode),
        importance=importance,
        level=level,
        lasting=bool(lasting),
        valid_from=valid_from,
        valid_until=valid_until,
        superseded_by=superseded_by,
        forgotten=forgotten,
        about=None if subject is None else Triple(subject, predicate, object_),
        keywords=tuple(json.loads(keywords)) if keywords else (),
        evidence=tuple(json.loads(evidence)) if evidence else (),
        depth=depth,
        slot=slot,
        version=version,
        data=json.loads(data) if data else {},
        seq=seq,
        embedder=_shared(embedder),
        vector=None if vector is None else np.frombuffer(vector, np.float16),
    )
