"""The bill: each model call is a row of the log, including the last before closing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from world import Words

from mindstream import Memory, SqliteStore, SystemClock
from mindstream.log.events import ModelCalled
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
