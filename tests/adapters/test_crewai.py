"""CrewAI's memory in mindstream: its own vectors, a history of updates, nothing left after deletion."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("crewai", reason="crewai is not installed (docs/adapters/crewai.md says how)")
os.environ |= {"CREWAI_TRACING_ENABLED": "false", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord

from mindstream import Memory, RecordDraft
from mindstream.adapters.crewai import MindstreamStorage

OURS = {
    "from crewai.memory.storage.lancedb_storage import LanceDBStorage":
        "from mindstream.adapters.crewai import MindstreamStorage",
    "storage = LanceDBStorage(path=tempfile.mkdtemp())": "storage = MindstreamStorage(tempfile.mkdtemp())",
}  # fmt: skip
COUNT = 2_500
"""More than are all compared in full."""


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None]) -> None:
    run_program("crewai_memory", OURS if replaced else {})


def record(content: str, *vector: float, **fields: object) -> MemoryRecord:
    return MemoryRecord.model_validate({"content": content, "embedding": list(vector) or None, **fields})


def texts(found: list[tuple[MemoryRecord, float]]) -> list[tuple[str, float]]:
    return [(each.content, round(score, 2)) for each, score in found]


def test_the_score_is_the_cosine_of_the_given_vectors(tmp_path: Path) -> None:
    storage = MindstreamStorage(tmp_path)
    assert isinstance(storage, StorageBackend) and storage.search([1, 0]) == []
    storage.save([record("east", 2, 0), record("north", 0, 1), record("west", -1, 0), record("nowhere")])
    assert texts(storage.search([3, 4], limit=2)) == [("north", 0.8), ("east", 0.6)]
    assert texts(storage.search([1, 0], min_score=0.1)) == [("east", 1.0)] and storage.search([1, 0], limit=0) == []
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.search([1, 0, 0])
    assert texts(MindstreamStorage(tmp_path).search([0, 1], limit=1)) == [("north", 1.0)]


def test_a_scope_is_a_path_not_a_prefix(tmp_path: Path) -> None:
    storage = MindstreamStorage(tmp_path)
    scopes = ["/eng", "/eng/backend", "/eng/backend/db", "/engine", "/"]
    storage.save([record(scope, scope=scope, categories=["c"]) for scope in scopes])
    assert storage.count("/eng") == 3 and storage.list_scopes("/eng") == ["/eng/backend"]
    assert storage.list_scopes() == ["/eng", "/engine"] and storage.list_categories("eng/") == {"c": 3}
    info = storage.get_scope_info("/nowhere")
    assert (info.record_count, info.oldest_record, info.child_scopes) == (0, None, [])
    storage.reset("/eng")
    assert sorted(each.scope for each in storage.list_records()) == ["/", "/engine"]


def test_deleted_records_lose_their_versions_and_updates_are_kept_as_history(tmp_path: Path) -> None:
    storage, old = MindstreamStorage(tmp_path), datetime.now(UTC) - timedelta(days=9)
    port = record("Staging runs on port 8080.", 1, 0, created_at=old, metadata={"by": "olga", "n": [1, {"a": None}]})
    storage.save([port, record("Lunch is at noon.", 0, 1)])
    changed = port.model_copy(update={"content": "Staging runs on port 9090."})
    for content in ("Staging runs on port 8888.", changed.content, changed.content):
        storage.update(port.model_copy(update={"content": content}))
    assert storage.get_record(port.id) == changed and storage.count() == 2 and storage.get_record("x") is None
    assert [each.content for each in storage.list_records()] == ["Lunch is at noon.", "Staging runs on port 9090."]

    async def look() -> tuple[list[str], str]:
        async with Memory.open(tmp_path, "crew") as memory:
            (found,) = await memory.recall("Which port is staging on?", k=1)
            return [each.text for each in await memory.history(found.record.id)], found.record.text

    history, found = asyncio.run(look())
    assert found == "Staging runs on port 9090." and history[0] == "Staging runs on port 8080."
    assert storage.delete(older_than=old + timedelta(days=1), metadata_filter={"by": "olga"}) == 1
    assert b"Staging" not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert storage.delete(record_ids=[port.id]) == 0 and storage.count() == 1


async def test_the_async_methods_do_the_same(tmp_path: Path) -> None:
    storage = MindstreamStorage(tmp_path)
    await asyncio.gather(*(storage.asave([record(f"fact {n}", 1, n, id="same")]) for n in range(3)))
    ((kept, _),) = await storage.asearch([1, 0], limit=5)
    assert kept.id == "same" and await storage.adelete(record_ids=["same"]) == 1
    assert await storage.asearch([1, 0]) == []


def test_search_finds_the_nearest_within_a_scope_or_category(tmp_path: Path) -> None:
    storage, chance = MindstreamStorage(tmp_path), np.random.default_rng(1)
    vectors = chance.standard_normal((COUNT, 16))
    saved = [
        record(f"fact {n}", *vector, scope=f"/s{n % 3}", categories=[f"c{n % 2}"], metadata={"n": n % 5})
        for n, vector in enumerate(vectors.tolist())
    ]
    storage.save(saved)
    nearness = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1)
    for filters, passing in (
        ({}, range(COUNT)),
        ({"scope_prefix": "s2"}, range(2, COUNT, 3)),
        ({"categories": ["c1", "none"]}, range(1, COUNT, 2)),
        ({"metadata_filter": {"n": 4}, "scope_prefix": "/s1"}, range(4, COUNT, 15)),
    ):
        best = sorted(passing, key=lambda n: -nearness[n])[:3]
        found = storage.search(vectors[0].tolist(), limit=3, **filters)  # type: ignore[arg-type]
        assert [each.content for each, _ in found] == [f"fact {n}" for n in best]
    assert len(storage.search(vectors[0].tolist(), limit=COUNT)) == COUNT


def test_records_forgotten_elsewhere_are_not_found(tmp_path: Path) -> None:
    storage, other = MindstreamStorage(tmp_path), MindstreamStorage(tmp_path)
    kept = [record(f"kept {n}", n, 1, scope="/kept", categories=["a"]) for n in range(3)]
    gone = [record(f"gone {n}", 1, n, scope=f"/gone/{n}", categories=["b"]) for n in range(3)]
    storage.save([*kept, *gone])
    assert other.count() == 6 and storage.delete(record_ids=[gone[0].id]) == 1
    assert storage.list_scopes("/gone") == other.list_scopes("/gone") == ["/gone/1", "/gone/2"]
    assert other.delete("/gone/1") == 1
    storage.handle.wait(lambda memory: memory.forget(about="gone 2"))
    for each in (storage, other):
        assert each.list_categories() == {"a": 3} and each.list_scopes() == ["/kept"]
        assert [one.content for one, _ in each.search([9, 1], limit=9)] == ["kept 2", "kept 1", "kept 0"]

    async def conclude(memory: Memory) -> None:
        (last,) = await memory.find(1, where={"episode": "crewai"})
        await memory.retain_all([RecordDraft(text="The cook concludes so.", kind="thought", evidence=(last.id,))])

    storage.handle.wait(conclude)
    assert storage.delete(record_ids=[kept[2].id]) == 1 and storage.count() == 2
    assert not storage.handle.wait(lambda memory: memory.find(kinds=["thought"]))  # derived from it only
    storage.save([record("wider", 1, 0, 0, scope="/wide")])
    assert texts(other.search([2, 0, 0], "/wide")) == [("wider", 1.0)]
    with pytest.raises(EmbeddingDimensionMismatchError):
        other.search([1, 0, 0])
