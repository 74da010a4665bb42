"""A service that cannot be opened releases everything; a running one survives others' errors."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream import SystemClock, Town
from mindstream.chance import LETTERS
from mindstream.clock import DAY_S
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey
from mindstream.memory.opening import open_store
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import RESULT, Kept
from mindstream.service.operations import runtime as runtime_module
from mindstream.service.operations.long_running import KeptOperation
from mindstream.service.operations.operation import OperationShape, Principal, operations_of
from mindstream.service.operations.orphaned_work import OrphanedWork
from mindstream.service.operations.runtime import Runtime
from mindstream.service.privacy.retention import KeepRules
from mindstream.settings import Settings


async def test_a_runtime_that_fails_to_open_releases_its_folder(folder: Path) -> None:
    async with Town.open(folder, hamlet()):
        pass
    for _ in range(2):  # the second is not told that another server has it
        with pytest.raises(InputError, match="contains a town"):
            await Runtime(Settings(data=folder)).__aenter__()


async def test_an_error_in_foreign_code_does_not_stop_retention(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, again = list[str](), asyncio.Event()

    async def apply(_: KeepRules) -> None:
        looks.append("looked")
        if len(looks) == 1:
            raise RuntimeError("an embedder of somebody's")
        again.set()

    monkeypatch.setattr(runtime_module, "POLL_S", 0.01)
    monkeypatch.setattr(KeepRules, "apply_due", apply)
    async with Runtime(Settings(data=folder)):
        await again.wait()


async def test_a_failed_search_for_orphaned_work_raises(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def budget(_: str) -> None:
        return None

    async with Runtime(Settings(data=folder)) as runtime:
        (folder / "mindstream.db").rename(folder / "aside")
        (folder / "mindstream.db").mkdir()
        with pytest.raises(StorageError):
            async with OrphanedWork(runtime, answers=False, at_once=1, budgets=budget).running():
                pass
        (folder / "mindstream.db").rmdir()
        (folder / "aside").rename(folder / "mindstream.db")


async def test_a_starting_server_reads_no_results_of_tenants(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, asked = SqlStore.kept, list[str]()

    async def watched(store: SqlStore, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        asked.append(prefix)
        return await kept(store, stream, prefix)

    monkeypatch.setattr(SqlStore, "kept", watched)
    shape = OperationShape(id="8r1c", operation="plans.run", user="", state="running", began=SystemClock().now())
    async with open_store(folder, "acme") as store:
        value = KeptOperation(wall="acme", shape=shape).model_dump_json()
        await store.keep(operations_of("acme"), f"{RESULT}8r1c", shape.began, lambda _: value)
    async with Runtime(Settings(data=folder)) as runtime:
        (found,) = await runtime.running.of(Principal("acme", frozenset()))
        assert found.state == "interrupted"
    assert RESULT not in asked[: len(LETTERS)]


async def put(store: SqlStore, shape: OperationShape) -> None:
    value = KeptOperation(shape=shape).model_dump_json()
    await store.keep(operations_of("acme"), f"{RESULT}{shape.id}", shape.began, lambda _: value)


async def test_an_operation_that_began_days_ago_is_interrupted_and_not_deleted(folder: Path) -> None:
    now = SystemClock().now()
    principal = Principal("acme", frozenset())
    ended = OperationShape(id="8old", operation="plans.run", user="", state="done", began=now - 3 * DAY_S, ended=now)
    shapes = [
        ended.model_copy(update={"id": "8run", "state": "running", "ended": None}),
        ended,
        ended.model_copy(update={"id": "8end", "ended": now - 2 * DAY_S}),
    ]
    async with open_store(folder, "acme") as store:
        for shape in shapes:
            await put(store, shape)
    async with Runtime(Settings(data=folder)) as runtime:
        found = {each.id: each.state for each in await runtime.running.of(principal)}
    assert found == {"8run": "interrupted", "8old": "done"}
