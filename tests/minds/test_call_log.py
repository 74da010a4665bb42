"""The bill: each model call is a row of the log, including the last before closing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from world import Words

from mindstream import Memory, SqliteStore, SystemClock
from mindstream.errors import Conflict
from mindstream.log.events import ModelCalled, Opened
from mindstream.minds.calls import CallLog
from mindstream.models.wrappers.meter import Metered


async def test_a_call_being_logged_at_close_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, begun, calls = SqliteStore(folder), asyncio.Event(), CallLog()
    last = store.last_erasure

    async def late() -> int:
        begun.set()
        await asyncio.sleep(0.05)
        return await last()

    monkeypatch.setattr(store, "last_erasure", late)
    async with store, Memory(store, "ann", Words(), SystemClock()) as ann:
        async with calls.writing(ann):
            calls.take(Metered("any", "talker", "talk", 0.0, None, 1.0, None))
            await begun.wait()
        assert await store.count(ann.key, ModelCalled.kind) == 1


async def test_a_call_is_written_with_the_next_commit_that_succeeds(folder: Path) -> None:
    calls, opened = CallLog(), Opened(session="s", pack="", models={})
    async with SqliteStore(folder) as store, Memory(store, "ann", Words(), SystemClock()) as ann:
        async with calls.writing(ann):
            calls.take(Metered("any", "talker", "talk", 0.0, None, 1.0, None))
            await asyncio.sleep(0)
            (row,) = await ann.commit(opened, unique="once")
            assert row.event == opened
            assert [each.event.kind for each in await store.events(ann.key)] == ["model_called", "opened"]
            calls.take(Metered("any", "reasoner", "think", 0.0, None, 1.0, None))
            with pytest.raises(Conflict):
                await ann.commit(opened, unique="once")
            assert await store.count(ann.key, ModelCalled.kind) == 1
        assert await store.count(ann.key, ModelCalled.kind) == 2
