"""Copy a data folder's file into a PostgreSQL database, or back, with counts and checksums on both sides.

The target is written in one transaction: an interrupted copy leaves nothing behind and can be started again. Rows keep
their numbers, so that readers can continue after a number that they have stored. Files next to a folder's database,
such as the terminal's input history, are not copied.
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from mindstream.errors import InputError, StorageError
from mindstream.identifiers import tenant_of
from mindstream.location import Location
from mindstream.log.database import FILE, connect, open_database
from mindstream.log.database import explain_errors as explain_sqlite
from mindstream.log.erasure import INTENTS
from mindstream.log.files import private_database, private_folder
from mindstream.memory.store import tables as sqlite_tables
from mindstream.memory.store.postgres import tables
from mindstream.memory.store.postgres.pool import Rows, explain_errors, open_database_of
from mindstream.memory.store.queries import COLUMNS, marks

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
"""The tables with all their columns. If a table's rows belong to streams, its first column is the stream's key."""
OF_A_TENANT = ("log", "records", "checkpoints", "uniques", "streams")
OF_NO_STREAM = ("streams", *tables.ACCOUNTS)
NUMBERED = {"log": "seq", "records": "number", "work": "id", "erasures": "number", "audit": "number"}
ISOLATED = (*tables.TABLES, *tables.ACCOUNTS)


class Copied(NamedTuple):
    """The number of a table's rows, and a checksum of their content that does not depend on their order."""

    table: str
    rows: int
    sum: int


def copy(source: Location, target: Location) -> list[Copied]:
    """Copy the data of all tenants from a folder into a database or back; return counts and checksums by table.

    Raises:
        InputError: neither location is a database, or both are; or the target is not empty.
        StorageError: one of the locations cannot be used, or the copy differs from the source.
    """
    if (source.folder is None) == (target.folder is None):
        raise InputError("one location must be a folder, and the other a database: postgresql://user@host:port/db")
    with _reading(source) as old, _writing(target) as new:
        for table in COPIED:
            if _number(new, f"SELECT count(*) FROM {table}"):
                raise InputError(f"the target {target} already contains data (table {table}): name an empty one")
        read = [_copy_table(old, new, table) for table in COPIED]
        _set_counters(old, new)
        written = [_summed(new, table) for table in COPIED]
        if written != read:
            odd = ", ".join(one.table for one, other in zip(read, written, strict=True) if one != other)
            raise StorageError(f"the copy differs from the source (tables: {odd}); nothing was written to the target")
    return read


def copy_part(source: Location, folder: Path) -> None:
    """Copy the current log, records and checkpoints of one tenant of a database into a folder (OF_A_TENANT).

    Raises:
        StorageError: the database or the folder cannot be used.
    """
    with (
        explain_errors(str(source)),
        contextlib.closing(open_database_of(source.url, source.tenant, tables.MIGRATIONS)) as connection,
        _writing(Location(folder)) as new,
    ):
        old = Rows(connection)
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for table in OF_A_TENANT:
            _copy_table(old, new, table)
        _set_counters(old, new)
        connection.rollback()


def _copy_table(old: Source, new: Source, table: str) -> Copied:
    names, to_postgres = COPIED[table].split(", "), isinstance(new, Rows)
    adds_tenant = to_postgres and table not in OF_NO_STREAM
    all_names = [*names, "tenant"] if adds_tenant else names
    into = f"INSERT INTO {table} ({', '.join(all_names)}) VALUES ({marks(all_names)})"
    lasting = names.index("lasting") if to_postgres and "lasting" in names else -1

    def put(rows: list[Any]) -> None:
        if lasting >= 0:
            rows = [(*row[:lasting], bool(row[lasting]), *row[lasting + 1 :]) for row in rows]
        new.executemany(into, [(*row, tenant_of(row[0])) if adds_tenant else row for row in rows])

    return _each_portion(old, table, put)


def _each_portion(side: Source, table: str, put: Callable[[list[Any]], None]) -> Copied:
    """Read a table in portions, pass each portion to `put`, and return count and checksum."""
    count, total, sql = 0, 0, f"SELECT {COPIED[table]} FROM {table}"
    with contextlib.closing(side.connection.cursor(name="copied") if isinstance(side, Rows) else side.cursor()) as held:
        held.execute(sql)
        while rows := held.fetchmany(PORTION):
            count, total = count + len(rows), total + sum(map(_sum_of, rows))
            put(rows)
    return Copied(table, count, total)


def _summed(side: Source, table: str) -> Copied:
    return _each_portion(side, table, lambda _: None)


def _sum_of(row: Sequence[Any]) -> int:
    """Return a checksum of a row that is the same for both databases' types of numbers and booleans."""
    plain = [float(each) if isinstance(each, int | float) and abs(each) < 2**53 else each for each in row]
    return zlib.crc32(repr(plain).encode("utf-8", "surrogatepass"))


def _number(side: Source, sql: str) -> int:
    row = side.execute(sql).fetchone()
    return int(row[0] or 0) if row else 0


def _set_counters(old: Source, new: Source) -> None:
    """Set the counters of the target: new changes and log rows must get higher numbers than all changes and rows of the
    source, including rows that were erased there."""
    changed = _number(old, "SELECT max(value) FROM counters WHERE name = 'changed'")
    last = _number(
        old,
        "SELECT pg_sequence_last_value(pg_get_serial_sequence('log', 'seq')::regclass)"
        if isinstance(old, Rows)
        else "SELECT max(seq) FROM sqlite_sequence WHERE name = 'log'",
    )
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


@contextlib.contextmanager
def _reading(place: Location) -> Iterator[Source]:
    """Open a location for reading, as of one moment.

    Raises:
        InputError: the folder contains no database.
        StorageError: an erasure of a user was interrupted in the folder, or the location cannot be read.
    """
    if (folder := place.folder) is None:
        with _all_tenants(place) as rows:
            yield rows
            rows.connection.rollback()
        return
    if not (folder / FILE).exists():
        raise InputError(f"the folder {folder} contains no {FILE}: name a data folder")
    if any(folder.glob(INTENTS)):
        raise StorageError(
            f"an erasure of a user was interrupted in {folder}: open this user's memory to finish it, then copy again"
        )
    with _file(folder, "BEGIN") as connection:
        yield connection
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def _writing(place: Location) -> Iterator[Source]:
    """Open a location for writing, in one transaction, which is committed when the block ends without an error."""
    if (folder := place.folder) is None:
        with _all_tenants(place) as rows:
            yield rows
            for table in ISOLATED:
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
def _all_tenants(place: Location) -> Iterator[Rows]:
    """Open a transaction in which the owner of the tables sees the rows of all tenants. Other connections wait until it
    ends. The caller commits it; otherwise it is rolled back."""
    with (
        explain_errors(str(place)),
        contextlib.closing(open_database_of(place.url, "", tables.MIGRATIONS)) as connection,
    ):
        rows = Rows(connection)
        for table in ISOLATED:
            rows.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        yield rows
