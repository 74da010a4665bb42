"""What is at hand of a crew's records: whose vector is near, what is below a scope or has a category. No content."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream import caches
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Changes
from mindstream.memory.store.vectors import Vectors, restore
from mindstream.text.growing_array import GrowingArray
from mindstream.text.postings import Postings

Rows = NDArray[np.int64]
EPISODE, PORTION = "crewai", 1_000
FEW = 500
"""Whoever wants more records back has all compared in full; else those whose vectors' signs are nearest."""
ID, SCOPE, CATEGORY = "i", "s", "c"


class Facts(NamedTuple):
    """What is known of a record; `stored` is its id in the memory, `id` CrewAI's; of a scope its path."""

    stored: str
    id: str
    scope: str
    categories: tuple[str, ...]
    metadata: Mapping[str, Any]
    made: datetime


class AtHand:
    """Rows of facts and vectors; what is replaced stays as a row that is not held, what is erased has all made anew.

    Attributes:
        alone: nothing stands in the memory but a crew's records, so that nothing was drawn from them.
    """

    def __init__(self, upto: int = 0) -> None:
        self.upto, self.alone = upto, True
        self._earlier: dict[str, list[str]] = {}
        self.facts: list[Facts] = []
        self._row: dict[str, int] = {}
        self._held, self._width = GrowingArray(np.bool_), GrowingArray(np.int32)
        self._marks = Postings()
        self._vectors: dict[int, Vectors] = {}

    async def catch_up(self, memory: Memory) -> AtHand:
        """Take in what anybody has written; return this, or what is made anew where something was erased."""
        upto, after, more, erased = 0, 0, True, False
        while more:
            changes = await memory.store.changes(memory.key, self.upto, after, PORTION)
            upto, after, more = upto or changes.upto, changes.left, changes.left > 0
            erased |= self._take(changes)
        self.upto = upto
        made = await self._anew() if erased else self
        for vectors in made._vectors.values():
            for _ in vectors.settling():
                await asyncio.sleep(0)
        return made

    def find(
        self, scope_prefix: str | None = None, categories: list[str] | None = None,
        record_ids: Iterable[str] | None = None, older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> Rows:  # fmt: skip
        """Return the rows that meet all that is named, in the order of writing."""
        mask = self._held.values.copy()
        if path := path_of(scope_prefix or "/"):
            mask &= self._marked([SCOPE + path])
        if categories:
            mask &= self._marked(CATEGORY + name for name in categories)
        if record_ids is not None:
            mask &= self._marked(ID + each for each in record_ids)
        rows, wanted = np.flatnonzero(mask), metadata_filter or {}
        if older_than or wanted:
            before = aware(older_than or datetime.max)
            rows = rows[[self._fits(self.facts[at], before, wanted) for at in rows]]
        return rows

    def versions(self, stored: Iterable[str]) -> list[str]:
        """Return the ids of records and of all that they have replaced."""
        ids = list(stored)
        for id_ in ids:
            ids += self._earlier.get(id_, ())
        return ids

    def widths(self, rows: Rows) -> set[int]:
        """Return how many numbers the vectors of these rows have; 0 of those without one is left out."""
        return {*np.unique(self._width.values[rows]).tolist()} - {0}

    def nearest(self, vector: list[float], rows: Rows, limit: int) -> tuple[Rows, NDArray[np.float32]]:
        """Return of some rows the nearest to a vector, with the cosine (0 to 1), best first."""
        asked, vectors = unit(vector), self._vectors.get(len(vector))
        if vectors is None or limit > FEW:
            scores = np.zeros(len(rows), np.float32) if vectors is None else vectors.cosines(asked, rows)
        else:
            among = np.zeros(len(self.facts), np.bool_)
            among[rows] = True
            rows, scores = vectors.nearest(asked, among)
        order = np.argsort(-scores, kind="stable")[: max(0, limit)]
        return rows[order], np.clip(scores[order], 0, 1)

    def _marked(self, marks: Iterable[str]) -> NDArray[np.bool_]:
        mask = np.zeros(len(self.facts), np.bool_)
        for mark in marks:
            mask[self._marks.of(mark)] = True
        return mask

    def _fits(self, facts: Facts, before: datetime, wanted: Mapping[str, Any]) -> bool:
        return aware(facts.made) < before and all(facts.metadata.get(name) == each for name, each in wanted.items())

    def _take(self, changes: Changes) -> bool:
        """Take over records that are new or changed, drop what holds no more; tell whether any was erased."""
        gone = [self._drop(id_) for id_ in changes.gone]
        for id_ in changes.gone:
            self._earlier.pop(id_, None)
        for record in changes.records:
            self.alone &= record.episode == EPISODE
            if record.superseded_by and record.id not in self._earlier.get(record.superseded_by, ()):
                self._earlier.setdefault(record.superseded_by, []).append(record.id)
            if record.episode == EPISODE and not record.valid_until and not record.forgotten:
                facts = _facts(record)
                if record.id not in self._row or self.facts[self._row[record.id]] != facts:
                    self._drop(record.id)
                    self._append(facts, unit(numbers_of(record)))
            else:
                self._drop(record.id)
        return any(gone)

    def _drop(self, stored: str) -> bool:
        at = self._row.pop(stored, None)
        if at is not None:
            self._held.values[at] = False
        return at is not None

    def _append(self, facts: Facts, vector: NDArray[np.float32]) -> None:
        at, width = len(self.facts), len(vector)
        if width and width not in self._vectors:
            self._vectors[width] = Vectors(width, [-1] * at)
        for each, vectors in self._vectors.items():
            vectors.append(vector.astype(np.float16) if each == width else None)
        self.facts.append(facts)
        self._row[facts.stored] = at
        self._held.append(True)
        self._width.append(width)
        parts = facts.scope.split("/")
        paths = ("/".join(parts[: end + 1]) for end in range(1, len(parts)))
        for mark in {ID + facts.id, *(SCOPE + path for path in paths), *(CATEGORY + each for each in facts.categories)}:
            self._marks.add(mark, at)

    async def _anew(self) -> AtHand:
        """Return the same without what was erased: not a word of it stays, nor a number."""
        made = AtHand(self.upto)
        made.alone, made._earlier = self.alone, self._earlier
        for number, at in enumerate(np.flatnonzero(self._held.values).tolist()):
            width = int(self._width.values[at])
            vector = restore(self._vectors[width].sums.values[at]) if width else np.empty(0, np.float32)
            made._append(self.facts[at], vector)
            if number % PORTION == 0:
                await asyncio.sleep(0)
        return made


def _facts(record: Record) -> Facts:
    known: Any = record.data["record"]
    made = datetime.fromisoformat(known["created_at"])
    return Facts(record.id, known["id"], path_of(known["scope"]), tuple(known["categories"]), known["metadata"], made)


def numbers_of(record: Record) -> NDArray[np.float32]:
    """Return the vector of CrewAI's embedder, as it was given."""
    return np.frombuffer(base64.b64decode(str(record.data["vector"])), np.float32)


def unit(numbers: Any) -> NDArray[np.float32]:
    """Return a vector of length 1, or 0 where it has none."""
    vector = np.asarray(numbers, np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def aware(at: datetime) -> datetime:
    """Return a moment that can be compared with any: CrewAI writes UTC without saying so."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


@caches.remember(4_096)
def path_of(scope: str) -> str:
    """Return a scope as a path, the root as nothing."""
    return "".join(f"/{part}" for part in scope.split("/") if part)
