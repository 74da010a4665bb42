"""What others have left open is taken up: thoughts about what was heard, and answers that nobody gives any more.

It is what was let go of by servers that do not think, and what processes held that have died, of whatever tenant. It is
leased before a mind is opened for it, so that of many who look one has it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from mindstream import chance
from mindstream.errors import MindstreamError
from mindstream.location import OWN
from mindstream.log.events import Heard, Opened
from mindstream.log.names import name_of, tenant_of
from mindstream.log.work import Taken
from mindstream.memory.lease import renewing
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.sql_store import SqlStore
from mindstream.minds.responder import Timeouts
from mindstream.minds.unanswered import take_all
from mindstream.models.wrappers.budget import Budget
from mindstream.reasoners.turns import HOLDER, find_unanswered
from mindstream.service.operations.open_minds import PAYER
from mindstream.service.operations.who import LOCAL, Who

if TYPE_CHECKING:
    from mindstream.service.operations.house import House

BudgetOf: TypeAlias = Callable[[str], Awaitable[Budget | None]]
LOOK_S = 1.0
"""How often it is looked for what a process left that died; of what is let go of one is told, where the store tells."""
PAUSE_S = 0.02
"""So long is waited after something was written, for what comes with it."""


class TakingUp:
    """Takes up, in one process.

    Attributes:
        going: the minds that it is at; `done`: how often it has been at one; `failed`: how often that could not be.

    Args:
        answers: answers are given that nobody gives any more; else it thinks.
        at_once: so many minds at a time.
        budgets: gives what a token (its id) may spend.
    """

    def __init__(self, house: House, *, answers: bool, at_once: int, budgets: BudgetOf) -> None:
        self._house, self._answers, self._at_once, self._budgets = house, answers, at_once, budgets
        self._owner = chance.token()
        self.going: set[asyncio.Task[None]] = set()
        self.done = self.failed = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take up as long as the block goes on; then let go of what goes on.

        Raises:
            StorageError: the data cannot be opened.
        """
        async with open_everyone(self._house.settings.data) as everyone:
            running = asyncio.ensure_future(self._run(everyone))
            try:
                yield
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def _run(self, everyone: SqlStore) -> None:
        with everyone.subscribe(None, self._changed.set):
            try:
                while True:
                    self._changed.clear()
                    with contextlib.suppress(MindstreamError):  # it looks again
                        if len(self.going) < self._at_once:
                            now = self._house.clock.now()
                            found = await everyone.open_to_anybody(now, answers=self._answers)
                            for tenant in dict.fromkeys(tenant_of(each.mind) for each in found):
                                await self._take(tenant)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self._changed.wait()
                    await asyncio.sleep(PAUSE_S)
            finally:
                for task in self.going:
                    task.cancel()
                await asyncio.gather(*self.going, return_exceptions=True)

    async def _take(self, tenant: str) -> None:
        if tenant.startswith(OWN):
            return
        who, now = Who(tenant or LOCAL, frozenset()), self._house.clock.now()
        store, most = self._house.ground(who).store, self._at_once - len(self.going)
        lease = now + Timeouts().lease_s
        for taken in await store.take_work(self._owner, now, lease, most, answers=self._answers):
            task = asyncio.ensure_future(self._be_at(who, taken))
            self.going.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.going.discard(task)
        if not task.cancelled():
            self.done += 1
            self.failed += task.exception() is not None
        self._changed.set()  # there is room again

    async def _be_at(self, who: Who, taken: Taken) -> None:
        if name_of(taken.mind).kind != "user":
            return
        who, clock = who.of(name_of(taken.mind).id), self._house.clock
        store = self._house.ground(who).store
        for kept in await store.kept(taken.mind, PAYER):
            who = replace(who, budget=await self._budgets(kept.value))
        with renewing(store, clock, lambda: taken.ids, taken.holder, Timeouts().lease_s):  # until a mind does
            if self._answers:
                for slot in taken.slots:
                    await self._answer(who, taken, slot)
                return
            speakers = {await self._speaker(who, taken, slot) for slot in taken.slots}
            await asyncio.gather(*(self._think(who, taken, speaker) for speaker in sorted(speakers)))

    async def _think(self, who: Who, taken: Taken, speaker: str) -> None:
        session = await self._session(who, taken)
        there = [each.key for each in self._house.minds.of(who.wall, taken.mind) if each.key.speaker == speaker]
        session = there[0].session if there else session
        async with self._house.mind(who, session, speaker, taken.holder) as opened:
            opened.mind.reasoners.wake()
            await opened.mind.reasoners.settled(ids=taken.ids)

    async def _answer(self, who: Who, taken: Taken, slot: str) -> None:
        """Answer, in their order, what was heard in a conversation and left unanswered."""
        store = self._house.ground(who).store
        for work in await store.open_work(taken.mind):
            if work.slot != slot or work.owner != taken.holder:
                continue
            if (row := await find_unanswered(store, taken.mind, work)) is None:
                continue
            session = row.event.session if isinstance(row.event, Heard) else ""
            async with self._house.mind(who, session, await self._speaker(who, taken, "")) as opened:
                HOLDER.set(work.owner)  # in this task, and those that it begins
                await take_all(opened.mind.answer_again(row))

    async def _session(self, who: Who, taken: Taken) -> str:
        rows = await self._house.ground(who).store.events(taken.mind, taken.newest - 1, [Heard.kind], 1)
        return rows[0].event.session if rows and isinstance(rows[0].event, Heard) else "corrected"

    async def _speaker(self, who: Who, taken: Taken, slot: str) -> str:
        """Return who answers for a mind: whose thought it is, else whoever was opened for it last."""
        names = self._house.speaker_names()
        if slot in names:
            return slot
        last = await self._house.ground(who).store.last(taken.mind, Opened.kind)
        pack = last.event.pack if last is not None and isinstance(last.event, Opened) else ""
        return pack if pack in names else ""
