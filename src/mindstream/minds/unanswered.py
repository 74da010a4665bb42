"""Answer the utterances that a process left unanswered when it died.

A process that opens the mind claims the work items for answering them (log/work) when the lease of the dead process has
expired. So only one process answers each utterance.
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
from mindstream.reasoners.background import HOLDER, find_unanswered

if TYPE_CHECKING:
    from mindstream.minds.mind import Mind

POLL_S = 0.5
"""Poll interval for expired leases, in seconds."""


async def answer_unanswered(
    memory: Memory, owner: str, lease_s: float, of_session: Callable[[str], AbstractAsyncContextManager[Mind]]
) -> None:
    """Answer the utterances that were unanswered at the first poll; return when none of them is open any more.

    Args:
        of_session: opens the mind in a given session (conversation).
    """
    HOLDER.set(owner)  # applies to this task and the tasks that it starts
    left: set[int] | None = None
    while left is None or left:
        with contextlib.suppress(StorageError):  # the next poll tries again
            answers = await _answers(memory)
            left = {each.id for each in answers if each.owner != owner} if left is None else left
            left &= {each.id for each in answers}
            for each in answers:
                if each.id in left and each.is_open_to("", memory.clock.now()):
                    left -= {one.id for one in await _take(memory, owner, lease_s, each, of_session)} | {each.id}
        if left is None or left:
            await asyncio.sleep(POLL_S)


async def _answers(memory: Memory) -> list[Work]:
    return [work for work in await memory.store.open_work(memory.key) if work.slot.startswith(ANSWER)]


async def _take(
    memory: Memory,
    owner: str,
    lease_s: float,
    first: Work,
    of_session: Callable[[str], AbstractAsyncContextManager[Mind]],
) -> Sequence[Work]:
    """Claim the open answers of a conversation, answer the utterances in order, and return the claimed work."""
    store, now = memory.store, memory.clock.now()
    taken = await store.claim(memory.key, first.slot, owner, now, now + lease_s, first.cause + 1)
    if not taken:
        return taken
    ids = tuple(work.id for work in taken)
    for error in sorted({work.error for work in taken}):  # mark the work as not begun; this owner keeps the lease
        alike = tuple(work.id for work in taken if work.error == error)
        await memory.commit(put_back=WorkReleased(alike, owner, error, counts=False))
    with renewing(store, memory.clock, lambda: ids, owner, lease_s):
        for work in taken:
            row = await find_unanswered(store, memory.key, replace(work, owner=owner))
            if row is not None and isinstance(row.event, Heard):
                with contextlib.suppress(MindstreamError):  # after an error, the work stays open for the next process
                    async with of_session(row.event.session) as mind:
                        await take_all(mind.answer_again(row))
                    # an answer that was stopped ends without an error, and its work stays open: mark it as done
                    await store.release_work(memory.key, work.cause, owner, (work.slot,))
    return taken


async def take_all(rows: AsyncGenerator[Logged]) -> None:
    """Read all rows of an answer, and discard them, so that the answer runs to its end."""
    async with aclosing(rows) as answer:
        async for _ in answer:
            pass
