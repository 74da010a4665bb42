"""Write a commit, in SQL that both SQLite and PostgreSQL accept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import groupby
from operator import attrgetter, itemgetter

from mindstream.errors import Conflict
from mindstream.log import erasures, work
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey
from mindstream.log.sql import Sql
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store import checkpoints, queries, registry
from mindstream.memory.store.record import UNIQUE, Record, same_words_once
from mindstream.memory.store.rows import COLUMNS, INSERT, insertion, record_of, sum_of_event, sum_of_vector
from mindstream.memory.store.store import Commit, Entry, Revision

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
    known = {row[0] for row in queries.among(connection, registry.REGISTERED, minds)}
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
                    f"the record {revision.id} was changed, superseded, archived or deleted since it was read: read it"
                    " again"
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
