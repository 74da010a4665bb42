from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from keys import key_of
from numpy.typing import NDArray

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.errors import InputError
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service import transfer
from mindstream.service.memory import read_slots
from mindstream.service.transfer import BATCH, Header, read_export

COUNT = 5 * BATCH + 7


class Counting(WordLlama):
    """Records the sizes of the batches it was given."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(len(texts))
        return await super().embed(texts)


def memory(store: SqliteStore, user: str) -> tuple[Memory, Counting]:
    embedder = Counting()
    return Memory(store, user, embedder, ManualClock()), embedder


async def write(store: SqliteStore, user: str, texts: Sequence[str]) -> None:
    async with Memory(store, user, WordLlama(), ManualClock()) as stream:
        await stream.retain_all([RecordDraft(text=text, kind="note") for text in texts])


async def test_an_import_holds_one_batch_and_yields_to_other_tasks(store: SqliteStore, tmp_path: Path) -> None:
    await write(store, "ann", [f"ann saw thing {n}" for n in range(COUNT)])
    exported = [line.encode() async for line in transfer.export(memory(store, "ann")[0])]
    other = SqliteStore(tmp_path / "elsewhere")
    into, embedder = memory(other, "ann")
    progress: list[int] = []
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    beside = asyncio.create_task(somebody_else())
    with read_export(exported, "file", Header) as export:
        done = await transfer.import_records(into, export, progress.append)
        assert done == transfer.Imported(COUNT, 0, 0)
        assert (await transfer.import_records(into, export, progress.append)) == transfer.Imported(0, COUNT, 0)
    beside.cancel()
    assert max(embedder.batches) <= BATCH and sum(embedder.batches) == COUNT
    assert len(progress) >= 2 * COUNT // BATCH and progress.count(COUNT) == 2
    assert turns > len(progress)
    assert [line.encode() async for line in transfer.export(into)][1:] == exported[1:]
    await other.close()


async def test_a_record_of_another_user_aborts_the_whole_import(store: SqliteStore) -> None:
    await write(store, "bob", ["bob's own"])
    theirs = [line async for line in transfer.export(memory(store, "bob")[0])]
    mine = [theirs[1].replace("bob's own", "x").replace('"id": "', f'"id": "{n:04d}') for n in range(2 * BATCH)]
    lines = [theirs[0].replace('"records":1', f'"records":{len(mine) + 1}'), *mine, theirs[1]]
    into, _ = memory(store, "ann")
    with (
        read_export([line.encode() for line in lines], "file", Header) as export,
        pytest.raises(InputError, match=rf"file:{len(lines)}: the record \w+ belongs to another user") as caught,
    ):
        await transfer.import_records(into, export, lambda _: None)
    assert "bob" not in str(caught.value)
    assert not await store.events(into.key, limit=1) and await store.streams() == ["bob"]


async def test_an_export_is_a_snapshot(store: SqliteStore) -> None:
    await write(store, "ann", [f"ann saw thing {n}" for n in range(COUNT)])
    lines = transfer.export(memory(store, "ann")[0])
    exported = [await anext(lines) for _ in range(3)]
    await write(store, "ann", ["and one more"])
    await store.erase(key_of("ann"), [record.id for record in await store.latest(key_of("ann"), now=1e10, n=20)])
    exported += [line async for line in lines]
    with read_export([line.encode() for line in exported], "file", Header) as export:
        assert len(export) == COUNT


async def test_imported_beliefs_that_exist_already_are_skipped(store: SqliteStore, tmp_path: Path) -> None:
    def version(n: int, text: str) -> RecordDraft:
        return RecordDraft(text=text, kind="belief", slot="sleep", version=n, data={"value": {"a": text}})

    other = SqliteStore(tmp_path / "elsewhere")
    for where, texts in ((store, ["a", "b"]), (other, ["c"])):
        async with Memory(where, "ann", WordLlama(), ManualClock()) as stream:
            await stream.retain_all([version(n, text) for n, text in enumerate(texts, 1)])
    exported = [line.encode() async for line in transfer.export(memory(store, "ann")[0])]
    with read_export(exported, "file", Header) as export:
        into, _ = memory(other, "ann")
        assert await transfer.import_records(into, export, lambda _: None) == transfer.Imported(0, 0, 2)
        assert [record.text for record in await read_slots(into.store, into.key, into.clock.now())] == ["c"]
    await other.close()
