"""The effects of recalls. A touch is the change that a recall makes to the strength of the records that it found.
RecentTexts remembers the returned texts, so that they are not stored again.

Touches are collected, and committed about a second later.

The rules of strength are applied to the state that a record has when the touch is written. If another process has
changed the record, the write is refused and repeated with the new state. So no touch is lost or counted twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mindstream import caches
from mindstream.clock import MINUTE_S, Clock, Moment
from mindstream.errors import Conflict, ReadOnlyData
from mindstream.log.events import Logged, RecallMade
from mindstream.log.names import StreamKey
from mindstream.memory.forgetting_curve import Strength, StrengthState, after_passing_over, after_return
from mindstream.memory.store.columns import OPEN, Columns
from mindstream.memory.store.record import FADING, KINDS, Record, normalised, same_words
from mindstream.memory.store.store import Commit, Entry, Revision, Store

LATER_S = 1.0
"""Delay, in seconds, before a touch (the effect of a recall on the strength of records) is written. A crash loses the
touches that still wait.
"""
AT_ONCE = 20
"""Maximum number of recalls whose touches (their effects on the strength of records) are written in one commit: the
next recall must read the records that the commit changed, which takes 16 us per record.
"""
ATTEMPTS = 100


class Touch(NamedTuple):
    """The effect of one recall: its time, the ids that it returned, and the ids that it found but did not return."""

    at: Moment
    returned: Sequence[str]
    passed_over: Sequence[str]


class Touches:
    """The touches (effects of recalls on the strength of records) of one stream that are not written yet.

    Args:
        columns: a function that returns columns with at least the records of the given ids, in their current state.
        laws: the rules of strength (memory/forgetting_curve); None: a touch changes only the time of the last return.
    """

    def __init__(
        self,
        store: Store,
        columns: Callable[[list[str]], Awaitable[Columns]],
        stream: StreamKey,
        clock: Clock,
        laws: Strength | None,
    ) -> None:
        self._store = store
        self._columns = columns
        self._stream = stream
        self._clock = clock
        self.laws = laws
        self._waiting: list[Touch] = []
        self._writing = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    def add(self, touch: Touch) -> None:
        """Add a recall's touch (its effect on the strength of records); it is written LATER_S seconds later, or with an
        earlier commit."""
        self._waiting.append(touch)
        if self._timer is None or self._timer.done():
            self._timer = asyncio.ensure_future(self._later())

    async def overdue(self) -> None:
        """Write all touches (effects of recalls) if the oldest has waited for twice LATER_S, as happens with a manual
        clock. If a write is in progress, do nothing.
        """
        late = self._waiting and self._clock.now() - self._waiting[0].at >= 2 * LATER_S
        if late and not self._writing.locked():
            await self.settle()

    async def settle(self) -> None:
        """Write all touches (effects of recalls); if the caller is cancelled, the write continues.

        Raises:
            StorageError: some touches could not be written; these stay in the queue.
        """
        await asyncio.shield(asyncio.ensure_future(self._settle()))

    async def _settle(self) -> None:
        async with self._writing:
            while self._waiting:
                some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                try:
                    await self._write(some, Commit(mind=self._stream, at=self._clock.now()))
                except ReadOnlyData:
                    return  # a recall in read-only data changes nothing
                except Exception:
                    self._waiting = some + self._waiting
                    raise

    async def commit(self, commit: Commit, touch: Touch) -> list[Logged]:
        """Write all waiting touches (effects of recalls); then write a commit together with the touch of one recall.

        Raises:
            Conflict: a condition of the commit itself is not met. (If a condition of the touch is not met, the write is
                repeated.)
        """
        await self.settle()
        return await self._write([touch], commit)

    async def commit_all(self, commit: Commit) -> list[Logged]:
        """Write a commit together with up to AT_ONCE waiting touches (effects of recalls), whose log rows come last. A
        commit without entries, or during another write of touches, is written alone.
        """
        if not self._waiting or not commit.entries or self._writing.locked():
            return await self._store.commit(commit)
        async with self._writing:
            some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            try:
                return await self._write(some, commit, are_last=True)
            except BaseException:
                self._waiting = some + self._waiting
                raise

    async def close(self) -> None:
        """Write all touches (effects of recalls) and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        await self.settle()

    async def _later(self) -> None:
        await self._clock.sleep(LATER_S)
        if self._waiting:  # otherwise a commit has already written them
            with contextlib.suppress(Exception):  # the changes of strength stay in the queue; `close` raises the error
                await self.settle()

    async def _write(self, touches: Sequence[Touch], commit: Commit, *, are_last: bool = False) -> list[Logged]:
        refused: list[Revision] | None = None
        for attempt in itertools.count(1):
            columns = await self._columns([id_ for touch in touches for id_ in (*touch.returned, *touch.passed_over)])
            revisions = list_revisions(columns, touches, self.laws)
            told = self._tell(columns, touches, revisions)
            if not (revisions or told or commit.entries or commit.revisions):
                return []
            if attempt > ATTEMPTS or revisions == refused:
                break  # the same changes were refused before, so a condition of the commit fails, not one of a touch
            entries = (*commit.entries, *told) if are_last else (*told, *commit.entries)
            whole = replace(commit, entries=entries, revisions=(*commit.revisions, *revisions))
            try:
                return await self._store.commit(whole)
            except Conflict as conflict:
                refused, error = revisions, conflict
                await asyncio.sleep(0)
        raise error

    def _tell(self, columns: Columns, touches: Sequence[Touch], revisions: Sequence[Revision]) -> list[Entry]:
        """Return the log entries of these recalls: the records of decaying kinds that each recall found, and
        those that it archived."""
        if self.laws is None:
            return []
        gone, told = {each.id for each in revisions if each.forgotten is not None}, list[Entry]()
        for touch in touches:
            returned, passed_over = (
                tuple(id_ for id_ in ids if id_ in columns.position and fades(columns, id_))
                for ids in (touch.returned, touch.passed_over)
            )
            if returned or passed_over:
                forgotten = tuple(id_ for id_ in passed_over if id_ in gone)
                gone -= set(forgotten)
                made = RecallMade(moment=touch.at, returned=returned, passed_over=passed_over, forgotten=forgotten)
                told.append(Entry(made, "recall", system=True))
        return told


def list_revisions(columns: Columns, touches: Sequence[Touch], laws: Strength | None) -> list[Revision]:
    """Apply the effects of recalls to the current state of the records, one recall after the other; return the
    changes."""
    before: dict[str, StrengthState] = {}
    after: dict[str, tuple[StrengthState, Moment]] = {}
    for touch in touches:
        for ids, law in ((touch.returned, after_return), (touch.passed_over, after_passing_over)):
            for id_ in ids:
                if id_ not in before:
                    held = state_in(columns, id_)
                    if held is None:
                        continue
                    before[id_] = held
                    after[id_] = held, touch.at
                held = after[id_][0]
                if laws is not None and fades(columns, id_):
                    new = law(held, touch.at, laws)
                elif law is after_return:
                    new = held._replace(time=max(held.time, touch.at))
                else:
                    continue
                if new != held:
                    after[id_] = new, touch.at
    return [revision(id_, before[id_], held, at) for id_, (held, at) in after.items() if held != before[id_]]


def state_in(columns: Columns, id_: str) -> StrengthState | None:
    """Return a record's strength; None if it is archived, erased or unknown."""
    at = columns.position.get(id_)
    if at is None or columns.forgotten.values[at] < OPEN:
        return None
    return StrengthState(
        int(columns.level.values[at]), bool(columns.lasting.values[at]), float(columns.accessed.values[at])
    )


def fades(columns: Columns, id_: str) -> bool:
    """Return whether a record is of a kind that strengthens and decays."""
    return KINDS[columns.kind.values[columns.position[id_]]] in FADING


def revision(id_: str, before: StrengthState, after: StrengthState, at: Moment) -> Revision:
    """Return the change of a record's strength from `before` to `after`. The store refuses it unless the record still
    has the strength `before`."""
    return Revision(
        id=id_,
        level=after.level,
        lasting=after.lasting,
        accessed=after.time,
        forgotten=at if after.faded else None,
        was=before,
    )


RECORDS = 1_000
"""Maximum number of records that are remembered for one stream; beyond it, those returned longest ago are dropped."""
FOR_S = 10 * MINUTE_S


@dataclass(slots=True)
class _Returned:
    """A record without its vector, the time of its last return, and (once its words were compared) a hash of its
    words."""

    at: Moment
    record: Record
    words: int | None = None


class RecentTexts:
    """The records that recent recalls of this process returned, each remembered once.

    If a model repeats the words of one, they are not stored again. Without this check a memory fills with copies of
    itself: in a memory that stored the recalled text, 97.8 % of the records were junk after a month (mem0, issue 4573).
    The remembered texts are hashed only when a text is to be written.
    """

    def __init__(self, stream: StreamKey) -> None:
        self._stream = stream
        caches.watch(self)
        self._returned: OrderedDict[str, _Returned] = OrderedDict()

    def __len__(self) -> int:
        return len(self._returned)

    def add(self, now: Moment, records: Iterable[Record]) -> None:
        """Add the records that a recall returned."""
        for record in records:
            bare = record if record.vector is None else replace(record, vector=None)
            held = self._returned.pop(record.id, None) or _Returned(now, bare)
            held.at = now
            self._returned[record.id] = held
        self._drop_old(now)

    def forget(self, stream: str) -> None:
        """Drop all records if something was erased in this stream."""
        if stream == self._stream:
            self._returned.clear()

    def same(self, texts: Iterable[str], now: Moment) -> dict[str, Record]:
        """Return the records with the same words as one of these texts that recent recalls returned, by normalised
        text."""
        self._drop_old(now)
        wanted = {same_words(text): normalised(text) for text in texts}
        found: dict[str, Record] = {}
        for held in self._returned.values():
            if held.words is None:
                held.words = same_words(held.record.text)
            if held.words in wanted:
                found[wanted[held.words]] = held.record
        return found

    def _drop_old(self, now: Moment) -> None:
        while self._returned:
            oldest = next(iter(self._returned.values()))
            if len(self._returned) <= RECORDS and now - oldest.at <= FOR_S:
                break
            self._returned.popitem(last=False)
