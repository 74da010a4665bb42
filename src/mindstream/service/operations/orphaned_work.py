"""Resume the orphaned work of all tenants: background reasoning and answers that no process works on any more.

A server that does not run reasoners has released this work, or the process that worked on it died. The work is leased
before a mind is opened for it, so that only one of several processes resumes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from mindstream import chance
from mindstream.errors import MindstreamError
from mindstream.identifiers import OWN, name_of, tenant_of
from mindstream.log.events import Heard, Opened
from mindstream.log.work import Taken
from mindstream.memory.lease import renewing
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.sql_store import SqlStore
from mindstream.minds.mind import take_all
from mindstream.minds.responder import Timeouts
from mindstream.models.wrappers.meter import Budget
from mindstream.reasoners.background import HOLDER, find_unanswered
from mindstream.service.operations.open_minds import PAYER
from mindstream.service.operations.operation import LOCAL, Principal
from mindstream.together import background, cancel_all

if TYPE_CHECKING:
    from mindstream.service.operations.runtime import Runtime

BudgetOf: TypeAlias = Callable[[str], Awaitable[Budget | None]]
POLL_S = 1.0
"""Poll interval for orphaned work, in seconds. Some stores also notify at once about released work."""
PAUSE_S = 0.02
"""Seconds to wait after a notification, so that further changes are handled together."""


class OrphanedWork:
    """Resumes orphaned work in one process.

    Attributes:
        going: tasks that are resuming work.
        done: number of tasks that have ended without being cancelled.
        failed: number of tasks in `done` that failed.

    Args:
        answers: True: answer unanswered messages; False: run background reasoning.
        at_once: maximum number of minds that work at the same time.
        budgets: returns the budget of an access token, given the token's id.
    """

    def __init__(self, runtime: Runtime, *, answers: bool, at_once: int, budgets: BudgetOf) -> None:
        self._runtime, self._answers, self._at_once, self._budgets = runtime, answers, at_once, budgets
        self._owner = chance.token()
        self.going: set[asyncio.Task[None]] = set()
        self.done = self.failed = 0
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Resume orphaned work during the `with` block; at the end of the block, release unfinished work.

        Raises:
            StorageError: the data cannot be opened.
        """
        async with open_everyone(self._runtime.settings.data) as everyone, background(self._run(everyone)):
            yield

    async def _run(self, everyone: SqlStore) -> None:
        with everyone.subscribe(None, self._changed.set):
            try:
                while True:
                    self._changed.clear()
                    with contextlib.suppress(MindstreamError):  # the next poll tries again
                        if len(self.going) < self._at_once:
                            now = self._runtime.clock.now()
                            found = await everyone.open_to_anybody(now, answers=self._answers)
                            for tenant in dict.fromkeys(tenant_of(each.mind) for each in found):
                                await self._take(tenant)
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(POLL_S):
                            await self._changed.wait()
                    await asyncio.sleep(PAUSE_S)
            finally:
                await cancel_all(*self.going)

    async def _take(self, tenant: str) -> None:
        if tenant.startswith(OWN):
            return
        principal, now = Principal(tenant or LOCAL, frozenset()), self._runtime.clock.now()
        store, most = self._runtime.tenant(principal).store, self._at_once - len(self.going)
        lease = now + Timeouts().lease_s
        for taken in await store.take_work(self._owner, now, lease, most, answers=self._answers):
            task = asyncio.ensure_future(self._resume(principal, taken))
            self.going.add(task)
            task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.going.discard(task)
        if not task.cancelled():
            self.done += 1
            self.failed += task.exception() is not None
        self._changed.set()  # so that the loop begins another task

    async def _resume(self, principal: Principal, taken: Taken) -> None:
        if name_of(taken.mind).kind != "user":
            return
        principal, clock = principal.of(name_of(taken.mind).id), self._runtime.clock
        store = self._runtime.tenant(principal).store
        for kept in await store.kept(taken.mind, PAYER):
            principal = replace(principal, budget=await self._budgets(kept.value))
        # until the mind renews the leases itself
        with renewing(store, clock, lambda: taken.ids, taken.holder, Timeouts().lease_s):
            if self._answers:
                for slot in taken.slots:
                    await self._answer(principal, taken, slot)
                return
            responders = {await self._responder(principal, taken, slot) for slot in taken.slots}
            await asyncio.gather(*(self._think(principal, taken, responder) for responder in sorted(responders)))

    async def _think(self, principal: Principal, taken: Taken, responder: str) -> None:
        session = await self._session(principal, taken)
        there = [
            each.key
            for each in self._runtime.minds.of(principal.tenant_key, taken.mind)
            if each.key.responder == responder
        ]
        session = there[0].session if there else session
        async with self._runtime.mind(principal, session, responder, taken.holder) as opened:
            opened.mind.reasoners.wake()
            await opened.mind.reasoners.settled(ids=taken.ids)

    async def _answer(self, principal: Principal, taken: Taken, slot: str) -> None:
        """Answer the unanswered messages of one conversation, whose open work has this slot, in their order."""
        store = self._runtime.tenant(principal).store
        for work in await store.open_work(taken.mind):
            if work.slot != slot or work.owner != taken.holder:
                continue
            if (row := await find_unanswered(store, taken.mind, work)) is None:
                continue
            session = row.event.session if isinstance(row.event, Heard) else ""
            async with self._runtime.mind(principal, session, await self._responder(principal, taken, "")) as opened:
                HOLDER.set(work.owner)  # this task, and the tasks that it begins, write under this lease
                await take_all(opened.mind.answer_again(row))

    async def _session(self, principal: Principal, taken: Taken) -> str:
        rows = await self._runtime.tenant(principal).store.events(taken.mind, taken.newest - 1, [Heard.kind], 1)
        return rows[0].event.session if rows and isinstance(rows[0].event, Heard) else "corrected"

    async def _responder(self, principal: Principal, taken: Taken, slot: str) -> str:
        """Return the responder that the slot names; else the responder of the mind's last opening; else "", the
        default."""
        names = self._runtime.responder_names()
        if slot in names:
            return slot
        last = await self._runtime.tenant(principal).store.last(taken.mind, Opened.kind)
        pack = last.event.pack if last is not None and isinstance(last.event, Opened) else ""
        return pack if pack in names else ""
