"""Each model call is one row of the log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from keys import key_of

from mindstream.service.minds import open_mind
from mindstream.settings import Settings


async def test_each_model_call_is_logged_once(folder: Path) -> None:
    async with open_mind(Settings(data=folder, user="ann")) as mind:
        async for _ in mind.hear("I lie awake for hours."):
            pass
        await mind.settled()
    async with open_mind(Settings(data=folder, user="ann")) as mind:
        rows = await mind.memory.store.events(key_of("ann"), kinds=["model_called"])
    assert Counter(getattr(row.event, "prompt", "") for row in rows) == {
        "talk": 1,
        "think": 1,
    }
