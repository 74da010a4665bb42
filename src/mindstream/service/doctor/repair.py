"""Find damage in a database file, and repair the file.

A repair copies the file first, then writes all readable rows one by one into a new database. Rows that cannot be kept
are written as JSON Lines next to the copy, so nothing is dropped silently. No other program may have the file open.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from mindstream.clock import SystemClock, format_iso
from mindstream.errors import InputError, MindstreamError, StorageError
from mindstream.identifiers import name_of
from mindstream.log.database import APPLICATION_ID, FILE, explain_errors, is_busy
from mindstream.log.events import Unknown, every_kind, printable, read_event
from mindstream.log.files import BESIDE, check_plain, private_file
from mindstream.memory.store import registry
from mindstream.memory.store.queries import (
    FIELDS,
    INSERT,
    insertion,
    moment,
    row_of,
    salvage,
    sum_of_event,
    sum_of_record,
    sum_of_vector,
)
from mindstream.memory.store.record import SLOTTED, Record, checked_record
from mindstream.memory.store.tables import MIGRATIONS, adopt

Row = tuple[Any, ...]
TABLES = {
    "log": ["seq", "mind", "at", "by", "kind", "payload", "sum", "system"],
    "records": ["number", *FIELDS, "changed", "same", "words_sum", "vector_sum"],
    "work": ["id", "mind", "slot", "cause", "owner", "lease", "running", "attempts", "error", "done", "failures"],
    "erased": ["rowid", "stream", "id", "changed"],
}
"""The columns of each table that are read; the first is the row's number."""
ACCOUNTS = ("salts", "erasures", "audit", "retention", "kept")
"""Tables whose readable rows are copied unchanged."""
MAX_TRIES = 20_000
"""Maximum number of failed reads per table; an unreadable part is halved to find the readable rows in it."""
CHANGED, WORDS_SUM, VECTOR_SUM = -4, -2, -1
"""Indexes, counted from the end, of three columns of the table `records`. CHANGED: the number of the record's last
change. WORDS_SUM: the checksum of the record's content. VECTOR_SUM: the checksum of the record's vector."""
MAX_NUMBER = 2**53
"""The highest row number that is accepted; with SQLite's highest number no further row could be written."""
UNSUMMED = "rows without a checksum, written by an early version or changed on purpose"
NOT_AS_WRITTEN = "differ from what was written"
ASIDE = "set_aside.jsonl"
"""The file with the originals of the rows that a repair has left out or changed."""
LOG = "INSERT INTO log (seq, mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
COMMIT = 1
"""The number of the commit that all rows of the new file get, since no process has read the new file yet."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A fault in a database file.

    Attributes:
        what: the kind of fault, in the plural.
        user: the user whose row is affected; "" if not known.
        row: the number or id of the row; "" if the fault is not about a row.
        harmless: no data are damaged; the fault is reported as a note.
        values: the row as it was read, by column.
    """

    what: str
    user: str = ""
    row: str = ""
    harmless: bool = False
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


class Tables:
    """All readable rows of a database.

    Attributes:
        rows: the rows by table, with the columns in TABLES. The value of a column that the file does not have is None.
        records: the rows of the table of records, each with the record that could be restored from it.
        minds: by number of a row of the log, the stream of the row.
        counters: the values of the counters, by name.
        accounts: the readable rows of the tables in ACCOUNTS.
        decaying: the streams that were written under the policy `decay`; None: the file does not mark such streams,
            because its version is older.
        lost: by table, the number of ranges of rows that cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.lost: Counter[str] = Counter()
        self.rows = {table: self._read(connection, table, columns) for table, columns in TABLES.items()}
        counted = _readable(connection, "SELECT name, value FROM counters")
        self.counters: dict[str, int] = {name: n for name, n in counted if isinstance(name, str) and isinstance(n, int)}
        self.accounts = {table: _readable(connection, f"SELECT * FROM {table}") for table in ACCOUNTS}
        marked = f"SELECT stream FROM uniques WHERE name = '{registry.WRITTEN_UNDER_DECAY}'"
        is_marked = _readable(connection, "PRAGMA user_version") >= [(registry.FIRST_MARKED,)]
        self.decaying = [row[0] for row in _readable(connection, marked)] if is_marked else None
        self.minds: dict[int, object] = {row[0]: row[1] for row in self.rows["log"]}
        self.records = [(row, salvage(row[1:CHANGED])) for row in self.rows["records"]]

    def _read(self, connection: sqlite3.Connection, table: str, columns: list[str]) -> list[Row]:
        existing = {"rowid", *(row[1] for row in _readable(connection, f"PRAGMA table_info({table})"))}
        if len(existing) < 2:
            self.lost[table] += 1
            return []
        names = ", ".join(each if each in existing else "NULL" for each in columns)
        sql = f"SELECT {names} FROM {table} WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
        found: list[Row] = []
        parts, tries = [(0, _last(connection, table))], 0
        while parts:
            low, high = parts.pop()
            try:
                found += connection.execute(sql, (low, high)).fetchall()
            except sqlite3.Error:
                tries += 1
                if low == high or tries > MAX_TRIES:
                    self.lost[table] += 1
                else:
                    parts += [((low + high) // 2 + 1, high), (low, (low + high) // 2)]
        return found


def _readable(connection: sqlite3.Connection, sql: str) -> list[Row]:
    """Return the rows of a query; [] if it cannot be executed."""
    with contextlib.suppress(sqlite3.Error):
        return connection.execute(sql).fetchall()
    return []


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the highest row number of a table; if the table is damaged, an estimate that is usually higher."""
    for sql, more in ((f"SELECT max(rowid) FROM {table}", 0), ("SELECT seq FROM sqlite_sequence", 10_000)):
        for (number,) in _readable(connection, sql)[:1]:
            if isinstance(number or 0, int):
                return (number or 0) + more
    return 1_000_000


@contextlib.contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database for reading, as a snapshot, even if it is damaged.

    Raises:
        sqlite3.DatabaseError: no part of it can be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=2, isolation_level=None)) as connection:
        connection.text_factory = _text
        connection.execute("PRAGMA writable_schema = ON")  # then a damaged row of the schema hides only its own table
        connection.execute("BEGIN")
        try:
            yield connection
        except UnicodeDecodeError as error:  # SQLite's error message quotes damaged names, which are not UTF-8
            raise sqlite3.DatabaseError(f"the names of its tables cannot be read ({error})") from None


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield the faults of a mindstream database, which may be of an older version.

    Raises:
        sqlite3.DatabaseError: no part of it can be read.
    """
    yield from _file_faults(connection)
    yield from _schema_faults(connection)
    tables = Tables(connection)
    for table, count in tables.lost.items():
        yield from [Damage(f"parts of the table {table} that cannot be read")] * count
    yield from Repair(tables).found
    numbers = [row[-1] for row in tables.rows["erased"]] + [row[CHANGED] for row in tables.rows["records"]]
    highest = max((each for each in numbers if isinstance(each, int)), default=0)
    if not highest <= tables.counters.get("changed", -1) <= MAX_NUMBER:
        yield Damage("counters that are lower than numbers already in use")


def _file_faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield the faults that SQLite's integrity check finds (at most 100).

    If the file opens only with the tolerance of `looking_into`, yield the error instead.
    """
    what = "faults of its pages and indexes"
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    try:
        with contextlib.closing(sqlite3.connect(f"{Path(os.fsdecode(path)).as_uri()}?mode=ro", uri=True)) as strict:
            strict.execute("SELECT count(*) FROM sqlite_master").fetchone()
        for (text,) in connection.execute("PRAGMA integrity_check(100)"):
            if text != "ok":
                yield Damage(what, row=str(text).splitlines()[-1])
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield Damage(what, row=str(error))


def standing(connection: sqlite3.Connection) -> Literal["ours", "newer", "foreign"]:
    """Return whether a database belongs to this version of mindstream or an earlier one, or to another owner.

    - "ours": it is empty, has mindstream's application id, or (the id may be damaged) has all tables of mindstream.
    - "newer": as "ours", but its version number is higher than that of this program, and it has tables, columns or
      indexes that this program does not know.
    - "foreign": any other database.

    Raises:
        sqlite3.DatabaseError: no part of the database can be read.
    """
    application, version = _identity(connection)
    found = _schema(connection)
    if application != APPLICATION_ID and not {f"table {table}" for table in TABLES} <= found:
        return "foreign" if found else "ours"
    return "newer" if version > len(MIGRATIONS) and not found <= _schema_of(len(MIGRATIONS)) else "ours"


def _identity(connection: sqlite3.Connection) -> list[int]:
    """Return the application id and the version of a database."""
    return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]


def _schema(connection: sqlite3.Connection) -> set[str]:
    """Return the names of tables, indexes, triggers, views and columns, each with its kind."""
    found = {f"{kind} {name}" for kind, name in connection.execute("SELECT type, name FROM sqlite_master")}
    for name in [each.partition(" ")[2] for each in found if each.startswith("table ")]:
        quoted = name.replace('"', '""')
        found |= {f"column {name}.{row[1]}" for row in connection.execute(f'PRAGMA table_info("{quoted}")')}
    return {each for each in found if "sqlite_" not in each}


def _schema_of(version: int) -> set[str]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        for migration in MIGRATIONS[: max(0, version)]:
            migration(fresh)
        return _schema(fresh)


def _schema_faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield the faults of the file's application id, version and schema.

    The schema is compared with that of a new database of the same version. Additional tables and columns are faults
    only if a later version of mindstream has them.
    """
    application, version = _identity(connection)
    wanted, found = _schema_of(version), _schema(connection)
    if found and (application != APPLICATION_ID or not 0 < version <= len(MIGRATIONS)):
        yield Damage("application ids or versions that are not mindstream's", row=f"{application:#x}, {version}")
    for name in sorted(wanted - found):
        yield Damage("tables, indexes and columns that are missing", row=name)
    latest = _schema_of(len(MIGRATIONS))
    for name in sorted(found - wanted):
        kind = name.partition(" ")[0]
        if kind in ("trigger", "view"):
            yield Damage("triggers and views that mindstream did not make", row=name)
        elif kind in ("table", "column") and name in latest:
            yield Damage("tables and columns of a later version", row=name)


class Repair:
    """The rows that a repair writes into the new database.

    Attributes:
        found: the faults of rows: rows that are left out or changed, and harmless notes.
        log, records, work: the rows to write, by table.
    """

    def __init__(self, tables: Tables) -> None:
        self.found: list[Damage] = []
        self._tables = tables
        self.log, self.records, self.work = [*self._log()], [*self._records()], [*self._work()]

    def _add(self, table: str, row: Row, user: str, what: str, *, harmless: bool = False) -> None:
        name = str(row[1 if table == "records" else 0])
        values = dict(zip(TABLES[table], row, strict=True))
        self.found.append(Damage(what, user, name, harmless, values))

    def _check_sum(self, add: Callable[..., None], what: str, whole: bool | None) -> None:
        if whole is None:
            add(UNSUMMED, harmless=True)
        elif not whole:
            add(f"{what} that {NOT_AS_WRITTEN}; their readable content is kept")

    def _log(self) -> Iterator[Row]:
        """Yield the rows of the log to write; events that this version cannot read are kept as they are."""
        at = 0.0
        for row in {row[0]: row for row in self._tables.rows["log"]}.values():
            seq, mind, when, by, kind, payload, total, system = row
            user = mind if _is_name(mind) else ""
            add = partial(self._add, "log", row, user)
            if not user or not 0 < seq <= MAX_NUMBER:
                add("rows of the log without a user, or with an impossible number")
                continue
            if (sound := moment(when)) is None or not isinstance(by, str):
                add("rows of the log whose time or author cannot be read")
            at = at if sound is None else sound  # an unreadable time is replaced by that of the row before
            whole = _sum_agrees(sum_of_event, (mind, when, by, kind, payload, system or 0), total)
            self._check_sum(add, "rows of the log", whole)
            event, named = read_event(kind, payload), (kind, payload)
            if isinstance(event, Unknown):
                named = event.entry()
                kept = whole is True or (
                    isinstance(payload, str) and isinstance(kind, str) and kind not in every_kind()
                )
                note = " (they are kept as they are)" if kept else ""
                add(f"rows of the log that this mindstream cannot read{note}", harmless=kept)
            new = (mind, at, printable(by), *named, int(system == 1))
            yield (seq, *new, sum_of_event(*new))

    def _records(self) -> Iterator[Record]:
        """Yield the records that can be kept; a record without a readable version gets its slot's next number."""
        taken: set[object] = set()
        newest: dict[tuple[str, str], int] = {}
        for row, record in self._tables.records:
            held, slot = row[1:CHANGED], row[1 + FIELDS.index("slot")]
            user = record.stream if _is_name(record.stream) else ""
            add = partial(self._add, "records", row, user)
            for name in _changed_fields(held, record):
                add(f"records whose {name} cannot be read as it stands")
            if not isinstance(row[CHANGED], int) or row[CHANGED] > MAX_NUMBER:
                add("records without the number of their last change")
            if user and record.seq not in self._tables.minds:
                add("records whose row of the log is missing", harmless=True)
            self._check_sum(add, "records", _sum_agrees(sum_of_record, (held,), row[WORDS_SUM]))
            if held[-1] is not None and _sum_agrees(sum_of_vector, (held[-1],), row[VECTOR_SUM]) is False:
                add(f"vectors that {NOT_AS_WRITTEN}")
            if record.slot is None and record.kind in SLOTTED and isinstance(slot, str) and slot and slot.isprintable():
                record = replace(record, slot=slot, version=1 + newest.get((record.stream, slot), 0))
            try:
                if not user or self._tables.minds.get(record.seq, user) != user:
                    raise InputError("the record belongs to no user, or to another user than its row of the log")
                record = checked_record(record)
                mine = {record.id, (record.stream, record.slot, record.version) if record.slot else record.id}
                if mine & taken:
                    raise InputError("they exist twice")
            except InputError as error:
                add(f"records that cannot be kept: {str(error).partition(':')[0][:80]}")
                continue
            taken |= mine
            if record.slot:
                place = (record.stream, record.slot)
                newest[place] = max(record.version or 0, newest.get(place, 0))
            yield record

    def _work(self) -> Iterator[Row]:
        for row in self._tables.rows["work"]:
            if _is_work(row, self._tables):
                yield (*row[:-1], row[-1] or 0)
            else:
                user = row[1] if _is_name(row[1]) else ""
                self._add("work", row, user, "rows of work that cannot be read")


def _changed_fields(held: Row, record: Record) -> list[str]:
    """Return the fields of a row that would change if its restored record were written again."""
    return [
        name
        for name, before, after in zip(FIELDS, held, row_of(record, record.seq), strict=True)
        if before != after and not (name == "data" and record.data == {} and before is None)
    ]


def _sum_agrees(sum_of: Callable[..., int | None], values: Row, wanted: object) -> bool | None:
    """Return whether the checksum of values is right; None: they have no checksum."""
    if wanted is None:
        return None
    try:
        return sum_of(*values) == wanted
    except (TypeError, ValueError):
        return False


def _is_work(row: Row, tables: Tables) -> bool:
    """Return whether a row of work can be read, and its cause is a row in the log of the same mind.

    A negative number is accepted as the cause, too. It stands for an occasion (a silence, or an hour of the day), which
    has no row in the log.
    """
    _, mind, slot, cause, owner, lease, running, attempts, error, done, failures = row
    counts = all(isinstance(each, int) and 0 <= each < 2**31 for each in (running, attempts, failures or 0))
    texts = all(isinstance(each, str) for each in (slot, owner, error))
    heard = tables.minds.get(cause) == mind and (done is None or tables.minds.get(done) == mind)
    whole = heard or (isinstance(cause, int) and cause < 0)
    return _is_name(mind) and counts and texts and whole and moment(lease) is not None


def _is_name(value: object) -> bool:
    """Return whether a value can be the key of a stream."""
    try:
        return isinstance(value, str) and bool(name_of(value))
    except InputError:
        return False


@dataclass(frozen=True, slots=True)
class Mended:
    """The result of a repair.

    Attributes:
        copy: the folder with a copy of the damaged database, and the file of rows that could not be kept.
        kept: the number of rows in the new database, by table.
        aside: the number of rows that could not be kept, or not as they were written, by reason.
        lost: the number of parts of tables that could not be read.
    """

    copy: Path
    kept: dict[str, int]
    aside: dict[str, int]
    lost: int


def _write_aside(found: Sequence[Damage], path: Path) -> None:
    """Write damaged rows, each with its fault, to a new private file, as JSON Lines. Without damage, write no file."""
    if found:
        with path.open("x", encoding="utf-8") as file:
            private_file(path)
            for each in found:
                row = {name: value.hex() if isinstance(value, bytes) else value for name, value in each.values.items()}
                file.write(json.dumps({"why": each.what, "row": row}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def mend(folder: Path) -> Mended:
    """Repair the database of a data folder.

    Raises:
        StorageError: another program has the file open; the file is not a mindstream database of this or an earlier
            version; no row of the log or of the records can be read; or the copy cannot be written. The database is
            unchanged then.
    """
    path = folder / FILE
    check_plain(path)
    with contextlib.suppress(sqlite3.DatabaseError), looking_into(path) as connection:
        match standing(connection):
            case "foreign":
                raise StorageError(f"{path} is a database of another program; choose another data folder")
            case "newer":
                raise StorageError(f"{path} was written by a newer mindstream; upgrade mindstream to repair it")
    try:
        copy = _copied(path, format_iso(SystemClock().now()))
    except OSError as error:
        raise StorageError(f"{path} cannot be copied: {error.strerror}; nothing was changed") from None
    new = copy / "new.db"
    try:
        _check_alone(path)
        with explain_errors(new), contextlib.closing(sqlite3.connect(new, isolation_level=None)) as fresh:
            done = _rebuild(path, fresh, copy)
    except (OSError, MindstreamError) as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise StorageError(f"{error}; nothing was changed") from None
    with explain_errors(path):
        try:
            _write_over(new, path)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if isinstance(error, sqlite3.Error) and is_busy(error):
                raise
            for each in BESIDE:  # the old file is too damaged to be written over, so delete it; there is a copy
                path.with_name(path.name + each).unlink(missing_ok=True)
            _write_over(new, path)
    new.unlink(missing_ok=True)
    private_file(path)
    return done


def _check_alone(path: Path) -> None:
    """Raise StorageError if another program has the file open: SQLite then refuses to leave WAL mode."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except UnicodeDecodeError:
        pass  # SQLite's message about the damage quotes names that are not UTF-8
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise StorageError(f"{path} is in use: close the other programs that use it, then repair it") from None


def _copied(path: Path, now: str) -> Path:
    stamp = now.replace(":", "").replace("-", "")
    names = (path.with_name(f"mended-{stamp}{f'-{n}' if n else ''}") for n in range(1000))
    copy = next(each for each in names if not each.exists())
    copy.mkdir(mode=0o700)
    for each in (path.with_name(path.name + end) for end in BESIDE):
        if each.exists():
            with each.open("rb") as old, (copy / each.name).open("xb") as new:
                private_file(copy / each.name)
                shutil.copyfileobj(old, new)
                os.fsync(new.fileno())
    return copy


def _write_over(new: Path, path: Path) -> None:
    """Write the new database over the old one in one transaction, so that other programs never see a mix of both."""
    with contextlib.closing(sqlite3.connect(new)) as fresh, contextlib.closing(sqlite3.connect(path)) as old:
        fresh.backup(old)


def _rebuild(path: Path, fresh: sqlite3.Connection, copy: Path) -> Mended:
    """Write the rows that can be kept into a new database. Write the original rows that this leaves out or changes to
    the file ASIDE. Raise StorageError if no row of the log or of the records can be read."""
    with looking_into(path) as old:
        tables = Tables(old)
    gone = [table for table in ("log", "records") if tables.lost[table] and not tables.rows[table]]
    if gone:
        raise StorageError(
            f"no row of the {' and the '.join(gone)} can be read from {path}: restore a backup, or move the file away"
        )
    repair = Repair(tables)
    aside = [each for each in repair.found if not each.harmless]
    kept = _write(tables, repair, fresh)
    _write_aside(aside, copy / ASIDE)
    return Mended(copy, kept, Counter(each.what for each in aside), sum(tables.lost.values()))


def _write(tables: Tables, repair: Repair, fresh: sqlite3.Connection) -> dict[str, int]:
    fresh.execute("PRAGMA temp_store = MEMORY")
    fresh.execute("PRAGMA secure_delete = ON")
    fresh.execute("BEGIN")
    for migration in MIGRATIONS:
        migration(fresh)
    fresh.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    fresh.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    into = f"INSERT OR IGNORE INTO work ({', '.join(TABLES['work'])}) VALUES ({','.join('?' * len(TABLES['work']))})"
    fresh.executemany(LOG, repair.log)
    fresh.executemany(INSERT, [insertion(record, record.seq, COMMIT) for record in repair.records])
    fresh.executemany(into, repair.work)
    is_old = all(row[-1] is None for row in tables.rows["log"])
    adopt(fresh) if is_old else registry.register_all(fresh)
    if tables.decaying is None:
        fresh.execute(registry.MARK_DECAYING.format(more=""))
    marks = [(stream, registry.WRITTEN_UNDER_DECAY) for stream in tables.decaying or ()]
    fresh.executemany("INSERT INTO uniques VALUES (?, ?, 0)", marks)
    for table, rows in tables.accounts.items():
        if rows:
            fresh.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    counters = tables.counters | {"changed": COMMIT}
    fresh.executemany("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)", counters.items())
    fresh.execute("COMMIT")
    counted = ("records", "log", "work")
    return {table: int(fresh.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in counted}
