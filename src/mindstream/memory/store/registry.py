"""Registry of the names of streams, and of unique names, each of which can be used only once in a stream.

The database enforces both.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from mindstream.errors import Conflict, InputError
from mindstream.identifiers import StreamKey, StreamKind, StreamName, name_of, normal_name
from mindstream.log.database import connect, explain_errors
from mindstream.log.sql import Sql

TypedKeys: TypeAlias = dict[tuple[str, StreamKind, str], list[StreamKey]]
UNIQUES = {"pool_created": "created", "town_began": "began"}
"""Events that a stream can contain only once, each with its name in the table `uniques`. The table refuses a second
one."""


TABLES = (
    "CREATE TABLE streams (key TEXT NOT NULL PRIMARY KEY, tenant TEXT NOT NULL, kind TEXT NOT NULL,"
    " normal TEXT NOT NULL, looks TEXT) WITHOUT ROWID",
    "CREATE UNIQUE INDEX streams_looks ON streams (tenant, kind, looks)",
    "CREATE INDEX streams_normal ON streams (tenant, kind, normal)",
    "CREATE TABLE uniques (stream TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,"
    " PRIMARY KEY (stream, name)) WITHOUT ROWID",
)


REGISTERED = "SELECT key FROM streams WHERE key IN ({})"
"""SQL that finds which of some streams are registered."""


def register(connection: Sql, key: StreamKey) -> None:
    """Register a stream that is not REGISTERED, at its first commit.

    Raises:
        InputError: the name looks like the name of another stream of the same kind and tenant, or the key is invalid.
    """
    name = name_of(key)
    if not _insert(connection, key, name, name.looks):
        raise InputError(
            f"{name.kind} {name.id!r}: a {name.kind} exists whose name looks the same but is written with other"
            " letters; type that name as it was first typed, or choose another name"
        )


SAID_ONCE = "said once "
"""Prefix of the unique name of an utterance that must be processed only once. After the prefix comes the utterance's
key. Only the newest of these names are kept (KNOWN)."""
KNOWN = 200
OLD_ONES = (
    "DELETE FROM uniques WHERE stream = ? AND name >= ? AND name < ? AND seq < (SELECT seq FROM uniques"
    f" WHERE stream = ? AND name >= ? AND name < ? ORDER BY seq DESC LIMIT 1 OFFSET {KNOWN})"
)


def take(connection: Sql, key: StreamKey, unique: str, seq: int) -> None:
    """Mark a unique name of a stream as used, by the log row `seq`.

    Raises:
        Conflict: an earlier commit has used the name.
    """
    if unique.startswith(SAID_ONCE):
        among = (key, SAID_ONCE, f"{SAID_ONCE}~")
        connection.execute(OLD_ONES, (*among, *among))
    sql = "INSERT INTO uniques (stream, name, seq) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    if not connection.execute(sql, (key, unique, seq)).rowcount:
        raise Conflict(
            f"the unique name {unique!r} was used before in {name_of(key).kind} {name_of(key).id!r}: use another"
        )


TAKEN = "SELECT seq FROM uniques WHERE stream = ? AND name = ?"
"""Finds the row of the log whose commit used a unique name."""


def forget(connection: Sql, key: StreamKey) -> None:
    """Remove a stream and its unique names from the registry."""
    connection.execute("DELETE FROM streams WHERE key = ?", (key,))
    connection.execute("DELETE FROM uniques WHERE stream = ?", (key,))


def _insert(connection: Sql, key: str, name: StreamName, looks: str | None) -> bool:
    row = (key, name.tenant, name.kind, name.normal, looks)
    sql = "INSERT INTO streams (key, tenant, kind, normal, looks) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    return bool(connection.execute(sql, row).rowcount)


WRITTEN_UNDER_DECAY = "written under decay"
"""Unique name that marks a memory that an earlier version of mindstream created.

In earlier versions all memories decayed; a marked memory keeps the policy `decay` (memory/policy).
"""
FIRST_MARKED = 10
"""Version of the SQLite file's tables (memory/store/tables). The migration to this version gives existing memories the
mark WRITTEN_UNDER_DECAY."""
MARK_DECAYING = (
    "INSERT INTO uniques (stream, name, seq{more}) SELECT key, '" + WRITTEN_UNDER_DECAY + "', 0{more} FROM streams"
    " WHERE kind = 'user' ON CONFLICT DO NOTHING"
)


def register_all(connection: sqlite3.Connection) -> None:
    """Register all streams that have rows.

    If the names of several streams look the same, only the first stream is registered with this appearance (`looks`).
    A new stream may not have a name that looks like a registered one.
    """
    for key in list(unknown_keys(connection)):
        try:
            register_old(connection, name_of(key))
        except InputError:  # a damaged key, which the doctor repairs
            continue


def register_old(connection: sqlite3.Connection, name: StreamName) -> None:
    """Register an existing stream, even if its name looks like the name of another stream."""
    same = (name.tenant, name.kind, name.looks)
    alike = connection.execute("SELECT 1 FROM streams WHERE tenant = ? AND kind = ? AND looks = ?", same).fetchone()
    _insert(connection, name.typed_key, name, None if alike else name.looks)
    for event, unique in UNIQUES.items():
        if seq := first_of(connection, name.typed_key, event):
            take(connection, name.typed_key, unique, seq)


def read_typed(path: Path) -> TypedKeys:
    """Return the keys that earlier versions made from names as typed, by the name's tenant, kind and normal form.

    No version creates such keys any more, so the keys read when a store is opened stay complete.
    """
    with explain_errors(path), contextlib.closing(connect(path)) as connection:
        return typed_keys(connection)


def typed_keys(connection: Sql) -> TypedKeys:
    """Return the keys that earlier versions made from names as typed (see `read_typed`), from an open connection."""
    found: TypedKeys = {}
    rows = connection.execute("SELECT tenant, kind, normal, key FROM streams ORDER BY key").fetchall()
    for tenant, kind, stored, key in rows:
        normal = normal_name(stored)  # rows of earlier versions contain an earlier version's normal form
        found.setdefault((tenant, kind, normal), []).append(key)
    return {
        (tenant, kind, normal): keys
        for (tenant, kind, normal), keys in found.items()
        if keys != [StreamName(kind, normal, tenant).key]
    }


def unknown_keys(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the keys in the tables `log` and `records` that are not registered, each once, without reading all rows."""
    known = {row[0] for row in connection.execute("SELECT key FROM streams")}
    for table, column in (("log", "mind"), ("records", "stream")):
        (key,) = connection.execute(f"SELECT min({column}) FROM {table}").fetchone()
        while isinstance(key, str):
            if key not in known:
                known.add(key)
                yield key
            (key,) = connection.execute(f"SELECT min({column}) FROM {table} WHERE {column} > ?", (key,)).fetchone()


def first_of(connection: sqlite3.Connection, key: str, kind: str) -> int | None:
    """Return the number of the first row of a kind in a stream's log; None if there is none."""
    (seq,) = connection.execute("SELECT min(seq) FROM log WHERE mind = ? AND kind = ?", (key, kind)).fetchone()
    return None if seq is None else int(seq)
