"""SQL that the methods of a store share, for SQLite and PostgreSQL: queries, and how a commit is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from mindstream.errors import Conflict
from mindstream.identifiers import StreamKey
from mindstream.log import erasures, work
from mindstream.log.events import Logged, Unknown, printable, read_event
from mindstream.log.sql import Sql
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store import checkpoints, registry
from mindstream.memory.store.record import UNIQUE, Kind, Record, same_words_once
from mindstream.memory.store.rows import (
    COLUMNS,
    FIELDS,
    INSERT,
    insertion,
    moment,
    record_of,
    sum_of_event,
    sum_of_vector,
)
from mindstream.memory.store.store import Commit, Entry, Revision
from mindstream.text.words import batches

MAX_VALUES = 500
"""Maximum number of values in one `IN` condition."""
PORTION_SIZE = 50_000
"""Total length of the records' texts and data, in characters, at which a portion of records ends."""
TEXT, DATA = FIELDS.index("text"), FIELDS.index("data")
NEWEST_CHANGES = (
    "SELECT (SELECT coalesce(max(changed), 0) FROM records WHERE stream = ?),"
    " (SELECT coalesce(max(changed), 0) FROM erased WHERE stream = ?)"
)
NEWEST_OF_KIND = (
    "SELECT * FROM (SELECT number FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT ?) AS found"
)
STRONGEST = "SELECT number FROM records WHERE stream = ? AND level > 0 ORDER BY level DESC LIMIT ?"


def marks(values: Iterable[object]) -> str:
    """Return the SQL placeholders for values."""
    return ",".join("?" for _ in values)


def among(connection: Sql, sql: str, values: Sequence[Any], *more: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query with a condition `IN ({})`, executed for at most MAX_VALUES values at a time."""
    for some in batches(values, MAX_VALUES):
        if isinstance(some[0], str):  # no stored text has half a surrogate pair, which no database accepts
            some = [each.encode("utf-8", "replace").decode() for each in some]
        yield from connection.execute(sql.format(marks(some)), [*some, *more])


def newest_changes(connection: Sql, stream: StreamKey) -> tuple[int, int]:
    """Return the number of the last change to a stream's records, and that of its last erasure."""
    found = connection.execute(NEWEST_CHANGES, (stream, stream)).fetchone()
    if not all(isinstance(each, int) for each in found):  # a damaged text value counts as the highest in SQLite
        sql = NEWEST_CHANGES.replace("stream = ?", "stream = ? AND typeof(changed) = 'integer'")
        found = connection.execute(sql, (stream, stream)).fetchone()
    return int(found[0]), int(found[1])


def cut_portion(rows: Iterable[tuple[Any, ...]], left: int) -> tuple[list[tuple[Any, ...]], int]:
    """Return the first rows, until they have PORTION_SIZE characters in all, and the number after which to continue.

    Args:
        rows: rows of records: FIELDS, then the record's number.
        left: the number after which to continue if no row is cut off; 0: there are no more rows.
    """
    kept, size = list[tuple[Any, ...]](), 0
    for row in rows:
        if size >= PORTION_SIZE:
            return kept, kept[-1][-1]
        kept.append(row)
        size += len(row[TEXT]) + len(row[DATA] or "")
    return kept, left


def newest_and_strongest(connection: Sql, stream: StreamKey, n: int, kinds: Iterable[Kind]) -> set[int]:
    """Return the numbers of a stream's n newest records of these kinds, and of its n strongest records of any kind
    (among those that have gained strength)."""
    kinds = list(dict.fromkeys(kinds))
    newest = " UNION ALL ".join([NEWEST_OF_KIND] * len(kinds))
    values = [value for kind in kinds for value in (stream, kind, n)]
    numbers = sorted(row[0] for row in connection.execute(newest, values)) if kinds else []
    return {*numbers[-n:], *(row[0] for row in connection.execute(STRONGEST, (stream, n)))}


def read_log(connection: Sql, where: str, values: Sequence[Any], kinds: Sequence[str] | None) -> list[Logged]:
    """Read rows of the log; if `kinds` is given, rows that cannot be read are left out."""
    read = [
        Logged(seq, mind, moment(at) or 0.0, printable(by), read_event(kind, payload), system == 1)
        for seq, mind, at, by, kind, payload, system in connection.execute(
            f"SELECT seq, mind, at, by, kind, payload, system FROM log {where}", values
        ).fetchall()
    ]
    return [each for each in read if kinds is None or not isinstance(each.event, Unknown)]


def last_change(connection: Sql) -> int:
    """Return the number of the last commit of any process; -1 if the counter is lost, which the next commit
    restores."""
    row = connection.execute("SELECT CAST(value AS INTEGER) FROM counters WHERE name = 'changed'").fetchone()
    return int(row[0]) if row else -1


REVISED = tuple(f.name for f in fields(Revision) if f.name not in ("id", "was", "holds", "emptied"))
_REVISED_OF = attrgetter(*REVISED)
HOLDS = "(valid_until IS NULL OR valid_until > ?) AND forgotten IS NULL"
"""SQL condition with a moment as its parameter: the record's validity has not ended then (as in
memory/recall/question), and the record is not archived."""


def write(connection: Sql, commits: Sequence[Commit]) -> tuple[list[list[Logged]], int]:
    """Write commits in the caller's transaction; return for each the rows of its entries in the log, and the number of
    the changes of all these commits. Raises as `LogStore.commit` does.
    """
    changed = next_change(connection) if commits else 0
    minds = list({commit.mind for commit in commits if commit.entries})
    known = {row[0] for row in among(connection, registry.REGISTERED, minds)}
    return [_write(connection, commit, changed, known) for commit in commits], changed


def _write(connection: Sql, commit: Commit, changed: int, known: set[StreamKey]) -> list[Logged]:
    erasures.check(connection, commit.mind, commit.since, commit.words_read)
    if commit.entries and commit.mind not in known:
        registry.register(connection, commit.mind)
        known.add(commit.mind)
    if commit.fence:
        work.check_held(connection, commit.mind, commit.fence.work, commit.fence.owner)
    logged = []
    for entry in commit.entries:
        row = (commit.mind, commit.at, entry.by, *entry.event.entry(), int(entry.system))
        seq = connection.execute(
            "INSERT INTO log (mind, at, by, kind, payload, system, sum) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING seq",
            (*row, sum_of_event(*row)),
        ).fetchone()[0]
        logged.append(Logged(seq, commit.mind, commit.at, entry.by, entry.event, entry.system))
        if entry.distinct:
            _check_distinct(connection, entry, commit)
        if not entry.records:
            continue
        written = connection.executemany(INSERT, [insertion(record, seq, changed) for record in entry.records])
        if written.rowcount != len(entry.records):
            raise Conflict(
                "a record with this id, or with this version of its slot, already exists: reload the record and try"
                " again"
            )
        for record in entry.records:
            if record.slot is not None:
                _supersede(connection, record, changed)
    _revise(connection, commit, changed)
    if commit.unique:
        registry.take(connection, commit.mind, commit.unique, logged[0].seq)
    if commit.wake and commit.wake.occasion:
        wake = commit.wake
        work.add_occasion(connection, commit.mind, wake.slots, wake.occasion, wake.owner, wake.lease)
    elif commit.wake:
        work.add(connection, commit.mind, commit.wake.slots, logged[0].seq, commit.wake.owner, commit.wake.lease)
    if commit.finish:
        done = commit.finish
        seq = logged[0].seq if logged else 0
        work.finish(connection, commit.mind, done.work, done.owner, seq, begun=done.begun)
    if commit.checkpoint:
        checkpoints.write(connection, commit.mind, commit.checkpoint, logged[0].seq)
    if kept := commit.kept:
        work.keep(connection, commit.mind, kept.slot, kept.causes, kept.owner, kept.lease)
    if commit.put_back:
        back = commit.put_back
        work.release(connection, commit.mind, back.work, back.owner, back.error, counts=back.counts)
    return logged


def _supersede(connection: Sql, new: Record, changed: int) -> None:
    """End the validity of the previous version of a slot, because a new version was written."""
    before = (new.stream, new.slot, (new.version or 0) - 1, new.created)
    connection.execute(
        "UPDATE records SET valid_until = ?, superseded_by = ?, changed = ?"
        " WHERE stream = ? AND slot = ? AND version = ? AND (valid_until IS NULL OR valid_until > ?)",
        (new.created, new.id, changed, *before),
    )


def _check_distinct(connection: Sql, entry: Entry, commit: Commit) -> None:
    """Raise Conflict if a note, thought or exemplar in the entry has the same words as a current record of its kind
    that this commit does not end."""
    ending = {
        revision.id
        for revision in commit.revisions
        if revision.forgotten is not None or (revision.valid_until is not None and revision.valid_until <= commit.at)
    }
    for record in entry.records:
        if record.kind in UNIQUE:
            for number in same_words_once(record.text):
                same = connection.execute(
                    f"SELECT id FROM records WHERE stream = ? AND kind = ? AND same = ? AND {HOLDS}",
                    (record.stream, record.kind, number, commit.at),
                )
                if not {row[0] for row in same} - ending:
                    continue
                raise Conflict(f"a current {record.kind} with the text {record.text[:80]!r} exists already")


def _revise(connection: Sql, commit: Commit, changed: int) -> None:
    """Write the revisions of a commit. Revisions in a row that change the same fields are one statement, unless a
    condition of one of them is not met."""
    updates = [(*_update(commit, each, changed), each) for each in commit.revisions]
    for sql, some in groupby(updates, key=itemgetter(0)):
        alike = list(some)
        if len(alike) > 1:
            connection.execute("SAVEPOINT revised")
            if connection.executemany(sql, [values for _, values, _ in alike]).rowcount == len(alike):
                continue
            connection.execute("ROLLBACK TO revised")
        for _, values, revision in alike:
            touched = connection.execute(sql, values).rowcount
            if not touched and revision.was and _is_still(connection, commit.mind, revision.id, revision.was):
                touched = connection.execute(*_update(commit, replace(revision, was=None), changed)).rowcount
            if not touched and (revision.was or revision.holds):
                raise Conflict(
                    f"since the record {revision.id} was read, it was changed, superseded, archived or deleted, or its"
                    " validity has ended: read it again"
                )


def _update(commit: Commit, revision: Revision, changed: int) -> tuple[str, list[object]]:
    """Return the statement that writes a revision, and its values."""
    new = {name: value for name, value in zip(REVISED, _REVISED_OF(revision), strict=True) if value is not None}
    if revision.vector is not None:
        new["vector"] = revision.vector.tobytes()
        new["vector_sum"] = sum_of_vector(new["vector"])
    new |= dict.fromkeys(revision.emptied)
    values = [*new.values(), changed, revision.id, commit.mind]
    if revision.was:
        values += [revision.was.level, revision.was.time]
    if revision.holds:
        values.append(commit.at)
    return _updating(tuple(new), revision.was is not None, revision.holds), values


@cache
def _updating(names: tuple[str, ...], was: bool, holds: bool) -> str:
    sets = ", ".join(f"{name} = ?" for name in (*names, "changed"))
    conditions = f"{' AND level = ? AND accessed = ?' * was}{f' AND {HOLDS}' * holds}"
    return f"UPDATE records SET {sets} WHERE id = ? AND stream = ?{conditions}"


def _is_still(connection: Sql, stream: StreamKey, id_: str, was: StrengthState) -> bool:
    """Return whether a record, as it is read, has this strength: in a damaged row, the stored values may differ from
    the read ones."""
    rows = connection.execute(f"SELECT {COLUMNS} FROM records WHERE id = ? AND stream = ?", (id_, stream)).fetchall()
    return [(record.level, record.accessed) for record in map(record_of, rows)] == [(was.level, was.time)]


def next_change(connection: Sql) -> int:
    """Return the next number for a transaction's changes of records. Taking it locks the counter until the commit, so
    commits happen in the order of their numbers."""
    row = connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'changed' RETURNING value").fetchone()
    if row is None:  # the counter is lost: continue after the highest number in the tables
        row = connection.execute(
            "INSERT INTO counters (name, value) SELECT 'changed', 1 + coalesce(max(changed), 0)"
            " FROM (SELECT changed FROM records UNION ALL SELECT changed FROM erased) AS found RETURNING value"
        ).fetchone()
    return int(row[0])
