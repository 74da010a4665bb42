"""Background work: a row for each reasoner that an utterance wakes, claimed by a lease.

The row is written in the transaction of the utterance that caused it, already leased to the process that heard it. A
process that runs a slot claims all of the mind's unfinished rows that are its own or whose lease has expired: pending
utterances are processed together, at most one run per slot is active, and a run that lost its lease cannot commit.
So no
work is lost or done twice, with many processes on one folder.

Silence or an hour of the day is an occasion without a row of the log. Its work is named by the occasion, so that only
one process does it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mindstream.clock import Moment
from mindstream.errors import LeaseLost
from mindstream.log.sql import Sql

ANSWER = "answer "
"""Prefix of the slot of an answer; its session follows. While it is leased no other process answers."""
LONGEST_LEASE_S = 120.0
"""Maximum lease, in seconds; one that ends later was given by a wrong clock and does not count."""

STOPPED = "stop"
"""Error of an answer that was stopped by another process: the process that gives it ends it."""
HOURS = 2**50
"""Occasions (negative causes) below -HOURS are hours; those above it are silences."""


def silence_after(seq: int) -> int:
    """Return the occasion of the silence after a row of the log."""
    return -seq


def hour(at: Moment) -> int:
    """Return the occasion of an hour."""
    return -HOURS - round(at * 1000)


@dataclass(frozen=True, slots=True)
class Work:
    """One utterance for one reasoner to process.

    Attributes:
        cause: the seq of the utterance; below 0: an occasion without one.
        attempts: number of runs that claimed it, including this one, without those that ended in good order.
        failures: number of these that failed.
        error: why the last run failed, or "".
    """

    id: int
    mind: str
    slot: str
    cause: int
    owner: str
    lease: Moment
    running: bool
    attempts: int
    error: str
    failures: int

    def is_open_to(self, owner: str, now: Moment) -> bool:
        """Return whether this process may claim it: it owns it, or the lease has expired."""
        return self.owner == owner or not now < self.lease <= now + LONGEST_LEASE_S


MOST_LOOKED_AT = 2_000
COLUMNS = "id, mind, slot, cause, owner, lease, running, attempts, error, failures"


def create(connection: Sql) -> None:
    connection.execute(
        "CREATE TABLE work (id INTEGER PRIMARY KEY, mind TEXT NOT NULL, slot TEXT NOT NULL, cause INTEGER NOT NULL,"
        " owner TEXT NOT NULL, lease REAL NOT NULL, running INTEGER NOT NULL DEFAULT 0,"
        " attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', done INTEGER)"
    )
    connection.execute("CREATE INDEX work_open ON work (mind, slot) WHERE done IS NULL")
    connection.execute("CREATE UNIQUE INDEX work_once ON work (mind, slot, cause)")


def add(connection: Sql, mind: str, slots: Sequence[str], cause: int, owner: str, lease: Moment) -> None:
    """Add work for an utterance, leased to `owner`."""
    connection.executemany(
        "INSERT INTO work (mind, slot, cause, owner, lease) VALUES (?, ?, ?, ?, ?)",
        [(mind, slot, cause, owner, lease) for slot in slots],
    )


def add_occasion(connection: Sql, mind: str, slots: Sequence[str], occasion: int, owner: str, lease: Moment) -> None:
    """Add work for an occasion, unless that was done before; delete finished work of older ones."""
    oldest = 0 if occasion > -HOURS else -HOURS
    for slot in slots:
        connection.execute(
            "DELETE FROM work WHERE mind = ? AND slot = ? AND cause > ? AND cause < ? AND done IS NOT NULL",
            (mind, slot, occasion, oldest),
        )
        connection.execute(
            "INSERT INTO work (mind, slot, cause, owner, lease) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (mind, slot, occasion, owner, lease),
        )


def claim(
    connection: Sql,
    mind: str,
    slot: str,
    owner: str,
    now: Moment,
    lease: Moment,
    before: int | None = None,
) -> list[Work]:
    """Claim a slot's open work and return it, oldest first; [] if another process runs the slot."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM work WHERE mind = ? AND slot = ? AND done IS NULL ORDER BY id", (mind, slot)
    ).fetchall()
    found = [read(row) for row in rows]
    if any(work.running and not work.is_open_to(owner, now) for work in found):
        return []
    mine = [replace(work, attempts=work.attempts + 1) for work in found if work.is_open_to(owner, now)]
    mine = [work for work in mine if before is None or work.cause < before]
    connection.executemany(
        "UPDATE work SET owner = ?, lease = ?, running = 1, attempts = attempts + 1 WHERE id = ?",
        [(owner, lease, work.id) for work in mine],
    )
    return mine


def renew(connection: Sql, ids: Sequence[int], owner: str, lease: Moment, among: str = "TRUE") -> None:
    """Extend the lease of running work; `among`: an additional condition (SQL)."""
    connection.executemany(
        f"UPDATE work SET lease = ? WHERE id = ? AND owner = ? AND done IS NULL AND {among}",
        [(lease, id_, owner) for id_ in ids],
    )


def finish(connection: Sql, mind: str, ids: Sequence[int], owner: str, seq: int, *, begun: bool = True) -> None:
    """Mark work as done by the event `seq`; `begun` False: work that has not begun.

    Raises:
        LeaseLost: another process has taken some of it over.
    """
    for id_ in ids:
        changed = connection.execute(
            "UPDATE work SET done = ?, running = 0, error = ''"
            " WHERE id = ? AND mind = ? AND owner = ? AND running = ? AND done IS NULL",
            (seq, id_, mind, owner, int(begun)),
        )
        if changed.rowcount != 1:
            raise LeaseLost(f"work {id_} was taken over by another process")


def check_held(connection: Sql, mind: str, ids: Sequence[int], owner: str) -> None:
    """Check that work is running and this owner's.

    Raises:
        LeaseLost: another process has taken some of it over, or it has ended.
    """
    for id_ in ids:
        held = connection.execute(
            "SELECT 1 FROM work WHERE id = ? AND mind = ? AND owner = ? AND running = 1 AND done IS NULL",
            (id_, mind, owner),
        )
        if held.fetchone() is None:
            raise LeaseLost(f"work {id_} was taken over by another process, or has ended")


def release(connection: Sql, mind: str, ids: Sequence[int], owner: str, error: str, *, counts: bool = True) -> None:
    """Give work back after a failed run; it is tried again, a bounded number of times if that `counts`."""
    counted = "failures = failures + 1" if counts else "attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    connection.executemany(
        f"UPDATE work SET running = 0, error = ?, {counted} WHERE id = ? AND mind = ? AND owner = ? AND done IS NULL",
        [(error, id_, mind, owner) for id_ in ids],
    )


def give_up(connection: Sql, owner: str, among: str = "TRUE") -> None:
    """Release everything that `owner` holds, so that no process need wait for the lease."""
    connection.execute(
        "UPDATE work SET attempts = CASE WHEN attempts > running THEN attempts - running ELSE 0 END, running = 0,"
        f" lease = 0 WHERE owner = ? AND done IS NULL AND {among}",
        (owner,),
    )


def release_work(connection: Sql, mind: str, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
    """Release the work of an utterance that `owner` holds and has not begun; finish that of some slots."""
    held = "mind = ? AND cause = ? AND owner = ? AND done IS NULL AND running = 0"
    for slot in ended:
        connection.execute(f"UPDATE work SET done = ? WHERE {held} AND slot = ?", (cause, mind, cause, owner, slot))
    thoughts = f"{held} AND substr(slot, 1, {len(ANSWER)}) <> ?"
    connection.execute(f"UPDATE work SET lease = 0 WHERE {thoughts}", (mind, cause, owner, ANSWER))


class Taken(NamedTuple):
    """Work claimed for a mind: its slots, the newest row that caused any of it, and the name that holds it."""

    mind: Any
    ids: tuple[int, ...]
    slots: tuple[str, ...]
    newest: int
    holder: str


OPEN_NOW = "NOT ({0}.lease > ? AND {0}.lease <= ?)"
"""SQL of Work.is_open_to, for a process that holds nothing."""


def find_open(
    connection: Sql, now: Moment, *, answers: bool, among: str, most: int = MOST_LOOKED_AT, lock: str = ""
) -> list[Work]:
    """Return work that any process may claim and no run is active on: answers that were abandoned, or thoughts.

    Its cause is an utterance or an occasion.

    Args:
        among: an additional condition (SQL).
        lock: how the rows are locked until the transaction ends (SQL); "": the database has one lock.
    """
    which = f"substr(slot, 1, {len(ANSWER)}) {'=' if answers else '<>'} ?"
    heard = (
        "(cause < 0 OR EXISTS (SELECT 1 FROM log WHERE log.seq = work.cause AND log.kind IN ('heard', 'corrected')))"
    )
    idle = (
        "NOT EXISTS (SELECT 1 FROM work AS other WHERE other.mind = work.mind AND other.slot = work.slot"
        f" AND other.done IS NULL AND other.running = 1 AND NOT {OPEN_NOW.format('other')})"
    )
    sql = (
        f"SELECT {COLUMNS} FROM work WHERE done IS NULL AND {which} AND {among} AND {OPEN_NOW.format('work')}"
        f" AND {heard} AND {idle} ORDER BY id LIMIT ? {lock}"
    )
    lease = (now, now + LONGEST_LEASE_S)
    return [read(row) for row in connection.execute(sql, (ANSWER, *lease, *lease, most)).fetchall()]


def take(
    connection: Sql, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool, among: str, lock: str = ""
) -> list[Taken]:
    """Lease what `find_open` finds, of at most `most` minds, each mind's under its own, always equal name."""
    taken: dict[str, list[Work]] = {}
    looked_at = 2 * most if lock else MOST_LOOKED_AT  # other processes skip locked rows
    for each in find_open(connection, now, answers=answers, among=among, most=looked_at, lock=lock):
        if each.mind in taken or len(taken) < most:
            taken.setdefault(each.mind, []).append(each)
    found = []
    for mind, works in taken.items():
        holder = f"{owner}-{hashlib.blake2b(mind.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
        connection.executemany(
            "UPDATE work SET owner = ?, lease = ?, running = 0 WHERE id = ?",
            [(holder, lease, each.id) for each in works],
        )
        slots = tuple(dict.fromkeys(each.slot for each in works))
        found.append(
            Taken(mind, tuple(each.id for each in works), slots, max(abs(each.cause) for each in works), holder)
        )
    return found


def read(row: Sequence[Any]) -> Work:
    """Return the work of a row of COLUMNS."""
    id_, mind, slot, cause, owner, lease, running, attempts, error, failures = row
    return Work(id_, mind, slot, cause, owner, lease, bool(running), attempts, error, failures)
