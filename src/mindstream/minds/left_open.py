"""What was heard and not answered, because the process died, is answered when the mind is opened again: once.

Whoever opens it takes up the answer (log/work) as servers do; where the lease of the dead has not run out, when it has.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from mindstream.errors import MindstreamError, StorageError
from mindstream.log.events import Heard, Logged
from mindstream.log.work import ANSWER, Work
from mindstream.memory.lease import renewing
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import WorkReleased
from mindstream.reasoners.turns import HOLDER, find_unanswered

if TYPE_CHECKING:
    from mindstream.minds.mind import Mind

LOOK_S = 0.5
"""How often it is looked whether a lease has run out."""


async def answer_left_open(
    memory: Memory, owner: str, lease_s: float, of_session: Callable[[str], AbstractAsyncContextManager[Mind]]
) -> None:
    """Answer what others left unanswered when this was begun; return when nobody is to answer any of it.

    Args:
        of_session: opens the mind in a conversation.
    """
    HOLDER.set(owner)  # in this task, and those that it begins
    left: set[int] | None = None
    while left is None or left:
        with contextlib.suppress(StorageError):  # it is looked again
            found = await _answers(memory)
            left = {work.id for work in found if work.owner != owner} if left is None else left
            left &= {work.id for work in found}
            for work in found:
                if work.id in left and work.is_open_to("", memory.clock.now()):
                    left -= {each.id for each in await _take(memory, owner, lease_s, work, of_session)} | {work.id}
        if left is None or left:
            await asyncio.sleep(LOOK_S)


async def _answers(memory: Memory) -> list[Work]:
    return [work for work in await memory.store.open_work(memory.key) if work.slot.startswith(ANSWER)]


async def _take(
    memory: Memory,
    owner: str,
    lease_s: float,
    first: Work,
    of_session: Callable[[str], AbstractAsyncContextManager[Mind]],
) -> Sequence[Work]:
    """Take up what is open of a conversation, and answer it in its order."""
    store, now = memory.store, memory.clock.now()
    taken = await store.claim(memory.key, first.slot, owner, now, now + lease_s, first.cause + 1)
    if not taken:
        return taken
    ids = tuple(work.id for work in taken)
    for error in sorted({work.error for work in taken}):  # held, as an answer is, and not begun
        alike = tuple(work.id for work in taken if work.error == error)
        await memory.commit(put_back=WorkReleased(alike, owner, error, counts=False))
    with renewing(store, memory.clock, lambda: ids, owner, lease_s):
        for work in taken:
            row = await find_unanswered(store, memory.key, replace(work, owner=owner))
            if row is not None and isinstance(row.event, Heard):
                with contextlib.suppress(MindstreamError):  # it stays open, for the next one
                    async with of_session(row.event.session) as mind:
                        await take_all(mind.answer_again(row))
                    await store.let_go(memory.key, work.cause, owner, (work.slot,))  # by whom it was broken off
    return taken


async def take_all(rows: AsyncGenerator[Logged]) -> None:
    """Take the rows of an answer that nobody listens to."""
    async with aclosing(rows) as answer:
        async for _ in answer:
            pass
