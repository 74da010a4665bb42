"""Finds damage in a database file, and repairs it.

A repair copies the file first, then writes all rows that can be read into a new database, one by one. What cannot be
kept is written as lines of JSON next to the copy; nothing is dropped silently. No other program may have the file open.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mindstream.clock import Clock, SystemClock, format_iso
from mindstream.errors import InputError, MindstreamError, StorageError
from mindstream.log.database import APPLICATION_ID, FILE
from mindstream.log.events import Unknown, every_kind, printable, read_event
from mindstream.log.files import BESIDE, check_plain, explain_errors, is_busy, private_file
from mindstream.log.names import name_of
from mindstream.memory.store import old_streams, registry
from mindstream.memory.store.record import SLOTTED, Record
from mindstream.memory.store.rows import (
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
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.validation import checked_record

Row = tuple[Any, ...]
TABLES = {
    "log": ["seq", "mind", "at", "by", "kind", "payload", "sum", "system"],
    "records": ["number", *FIELDS, "changed", "same", "words_sum", "vector_sum"],
    "work": ["id", "mind", "slot", "cause", "owner", "lease", "running", "attempts", "error", "done", "failures"],
    "erased": ["rowid", "stream", "id", "changed"],
}
"""The columns that are read, the row's number first."""
ACCOUNTS = ("salts", "erasures", "audit", "retention", "kept")
MAX_TRIES = 20_000
"""How often an unreadable part of a table is halved, to find the readable rows around it."""
CHANGED, WORDS_SUM, VECTOR_SUM = -4, -2, -1
MAX_NUMBER = 2**53
"""No row has a higher number, and SQLite has no number after its highest."""
UNSUMMED = "rows without a checksum: from before there were any, or changed on purpose"
NOT_AS_WRITTEN = "differ from what was written"
ASIDE = "set_aside.jsonl"
LOG = "INSERT INTO log (seq, mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
COMMIT = 1
"""The number of the commit of all rows: no process has read the new file yet."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A fault.

    Attributes:
        what: its kind, in the plural.
        user: whose row it is, or "" if that is not known.
        row: which row, or "".
        harmless: nothing is damaged; it is only worth knowing.
    """

    what: str
    user: str = ""
    row: str = ""
    harmless: bool = False


class Tables:
    """All rows of a database, as far as they can be read.

    Attributes:
        rows: by table, each as TABLES names it; None where a column does not exist.
        records: the rows of the records, each with what can be read of it.
        minds: the stream of each row of the log.
        counters: their values, by name.
        accounts: the rows of the tables ACCOUNTS, as far as they can be read.
        decaying: the streams that were written under the policy `decay`; None: the file is older than these marks.
        lost: by table, how many parts of it cannot be read.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.lost: Counter[str] = Counter()
        self.rows = {table: self._read(connection, table, columns) for table, columns in TABLES.items()}
        self.counters: dict[str, int] = {}
        with contextlib.suppress(sqlite3.Error):
            found = connection.execute("SELECT name, value FROM counters").fetchall()
            self.counters = {name: n for name, n in found if isinstance(name, str) and isinstance(n, int)}
        self.accounts: dict[str, list[Row]] = {}
        for table in ACCOUNTS:
            with contextlib.suppress(sqlite3.Error):
                self.accounts[table] = connection.execute(f"SELECT * FROM {table}").fetchall()
        self.decaying: list[str] | None = None
        with contextlib.suppress(sqlite3.Error):
            if connection.execute("PRAGMA user_version").fetchone()[0] >= registry.FIRST_MARKED:
                marked = "SELECT stream FROM uniques WHERE name = ?"
                self.decaying = [row[0] for row in connection.execute(marked, (registry.WRITTEN_UNDER_DECAY,))]
        self.minds: dict[int, object] = {row[0]: row[1] for row in self.rows["log"]}
        self.records = [(row, salvage(row[1:CHANGED])) for row in self.rows["records"]]

    def _read(self, connection: sqlite3.Connection, table: str, columns: list[str]) -> list[Row]:
        existing = {"rowid"}
        with contextlib.suppress(sqlite3.Error):
            existing |= {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
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


def _last(connection: sqlite3.Connection, table: str) -> int:
    """Return the highest number of a row, or an upper limit of it."""
    for sql in (f"SELECT max(rowid) FROM {table}", "SELECT seq FROM sqlite_sequence", "PRAGMA page_count"):
        with contextlib.suppress(sqlite3.Error, TypeError, ValueError):
            return int(connection.execute(sql).fetchone()[0] or 0) + (0 if sql.startswith("SELECT max") else 10_000)
    return 1_000_000


@contextlib.contextmanager
def looking_into(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a snapshot of a database for reading, as far as it can be read.

    Raises:
        sqlite3.DatabaseError: nothing of it can be read.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=2, isolation_level=None)) as connection:
        connection.text_factory = _text
        connection.execute("PRAGMA writable_schema = ON")  # a broken row of the schema hides its own table only
        connection.execute("BEGIN")
        try:
            yield connection
        except UnicodeDecodeError as error:  # of SQLite's own message
            raise sqlite3.DatabaseError(f"its tables have no names that can be read ({error})") from None


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield the faults of one of our databases; it may be of an older version.

    Raises:
        sqlite3.DatabaseError: nothing of it can be read.
    """
    yield from _file_faults(connection)
    yield from _schema_faults(connection)
    tables = Tables(connection)
    for table, count in tables.lost.items():
        yield from [Damage(f"parts of the table {table} that cannot be read")] * count
    for row in tables.rows["log"]:
        yield from _log_faults(row)
    for row, record in tables.records:
        yield from _record_faults(row, record, tables)
    for row in tables.rows["work"]:
        if not _is_work(row, tables):
            yield Damage("rows of work that cannot be read", row[1] if _is_name(row[1]) else "", str(row[0]))
    numbers = [row[-1] for row in tables.rows["erased"]] + [row[CHANGED] for row in tables.rows["records"]]
    highest = max((each for each in numbers if isinstance(each, int)), default=0)
    if not highest <= tables.counters.get("changed", -1) <= MAX_NUMBER:
        yield Damage("counters that are lower than what they have counted")


def _file_faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Check that the file opens normally (`looking_into` ignores some faults), and run SQLite's integrity check."""
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
    """Return whose database it is; if its marks are damaged, its tables decide.

    Raises:
        sqlite3.DatabaseError: nothing of it can be read.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    found = _schema(connection)
    if application != APPLICATION_ID and not {f"table {table}" for table in TABLES} <= found:
        return "foreign" if found else "ours"
    return "newer" if version > len(MIGRATIONS) and not found <= _schema_of(len(MIGRATIONS)) else "ours"


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
    """Compare the file's marks and schema with those of its version."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    wanted, found = _schema_of(version), _schema(connection)
    if found and (application != APPLICATION_ID or not 0 < version <= len(MIGRATIONS)):
        yield Damage("marks of the file that are not mindstream's", row=f"{application:#x}, {version}")
    for name in sorted(wanted - found):
        yield Damage("tables, indexes and columns that are missing", row=name)
    latest = _schema_of(len(MIGRATIONS))
    for name in sorted(found - wanted):
        kind = name.partition(" ")[0]
        if kind in ("trigger", "view"):
            yield Damage("triggers and views that mindstream did not make", row=name)
        elif kind in ("table", "column") and name in latest:
            yield Damage("tables and columns of a later version", row=name)


def _log_faults(row: Row) -> Iterator[Damage]:
    seq, mind, at, by, kind, payload, total, system = row
    user = mind if _is_name(mind) else ""
    whole = _sum_agrees(sum_of_event, (mind, at, by, kind, payload, system or 0), total)
    if not user or not 0 < seq <= MAX_NUMBER or moment(at) is None or not isinstance(by, str):
        yield Damage("rows of the log whose number, time or author cannot be read", user, str(seq))
    elif isinstance(read_event(kind, payload), Unknown):
        kept = whole is True or (isinstance(payload, str) and isinstance(kind, str) and kind not in every_kind())
        note = " (they are kept as they are)" if kept else ""
        yield Damage(f"rows of the log that this mindstream cannot read{note}", user, str(seq), kept)
    yield from _sum_faults("rows of the log", whole, user, str(seq))


def _record_faults(row: Row, record: Record, tables: Tables) -> Iterator[Damage]:
    held, user = row[1:CHANGED], record.stream if _is_name(record.stream) else ""
    for name in _unreadable(held, record):
        yield Damage(f"records whose {name} cannot be read as it stands", user, record.id)
    try:
        checked_record(record)
    except InputError as error:
        yield Damage(f"records with an impossible {str(error).partition(':')[0][:60]}", user, record.id)
    if not isinstance(row[CHANGED], int) or row[CHANGED] > MAX_NUMBER:
        yield Damage("records without the number of their last change", user, record.id)
    if not user or tables.minds.get(record.seq, user) != user:
        yield Damage("records of another user than their row of the log", user, record.id)
    elif record.seq not in tables.minds:
        yield Damage("records whose row of the log is gone", user, record.id, harmless=True)
    yield from _sum_faults("records", _sum_agrees(sum_of_record, (held,), row[WORDS_SUM]), user, record.id)
    if held[-1] is not None and _sum_agrees(sum_of_vector, (held[-1],), row[VECTOR_SUM]) is False:
        yield Damage(f"vectors that {NOT_AS_WRITTEN}", user, record.id)


def _unreadable(held: Row, record: Record) -> list[str]:
    """Return the fields that would change if the record were written again."""
    return [
        name
        for name, before, after in zip(FIELDS, held, row_of(record, record.seq), strict=True)
        if before != after and not (name == "data" and record.data == {} and before is None)
    ]


def _sum_faults(what: str, whole: bool | None, user: str, row: str) -> Iterator[Damage]:
    if whole is None:
        yield Damage(UNSUMMED, user, row, harmless=True)
    elif not whole:
        yield Damage(f"{what} that {NOT_AS_WRITTEN}", user, row)


def _sum_agrees(sum_of: Callable[..., int | None], values: Row, wanted: object) -> bool | None:
    """Return whether values have their checksum; None: it has none."""
    if wanted is None:
        return None
    try:
        return sum_of(*values) == wanted
    except (TypeError, ValueError):
        return False


def _is_work(row: Row, tables: Tables) -> bool:
    """Return whether a row of work can be read, and is about an utterance of its mind or an occasion."""
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
        copy: the folder with the database as it was, and the rows that were set aside.
        kept: how many rows the new database has, by table.
        aside: how many rows could not be kept, or not as they were written, by reason.
        lost: parts of tables that could not be read.
    """

    copy: Path
    kept: dict[str, int]
    aside: dict[str, int]
    lost: int


class Aside:
    """Rows that are set aside."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lines: list[str] = []

    def add(self, why: str, table: str, row: Row) -> None:
        """Set a row aside."""
        self.counts[why] += 1
        values = [value.hex() if isinstance(value, bytes) else value for value in row]
        held = dict(zip(TABLES[table], values, strict=True))
        self._lines.append(json.dumps({"why": why, "table": table, "row": held}))

    def write(self, path: Path) -> None:
        """Write all rows to a file."""
        if self._lines:
            with path.open("x", encoding="utf-8") as file:
                private_file(path)
                file.write("\n".join(self._lines) + "\n")
                file.flush()
                os.fsync(file.fileno())


def mend(folder: Path, clock: Clock | None = None) -> Mended:
    """Repair the database of a data folder.

    Raises:
        StorageError: another program has it open, it is no database of ours, or there is no room for the copy.
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
        copy = _copied(path, format_iso((clock or SystemClock()).now()))
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
            for each in BESIDE:  # too damaged to be written over; there is a copy
                path.with_name(path.name + each).unlink(missing_ok=True)
            _write_over(new, path)
    new.unlink(missing_ok=True)
    private_file(path)
    return done


def _check_alone(path: Path) -> None:
    """Empty the write-ahead log, which is only possible if no other program has the file open."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except UnicodeDecodeError:
        pass  # of SQLite's own message about the damage
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise StorageError(f"{path} is in use; close the other programs on it, then repair it") from None


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
    """Write the new database over the old one in one transaction: a program that waits for it gets all of it."""
    with contextlib.closing(sqlite3.connect(new)) as fresh, contextlib.closing(sqlite3.connect(path)) as old:
        fresh.backup(old)


def _rebuild(path: Path, fresh: sqlite3.Connection, copy: Path) -> Mended:
    """Write all that can be read into a new database, and set the rest aside."""
    with looking_into(path) as old:
        tables = Tables(old)
    gone = [table for table in ("log", "records") if tables.lost[table] and not tables.rows[table]]
    if gone:
        raise StorageError(
            f"nothing of the {' and the '.join(gone)} can be read from {path}; restore a backup, or move it away"
        )
    aside = Aside()
    kept = _write(tables, fresh, aside)
    aside.write(copy / ASIDE)
    return Mended(copy, kept, aside.counts, sum(tables.lost.values()))


def _write(tables: Tables, fresh: sqlite3.Connection, aside: Aside) -> dict[str, int]:
    fresh.execute("PRAGMA temp_store = MEMORY")
    fresh.execute("PRAGMA secure_delete = ON")
    fresh.execute("BEGIN")
    for migration in MIGRATIONS:
        migration(fresh)
    fresh.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    fresh.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    fresh.executemany(LOG, _log(tables, aside))
    fresh.executemany(INSERT, [insertion(record, record.seq, COMMIT) for record in _records(tables, aside)])
    into = f"INSERT OR IGNORE INTO work ({', '.join(TABLES['work'])}) VALUES ({','.join('?' * len(TABLES['work']))})"
    for row in tables.rows["work"]:
        if _is_work(row, tables):
            fresh.execute(into, (*row[:-1], row[-1] or 0))
        else:
            aside.add("rows of work that cannot be read", "work", row)
    is_old = all(row[-1] is None for row in tables.rows["log"])
    old_streams.adopt(fresh) if is_old else registry.register_all(fresh)
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


def _log(tables: Tables, aside: Aside) -> Iterator[Row]:
    """Yield the rows of the log; events that cannot be read are kept as they are."""
    at = 0.0
    for row in {row[0]: row for row in tables.rows["log"]}.values():
        seq, mind, when, by, kind, payload, total, system = row
        if not _is_name(mind) or not 0 < seq <= MAX_NUMBER:
            aside.add("rows of the log without a user, or with an impossible number", "log", row)
            continue
        at = at if (sound := moment(when)) is None else sound  # else that of the row before it
        event = read_event(kind, payload)
        named = event.entry() if isinstance(event, Unknown) else (kind, payload)
        new = (mind, at, printable(by), *named, int(system == 1))
        if total is not None and sum_of_event(*new) != total:
            aside.add(f"rows of the log that {NOT_AS_WRITTEN}; kept as they can be read", "log", row)
        yield (seq, *new, sum_of_event(*new))


def _records(tables: Tables, aside: Aside) -> Iterator[Record]:
    """Yield the records that can be kept, in the order of writing; an unreadable version becomes its slot's next."""
    taken: set[object] = set()
    newest: dict[tuple[str, str], int] = {}
    for row, record in tables.records:
        slot = row[1 + FIELDS.index("slot")]
        if record.slot is None and record.kind in SLOTTED and isinstance(slot, str) and slot and slot.isprintable():
            record = replace(record, slot=slot, version=1 + newest.get((record.stream, slot), 0))
        try:
            if not _is_name(record.stream) or tables.minds.get(record.seq, record.stream) != record.stream:
                raise InputError("their user is not known")
            record = checked_record(record)
            mine = {record.id, (record.stream, record.slot, record.version) if record.slot else record.id}
            if mine & taken:
                raise InputError("they exist twice")
        except InputError as error:
            aside.add(f"records that cannot be kept: {str(error)[:80]}", "records", row)
            continue
        if row[WORDS_SUM] is not None and sum_of_record(row_of(record, record.seq)) != row[WORDS_SUM]:
            aside.add(f"records that {NOT_AS_WRITTEN}; kept as they can be read", "records", row)
        taken |= mine
        if record.slot:
            newest[record.stream, record.slot] = max(record.version or 0, newest.get((record.stream, record.slot), 0))
        yield record
