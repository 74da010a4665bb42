"""Background work: a row for each reasoner that an utterance wakes, claimed by a lease.

The row is written in the transaction of the utterance that caused it, already leased to the process that received the
utterance. A process that runs a slot (the named place of one reasoner) claims all unfinished rows of that mind and
slot, except those that are leased to another process. So pending utterances are processed together, at most one run per
slot is active, and a run that lost its lease cannot commit: with many processes on one folder, no work is lost or done
twice.

A silence or an hour of the day can also cause work. Such an occasion has no row in the log: its number, which is
negative, identifies the work, so that only one process does it.
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
"""Prefix of the slot `answer SESSION`. While a process holds the lease of work in this slot, no other process answers
in the session."""
LONGEST_LEASE_S = 120.0
"""Maximum lease, in seconds. A lease that ends later than this from now was written by a process with a wrong clock,
and counts as expired."""

STOPPED = "stop"
"""Value of `Work.error` by which a process tells the answering process to stop."""
KEPT = "later"
"""Value of `Work.error` of work that its owner keeps for the slot's next run."""
HOURS = 2**50
"""Limit between the two kinds of occasions, which are stored as negative numbers.

An occasion is a moment, not an event, that causes work. Numbers from -HOURS down stand for hours of the day, and
numbers between -HOURS and 0 for silences.
"""


def silence_after(seq: int) -> int:
    """Return the `Work.cause` (a negative number) of work that is caused by a silence.

    A silence means: for some time after the log row `seq`, no further event of certain kinds was logged.
    """
    return -seq


def hour(at: Moment) -> int:
    """Return the `Work.cause` (a negative number) of work that is caused by an hour of the day.

    `at`: the moment at which this hour is reached.
    """
    return -HOURS - round(at * 1000)


@dataclass(frozen=True, slots=True)
class Work:
    """A piece of work for one reasoner, about one event or one occasion.

    The event is usually an utterance. An occasion is a silence, or an hour of the day.

    Attributes:
        cause: the seq of the event that woke the reasoner; below 0: an occasion.
        attempts: number of runs that claimed the work, including the current run. Runs that released the work without
            a failure do not count.
        failures: number of runs that failed.
        error: why the last run failed or released the work; KEPT or STOPPED (see there); or "".
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
        """Return whether `owner` may claim the work.

        It may if it holds the work already, or if the lease has expired. It also may if the lease ends in more than
        LONGEST_LEASE_S seconds: such a lease cannot be right.
        """
        return self.owner == owner or not now < self.lease <= now + LONGEST_LEASE_S

    def is_kept(self, now: Moment) -> bool:
        """Return whether the owner keeps the work for the slot's next run; if so, no process does the work now."""
        return self.error == KEPT and not self.running and not self.is_open_to("", now)


MOST_LOOKED_AT = 2_000
COLUMNS = "id, mind, slot, cause, owner, lease, running, attempts, error, failures"


TABLES = (
    "CREATE TABLE work (id INTEGER PRIMARY KEY, mind TEXT NOT NULL, slot TEXT NOT NULL, cause INTEGER NOT NULL,"
    " owner TEXT NOT NULL, lease REAL NOT NULL, running INTEGER NOT NULL DEFAULT 0,"
    " attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', done INTEGER)",
    "CREATE INDEX work_open ON work (mind, slot) WHERE done IS NULL",
    "CREATE UNIQUE INDEX work_once ON work (mind, slot, cause)",
)


def add(connection: Sql, mind: str, slots: Sequence[str], cause: int, owner: str, lease: Moment) -> None:
    """Add work for an event, leased to `owner` until the moment `lease`.

    `cause`: the log row of the event, such as an utterance (see `Work.cause`).
    """
    connection.executemany(
        "INSERT INTO work (mind, slot, cause, owner, lease) VALUES (?, ?, ?, ?, ?)",
        [(mind, slot, cause, owner, lease) for slot in slots],
    )


def add_occasion(connection: Sql, mind: str, slots: Sequence[str], occasion: int, owner: str, lease: Moment) -> None:
    """Add work for an occasion, unless it was added before.

    Also delete finished work of earlier occasions of the same kind. `occasion`: the negative number that stands for a
    silence or an hour (see `Work.cause`).
    """
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
    """Claim a slot's open work and return it, oldest first; [] if another process runs the slot.

    Args:
        before: claim only work whose `cause` is below this number; None: all work.
    """
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
    """Extend the lease of unfinished work that `owner` holds; `among`: an additional condition (SQL)."""
    connection.executemany(
        f"UPDATE work SET lease = ? WHERE id = ? AND owner = ? AND done IS NULL AND {among}",
        [(lease, id_, owner) for id_ in ids],
    )


def finish(connection: Sql, mind: str, ids: Sequence[int], owner: str, seq: int, *, begun: bool = True) -> None:
    """Mark work as done by the event `seq`. `begun`: whether the work must have been started; False: it must not.

    Raises:
        LeaseLost: another process has taken over or ended some of the work, or `begun` is not true of it.
    """
    for id_ in ids:
        changed = connection.execute(
            "UPDATE work SET done = ?, running = 0, error = ''"
            " WHERE id = ? AND mind = ? AND owner = ? AND running = ? AND done IS NULL",
            (seq, id_, mind, owner, int(begun)),
        )
        if changed.rowcount != 1:
            raise LeaseLost(f"work {id_} was taken over or ended by another process: its results are discarded here")


def check_held(connection: Sql, mind: str, ids: Sequence[int], owner: str) -> None:
    """Check that work is running and owned by `owner`.

    Raises:
        LeaseLost: another process has taken over some of the work, or some of it has ended.
    """
    for id_ in ids:
        held = connection.execute(
            "SELECT 1 FROM work WHERE id = ? AND mind = ? AND owner = ? AND running = 1 AND done IS NULL",
            (id_, mind, owner),
        )
        if held.fetchone() is None:
            raise LeaseLost(f"work {id_} was taken over by another process, or has ended")


def release(connection: Sql, mind: str, ids: Sequence[int], owner: str, error: str, *, counts: bool = True) -> None:
    """Release work after a run that did not finish, so that the work is tried again.

    The owner can claim it at once, other processes when the lease has expired.

    Args:
        counts: whether the run counts as a failure (the number of failures is limited). False: the run counts neither
            as a failure nor as an attempt.
    """
    counted = "failures = failures + 1" if counts else "attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    connection.executemany(
        f"UPDATE work SET running = 0, error = ?, {counted} WHERE id = ? AND mind = ? AND owner = ? AND done IS NULL",
        [(error, id_, mind, owner) for id_ in ids],
    )


def give_up(connection: Sql, owner: str, among: str = "TRUE") -> None:
    """Release all unfinished work of `owner`, so that other processes need not wait until the lease expires. The
    interrupted runs do not count as attempts."""
    connection.execute(
        "UPDATE work SET attempts = CASE WHEN attempts > running THEN attempts - running ELSE 0 END, running = 0,"
        f" lease = 0 WHERE owner = ? AND done IS NULL AND {among}",
        (owner,),
    )


def keep(connection: Sql, mind: str, slot: str, causes: Sequence[int], owner: str, lease: Moment) -> None:
    """Keep work for the next run of a slot: set the end of the work's lease to `lease`, and mark the work as kept.

    This applies to the slot's work on the given causes (log rows). Work that `owner` does not hold, or has started, is
    unchanged.
    """
    connection.executemany(
        f"UPDATE work SET lease = ?, error = '{KEPT}'"
        " WHERE mind = ? AND slot = ? AND cause = ? AND owner = ? AND done IS NULL AND running = 0",
        [(lease, mind, slot, cause, owner) for cause in causes],
    )


def release_work(connection: Sql, mind: str, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
    """Release the reasoners' work on an utterance that `owner` holds and has not started.

    Args:
        cause: the log row of the utterance.
        ended: slots whose work is marked as done instead.
    """
    held = "mind = ? AND cause = ? AND owner = ? AND done IS NULL AND running = 0"
    for slot in ended:
        connection.execute(f"UPDATE work SET done = ? WHERE {held} AND slot = ?", (cause, mind, cause, owner, slot))
    thoughts = f"{held} AND substr(slot, 1, {len(ANSWER)}) <> ?"
    connection.execute(f"UPDATE work SET lease = 0 WHERE {thoughts}", (mind, cause, owner, ANSWER))


class Taken(NamedTuple):
    """Work claimed for one mind.

    Attributes:
        ids, slots: the ids and the slots of the work rows.
        newest: the largest absolute value of `Work.cause` in the work rows.
        holder: the name under which the work is claimed.
    """

    mind: Any
    ids: tuple[int, ...]
    slots: tuple[str, ...]
    newest: int
    holder: str


OPEN_NOW = "NOT ({0}.lease > ? AND {0}.lease <= ?)"
"""SQL condition: a process that owns no work may claim this work (see `Work.is_open_to`).

Format argument: the name of the table. SQL parameters: the time now, and this time + LONGEST_LEASE_S.
"""


def find_open(
    connection: Sql, now: Moment, *, answers: bool, among: str, most: int = MOST_LOOKED_AT, lock: str = ""
) -> list[Work]:
    """Return work that any process may claim: abandoned answers, or work of reasoners. No process runs the slots.

    Only work caused by an utterance, a correction or an occasion (a silence, or an hour of the day) is returned.

    Args:
        answers: True: answers; False: work of reasoners.
        among: an additional condition (SQL).
        lock: the SQL clause that locks the rows until the transaction ends; "": for a database with a single write
            lock.
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
        f" AND {heard} AND {idle} ORDER BY +id LIMIT ? {lock}"  # "+": otherwise SQLite scans all finished work, too
    )
    lease = (now, now + LONGEST_LEASE_S)
    return [read(row) for row in connection.execute(sql, (ANSWER, *lease, *lease, most)).fetchall()]


def take(
    connection: Sql, owner: str, now: Moment, lease: Moment, most: int, *, answers: bool, among: str, lock: str = ""
) -> list[Taken]:
    """Lease the work that `find_open` finds, of at most `most` minds.

    The name of the holder of a mind's work consists of `owner` and a hash of the mind. It is the same in each call.
    """
    taken: dict[str, list[Work]] = {}
    looked_at = 2 * most if lock else MOST_LOOKED_AT  # lock only a few rows, because other processes skip locked rows
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
    """Return the work of a row with the columns COLUMNS."""
    id_, mind, slot, cause, owner, lease, running, attempts, error, failures = row
    return Work(id_, mind, slot, cause, owner, lease, bool(running), attempts, error, failures)
