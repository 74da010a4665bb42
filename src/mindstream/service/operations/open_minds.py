"""The minds that are open: each is opened when it is first spoken to, and closed when nobody has for a while."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mindstream.clock import Clock, MachineZone
from mindstream.errors import Conflict, MindstreamError
from mindstream.log.names import StreamKey
from mindstream.log.work import ANSWER
from mindstream.minds.mind import Mind
from mindstream.models.model import Usage
from mindstream.models.wrappers.budget import Budget
from mindstream.service.chat.companion import TalkZone

IDLE_S, LOOK_S = 900.0, 30.0
"""So long a mind stays open that nobody speaks to and that has nothing to think about, and how often it is looked."""
PAYER = "payer"
"""Under what it is kept of a mind whose token pays for its thoughts: an id."""
MOST = 2_000
"""So many are open at once; beyond, those that nobody has spoken to for longest are closed."""


class MindKey(NamedTuple):
    """Which mind: whose it is, in which conversation, who speaks for it, and what it was opened to do."""

    tenant_key: str
    stream: StreamKey
    session: str
    responder: str
    holds: str = ""


@dataclass(eq=False)
class OpenMind:
    """A mind that is open, and by how many it is used just now.

    Attributes:
        budget: of whoever spoke to it last: what it thinks is done in their name. payer: the id of their token.
        zone: where its user lives; can be told another with each utterance.
        on_usage: is told what each call of a model took, with the role that asked.
        answers: so many utterances are being answered, or wait for their turn, in the order in which they came.
    """

    key: MindKey
    mind: Mind
    close: Callable[[], Awaitable[None]]
    last_used: float
    uses: int = 0
    budget: Budget | None = None
    payer: str = ""
    zone: TalkZone = field(default_factory=lambda: TalkZone(MachineZone()))
    on_usage: Callable[[str, Usage], None] | None = None
    answers: int = 0
    answering: set[asyncio.Task[Any]] = field(default_factory=set)
    hearing: dict[asyncio.Task[Any], bool] = field(default_factory=dict)
    """Those of `answering` whose utterance is not on disk yet, and whether they are broken off as soon as it is."""

    @contextlib.contextmanager
    def answers_now(self) -> Iterator[bool]:
        """Count what this task does as an answer, which `break_off` breaks off; gives whether another one goes on."""
        is_busy, task = self.answers > 0, asyncio.current_task()
        self.answers += 1
        if task is not None:
            self.answering.add(task)
        try:
            yield is_busy
        finally:
            self.answers -= 1
            if task is not None:
                self.answering.discard(task)

    @contextlib.contextmanager
    def hears_now(self) -> Iterator[Callable[[], None]]:
        """Let `break_off` wait until what is given here is called: the utterance of this task is on disk."""
        task = asyncio.current_task()
        assert task is not None
        self.hearing[task] = False

        def heard() -> None:
            if self.hearing.pop(task, False):
                task.cancel()

        try:
            yield heard
        finally:
            self.hearing.pop(task, None)

    def break_off(self) -> int:
        """Break off the answers that go on; return how many. An utterance that is being written is written first."""
        going = list(self.answering)
        for task in going:
            if task in self.hearing:
                self.hearing[task] = True
            else:
                task.cancel()
        return len(going)


OpenOne = Callable[[MindKey, AsyncExitStack], Awaitable[OpenMind]]


class OpenMinds:
    """Keeps minds open between requests.

    Args:
        open_one: opens a mind; what it puts on the stack is closed with it.
    """

    def __init__(self, open_one: OpenOne, clock: Clock, idle_s: float = IDLE_S, most: int = MOST) -> None:
        self._open_one, self._clock, self._idle_s, self._most = open_one, clock, idle_s, most
        self._open: dict[MindKey, OpenMind] = {}
        self._opening: dict[MindKey, asyncio.Lock] = {}
        self._sweeping: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    def each(self) -> list[OpenMind]:
        """Return those that are open."""
        return list(self._open.values())

    def of(self, tenant_key: str, stream: StreamKey) -> list[OpenMind]:
        """Return a user's that are open, the one that was used last first."""
        found = [each for key, each in self._open.items() if (key.tenant_key, key.stream) == (tenant_key, stream)]
        return sorted(found, key=lambda each: -each.last_used)

    @contextlib.asynccontextmanager
    async def use(self, key: MindKey) -> AsyncIterator[OpenMind]:
        """Give a mind, opened if need be; it stays open until the block ends, and for a while after.

        Raises:
            Conflict: the server is about to end.
            MindstreamError: it cannot be opened.
        """
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:
            if self._closed:
                raise Conflict("this server is about to end: ask again in a moment")
            found = self._open.get(key)
            if found is None:
                found = self._open[key] = await self._opened(key)
            found.uses += 1
        try:
            yield found
        finally:
            found.uses -= 1
            found.last_used = self._clock.elapsed()

    async def _opened(self, key: MindKey) -> OpenMind:
        async with AsyncExitStack() as stack:
            made = await self._open_one(key, stack)
            made.close = stack.pop_all().aclose
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())
        return made

    async def _sweep(self) -> None:
        """Close what is idle, as long as anything is open."""
        while self._open:
            await self._clock.sleep(LOOK_S)
            now = self._clock.elapsed()
            by_age = sorted(self._open.values(), key=lambda each: each.last_used)
            for place, each in enumerate(by_age):
                too_many = len(by_age) - place > self._most
                if too_many or now - each.last_used > self._idle_s:
                    await self._close_one(each, even_at_work=too_many)
        self._sweeping = None

    async def _close_one(self, one: OpenMind, *, even_at_work: bool) -> None:
        lock = self._opening.setdefault(one.key, asyncio.Lock())
        async with lock:
            if one.uses or self._open.get(one.key) is not one:
                return
            memory = one.mind.memory
            work = [] if even_at_work else await memory.store.open_work(memory.key)
            if any(not each.slot.startswith(ANSWER) for each in work):
                return
            del self._open[one.key]
            await one.close()
        self._opening.pop(one.key, None)

    async def drop(self, stream: StreamKey, before: int | None = None) -> None:
        """Close a stream's minds at once, whoever talks to them: all of it was erased.

        `before`: the number of that erasure; those that were opened since stay.
        """
        of_it = [each for key, each in self._open.items() if key.stream == stream]
        for one in [each for each in of_it if before is None or each.mind.memory.was_opened_before(before)]:
            one.break_off()
            if self._open.get(one.key) is one:
                del self._open[one.key]
                self._opening.pop(one.key, None)
                with contextlib.suppress(MindstreamError):  # it may write nothing any more
                    await one.close()

    async def close(self) -> None:
        """Close all; what is being thought about is left open, and taken up by whoever opens the mind next."""
        self._closed = True
        sweeping, self._sweeping = self._sweeping, None
        if sweeping is not None:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)
        minds, self._open = list(self._open.values()), {}
        await asyncio.gather(*(each.close() for each in minds), return_exceptions=True)
