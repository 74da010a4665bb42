"""Where CrewAI's unified memory keeps its records: in a stream, with history, and forgotten for good.

memory = crewai.Memory(storage=MindstreamStorage("data", "team"), llm=…, embedder=…)
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo
from numpy.typing import NDArray

from mindstream import caches
from mindstream.adapters.loop import Handle, both
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.memory.store.validation import fitted_text
from mindstream.memory.store.vectors import Vectors
from mindstream.models.embedders.embedder import Embedder

EPISODE, PORTION = "crewai", 1_000


class Held(NamedTuple):
    """What is at hand of a record: all but its content, and the row of its vector."""

    stored: str
    record: MemoryRecord
    row: int


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
        self.forget("")
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of what is at hand: something was erased."""
        self._upto, self._held, self._vectors = 0, dict[str, Held](), Vectors(0)

    async def _save(self, records: list[MemoryRecord], memory: Memory) -> None:
        """Write records, in one transaction; of an id that is there already the new one takes the place."""
        async with self._alone:
            latest = {record.id: record for record in records}
            known = {each.record.id: each.stored for each in await self._all(memory, record_ids=latest)}
            await memory.retain_all([_draft(record) for id_, record in latest.items() if id_ not in known])
            for id_, stored in known.items():
                await memory.replace(stored, _draft(latest[id_]))

    async def _search(
        self, query_embedding: list[float], scope_prefix: str | None = None, categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None, limit: int = 10, min_score: float = 0.0, *, memory: Memory,
    ) -> list[tuple[MemoryRecord, float]]:  # fmt: skip
        """Return the records nearest to a vector, with the cosine (0 to 1), best first."""
        passing = await self._all(memory, scope_prefix, categories, metadata_filter=metadata_filter)
        asked, vectors = _unit(query_embedding), self._vectors
        if vectors.width not in (0, len(asked)):
            raise EmbeddingDimensionMismatchError(vectors.width, len(asked))
        if not passing or not vectors.width:
            return []
        stored, among = {each.row: each.stored for each in passing}, np.zeros(len(vectors), np.bool_)
        among[list(stored)] = True
        rows, cosines = vectors.nearest(asked, among)
        scores = {stored[row]: max(0.0, min(1.0, cosine)) for row, cosine in zip(rows, cosines.tolist(), strict=True)}
        best = sorted((id_ for id_ in scores if scores[id_] >= min_score), key=lambda id_: -scores[id_])
        found = await memory.store.records(memory.key, best[: max(0, limit)])
        return [(_known(each), scores[each.id]) for each in found]

    async def _delete(self, *named: Any, memory: Memory, **filters: Any) -> int:
        """Forget for good what meets all that is named, with every version; return how many records that were."""
        found = await self._all(memory, *named, **filters)
        if found:
            await memory.forget(*(each.stored for each in found))
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
        found = sorted(self._found(scope_prefix), key=lambda each: _aware(each.record.created_at))[::-1]
        return self._read(found[max(0, offset) :][: max(0, limit)])

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what a scope and those below it hold."""
        made = sorted((each.record.created_at for each in self._found(scope)), key=_aware)
        return ScopeInfo(
            path=_path(scope) or "/", record_count=len(made), categories=sorted(self.list_categories(scope)),
            oldest_record=made[0] if made else None, newest_record=made[-1] if made else None,
            child_scopes=self.list_scopes(scope),
        )  # fmt: skip

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes just below one."""
        prefix, paths = f"{_path(parent)}/", {_path(each.record.scope) for each in self._found(parent)}
        return sorted({prefix + each[len(prefix) :].split("/")[0] for each in paths if each.startswith(prefix)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count records by category."""
        return Counter(name for each in self._found(scope_prefix) for name in each.record.categories)

    def count(self, scope_prefix: str | None = None) -> int:
        """Count records."""
        return len(self._found(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forget a scope and those below it, or everything, for good."""
        self.delete(scope_prefix)

    def _found(self, *args: Any, **filters: Any) -> list[Held]:
        return self.handle.wait(lambda memory: self._all(memory, *args, **filters))

    def _read(self, held: Iterable[Held]) -> list[MemoryRecord]:
        ids = [each.stored for each in held]
        return [_known(each) for each in self.handle.wait(lambda memory: memory.store.records(memory.key, ids))]

    async def _all(
        self, memory: Memory, scope_prefix: str | None = None, categories: list[str] | None = None,
        record_ids: Iterable[str] | None = None, older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> list[Held]:  # fmt: skip
        """Return what meets all that is named, in the order of writing, with all that anybody has written."""
        async with self._reading:
            await self._catch_up(memory)
        path = _path(scope_prefix or "/")
        return [
            each for each in self._held.values()
            if (not path or f"{_path(each.record.scope)}/".startswith(f"{path}/"))
            and (not categories or {*categories} & {*each.record.categories})
            and (record_ids is None or each.record.id in record_ids)
            and (older_than is None or _aware(each.record.created_at) < _aware(older_than))
            and all(each.record.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
        ]  # fmt: skip

    async def _catch_up(self, memory: Memory) -> None:
        upto = after = 0
        while True:
            changes = await memory.store.changes(memory.key, self._upto, after, PORTION)
            upto, after = upto or changes.upto, changes.left
            for id_ in changes.gone:
                self._held.pop(id_, None)
            for each in changes.records:
                if each.valid_until or each.forgotten:
                    self._held.pop(each.id, None)
                elif each.episode == EPISODE and each.id not in self._held:
                    self._take(each)
            if not after:
                self._upto = upto
                return

    def _take(self, record: Record) -> None:
        known = _known(record)
        vector = _unit(known.embedding or [])
        if len(vector) and not self._vectors.width:
            self._vectors = Vectors(len(vector), [-1] * len(self._vectors))
        row, fits = len(self._vectors), 0 < len(vector) == self._vectors.width
        self._vectors.append(vector.astype(np.float16) if fits else None)
        bare = known.model_copy(update={"content": "", "embedding": None})
        self._held[record.id] = Held(record.id, bare, row)


def _draft(record: MemoryRecord) -> RecordDraft:
    vector = base64.b64encode(np.asarray(record.embedding or [], np.float32).tobytes()).decode()
    data = {"record": record.model_dump(mode="json"), "vector": vector}
    return RecordDraft(
        text=fitted_text(record.content if record.content.strip() else "(no words)"),
        kind="document", episode=EPISODE, by=(record.source or "")[:500], data=data,
        importance=1 + 9 * record.importance, created=_aware(record.created_at).timestamp(),
    )  # fmt: skip


def _known(record: Record) -> MemoryRecord:
    """Return a record as CrewAI knows it."""
    numbers = np.frombuffer(base64.b64decode(str(record.data["vector"])), np.float32).tolist()
    return MemoryRecord.model_validate(record.data["record"]).model_copy(update={"embedding": numbers or None})


def _unit(numbers: list[float]) -> NDArray[np.float32]:
    vector = np.asarray(numbers, np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


@caches.remember(4_096)
def _path(scope: str) -> str:
    """Return a scope as a path, the root as nothing."""
    return "".join(f"/{part}" for part in scope.split("/") if part)
