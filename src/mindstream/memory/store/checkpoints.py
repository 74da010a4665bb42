"""Checkpoints: data derived from a stream at some cost, such as a trained model. Only the newest version is stored.

A checkpoint that is lost or damaged is derived again.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from mindstream.errors import Conflict
from mindstream.log.sql import Sql


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A version of derived data.

    Attributes:
        version: one more than the stored version. With another number, writing raises Conflict. If no intact
            version is stored, any number is accepted.
    """

    name: str
    version: int
    data: bytes = field(repr=False)


TABLE = (
    "CREATE TABLE checkpoints (stream TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,"
    " data BLOB NOT NULL, sum INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (stream, name))"
)


def write(connection: Sql, stream: str, new: Checkpoint, seq: int) -> None:
    """Store a version of a checkpoint in place of the version before it. If none is stored, or the stored one is
    damaged, any version is accepted.

    Raises:
        Conflict: the new version is not the stored version plus 1.
    """
    old = read(connection.execute(QUERY, (stream, new.name)).fetchall(), new.name)
    if old is not None and old.version != new.version - 1:
        raise Conflict(
            f"checkpoint {new.name!r}: version {new.version} must follow version {new.version - 1}, but version"
            f" {old.version} is stored"
        )
    connection.execute(
        "INSERT INTO checkpoints (stream, name, version, data, sum, seq) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (stream, name) DO UPDATE SET version = excluded.version, data = excluded.data,"
        " sum = excluded.sum, seq = excluded.seq",
        (stream, new.name, new.version, new.data, _sum(new.version, new.data), seq),
    )


QUERY = "SELECT version, data, sum FROM checkpoints WHERE stream = ? AND name = ?"


def read(rows: list[tuple[object, object, object]], name: str) -> Checkpoint | None:
    """Return the checkpoint in the rows that QUERY returned; None if there is none or it is damaged."""
    for version, data, total in rows:
        if isinstance(version, int) and isinstance(data, bytes) and total == _sum(version, data):
            return Checkpoint(name, version, data)
    return None


def _sum(version: int, data: bytes) -> int:
    return zlib.crc32(data, version & 0xFFFFFFFF)
