"""What other processes are at for a mind is stopped: a thought ends here and now, an answer where it is spoken.

Whoever thinks sees within a second that the work is theirs no more, and can write nothing of it. Whoever speaks is
asked to break off, and keeps what was said so far.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from dataclasses import replace
from itertools import groupby

from mindstream.clock import Clock
from mindstream.errors import LeaseLost
from mindstream.log.events import Corrected, Heard, Thought
from mindstream.log.names import StreamKey
from mindstream.log.work import ANSWER, STOPPED, Work
from mindstream.memory.store.store import Commit, Entry, Store, WorkDone, WorkReleased


async def stop_elsewhere(
    store: Store, mind: StreamKey, clock: Clock, ours: Container[str], *, session: str | None = None,
    slot: str | None = None, answers: bool = True,
) -> int:  # fmt: skip
    """Stop what is held under other names than ours; return how many runs and answers. It counts as thought about.

    Args:
        session: what is about that conversation alone; slot: what that reasoner thinks alone.
        answers: answers are stopped, too.
    """
    now, stopped = clock.now(), 0
    held = [
        work
        for work in await store.open_work(mind)
        if work.owner not in ours and not work.is_open_to("", now) and slot in (None, work.slot)
        if answers or not work.slot.startswith(ANSWER)
        if await _is_of_talk(store, mind, work, session)
    ]
    for (name, owner), found in groupby(sorted(held, key=lambda work: (work.slot, work.owner)), _holder):
        works = list(found)
        with contextlib.suppress(LeaseLost):  # it has ended meanwhile
            stopped += await _stop(store, Commit(mind=mind, at=now), name, owner, works)
    return stopped


def _holder(work: Work) -> tuple[str, str]:
    return work.slot, work.owner


async def _stop(store: Store, commit: Commit, slot: str, owner: str, works: Sequence[Work]) -> int:
    if slot.startswith(ANSWER):
        asked = tuple(work.id for work in works if work.error != STOPPED)
        await store.commit(replace(commit, put_back=WorkReleased(asked, owner, STOPPED, counts=False)))
        return len(asked)
    begun = [work for work in works if work.running]
    if not begun:
        return 0
    about = tuple(work.cause for work in begun if work.cause > 0)
    entry = Entry(Thought(slot=slot, about=about, text="cancelled", model=""), slot)
    await store.commit(replace(commit, entries=(entry,), finish=WorkDone(tuple(work.id for work in begun), owner)))
    return 1


async def _is_of_talk(store: Store, mind: StreamKey, work: Work, session: str | None) -> bool:
    """Tell whether it is about what was said; other work of a mind, as a life, is stopped by its own means."""
    if work.cause < 0:
        return session is None
    found = await store.events(mind, work.cause - 1, limit=1)
    event = found[0].event if found and found[0].seq == work.cause else None
    if isinstance(event, Heard):
        return session in (None, event.session)
    return isinstance(event, Corrected) and session is None
