"""Open work of many minds is watched with one read of their store."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from keys import key_of

from mindstream.clock import ManualClock
from mindstream.identifiers import StreamKey
from mindstream.log.events import Failed
from mindstream.log.work import Work
from mindstream.memory import lease
from mindstream.memory.lease import looking
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import NewWork
from mindstream.models.embedders.embedder import WordLlama

NAMES = ("ann", "bo", "cleo")


class CountingStore(SqliteStore):
    """A store that notes for which minds the open work was read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[set[StreamKey]] = []

    async def open_work(self, *minds: StreamKey) -> list[Work]:
        self.asked.append(set(minds))
        return await super().open_work(*minds)


async def test_one_read_tells_every_mind_its_own_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "WATCH_S", 0.02)
    told: dict[str, list[Sequence[Work]]] = {name: [] for name in NAMES}
    async with CountingStore(tmp_path) as store:
        minds = [Memory(store, name, WordLlama(), ManualClock()) for name in NAMES]
        for mind in minds[:2]:
            await mind.commit(Failed(text="any", where="here"), wake=NewWork(("facts",), mind.name, 10.0))
        with ExitStack() as looks:
            for mind in minds:
                looks.enter_context(looking(mind, told[mind.name].append))
            await asyncio.sleep(0.1)
        reads = len(store.asked)
        assert reads <= 5 and all(read == {key_of(name) for name in NAMES} for read in store.asked)
        for name, found in told.items():
            assert len(found) == reads
            assert all([work.mind for work in each] == [key_of(name)] * (name != "cleo") for each in found)
        await asyncio.sleep(0.06)
        assert len(store.asked) == reads  # nobody looks any more
        assert len(asyncio.all_tasks()) == 1
