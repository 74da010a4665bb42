"""Live subscriptions to a tenant's log; each row is encoded once for all subscribers.

A row is delivered after it was committed, in the order of its number (`seq`), also if another process wrote it. Rows
that this process commits are taken from the commit itself; the log is read only if another process may have written
rows before them. Live rows (parts of an answer that is being generated) have no number and are delivered at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mindstream.clock import Clock
from mindstream.errors import StorageError
from mindstream.identifiers import StreamKey
from mindstream.log.events import Logged, MindErased, Signal
from mindstream.memory.store.sql_store import SqlStore
from mindstream.together import cancel_all

ROOM = 2_000
"""Maximum number of rows that are queued for a slow listener. If the queue is full, a further row of the log ends the
listener's subscription. A further live row (a row that is shown but not logged) is dropped.
"""
LOOK_S = 1.0
"""Poll interval for rows of other processes, in seconds, while there are listeners."""
PORTION = 500
"""Maximum number of rows that are read from the log at a time."""

Wants: TypeAlias = Callable[[Logged], bool]


@dataclass(eq=False, slots=True)
class Line:
    """A row for the listeners. `shown`: the encoded form of the row, which all listeners share; empty: not encoded
    yet."""

    row: Logged
    shown: bytes = b""


@dataclass(eq=False)
class Listener:
    """One subscription to the log.

    Attributes:
        wants: returns whether the listener wants a row.
        begins: rows after this seq are queued here; earlier rows are read with `Hub.catch_up`.
        cut_at: set when the queue becomes full: every wanted row up to this seq has been queued.
        taken: `next` has returned every wanted row up to this seq. This is the only safe position to resume after.
        is_cut: the queue became full; the client must subscribe again for the rows after `taken`.
        is_over: the server is closing.
    """

    hub: Hub
    wants: Wants
    begins: int
    taken: int = 0
    cut_at: int = 0
    is_cut: bool = False
    is_over: bool = False
    _waiting: list[Line] = field(default_factory=list)
    _more: Signal = field(default_factory=Signal)

    def put(self, line: Line) -> None:
        """Queue a row if it is wanted.

        If there is no room, a live row is dropped, but a row of the log ends the subscription (`is_cut`).
        """
        row = line.row
        if self.is_cut or (row.seq and row.seq <= self.begins) or not self.wants(row):
            return
        if len(self._waiting) >= ROOM:
            if not row.seq:  # a live row is dropped: the whole answer follows as a row of the log
                return
            self.is_cut, self.cut_at = True, row.seq - 1
        else:
            self._waiting.append(line)
        self._more.set()

    def end(self) -> None:
        """Signal that no further row will come; queued rows are still returned by `next`."""
        self.is_over = True
        self._more.set()

    async def next(self, wait_s: float) -> list[Line]:
        """Return the queued rows. If none is queued, wait for one for up to `wait_s` seconds.

        []: none came in this time, or the subscription ended.
        """
        if not self._waiting and not (self.is_cut or self.is_over):
            await self._more.wait(wait_s)
        lines, self._waiting = self._waiting, []
        self.taken = self.cut_at if self.is_cut else max(self.begins, self.hub.seq)
        if not (self.is_cut or self.is_over):
            self._more.clear()
        return lines


class Hub:
    """Follows a tenant's log while there are listeners."""

    def __init__(self, store: SqlStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._listeners: set[Listener] = set()
        self._by_mind: dict[StreamKey | None, set[Listener]] = {}
        """Listeners by the mind whose log they follow; None: listeners that follow all logs of the tenant."""
        self._written = Signal()
        self.seq = 0
        """Every row up to this seq has been queued for the listeners that want it."""
        self._following: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()
        self._closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    def show(self, row: Logged) -> None:
        """Deliver a live row, which is not in the log."""
        self._put(Line(row))

    def show_live(self, row: Logged) -> None:
        """Deliver a row if it is live (without a seq). Rows of the log are not delivered here, but from the commit or
        the log."""
        if not row.seq:
            self.show(row)

    def _take_commit(self, rows: Sequence[Logged]) -> None:
        """Deliver rows that this process committed, or request a read of the log if earlier rows are missing here."""
        is_next = bool(rows) and [row.seq for row in rows] == list(range(self.seq + 1, self.seq + 1 + len(rows)))
        if is_next:
            self._deliver(rows)
        elif rows and rows[-1].seq > self.seq:  # otherwise they were read and delivered already
            self._written.set()

    def _deliver(self, rows: Sequence[Logged]) -> None:
        """Queue rows of the log for all listeners, except those that were delivered already."""
        for row in rows:
            if row.seq > self.seq:
                self._put(Line(row))
        self.seq = max(self.seq, rows[-1].seq)

    def _put(self, line: Line) -> None:
        for mind in (line.row.mind, None):
            for listener in self._by_mind.get(mind, ()):
                listener.put(line)

    @contextlib.asynccontextmanager
    async def listening(self, wants: Wants, mind: StreamKey | None = None, after: int = 0) -> AsyncIterator[Listener]:
        """Subscribe to new rows of one mind's log, or of all logs of the tenant. Each row is delivered once.

        Args:
            mind: the mind whose log is followed; None: all logs of the tenant.
            after: the seq of the last row that the client has. Rows up to this seq are not sent again, even if the
                client got them from another server and this process has not read them yet.
        """
        async with self._changing:
            if self._following is None and not self._closed:
                self.seq = await self._store.last_seq()
                self._store.on_commit = self._take_commit
                self._written.set()
                self._following = asyncio.ensure_future(self._follow())
            if after > self.seq:  # at most the end of the log: the client may have sent a number that does not exist
                after = min(after, await self._store.last_seq())
            begins = max(self.seq, after)
            listener = Listener(self, wants, begins, begins, is_over=self._closed)
            self._listeners.add(listener)
            self._by_mind.setdefault(mind, set()).add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            self._by_mind[mind].discard(listener)
            if not self._by_mind[mind]:
                del self._by_mind[mind]
            async with self._changing:
                if not self._listeners:
                    await self._stop()

    async def catch_up(
        self, listener: Listener, after: int, mind: StreamKey | None = None
    ) -> AsyncGenerator[list[Line]]:
        """Yield, in portions, the wanted rows of the log after the row `after`. End with the row after which the queue
        begins."""
        upto = listener.begins
        while after < upto and (rows := await self._store.events(mind, after, limit=PORTION)):
            if wanted := [Line(row) for row in rows if row.seq <= upto and listener.wants(row)]:
                yield wanted
            after = rows[-1].seq

    async def _stop(self) -> None:
        following, self._following = self._following, None
        self._store.on_commit = None
        if following is not None:
            await cancel_all(following)

    async def _follow(self) -> None:
        """Deliver rows as they are written, by any process."""
        with self._store.subscribe(None, self._written.set):
            await self._deliver_all()

    async def _deliver_all(self) -> None:
        seen = -1
        while True:
            ours = await self._written.wait(LOOK_S)
            self._written.clear()
            try:
                if not ours:
                    before, seen = seen, await self._store.version()
                    if seen == before:
                        continue
                await self._deliver_new()
            except StorageError:
                await self._clock.sleep(LOOK_S)
                self._written.set()  # rows that could not be read are read again without waiting for another commit

    async def _deliver_new(self) -> None:
        is_more = True
        while is_more and (rows := await self._store.events(None, self.seq, limit=PORTION)):
            self._deliver(rows)
            is_more = len(rows) == PORTION

    def show_erased(self, mind: StreamKey) -> None:
        """Notify the listeners of a mind that the mind was erased. Clients then remove its content from their pages."""
        self.show(Logged(0, mind, self._clock.now(), "mindstream", MindErased(), system=True))

    async def close(self) -> None:
        """End all subscriptions."""
        self._closed = True
        for listener in self._listeners:
            listener.end()
        await self._stop()
