"""Where CrewAI's unified memory keeps its records: in a stream, with history, and forgotten for good.

memory = crewai.Memory(storage=MindstreamStorage("data", "team"), llm=…, embedder=…)
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo

from mindstream import caches
from mindstream.adapters.crewai.at_hand import EPISODE, AtHand, Facts, aware, numbers_of, path_of
from mindstream.adapters.loop import Handle, both
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.memory.store.validation import fitted_text
from mindstream.models.embedders.embedder import Embedder


class MindstreamStorage:
    """The protocol `StorageBackend`. CrewAI asks by its own embedder's vectors: they are kept, and compared by cosine.

    Args:
        data: a folder, a database's URL, or a store.
        user: whose memory, a name for the crew.
        embed: the embedder by which mindstream's own recall finds the same records.
    """

    def __init__(
        self, data: str | Path | Store = "data", user: str = "crew", *, embed: Embedder | str = "wordllama"
    ) -> None:
        self.handle, self._alone, self._reading = Handle(data, user, embed), asyncio.Lock(), asyncio.Lock()
        self._at_hand, self._stream = AtHand(), ""
        caches.watch(self)

    def forget(self, stream: str) -> None:
        """Let go of what is at hand: something of it was erased."""
        if stream == self._stream:
            self._at_hand = AtHand()

    async def _save(self, records: list[MemoryRecord], memory: Memory) -> None:
        """Write records, in one transaction; of an id that is there already the new one takes the place."""
        async with self._alone:
            latest = {record.id: record for record in records}
            known = {each.id: each.stored for each in await self._all(record_ids=latest, memory=memory)}
            await memory.retain_all([_draft(record) for id_, record in latest.items() if id_ not in known])
            for id_, stored in known.items():
                await memory.replace(stored, _draft(latest[id_]))

    async def _search(
        self, query_embedding: list[float], scope_prefix: str | None = None, categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None, limit: int = 10, min_score: float = 0.0, *, memory: Memory,
    ) -> list[tuple[MemoryRecord, float]]:  # fmt: skip
        """Return the records nearest to a vector, with the cosine (0 to 1), best first."""
        at_hand = await self._caught_up(memory)
        rows = at_hand.find(scope_prefix, categories, metadata_filter=metadata_filter)
        for width in at_hand.widths(rows) - {len(query_embedding)}:
            raise EmbeddingDimensionMismatchError(width, len(query_embedding))
        rows, scores = at_hand.nearest(query_embedding, rows, limit)
        pairs = zip(rows.tolist(), scores.tolist(), strict=True)
        best = {at_hand.facts[at].stored: score for at, score in pairs if score >= min_score}
        return [(_known(each), best[each.id]) for each in await memory.store.records(memory.key, list(best))]

    async def _delete(self, *named: Any, memory: Memory, **filters: Any) -> int:
        """Forget for good what meets all that is named, with every version; return how many records that were."""
        found = await self._all(*named, **filters, memory=memory)
        if found:
            at_hand, ids = self._at_hand, [each.stored for each in found]
            if at_hand.alone:
                await memory.settle()
                await memory.store.erase(memory.key, at_hand.versions(ids))
                await memory.store.compact()
            else:
                await memory.forget(*ids)
            self._at_hand = at_hand  # what was erased is taken out of it at once; it is not all read again
            await self._caught_up(memory)
        return len(found)

    save, asave = both(_save)
    search, asearch = both(_search)
    delete, adelete = both(_delete)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of that id; what it was stays as history."""
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id."""
        return next(iter(self._read(self._found(record_ids=[record_id]))), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, newest first."""
        found = sorted(self._found(scope_prefix), key=lambda each: aware(each.made))[::-1]
        return self._read(found[max(0, offset) :][: max(0, limit)])

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what a scope and those below it hold."""
        found = self._found(scope)
        made = sorted((each.made for each in found), key=aware)
        return ScopeInfo(
            path=path_of(scope) or "/", record_count=len(made), categories=sorted(_categories(found)),
            oldest_record=made[0] if made else None, newest_record=made[-1] if made else None,
            child_scopes=_below(scope, found),
        )  # fmt: skip

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes just below one."""
        return _below(parent, self._found(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count records by category."""
        return _categories(self._found(scope_prefix))

    def count(self, scope_prefix: str | None = None) -> int:
        """Count records."""
        return len(self._found(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forget a scope and those below it, or everything, for good."""
        self.delete(scope_prefix)

    def _read(self, found: Iterable[Facts]) -> list[MemoryRecord]:
        ids = [each.stored for each in found]
        return [_known(each) for each in self.handle.wait(lambda memory: memory.store.records(memory.key, ids))]

    async def _all(self, *named: Any, memory: Memory, **filters: Any) -> list[Facts]:
        """Return what meets all that is named, in the order of writing."""
        at_hand = await self._caught_up(memory)
        return [at_hand.facts[at] for at in at_hand.find(*named, **filters).tolist()]

    _found = both(_all)[0]

    async def _caught_up(self, memory: Memory) -> AtHand:
        """Return what is at hand, with all that anybody has written."""
        async with self._reading:
            self._stream, before = memory.key, self._at_hand
            at_hand = await before.catch_up(memory)
            if self._at_hand is before:  # nothing was erased meanwhile
                self._at_hand = at_hand
            return at_hand


def _draft(record: MemoryRecord) -> RecordDraft:
    vector = base64.b64encode(np.asarray(record.embedding or [], np.float32).tobytes()).decode()
    data = {"record": record.model_dump(mode="json"), "vector": vector}
    return RecordDraft(
        text=fitted_text(record.content if record.content.strip() else "(no words)"),
        kind="document", episode=EPISODE, by=(record.source or "")[:500], data=data,
        importance=1 + 9 * record.importance, created=aware(record.created_at).timestamp(),
    )  # fmt: skip


def _known(record: Record) -> MemoryRecord:
    """Return a record as CrewAI knows it."""
    given: Any = record.data["record"]
    return MemoryRecord.model_validate({**given, "embedding": numbers_of(record).tolist() or None})


def _categories(found: Iterable[Facts]) -> dict[str, int]:
    return Counter(name for each in found for name in each.categories)


def _below(scope: str, found: Iterable[Facts]) -> list[str]:
    """Return the scopes just below one in which something stands."""
    prefix = f"{path_of(scope)}/"
    paths = {each.scope for each in found}
    return sorted({prefix + each[len(prefix) :].split("/")[0] for each in paths if each.startswith(prefix)})
