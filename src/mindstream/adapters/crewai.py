"""CrewAI's memory in mindstream: `crewai.Memory(storage=MindstreamStorage("data", "team"), llm=…, embedder=…)`."""

from __future__ import annotations

import base64
from asyncio import Lock
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo
from numpy.typing import NDArray

from mindstream import caches
from mindstream.adapters.loop import Data, Handle, both
from mindstream.adapters.storing import fit_text
from mindstream.arrays import Floats
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.models.embedders.embedder import Embedder

EPISODE, PORTION = "crewai", 1_000


class Held(NamedTuple):
    """The cached part of a record.

    Attributes:
        stored: the id of the memory record that holds it.
        record: its fields, without the content and the vector.
        vector: its unit vector.
    """

    stored: str
    record: MemoryRecord
    vector: NDArray[np.float16]


class MindstreamStorage:
    """The protocol `StorageBackend`: searches by the cosine of vectors of CrewAI's own embedder.

    Args:
        data: a folder, a database's URL, or a store.
        user: the owner of the memory, a name for the crew.
        embed: the embedder with which mindstream itself recalls these records; CrewAI's searches do not use it.
    """

    def __init__(self, data: Data = "data", user: str = "crew", *, embed: Embedder | str | None = None) -> None:
        self.handle, self._alone, self._reading, self._stream = Handle(data, user, embed), Lock(), Lock(), ""
        self.forget("")
        caches.watch(self)

    def forget(self, stream: str) -> None:
        """Empty the cache after an erasure in this stream."""
        if stream == self._stream:
            self._upto, self._held = 0, dict[str, Held]()
            self._stack: tuple[dict[str, int], Floats] | None = None

    async def _save(self, records: list[MemoryRecord], memory: Memory) -> None:
        """Store records in one transaction; a record with a known id replaces the stored one."""
        async with self._alone:
            latest = {record.id: record for record in records}
            known = {each.record.id: each.stored for each in await self._all(record_ids=latest, memory=memory)}
            await memory.retain_all([_draft(record) for id_, record in latest.items() if id_ not in known])
            for id_, stored in known.items():
                await memory.replace(stored, _draft(latest[id_]))

    async def _search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
        *,
        memory: Memory,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records nearest to a vector, best first, each with its cosine (0 to 1).

        At most `limit` records are returned, and none with a cosine below `min_score`.

        Raises:
            EmbeddingDimensionMismatchError: a record that passes the filters has a vector of another width.
        """
        passing = await self._all(scope_prefix, categories, metadata_filter=metadata_filter, memory=memory)
        for width in {len(each.vector) for each in passing} - {0, len(query_embedding)}:
            raise EmbeddingDimensionMismatchError(width, len(query_embedding))
        if not self._stack or self._stack[1].shape[1] != len(query_embedding):
            of = [each for each in self._held.values() if len(each.vector) == len(query_embedding)]
            vectors = np.array([each.vector for each in of], np.float32).reshape(-1, len(query_embedding))
            self._stack = {each.stored: row for row, each in enumerate(of)}, vectors
        rows, vectors = self._stack
        # the last score, 0, is that of records without a vector
        of_all = np.append(np.clip(vectors @ _unit(query_embedding), 0, 1), 0)
        scores = of_all[[rows.get(each.stored, -1) for each in passing]]
        order = np.argsort(-scores, kind="stable")[: max(0, limit)]
        best = {passing[at].stored: float(scores[at]) for at in order if scores[at] >= min_score}
        return [(_known(each), best[each.id]) for each in await memory.records(list(best))]

    async def _delete(self, *named: Any, memory: Memory, **filters: Any) -> int:
        """Forget the records that meet all conditions, with every version; return their number."""
        found = await self._all(*named, **filters, memory=memory)
        if found:
            # `self.forget` empties the cache only for the stream `_stream`. With "" the cache stays, and `_all` removes
            # these records from it.
            self._stream = ""
            await memory.forget(*(each.stored for each in found))
            await self._all(memory=memory)
        return len(found)

    save, asave = both(_save)
    search, asearch = both(_search)
    delete, adelete = both(_delete)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with this id; the earlier version stays as history."""
        self.save([record])

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id; None: there is no such record."""
        return next(iter(self._read(self._found(record_ids=[record_id]))), None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records, newest first."""
        found = sorted(self._found(scope_prefix), key=lambda each: _aware(each.record.created_at))[::-1]
        return self._read(found[max(0, offset) :][: max(0, limit)])

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return information about a scope and the scopes below it."""
        made = sorted((each.record.created_at for each in self._found(scope)), key=_aware)
        return ScopeInfo(
            path=_path(scope) or "/",
            record_count=len(made),
            categories=sorted(self.list_categories(scope)),
            oldest_record=made[0] if made else None,
            newest_record=made[-1] if made else None,
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes just below `parent`."""
        prefix, paths = f"{_path(parent)}/", {_path(each.record.scope) for each in self._found(parent)}
        return sorted({prefix + each[len(prefix) :].split("/")[0] for each in paths if each.startswith(prefix)})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Count the records of each category, in a scope and the scopes below it; None: in all scopes."""
        return Counter(name for each in self._found(scope_prefix) for name in each.record.categories)

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope and the scopes below it, or of all records."""
        return len(self._found(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forget a scope and the scopes below it, or everything."""
        self.delete(scope_prefix)

    def _read(self, held: Iterable[Held]) -> list[MemoryRecord]:
        ids = [each.stored for each in held]
        return [_known(each) for each in self.handle.wait(lambda memory: memory.records(ids))]

    async def _all(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: Iterable[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
        *,
        memory: Memory,
    ) -> list[Held]:
        """Return the records that meet all conditions, in the order of writing, including records that other processes
        wrote."""
        async with self._reading:
            self._stream, upto, after, more = memory.key, 0, 0, True
            while more:
                changes = await memory.store.changes(memory.key, self._upto, after, PORTION)
                upto, after, more = upto or changes.upto, changes.left, changes.left > 0
                for id_ in (*changes.gone, *(each.id for each in changes.records)):
                    self._held.pop(id_, None)
                    self._stack = None
                for each in changes.records:
                    if each.episode == EPISODE and not each.valid_until and not each.forgotten:
                        bare = (known := _known(each)).model_copy(update={"content": "", "embedding": None})
                        self._held[each.id] = Held(each.id, bare, _unit(known.embedding or []).astype(np.float16))
            self._upto = upto
        path = _path(scope_prefix or "/")
        return [
            each
            for each in self._held.values()
            if (not path or f"{_path(each.record.scope)}/".startswith(f"{path}/"))
            and (not categories or {*categories} & {*each.record.categories})
            and (record_ids is None or each.record.id in record_ids)
            and (older_than is None or _aware(each.record.created_at) < _aware(older_than))
            and all(each.record.metadata.get(name) == value for name, value in (metadata_filter or {}).items())
        ]

    _found = both(_all)[0]


def _draft(record: MemoryRecord) -> RecordDraft:
    vector = base64.b64encode(np.asarray(record.embedding or [], np.float32).tobytes()).decode()
    return RecordDraft(
        text=fit_text(record.content, "(no words)"),
        kind="document",
        created=_aware(record.created_at).timestamp(),
        importance=1 + 9 * record.importance,
        episode=EPISODE,
        by=(record.source or "")[:500],
        data={"record": record.model_dump(mode="json"), "vector": vector},
    )


def _known(record: Record) -> MemoryRecord:
    """Return the CrewAI record that a stored record contains, including its vector."""
    numbers = np.frombuffer(base64.b64decode(str(record.data["vector"])), np.float32).tolist()
    return MemoryRecord.model_validate(record.data["record"]).model_copy(update={"embedding": numbers or None})


def _unit(numbers: list[float]) -> Floats:
    return np.asarray(np.divide(numbers, max(float(np.linalg.norm(numbers)), 1e-9)), np.float32)


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


@caches.remember(4_096)
def _path(scope: str) -> str:
    return "".join(f"/{part}" for part in scope.split("/") if part)
