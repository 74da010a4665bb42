"""Background work: a row for each reasoner that an utterance wakes, claimed by lease.

The row is written in the transaction of the utterance that caused it, already leased to the process that heard it.
Whoever runs a slot claims all of the mind's unfinished rows that are its own or whose lease has run out: what piled up
is thought about at once (coalesced), at most one run per slot goes on at a time, and a run that lost its lease cannot
commit. So nothing is lost and nothing is done twice, with many processes on one folder.

What silence or an hour calls for no row of the log has caused. Its row is named by that occasion, so that of all
processes that come to it one does it.
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
"""How the slot of whoever answers an utterance begins; its session follows. While it is leased nobody else answers."""
LONGEST_LEASE_S = 120.0
"""Nobody leases work for longer; a lease that ends later was given by a clock that ran ahead, and does not count."""

STOPPED = "stop"
"""Stands as the error of an answer that somebody has broken off from another process: whoever gives it, ends."""
HOURS = 2**50
"""Occasions below this, negative, are hours; those above it silences."""


def silence_after(seq: int) -> int:
    """Return what the silence after a row of the log is called, as a cause of work."""
    return -seq


def hour(at: Moment) -> int:
    """Return what a moment is called, as a cause of work."""
    return -HOURS - round(at * 1000)


@dataclass(frozen=True, slots=True)
class Work:
    """One utterance for one reasoner to think about.

    Attributes:
        cause: the seq of what was heard; below 0: an occasion that nobody has said anything on.
        attempts: how often a run took it up, this one included; runs that were ended in good order aside.
        failures: how many of these came to an error.
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
        """Tell whether this process may take it up: it is its own, or whoever held it has let it go or died."""
        return self.owner == owner or not now < self.lease <= now + LONGEST_LEASE_S


MOST_LOOKED_AT = 2_000
COLUMNS = "id, mind, slot, cause, owner, lease, running, attempts, error, failures"


def create(connection: Sql) -> None:
    """Make the table."""
    connection.execute(
        "CREATE TABLE work (id INTEGER PRIMARY KEY, mind TEXT NOT NULL, slot TEXT NOT NULL, cause INTEGER NOT NULL,"
        " owner TEXT NOT NULL, lease REAL NOT NULL, running INTEGER NOT NULL DEFAULT 0,"
        " attempts INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '', done INTEGER)"
    )
    connection.execute("CREATE INDEX work_open ON work (mind, slot) WHERE done IS NULL")
    connection.execute("CREATE UNIQUE INDEX work_once ON work (mind, slot, cause)")


def add(connection: Sql, mind: str, slots: Sequence[str], cause: int, owner: str, lease: Moment) -> None:
    """Wake the slots for what was heard, leased to `owner`."""
    connection.executemany(
        "INSERT INTO work (mind, slot, cause, owner, lease) VALUES (?, ?, ?, ?, ?)",
        [(mind, slot, cause, owner, lease) for slot in slots],
    )


def add_occasion(connection: Sql, mind: str, slots: Sequence[str], occasion: int, owner: str, lease: Moment) -> None:
    """Wake the slots on an occasion, unless that was done before; what was done on older ones is let go of."""
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
    """Take up what is open for this slot, unless another process is at it; return it, oldest first."""
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
    """Hold on to work that is still going on; `among`: the condition that it has to meet (SQL)."""
    connection.executemany(
        f"UPDATE work SET lease = ? WHERE id = ? AND owner = ? AND done IS NULL AND {among}",
        [(lease, id_, owner) for id_ in ids],
    )


def finish(connection: Sql, mind: str, ids: Sequence[int], owner: str, seq: int, *, begun: bool = True) -> None:
    """Mark work as done by the event `seq`; work that has not begun, where `begun` is False.

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
    """Check that work is still going on, by this owner.

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
    """Put work back after a run that failed; it is taken up again, a bounded number of times where that `counts`."""
    counted = "failures = failures + 1" if counts else "attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    connection.executemany(
        f"UPDATE work SET running = 0, error = ?, {counted} WHERE id = ? AND mind = ? AND owner = ? AND done IS NULL",
        [(error, id_, mind, owner) for id_ in ids],
    )


def give_up(connection: Sql, owner: str, among: str = "TRUE") -> None:
    """Let go of everything that `owner` holds, so that the next process need not wait for the lease."""
    connection.execute(
        "UPDATE work SET attempts = CASE WHEN attempts > running THEN attempts - running ELSE 0 END, running = 0,"
        f" lease = 0 WHERE owner = ? AND done IS NULL AND {among}",
        (owner,),
    )


def release_work(connection: Sql, mind: str, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
    """Let go of what `owner` holds of an utterance's thoughts and has not begun; of some slots it is ended."""
    held = "mind = ? AND cause = ? AND owner = ? AND done IS NULL AND running = 0"
    for slot in ended:
        connection.execute(f"UPDATE work SET done = ? WHERE {held} AND slot = ?", (cause, mind, cause, owner, slot))
    thoughts = f"{held} AND substr(slot, 1, {len(ANSWER)}) <> ?"
    connection.execute(f"UPDATE work SET lease = 0 WHERE {thoughts}", (mind, cause, owner, ANSWER))


class Taken(NamedTuple):
    """What was taken up for a mind: its slots, the newest row that any of it comes of, and the name that holds it."""

    mind: Any
    ids: tuple[int, ...]
    slots: tuple[str, ...]
    newest: int
    holder: str


OPEN_NOW = "NOT ({0}.lease > ? AND {0}.lease <= ?)"
"""SQL of Work.is_open_to, for whoever holds nothing yet."""


def find_open(
    connection: Sql, now: Moment, *, answers: bool, among: str, most: int = MOST_LOOKED_AT, lock: str = ""
) -> list[Work]:
    """Return what is open to anybody, and no run is at: answers that nobody gives any more, or thoughts.

    It is about what was heard, or done on an occasion.

    Args:
        among: the condition that it has to meet (SQL).
        lock: how what is found is held until the transaction ends (SQL); "": all are behind one lock anyway.
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
    """Lease what `find_open` finds of up to so many minds; each mind's under a name of its own, the same each time."""
    taken: dict[str, list[Work]] = {}
    looked_at = 2 * most if lock else MOST_LOOKED_AT  # what is locked nobody else finds
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
    """Read a row of COLUMNS."""
    id_, mind, slot, cause, owner, lease, running, attempts, error, failures = row
    return Work(id_, mind, slot, cause, owner, lease, bool(running), attempts, error, failures)
