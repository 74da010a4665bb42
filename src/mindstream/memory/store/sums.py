"""Checksums of the values of a row that never change: by them the doctor finds damage."""

from __future__ import annotations

import zlib
from typing import Any


def sum_of_event(mind: str, at: float, by: str, kind: str, payload: str, system: int = 0) -> int:
    """Return the checksum of a row of the log."""
    row = (mind, float(at), by, kind, payload)
    return _sum((*row, system) if system else row)


def sum_of_record(row: tuple[Any, ...]) -> int:
    """Return the checksum of a record's row (rows.COLUMNS) without its strength and its vector, which may change."""
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
