"""Revising a belief: a patch is merged into what is believed now, and written as the next version."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from mindstream.errors import Conflict, LeaseLost
from mindstream.log.events import BeliefChanged
from mindstream.memory.belief import Belief, Patch, merged, render_belief
from mindstream.memory.record import TAINTED, New, is_tainted
from mindstream.memory.store import Entry

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

Shape = TypeVar("Shape", bound=BaseModel)


async def believe(
    stream: Stream, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
) -> Belief[Shape]:
    """Merge a patch into a belief and write the new version, whoever else writes it; an empty change writes nothing."""
    while True:
        entry = await revision(stream, slot, patch, shape, evidence=evidence, by=by)
        if entry is None:
            return await stream.belief(slot, shape)
        try:
            await stream.commit(entry)
        except LeaseLost:
            raise
        except Conflict:
            await asyncio.sleep(0)  # somebody was first: merge into what they wrote
            continue
        return await stream.belief(slot, shape)


async def revision(
    stream: Stream, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
) -> Entry | None:
    """Make the entry that writes a belief's next version; None where the patch changes nothing."""
    belief = await stream.belief(slot, shape)
    value, changed = merged(belief, patch)
    if not changed:
        return None
    event = BeliefChanged(slot=slot, version=belief.version + 1, patch=changed)
    before = stream.last_version(slot)
    taint = {TAINTED: True} if before and is_tainted(before) else {}  # what it said goes on standing in this one
    new = New(
        text=render_belief(slot, value), kind="belief", by=by, evidence=tuple(evidence), slot=slot,
        version=event.version, data={"value": value.model_dump(mode="json"), "patch": changed, **taint},
    )  # fmt: skip
    return Entry(event, by, tuple(await stream.build_records([new])))
