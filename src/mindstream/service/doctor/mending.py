"""Mend a database: a copy of it first, then all that can be read is written anew, row by row, through the usual door.

What cannot be kept is set aside as lines of JSON beside the copy; nothing is dropped in silence. Nobody else may have
the database open.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from mindstream.clock import Clock, SystemClock, format_iso
from mindstream.errors import InputError, MindstreamError, StorageError
from mindstream.log.database import APPLICATION_ID, FILE
from mindstream.log.events import Unknown, printable, read_event
from mindstream.log.files import BESIDE, check_plain, explain_errors, is_busy, private_file
from mindstream.log.names import name_of
from mindstream.memory.store import old_streams, registry
from mindstream.memory.store.record import SLOTTED, Record
from mindstream.memory.store.rows import FIELDS, INSERT, insertion, moment, row_of, sum_of_event, sum_of_record
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.validation import checked_record
from mindstream.service.doctor.damage import LAST, chains, is_name, is_work, standing, widths
from mindstream.service.doctor.readable import TABLES, WORDS_SUM, Row, Tables, looking_into

ASIDE = "set_aside.jsonl"
LOG = "INSERT INTO log (seq, mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
CHANGE = 1
"""The commit that all rows count as of: nobody has read the new file yet."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What a mending came to.

    Attributes:
        copy: the folder with the database as it was, and what was set aside.
        kept: rows that are there now, by table.
        aside: rows that are not, or not as they were written, by why.
        lost: parts of tables that could not be read at all.
    """

    copy: Path
    kept: dict[str, int]
    aside: dict[str, int]
    lost: int


class Quarantine:
    """Where rows go that cannot be kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.counts: dict[str, int] = {}
        self._lines: list[str] = []

    def add(self, why: str, table: str, row: Row) -> None:
        """Set a row aside."""
        self.counts[why] = self.counts.get(why, 0) + 1
        values = [value.hex() if isinstance(value, bytes) else value for value in row]
        held = dict(zip(TABLES[table], values, strict=True))
        self._lines.append(json.dumps({"why": why, "table": table, "row": held}))

    def write(self) -> None:
        """Put down what was set aside."""
        if self._lines:
            with self.path.open("x", encoding="utf-8") as file:
                private_file(self.path)
                file.write("\n".join(self._lines) + "\n")
                file.flush()
                os.fsync(file.fileno())


def mend(folder: Path, clock: Clock | None = None) -> Mended:
    """Mend the database of a data folder.

    Raises:
        StorageError: another program has it open, it is no database of ours, or there is no room for the copy.
    """
    path = folder / FILE
    check_plain(path)
    _check_ours(path)
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
        _put_back(new, path)
    new.unlink(missing_ok=True)
    private_file(path)
    return done


def _check_ours(path: Path) -> None:
    with contextlib.suppress(sqlite3.DatabaseError), looking_into(path) as connection:
        match standing(connection):
            case "foreign":
                raise StorageError(f"{path} is a database of another program; choose another data folder")
            case "newer":
                raise StorageError(f"{path} was written by a newer mindstream; upgrade mindstream to mend it")


def _check_alone(path: Path) -> None:
    """Bring the write-ahead log home, which works only where nobody else has the file open."""
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except UnicodeDecodeError:
        pass  # SQLite's own words about the damage
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise StorageError(f"{path} is in use; close the other programs on it, then mend it") from None


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


def _put_back(new: Path, path: Path) -> None:
    """Write the new database over the old one, page by page in one transaction: whoever waits for it gets it whole."""
    try:
        _write_over(new, path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.Error) and is_busy(error):
            raise
        for each in BESIDE:  # too damaged to be written over; the copy is safe
            path.with_name(path.name + each).unlink(missing_ok=True)
        _write_over(new, path)


def _write_over(new: Path, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(new)) as fresh, contextlib.closing(sqlite3.connect(path)) as old:
        fresh.backup(old)


def _rebuild(path: Path, fresh: sqlite3.Connection, copy: Path) -> Mended:
    """Write all that can be read into a new database, and the rest down beside the copy."""
    aside = Quarantine(copy / ASIDE)
    with looking_into(path) as old:
        tables = Tables(old)
    gone = [table for table in ("log", "records") if tables.lost[table] and not tables.rows[table]]
    if gone:
        raise StorageError(
            f"nothing of the {' and the '.join(gone)} can be read from {path}; put a copy back in its place, or move it"
            " away"
        )
    kept = _write(tables, fresh, aside)
    aside.write()
    return Mended(copy, kept, aside.counts, sum(tables.lost.values()))


def _write(tables: Tables, fresh: sqlite3.Connection, aside: Quarantine) -> dict[str, int]:
    fresh.execute("PRAGMA temp_store = MEMORY")
    fresh.execute("PRAGMA secure_delete = ON")
    fresh.execute("BEGIN")
    for migration in MIGRATIONS:
        migration(fresh)
    fresh.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    fresh.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    for row in _log(tables, aside):
        fresh.execute(LOG, row)
    fresh.executemany(INSERT, [insertion(record, record.seq, CHANGE) for record in _records(tables, aside)])
    into = f"INSERT INTO work ({', '.join(TABLES['work'])}) VALUES ({','.join('?' * len(TABLES['work']))})"
    causes: set[Row] = set()
    for row in tables.rows["work"]:
        if is_work(row, tables) and row[1:4] not in causes:
            causes.add(row[1:4])
            fresh.execute(into, (*row[:-1], row[-1] or 0))
        else:
            aside.add("work that points nowhere, or cannot be read", "work", row)
    is_old = all(row[-1] is None for row in tables.rows["log"])
    old_streams.adopt(fresh) if is_old else registry.register_all(fresh)
    if tables.decaying is None:
        fresh.execute(registry.MARK_DECAYING.format(more=""))
    for stream in tables.decaying or ():
        fresh.execute("INSERT INTO uniques VALUES (?, ?, 0)", (stream, registry.WRITTEN_UNDER_DECAY))
    for table, rows in tables.accounts.items():
        if rows:
            fresh.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)
    counters = tables.counters | {"changed": CHANGE}
    fresh.executemany("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)", counters.items())
    fresh.execute("COMMIT")
    counted = ("records", "log", "work")
    return {table: int(fresh.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in counted}


def _log(tables: Tables, aside: Quarantine) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the log, each whole; what cannot be read is kept as it stands."""
    at = 0.0
    for row in {row[0]: row for row in tables.rows["log"]}.values():
        seq, mind, when, by, kind, payload, total, system = row
        if not is_name(mind) or not 0 < seq <= LAST:
            aside.add("rows of the log of nobody, or with a number that none has", "log", row)
            continue
        at = at if (sound := moment(when)) is None else sound  # else that of the row before it
        entry = read_event(kind, payload)
        named = entry.entry() if isinstance(entry, Unknown) else (kind, payload)
        new = (mind, at, printable(by), *named, int(system == 1))
        if total is not None and sum_of_event(*new) != total:
            aside.add("rows of the log that are not as they were written; kept as they read", "log", row)
        yield (seq, *new, sum_of_event(*new))


def _records(tables: Tables, aside: Quarantine) -> list[Record]:
    """Return the records that can be kept, in the order of writing."""
    kept: list[Record] = []
    taken: set[object] = set()
    for row, read in tables.records:
        record = _of_its_log(row, read, tables)
        try:
            if record is None:
                raise InputError("nobody knows whose they are")
            record = checked_record(_slotted(row, record, kept))
            mine = {record.id} if record.slot is None else {record.id, (record.stream, record.slot, record.version)}
            if mine & taken:
                raise InputError("they are there twice")
        except InputError as error:
            aside.add(f"records that cannot be kept: {str(error)[:80]}", "records", row)
            continue
        total = row[WORDS_SUM]
        if total is not None and _sum(record) != total:
            aside.add("records that are not as they were written; kept as they read", "records", row)
        taken |= mine
        kept.append(record)
    return _in_order(kept)


def _of_its_log(row: Row, record: Record, tables: Tables) -> Record | None:
    """Return a record as that of the user whose log wrote it; None where that would be a guess."""
    mind = tables.minds.get(record.seq, record.stream)
    if not isinstance(mind, str) or not is_name(mind):
        return None
    of_its_log = replace(record, stream=name_of(mind).typed_key)
    return of_its_log if mind == record.stream or _sum(of_its_log) == row[WORDS_SUM] else None


def _sum(record: Record) -> int:
    return sum_of_record(row_of(record, record.seq))


def _slotted(row: Row, record: Record, kept: Sequence[Record]) -> Record:
    """Give a belief or plan whose version cannot be read the next one of its slot."""
    slot = row[1 + FIELDS.index("slot")]
    if record.slot is not None or record.kind not in SLOTTED or not isinstance(slot, str) or not slot.isprintable():
        return record
    versions = [each.version or 0 for each in kept if (each.stream, each.slot) == (record.stream, slot)]
    return replace(record, slot=slot, version=1 + max(versions, default=0)) if slot else record


def _in_order(kept: Sequence[Record]) -> list[Record]:
    """Let the newest version of each slot hold and no older one; leave out vectors that cannot be compared."""
    usual = widths(kept)
    new: dict[str, Record] = {}
    for versions in chains(kept).values():
        for older, newer in pairwise(versions):
            if older.valid_until is None:
                new[older.id] = replace(older, valid_until=newer.created, superseded_by=newer.id)
        new[versions[-1].id] = replace(versions[-1], valid_until=None, superseded_by=None, forgotten=None)
    return [_comparable(new.get(record.id, record), usual) for record in kept]


def _comparable(record: Record, usual: dict[str, int]) -> Record:
    if record.vector is None or len(record.vector) == usual[record.embedder]:
        return record
    return replace(record, vector=None, embedder="")
