"""All that a data folder's file holds, copied into a PostgreSQL database, or back: counted and summed on both sides.

It is one transaction where it is written: what is broken off leaves nothing, and is begun anew. Numbers of rows stay,
so that whoever asks "after" one goes on; what lies beside a folder's file (typed history, results of operations) does
not come along.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mindstream.errors import InputError, StorageError
from mindstream.location import Location
from mindstream.log.database import FILE, connect, open_database
from mindstream.log.erasure import INTENTS
from mindstream.log.files import explain_errors as explain_sqlite
from mindstream.log.files import private_database, private_folder
from mindstream.log.names import tenant_of
from mindstream.memory.store import tables as sqlite_tables
from mindstream.memory.store.postgres import tables
from mindstream.memory.store.postgres.connection import Rows, explain_errors
from mindstream.memory.store.postgres.entering import open_database_of
from mindstream.memory.store.rows import COLUMNS

Source: TypeAlias = sqlite3.Connection | Rows
PORTION = 500
COPIED = {
    "streams": "key, tenant, kind, normal, looks",
    "log": "mind, seq, at, by, kind, payload, sum, system",
    "records": f"stream, number, {COLUMNS.replace(' stream,', '')}, changed, same, words_sum, vector_sum",
    "erased": "stream, id, changed",
    "work": "mind, id, slot, cause, owner, lease, running, attempts, error, done, failures",
    "checkpoints": "stream, name, version, data, sum, seq",
    "uniques": "stream, name, seq",
    "kept": "stream, name, at, value",
    "salts": "one, value, turns",
    "erasures": "number, digest, whole",
    "audit": "number, at, did, door, who, tenant, about, counts",
    "retention": "tenant, kinds, after_s, owner, lease, applied",
}
"""The tables, with all columns; the one that names the stream first, where rows are a stream's."""
OF_A_PART = ("log", "records", "checkpoints", "uniques", "streams")
OF_NO_STREAM = ("streams", *tables.ACCOUNTS)
NUMBERED = {"log": "seq", "records": "number", "work": "id", "erasures": "number", "audit": "number"}


class Copied(NamedTuple):
    """A table's rows: how many, and a sum over all that stands in them, which is the same in any order."""

    table: str
    rows: int
    sum: int


def copy(source: Location, target: Location) -> list[Copied]:
    """Copy everything from a folder into a database or back, of all tenants; return what was counted and summed.

    Raises:
        InputError: neither of them is a database, or both are; or something is in the target already.
        StorageError: one of them cannot be used, or what was written is not what was read.
    """
    if (source.folder is None) == (target.folder is None):
        raise InputError("one of the two has to be a folder, and the other postgresql://user@host:port/db")
    with _reading(source) as old, _writing(target) as new:
        for table in COPIED:
            if _count(new, table):
                raise InputError(f"something is in {target} already (table {table}): name one that is empty")
        read = [_copy_table(old, new, table) for table in COPIED]
        _count_on(old, new)
        written = [_summed(new, table) for table in COPIED]
        if written != read:
            odd = ", ".join(one.table for one, other in zip(read, written, strict=True) if one != other)
            raise StorageError(f"what was written is not what was read ({odd}); nothing is kept of it")
    return read


def copy_part(source: Location, folder: Path) -> None:
    """Copy what one tenant has written and remembers in a database, as it stands now, into a folder; no other's rows.

    Raises:
        StorageError: one of them cannot be used.
    """
    with (
        explain_errors(str(source)),
        contextlib.closing(open_database_of(source.url, source.tenant, tables.MIGRATIONS)) as connection,
        _writing(Location(folder)) as new,
    ):
        old = Rows(connection)
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in OF_A_PART:
            _copy_table(old, new, table)
        _count_on(old, new)
        connection.rollback()


def _copy_table(old: Source, new: Source, table: str) -> Copied:
    columns = COPIED[table]
    names = columns.split(", ")
    if is_walled := isinstance(new, Rows) and table not in OF_NO_STREAM:  # there each row is a tenant's
        names = [*names, "tenant"]
    into = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    count, total = 0, 0
    for rows in _portions(old, f"SELECT {columns} FROM {table}"):
        count, total = count + len(rows), total + sum(map(_sum_of, rows))
        put = [_fitted(row, names, isinstance(new, Rows)) for row in rows]
        new.executemany(into, [(*row, tenant_of(row[0])) if is_walled else row for row in put])
    return Copied(table, count, total)


def _summed(side: Source, table: str) -> Copied:
    count, total = 0, 0
    for rows in _portions(side, f"SELECT {COPIED[table]} FROM {table}"):
        count, total = count + len(rows), total + sum(map(_sum_of, rows))
    return Copied(table, count, total)


def _sum_of(row: Sequence[Any]) -> int:
    """Return a sum of what a row says, however a database writes numbers and yes and no."""
    plain = [float(each) if isinstance(each, int | float) and abs(each) < 2**53 else each for each in row]
    return zlib.crc32(repr(plain).encode("utf-8", "surrogatepass"))


def _fitted(row: Sequence[Any], names: Sequence[str], strict: bool) -> tuple[Any, ...]:
    if not strict or "lasting" not in names:
        return tuple(row)
    at = names.index("lasting")
    return (*row[:at], bool(row[at]), *row[at + 1 :])


def _portions(side: Source, sql: str) -> Iterator[list[Any]]:
    if isinstance(side, Rows):
        with side.connection.cursor(name="copied") as held:
            held.execute(sql.encode())
            while rows := held.fetchmany(PORTION):
                yield rows
        return
    cursor = side.execute(sql)
    while rows := cursor.fetchmany(PORTION):
        yield rows


def _count(side: Source, table: str) -> int:
    return _number(side, f"SELECT count(*) FROM {table}")


def _number(side: Source, sql: str) -> int:
    row = side.execute(sql).fetchone()
    return int(row[0] or 0) if row else 0


def _count_on(old: Source, new: Source) -> None:
    """Let numbers go on where they were: of changes for each tenant, and of rows, though the last ones were erased."""
    changed = _number(old, "SELECT max(value) FROM counters WHERE name = 'changed'")
    last = _last_seq(old)
    if not isinstance(new, Rows):
        new.execute("UPDATE counters SET value = ? WHERE name = 'changed'", (changed,))
        if not new.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'log'", (last,)).rowcount:
            new.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('log', ?)", (last,))
        return
    new.execute("DELETE FROM counters")
    tenants = {row[0] for table in tables.TABLES for row in new.execute(f"SELECT DISTINCT tenant FROM {table}")} | {""}
    rows = [("changed", changed, tenant) for tenant in sorted(tenants)]
    new.executemany("INSERT INTO counters (name, value, tenant) VALUES (?, ?, ?)", rows)
    for table, column in NUMBERED.items():
        number = max(_number(new, f"SELECT max({column}) FROM {table}"), last if table == "log" else 0)
        if number:
            new.execute("SELECT setval(pg_get_serial_sequence(?, ?), ?)", (table, column, number))


def _last_seq(side: Source) -> int:
    if isinstance(side, Rows):
        sql = "SELECT pg_sequence_last_value(pg_get_serial_sequence('log', 'seq')::regclass)"
    else:
        sql = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'log'"
    return _number(side, sql)


@contextlib.contextmanager
def _reading(place: Location) -> Iterator[Source]:
    """Read a place as it stands at one moment."""
    if (folder := place.folder) is None:
        with _unwalled(place) as rows:
            yield rows
            rows.connection.rollback()
        return
    if not (folder / FILE).exists():
        raise InputError(f"there is no mindstream.db in {folder}")
    if any(folder.glob(INTENTS)):
        raise StorageError(f"an erasure was broken off in {folder}: open that user once, which finishes it, then copy")
    with _file(folder, "BEGIN") as connection:
        yield connection
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def _writing(place: Location) -> Iterator[Source]:
    """Write into a place: all of it, or nothing."""
    if (folder := place.folder) is None:
        with _unwalled(place) as rows:
            yield rows
            for table in (*tables.TABLES, *tables.ACCOUNTS):
                rows.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
            rows.connection.commit()
        return
    private_folder(folder)
    private_database(folder / FILE)
    with _file(folder, "BEGIN IMMEDIATE") as connection:
        yield connection
        connection.execute("COMMIT")


@contextlib.contextmanager
def _file(folder: Path, begin: str) -> Iterator[sqlite3.Connection]:
    path = folder / FILE
    with explain_sqlite(path):
        open_database(path, sqlite_tables.MIGRATIONS).close()
        with contextlib.closing(connect(path)) as connection:
            connection.execute(begin)
            yield connection


@contextlib.contextmanager
def _unwalled(place: Location) -> Iterator[Rows]:
    """Let the owner see all tenants' rows in one transaction, which nobody else reads or writes beside."""
    with (
        explain_errors(str(place)),
        contextlib.closing(open_database_of(place.url, "", tables.MIGRATIONS)) as connection,
    ):
        rows = Rows(connection)
        for table in (*tables.TABLES, *tables.ACCOUNTS):
            rows.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        yield rows
