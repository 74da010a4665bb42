"""Recall: from a question to the records that answer it. Ranking is this one piece of code, whatever the store.

Relevance is a sum: the words that match (BM25), the nearness of the vectors, and in talk what a record's neighbours
and its episode lend it. A policy then ranks what was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.memory.columns import Columns, Shelf
from mindstream.memory.filters import Filters, allowed, matching
from mindstream.memory.policies import Bounded, Floats, Found, Policy, Signals
from mindstream.memory.question import Question, understood
from mindstream.memory.record import FADING, KINDS, Kind, Record
from mindstream.memory.relevance import Weights, relevance, weights_for
from mindstream.memory.store import Store
from mindstream.models.embedders.embedder import Embedder

FOUND_PER_RETURNED = 4


@dataclass(frozen=True, slots=True)
class Recalled:
    """A record that was returned, its score and what the score is made of."""

    record: Record
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Recall:
    """What a question brought up.

    Attributes:
        returned: the best, best first.
        passed_over: ids of records that were found, but not returned.
    """

    returned: list[Recalled] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


class Recaller:
    """Recall from any stream of a store."""

    def __init__(
        self, store: Store, embedder: Embedder, *, policy: Policy | None = None, weights: Weights | None = None,
        streams: int = 64,
    ) -> None:  # fmt: skip
        self.store = store
        self.embedder = embedder
        self.policy = policy or Bounded()
        self.weights = weights or weights_for(embedder.name)
        self.shelf = Shelf(store, embedder.name, embedder.width, streams)

    async def recall(
        self,
        stream: str,
        query: str,
        k: int = 10,
        *,
        now: Moment,
        kinds: Sequence[Kind] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        as_of: Moment | None = None,
        where: Mapping[str, JsonValue] | None = None,
        policy: Policy | None = None,
    ) -> Recall:
        """Return the k records that answer best. A pure read: nothing is touched.

        `since`, `until`: when they were written (both included). `as_of`: as the stream stood then. `where`: what
        `by`, `episode`, `slot` or entries of `data` must be.

        Raises:
            InputError: the query is empty, or k is below 1.
        """
        if not query.strip():
            raise InputError("there is nothing to look for: the query is empty")
        if k < 1:
            raise InputError(f"k says how many records to return, at least 1, not {k}")
        columns = self.shelf.columns(stream)
        if not len(columns):
            return Recall()
        question = understood(query, columns, now)
        vectors = await self.embedder.embed(question.wordings)
        filters = Filters(kinds=kinds, since=since, until=until, as_of=as_of, where=where or {})
        return self.rank(columns, question, vectors, k, now, filters, policy or self.policy)

    def rank(
        self,
        columns: Columns,
        question: Question,
        vectors: NDArray[np.float32],
        k: int,
        now: Moment,
        filters: Filters,
        policy: Policy,
    ) -> Recall:
        """Rank a stream's records for a question that is understood, its `wordings` embedded."""
        candidates = allowed(columns, filters, now)
        scored = relevance(columns, question, vectors, candidates, self.weights)
        found = matching(self.store, columns, filters, scored.best(), FOUND_PER_RETURNED * k)
        if not len(found):
            return Recall()

        def signals(rows: NDArray[np.int64]) -> tuple[Floats, Floats, Floats, Floats, Floats]:
            return _signals(columns, rows, scored.total, vectors[-1])

        scores, nudges = policy.rank(Found(*signals(found), now, lambda: Signals(*signals(np.flatnonzero(candidates)))))
        order = np.lexsort((-found, -scores))
        texts = {
            record.id: record
            for record in self.store.records(columns.stream, [columns.ids[found[i]] for i in order[:k]])
        }
        returned = []
        for i in order[:k]:
            if record := texts.get(columns.ids[found[i]]):
                parts = scored.parts(int(found[i])) | {name: float(values[i]) for name, values in nudges.items()}
                returned.append(Recalled(record, float(scores[i]), parts))
        return Recall(returned, [columns.ids[found[i]] for i in order[k:]])

    def known(self, stream: str, kind: Kind, text: str) -> Record | None:
        """Return the record that says the same already, in a kind that keeps the same words once."""
        columns = self.shelf.columns(stream)
        at = columns.same(kind, text)
        return None if at is None else next(iter(self.store.records(stream, [columns.ids[at]])), None)

    def about(
        self, stream: str, keywords: Sequence[str], n: int = 10, *, now: Moment, kinds: Sequence[Kind] | None = None
    ) -> list[Record]:
        """Return the newest records that have any of these keywords, newest first (seed 002: kw_to_event and so on)."""
        columns = self.shelf.columns(stream)
        if not len(columns):
            return []
        candidates = allowed(columns, Filters(kinds=kinds), now)
        positions = {at for word in keywords for at in columns.keywords.get(word.lower(), ()) if candidates[at]}
        return self.store.records(stream, [columns.ids[at] for at in sorted(positions, reverse=True)[:n]])


FADING_CODES = np.array([kind in FADING for kind in KINDS])


def _signals(
    columns: Columns, rows: NDArray[np.int64], total: NDArray[np.float32], vector: NDArray[np.float32]
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the fields of Signals for these positions."""
    level = columns.level.values[rows].astype(np.float64)
    strength = np.where(columns.lasting.values[rows], 1.0, 1 - 0.5 ** np.maximum(level + 1, 0))
    comparable = len(vector) == columns.width
    return (
        total[rows].astype(np.float64),
        columns.accessed.values[rows],
        columns.importance.values[rows].astype(np.float64),
        np.where(FADING_CODES[columns.kind.values[rows]], strength, 0.5),
        columns.vectors.cosines(vector, rows).astype(np.float64) if comparable else np.zeros(len(rows)),
    )
