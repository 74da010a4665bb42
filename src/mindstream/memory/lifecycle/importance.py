"""Importance that is not rated yet: asked for in the background, many memories at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import TYPE_CHECKING

import numpy as np

from mindstream.memory.lifecycle.rate_importance import RateImportance
from mindstream.memory.store.record import FADING, Kind
from mindstream.memory.store.store import Revision
from mindstream.models.ask import ask

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model

RATED: frozenset[Kind] = FADING | {"chat"}
AT_ONCE = 20
LONGEST = 1000
"""So many characters of a memory are shown to who rates it."""


async def rate(
    stream: Stream, model: Model, kinds: Collection[Kind] = RATED, most: int = 200
) -> AsyncIterator[list[Revision]]:
    """Yield ratings of what has none, the newest first, to be committed before the next are asked for.

    Raises:
        ModelError: no rating; what was yielded before stands.
    """
    columns = await stream.columns()
    pending = np.isnan(columns.importance.values) & columns.holding(kinds, stream.clock.now())
    ids = [columns.ids[at] for at in np.flatnonzero(pending)[::-1][:most]]
    for start in range(0, len(ids), AT_ONCE):
        records = await stream.store.records(stream.key, ids[start : start + AT_ONCE])
        if not records:
            continue
        question = RateImportance(who=stream.name, memories=tuple(record.text[:LONGEST] for record in records))
        reply = await ask(model, question)
        yield [
            Revision(id=record.id, importance=float(rating))
            for record, rating in zip(records, reply.ratings, strict=True)
        ]
