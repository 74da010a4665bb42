"""Whose turn it is to be answered, among all processes that talk with one user: one of them answers an utterance.

That it is to be answered is work (log/work), leased with the utterance, held on to while it is answered, and ended by
the commit of the answer. Where the process died, another one may take it up and answer it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar

from mindstream.errors import LeaseLost, StorageError
from mindstream.log.events import Heard, Logged, Said
from mindstream.log.names import StreamKey
from mindstream.log.work import STOPPED, Work
from mindstream.memory.lease import looking, renewing
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Store, read_log

HOLDER: ContextVar[str] = ContextVar("holder", default="")
"""Under which name what is answered now was taken up, where another process has left it."""
LOOK_S = 0.2
"""How often it is looked whether another process has answered what was said before."""


class Turns:
    """The turns of one conversation, as one process takes them.

    Attributes:
        claimed: what is to be answered here and was not yet.
    """

    def __init__(self, memory: Memory, owner: str, slot: str, lease_s: float) -> None:
        self.slot, self.claimed = slot, set[int]()
        self._memory, self._owner, self._lease_s = memory, owner, lease_s
        self._on: set[int] = set()

    def is_on(self, heard: int) -> bool:
        """Tell whether it is this utterance's turn now."""
        return heard in self._on

    def owner(self, heard: int) -> str:
        """Return under which name an utterance's answer is held here."""
        return self._owner if heard in self.claimed else HOLDER.get() or self._owner

    @contextlib.asynccontextmanager
    async def of(self, heard: int, stop: Callable[[], object]) -> AsyncIterator[int | None]:
        """Wait until what was said before is answered, by whatever process; give the work that this answer is.

        None: there is none, as where it was answered before.

        Args:
            stop: breaks the answer off; called where that was asked for in another process.

        Raises:
            LeaseLost: another process answers it.
        """
        own: int | None = None

        def look(work: Sequence[Work]) -> None:
            if any(each.id == own and each.error == STOPPED for each in work):
                stop()

        self._on.add(heard)  # before the store is asked: whoever comes next sees it
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
        """Return the work that an utterance's answer is, with all answers that are open then; None: it is none.

        Where it is asked for again while another process may be at it, that one's comes to nothing.

        Raises:
            LeaseLost: it was to be answered here, and another process does, or has.
        """
        try:
            answers = await self._answers()
            found = next((work for work in answers if work.cause == heard), None)
            if found is not None and found.owner == self.owner(heard):
                return found.id, answers
            if heard in self.claimed or HOLDER.get():
                raise LeaseLost(f"what was heard at {heard} is answered by another process, or was")
            if found is not None:
                await self._memory.store.let_go(self._memory.key, heard, found.owner, (self.slot,))
        except LeaseLost:
            raise
        except StorageError:  # no fault is a reason to be silent
            pass
        return None

    async def _wait(self, heard: int) -> None:
        """Wait for the answers to what was said before, by others or here; who has died is waited for no longer."""
        changed = asyncio.Event()
        with self._memory.store.heeding(self._memory.key, changed.set), contextlib.suppress(StorageError):
            while any(self._is_before(work, heard) for work in await self._answers()):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await changed.wait()
                changed.clear()

    def _is_before(self, work: Work, heard: int) -> bool:
        others = work.owner != self._owner and not work.is_open_to("", self._memory.clock.now())
        return work.cause < heard and (others or work.cause in self._on)


async def find_unanswered(store: Store, mind: StreamKey, work: Work) -> Logged | None:
    """Return what is still to be answered by work that was taken up; None: there is nothing, and the work is ended."""
    rows = await store.events(mind, work.cause - 1, [Heard.kind], 1)
    if rows and rows[0].seq == work.cause and work.error != STOPPED:
        said = [row.event async for row in read_log(store, mind, work.cause, [Said.kind])]
        if not any(isinstance(event, Said) and event.answers == work.cause for event in said):
            return rows[0]
    await store.let_go(mind, work.cause, work.owner, (work.slot,))
    return None
