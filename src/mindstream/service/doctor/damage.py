"""What is wrong in a database: page by page, table by table, row by row. Only looks.

A row is sound where writing what was read from it gives that row again, where its sum agrees, and where what it points
to is there.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mindstream.errors import InputError
from mindstream.log.database import APPLICATION_ID
from mindstream.log.events import Unknown, every_kind, read_event
from mindstream.log.names import name_of
from mindstream.memory.store.record import UNIQUE, Record, same_words_once
from mindstream.memory.store.rows import FIELDS, moment, row_of, sum_of_event, sum_of_record, sum_of_vector
from mindstream.memory.store.tables import MIGRATIONS
from mindstream.memory.store.validation import checked_record
from mindstream.service.doctor.readable import CHANGED, SAME, TABLES, VECTOR_SUM, WORDS_SUM, Row, Tables

UNSUMMED = "rows without a sum: from before there were any, or changed on purpose"
LAST = 2**53
"""A higher number no row has ever got, and after the highest that SQLite knows there is none."""
KEPT = " (they are kept as they stand)"


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong.

    Attributes:
        what: what it is, the same words for all of its kind, in the plural.
        user: whose it is, or "" where nobody can say.
        row: which row, or "".
        harmless: nothing is damaged; it is worth knowing.
    """

    what: str
    user: str = ""
    row: str = ""
    harmless: bool = False


def faults(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Yield what is wrong in a database of ours; it may be of an older version.

    Raises:
        sqlite3.DatabaseError: it is so damaged that nothing can be read.
    """
    yield from _opening(connection)
    yield from _pages(connection)
    yield from _schema(connection)
    tables = Tables(connection)
    for table, count in tables.lost.items():
        yield from [Damage(f"parts of the table {table} that cannot be read")] * count
    yield from _log(tables)
    for row, record in tables.records:
        yield from _record(row, record, tables)
    records = [record for _, record in tables.records]
    yield from _widths(records)
    yield from _slots(records)
    yield from _work(tables)
    highest = max((row[-1] for row in tables.rows["erased"] if isinstance(row[-1], int)), default=0)
    highest = max([highest, *(row[CHANGED] for row in tables.rows["records"] if isinstance(row[CHANGED], int))])
    if not highest <= tables.counters.get("changed", -1) <= LAST:
        yield Damage("counters that do not stand where they have counted to")


def _opening(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Find what keeps everybody else from opening it, though `looking_into` looks past it."""
    path = connection.execute("PRAGMA database_list").fetchone()[2]
    try:
        with contextlib.closing(sqlite3.connect(f"{Path(os.fsdecode(path)).as_uri()}?mode=ro", uri=True)) as strict:
            strict.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield Damage("faults of its pages and indexes", row=str(error))


def _pages(connection: sqlite3.Connection) -> Iterator[Damage]:
    try:
        for (text,) in connection.execute("PRAGMA integrity_check(100)"):
            if text != "ok":
                yield Damage("faults of its pages and indexes", row=str(text).splitlines()[-1])
    except sqlite3.Error as error:
        yield Damage("faults of its pages and indexes", row=str(error))


def standing(connection: sqlite3.Connection) -> Literal["ours", "newer", "foreign"]:
    """Tell whose database it is; where its marks are damaged, its tables tell.

    Raises:
        sqlite3.DatabaseError: it cannot be read at all.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    seen = connection.execute("PRAGMA user_version").fetchone()[0]
    found = _shape(connection)
    if application != APPLICATION_ID and not {f"table {table}" for table in TABLES} <= found:
        return "foreign" if found else "ours"
    return "newer" if seen > len(MIGRATIONS) and not found <= _wanted(len(MIGRATIONS)) else "ours"


def _wanted(seen: int) -> set[str]:
    """Return the tables, indexes and columns of a version."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        for migration in MIGRATIONS[: max(0, seen)]:
            migration(fresh)
        return _shape(fresh)


def _schema(connection: sqlite3.Connection) -> Iterator[Damage]:
    """Compare the file's marks, tables, indexes and columns with those of its version."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    seen = connection.execute("PRAGMA user_version").fetchone()[0]
    wanted, found = _wanted(seen), _shape(connection)
    if found and (application != APPLICATION_ID or not 0 < seen <= len(MIGRATIONS)):
        yield Damage("marks of the file that are not mindstream's", row=f"{application:#x}, {seen}")
    for name in sorted(found - wanted):
        if name.startswith(("table ", "column ")) and name in _wanted(len(MIGRATIONS)):
            yield Damage("tables and columns of a later version", row=name)
    for name in sorted(wanted - found):
        yield Damage("tables, indexes and columns that are missing", row=name)
    for name in sorted(found - wanted):
        if name.partition(" ")[0] in ("trigger", "view"):
            yield Damage("triggers and views that mindstream never made", row=name)


def _shape(connection: sqlite3.Connection) -> set[str]:
    shape = {f"{kind} {name}" for kind, name in connection.execute("SELECT type, name FROM sqlite_master")}
    for name in [each.partition(" ")[2] for each in shape if each.startswith("table ")]:
        quoted = name.replace('"', '""')
        shape |= {f"column {name}.{row[1]}" for row in connection.execute(f'PRAGMA table_info("{quoted}")')}
    return {each for each in shape if "sqlite_" not in each}


def _log(tables: Tables) -> Iterator[Damage]:
    for seq, mind, at, by, kind, payload, total, system in tables.rows["log"]:
        user = mind if is_name(mind) else ""
        whole = sum_agrees(sum_of_event, (mind, at, by, kind, payload, system or 0), total)
        if not 0 < seq <= LAST:
            yield Damage("rows of the log with a number that none has", user, str(seq))
        elif not user or moment(at) is None or not isinstance(by, str):
            yield Damage("rows of the log without a sound time or name", user, str(seq))
        elif isinstance(read_event(kind, payload), Unknown):
            kept = whole is True or (isinstance(payload, str) and isinstance(kind, str) and kind not in every_kind())
            yield Damage(f"rows of the log that this mindstream cannot read{KEPT * kept}", user, str(seq), kept)
        if whole is None:
            yield Damage(UNSUMMED, user, str(seq), harmless=True)
        elif not whole:
            yield Damage("rows of the log that are not as they were written", user, str(seq))


def _record(row: Row, record: Record, tables: Tables) -> Iterator[Damage]:
    held, changed = row[1:CHANGED], row[CHANGED]
    user = record.stream if is_name(record.stream) else ""
    again = row_of(record, record.seq)
    for name, before, after in zip(FIELDS, held, again, strict=True):
        if before != after and not (name == "data" and record.data == {} and before is None):
            yield Damage(f"records whose {name} cannot be read as it stands", user, record.id)
    try:
        checked_record(record)
    except InputError as error:
        yield Damage(f"records with an impossible {str(error).partition(':')[0][:60]}", user, record.id)
    if not isinstance(changed, int) or changed > LAST:
        yield Damage("records of which nobody can tell when they changed", user, record.id)
    if not user or tables.minds.get(record.seq, user) != user:
        yield Damage("records that another user's log wrote, or nobody's", user, record.id)
    elif record.seq not in tables.minds:
        yield Damage("records whose row of the log is gone", user, record.id, harmless=True)
    if record.kind in UNIQUE and row[SAME] not in same_words_once(record.text):
        yield Damage("records that would not be known again by their words", user, record.id)
    whole = sum_agrees(sum_of_record, (held,), row[WORDS_SUM])
    if whole is None:
        yield Damage(UNSUMMED, user, record.id, harmless=True)
    elif not whole:
        yield Damage("records that are not as they were written", user, record.id)
    if held[-1] is not None and sum_agrees(sum_of_vector, (held[-1],), row[VECTOR_SUM]) is False:
        yield Damage("vectors that are not as they were written", user, record.id)


def widths(records: Iterable[Record]) -> dict[str, int]:
    """Return how wide the vectors of each embedder are, nearly all."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for record in records:
        if record.vector is not None:
            found[record.embedder][len(record.vector)] += 1
    return {name: each.most_common(1)[0][0] for name, each in found.items()}


def _widths(records: Sequence[Record]) -> Iterator[Damage]:
    usual = widths(records)
    for record in records:
        if record.vector is not None and len(record.vector) != usual[record.embedder]:
            yield Damage("vectors of another width than their embedder's", record.stream, record.id)


def chains(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the versions of each slot of each stream, the oldest first."""
    found: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.slot is not None:
            found[record.stream, record.slot].append(record)
    return {key: sorted(each, key=lambda record: record.version or 0) for key, each in found.items()}


def _slots(all_records: Sequence[Record]) -> Iterator[Damage]:
    for (stream, slot), records in chains(all_records).items():
        if records[-1].valid_until is not None or records[-1].forgotten is not None:
            yield Damage("beliefs and plans whose newest version does not hold", stream, slot)
        if any(record.valid_until is None for record in records[:-1]):
            yield Damage("beliefs and plans whose old versions still hold", stream, slot)


def _work(tables: Tables) -> Iterator[Damage]:
    for row in tables.rows["work"]:
        if not is_work(row, tables):
            yield Damage("work that points nowhere, or cannot be read", row[1] if is_name(row[1]) else "", str(row[0]))


def is_work(row: Row, tables: Tables) -> bool:
    """Tell whether a row of work can be read and points to what its mind heard, or to an occasion."""
    _, mind, slot, cause, owner, lease, running, attempts, error, done, failures = row
    counts = all(isinstance(each, int) and 0 <= each < 2**31 for each in (running, attempts, failures or 0))
    texts = all(isinstance(each, str) for each in (slot, owner, error))
    heard = tables.minds.get(cause) == mind and (done is None or tables.minds.get(done) == mind)
    whole = heard or (isinstance(cause, int) and cause < 0)
    return is_name(mind) and counts and texts and whole and moment(lease) is not None


def is_name(value: object) -> bool:
    """Tell whether something can be the key of a stream."""
    try:
        return isinstance(value, str) and bool(name_of(value))
    except InputError:
        return False


def sum_agrees(sum_of: Callable[..., int | None], values: Row, wanted: object) -> bool | None:
    """Tell whether values still have the sum that they were written with; None where it was not kept."""
    if wanted is None:
        return None
    try:
        return sum_of(*values) == wanted
    except (TypeError, ValueError):
        return False
