"""A record as it stands in the table."""

from __future__ import annotations

import json
from typing import Any

from mindstream.memory.record import UNIQUE, Record, same_words
from mindstream.memory.sums import sum_of_record, sum_of_vector

COLUMNS = (
    "id, stream, kind, text, created, accessed, by, episode, importance, level, lasting, valid_from, valid_until,"
    " superseded_by, forgotten, subject, predicate, object, keywords, evidence, depth, slot, version, data, seq,"
    " embedder, vector"
)
FIELDS = COLUMNS.split(", ")
INSERT = f"INSERT INTO records ({COLUMNS}, changed, same, words_sum, vector_sum) VALUES ({','.join('?' * 31)})"


def row_of(record: Record, seq: int) -> tuple[Any, ...]:
    """Return a record as it stands in the table: the values of COLUMNS."""
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
    return json.dumps(value, ensure_ascii=False) if value else None
