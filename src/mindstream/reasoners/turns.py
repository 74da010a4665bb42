"""Turns to answer: of all processes that talk with a user, only one answers an utterance, and in order.

Answering is a work item (log/work). Its lease begins when the utterance is committed and is renewed during the answer;
the commit of the answer ends it. If the process dies, another one can claim the work.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar

from mindstream.errors import LeaseLost, StorageError
from mindstream.log.events import Heard, Logged, Said
from mindstream.log.feed import Signal
from mindstream.log.names import StreamKey
from mindstream.log.work import STOPPED, Work
from mindstream.memory.lease import looking, renewing
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Store, read_log

HOLDER: ContextVar[str] = ContextVar("holder", default="")
"""The owner under which this task has claimed the answer to an utterance that another process left unanswered."""
POLL_S = 0.2
"""Poll interval while waiting for earlier answers of other processes, in seconds."""


class Turns:
    """The turns of one conversation in this process.

    Attributes:
        claimed: log rows of the utterances that this process has to answer and has not answered yet.
    """

    def __init__(self, memory: Memory, owner: str, slot: str, lease_s: float) -> None:
        self.slot, self.claimed = slot, set[int]()
        self._memory, self._owner, self._lease_s = memory, owner, lease_s
        self._on: set[int] = set()

    def is_on(self, heard: int) -> bool:
        """Return whether an utterance is being answered or waits for its turn here."""
        return heard in self._on

    def owner(self, heard: int) -> str:
        """Return the owner under which an utterance's answer is held here."""
        return self._owner if heard in self.claimed else HOLDER.get() or self._owner

    @contextlib.asynccontextmanager
    async def of(self, heard: int, stop: Callable[[], object]) -> AsyncIterator[int | None]:
        """Wait until earlier utterances are answered, by any process; yield the id of the work item of this answer.

        Yield None if there is no such work item, for example because the utterance was answered before.

        Args:
            stop: cancels the answer; called when another process requests that.

        Raises:
            LeaseLost: another process answers the utterance.
        """
        own: int | None = None

        def look(work: Sequence[Work]) -> None:
            if any(each.id == own and each.error == STOPPED for each in work):
                stop()

        self._on.add(heard)  # before the store is read, so that the next utterance sees it
        try:
            if (found := await self.find(heard)) is None:
                yield None
                return
            own, answers = found
            store, clock = self._memory.store, self._memory.clock
            with (
                renewing(store, clock, lambda: (own,), self.owner(heard), self._lease_s),
                looking(self._memory, look),
            ):
                if any(self._is_before(each, heard) for each in answers):
                    await self._wait(heard)
                yield own
        finally:
            self._on.discard(heard)

    async def _answers(self) -> list[Work]:
        found = await self._memory.store.open_work(self._memory.key)
        return [work for work in found if work.slot == self.slot]

    async def find(self, heard: int) -> tuple[int, list[Work]] | None:
        """Return the id of the work item of an utterance's answer, and all open answers; None: there is no such item.

        If this process answers the utterance again, an answer that another process has in progress is discarded.

        Raises:
            LeaseLost: this process should answer the utterance, but another process answers or has answered it.
        """
        try:
            answers = await self._answers()
            found = next((work for work in answers if work.cause == heard), None)
            if found is not None and found.owner == self.owner(heard):
                return found.id, answers
            if heard in self.claimed or HOLDER.get():
                raise LeaseLost(f"another process answers, or has answered, the utterance at log row {heard}")
            if found is not None:
                await self._memory.store.release_work(self._memory.key, heard, found.owner, (self.slot,))
        except LeaseLost:
            raise
        except StorageError:  # a fault of the store must not prevent the answer
            pass
        return None

    async def _wait(self, heard: int) -> None:
        """Wait for the answers to earlier utterances, except those of dead processes."""
        changed = Signal()
        with self._memory.store.subscribe(self._memory.key, changed.set), contextlib.suppress(StorageError):
            while any(self._is_before(work, heard) for work in await self._answers()):
                await changed.wait(POLL_S)
                changed.clear()

    def _is_before(self, work: Work, heard: int) -> bool:
        others = work.owner != self._owner and not work.is_open_to("", self._memory.clock.now())
        return work.cause < heard and (others or work.cause in self._on)


async def find_unanswered(store: Store, mind: StreamKey, work: Work) -> Logged | None:
    """Return the utterance that claimed work is to answer; None: there is none, and the work was ended."""
    rows = await store.events(mind, work.cause - 1, [Heard.kind], 1)
    if rows and rows[0].seq == work.cause and work.error != STOPPED:
        said = [row.event async for row in read_log(store, mind, work.cause, [Said.kind])]
        if not any(isinstance(event, Said) and event.answers == work.cause for event in said):
            return rows[0]
    await store.release_work(mind, work.cause, work.owner, (work.slot,))
    return None
