"""Where CrewAI's unified memory keeps its records: in a stream, with history, and forgotten for good.

memory = crewai.Memory(storage=MindstreamStorage("data", "team"), llm=…, embedder=…)
"""

from __future__ import annotations

import asyncio
import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo
from numpy.typing import NDArray

from mindstream.adapters.loop import Handle
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.memory.store.validation import fitted_text
from mindstream.models.embedders.embedder import Embedder

EPISODE, MOST = "crewai", 1_000_000
Vector = NDArray[np.float32]


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
        self.handle, self._alone = Handle(data, user, embed), asyncio.Lock()
        self._seen, self._kept = -1, list[tuple[Record, MemoryRecord, Vector]]()

    def save(self, records: list[MemoryRecord]) -> None:
        """Write records, in one transaction; of an id that is there already the new one takes the place."""
        self.handle.wait(lambda memory: self._save(memory, records))

    def update(self, record: MemoryRecord) -> None:
        """Replace the record of that id; what it was stays as history."""
        self.save([record])

    def search(
        self, query_embedding: list[float], scope_prefix: str | None = None, categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None, limit: int = 10, min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:  # fmt: skip
        """Return the records nearest to a vector, with the cosine (0 to 1), best first."""
        asked, found = _unit(query_embedding), list[tuple[MemoryRecord, float]]()
        for _, record, vector in self._all(scope_prefix, categories, metadata_filter=metadata_filter):
            if len(vector) and len(vector) != len(asked):
                raise EmbeddingDimensionMismatchError(len(vector), len(asked))
            score = max(0.0, min(1.0, float(vector @ asked))) if len(vector) else 0.0
            if score >= min_score:
                found.append((record.model_copy(deep=True), score))
        return sorted(found, key=lambda pair: -pair[1])[: max(0, limit)]

    def delete(
        self, scope_prefix: str | None = None, categories: list[str] | None = None,
        record_ids: list[str] | None = None, older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:  # fmt: skip
        """Forget for good what meets all that is named, with every version; return how many records that were."""
        found = self._all(scope_prefix, categories, record_ids, older_than, metadata_filter)
        if found:
            self.handle.wait(lambda memory: memory.forget(*(each.id for each, _, _ in found)))
        return len(found)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id."""
        return next((record.model_copy(deep=True) for _, record, _ in self._all(record_ids=[record_id])), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, newest first."""
        found = [record for _, record, _ in reversed(self._all(scope_prefix))]
        found.sort(key=lambda record: _aware(record.created_at), reverse=True)
        return [each.model_copy(deep=True) for each in found[max(0, offset) :][: max(0, limit)]]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return what a scope and those below it hold."""
        path = _path(scope) or "/"
        records = [record for _, record, _ in self._all(path)]
        categories = sorted({name for each in records for name in each.categories})
        made = sorted((record.created_at for record in records), key=_aware)
        return ScopeInfo(
            path=path, record_count=len(records), categories=categories,
            oldest_record=made[0] if made else None, newest_record=made[-1] if made else None,
            child_scopes=self.list_scopes(path),
        )  # fmt: skip

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes just below one."""
        prefix = f"{_path(parent)}/"
        below = [path for _, record, _ in self._all(parent) if (path := _path(record.scope)).startswith(prefix)]
        return sorted({prefix + path[len(prefix) :].split("/")[0] for path in below})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count records by category."""
        counts: dict[str, int] = {}
        for _, record, _ in self._all(scope_prefix):
            for name in record.categories:
                counts[name] = counts.get(name, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """Count records."""
        return len(self._all(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forget a scope and those below it, or everything, for good."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """See `save`."""
        await self.handle.do(lambda memory: self._save(memory, records))

    async def asearch(
        self, query_embedding: list[float], *args: Any, **filters: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """See `search`."""
        return await asyncio.to_thread(self.search, query_embedding, *args, **filters)

    async def adelete(self, *args: Any, **filters: Any) -> int:
        """See `delete`."""
        return await asyncio.to_thread(self.delete, *args, **filters)

    async def _save(self, memory: Memory, records: list[MemoryRecord]) -> None:
        async with self._alone:
            records = list({record.id: record for record in records}.values())
            known = {record.id: each.id for each, record, _ in await self._read(memory)}
            await memory.retain_all([_draft(record) for record in records if record.id not in known])
            for record in records:
                if record.id in known:
                    await memory.replace(known[record.id], _draft(record))

    def _all(
        self, scope: str | None = None, categories: list[str] | None = None, record_ids: list[str] | None = None,
        older_than: datetime | None = None, metadata_filter: dict[str, Any] | None = None,
    ) -> list[tuple[Record, MemoryRecord, Vector]]:  # fmt: skip
        """Return what meets all that is named, in the order of writing."""
        path = _path(scope or "/")
        return [
            each for each in self.handle.wait(self._read)
            if (record := each[1]) and f"{_path(record.scope)}/".startswith(f"{path}/")
            and (not categories or {*categories} & {*record.categories})
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or _aware(record.created_at) < _aware(older_than))
            and all(record.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
        ]  # fmt: skip

    async def _read(self, memory: Memory) -> list[tuple[Record, MemoryRecord, Vector]]:
        """Return all records; read anew where anybody has written."""
        seen = await memory.store.version()
        if seen != self._seen:
            records = await memory.latest("document", MOST, episode=EPISODE)
            self._kept = [_kept(each) for each in records]
            self._seen = seen
        return self._kept


def _draft(record: MemoryRecord) -> RecordDraft:
    vector = base64.b64encode(np.asarray(record.embedding or [], np.float32).tobytes()).decode()
    data = {"record": record.model_dump(mode="json"), "vector": vector}
    return RecordDraft(
        text=fitted_text(record.content if record.content.strip() else "(no words)"),
        kind="document", episode=EPISODE, by=(record.source or "")[:500], data=data,
        importance=1 + 9 * record.importance, created=_aware(record.created_at).timestamp(),
    )  # fmt: skip


def _kept(record: Record) -> tuple[Record, MemoryRecord, Vector]:
    """Return a record with what CrewAI knows it as, and its vector, of length 1."""
    numbers = np.frombuffer(base64.b64decode(str(record.data["vector"])), np.float32).tolist()
    known = MemoryRecord.model_validate(record.data["record"])
    return record, known.model_copy(update={"embedding": numbers or None}), _unit(numbers)


def _unit(numbers: list[float]) -> Vector:
    vector = np.asarray(numbers, np.float32)
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32)


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _path(scope: str) -> str:
    """Return a scope as a path, the root as nothing."""
    return "".join(f"/{part}" for part in scope.split("/") if part)
