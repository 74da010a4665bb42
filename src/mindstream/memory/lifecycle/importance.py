"""Rate the importance of records that have no rating, many records per model call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from copy import deepcopy
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from mindstream.errors import ReplyInvalid
from mindstream.frozen import Frozen
from mindstream.memory.store.record import FADING, Kind
from mindstream.memory.store.store import Revision
from mindstream.models.model import JsonSchema
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.text.words import batches

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model


class Importance(Frozen):
    """A rating for each memory, in their order."""

    ratings: list[Annotated[int, Field(ge=1, le=10)]] = Field(max_length=1_000)


class RateImportance(Prompt[Importance]):
    """How important is each of these memories to the mind that has them?"""

    role: ClassVar[str] = "importance"

    who: str
    memories: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        """Return a schema that requires as many ratings as there are memories."""
        schema = deepcopy(super().reply_schema() or {})
        schema["properties"]["ratings"] |= dict.fromkeys(("minItems", "maxItems"), len(self.memories))
        return schema

    def parse(self, text: str) -> Importance:
        reply = super().parse(text)
        if len(reply.ratings) != len(self.memories):
            raise ReplyInvalid(
                f"There are {len(self.memories)} memories and {len(reply.ratings)} ratings: rate each once."
            )
        return reply


UNRATED = 4
"""The rating (1 to 10) that every memory gets if there is no model."""


@rule(RateImportance)
def rate_alike(ask: RateImportance) -> Importance:
    """Without a model, rate all memories the same."""
    return Importance(ratings=[UNRATED] * len(ask.memories))


RATED: frozenset[Kind] = FADING | {"chat"}
BATCH = 20
MAX_SHOWN = 1000
"""Maximum number of characters of a memory in the prompt."""


async def rate(
    stream: Stream, model: Model, kinds: Collection[Kind] = RATED, most: int = 200
) -> AsyncIterator[list[Revision]]:
    """Yield ratings of unrated records, newest first; the caller must commit each batch before it requests the next.

    Raises:
        ModelError: the model failed; batches that were yielded before are valid.
    """
    columns = await stream.columns()
    pending = np.isnan(columns.importance.values) & columns.holding(kinds, stream.clock.now())
    ids = [columns.ids[at] for at in np.flatnonzero(pending)[::-1][:most]]
    for some in batches(ids, BATCH):
        records = await stream.records(some)
        if not records:
            continue
        question = RateImportance(who=stream.name, memories=tuple(record.text[:MAX_SHOWN] for record in records))
        reply = await ask(model, question)
        yield [
            Revision(id=record.id, importance=float(rating))
            for record, rating in zip(records, reply.ratings, strict=True)
        ]
