from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

from mindstream.clock import SystemClock
from mindstream.log.events import Failed
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import WorkDone
from mindstream.memory.stream import Stream
from mindstream.models.embedders.wordllama import WordLlama


async def test_a_commit_that_fails_when_nobody_waits_any_longer_makes_no_noise(folder: Path) -> None:
    noise: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: noise.append(context))
    store = SqliteStore(folder)
    stream = Stream(store, "ann", WordLlama(), SystemClock())
    committing = asyncio.ensure_future(
        stream.commit(Failed(text="so", where="there"), finish=WorkDone((99,), "somebody else"))
    )
    await asyncio.sleep(0)
    committing.cancel()
    await asyncio.gather(committing, return_exceptions=True)
    await store.close()  # what was on its way has failed by now
    await asyncio.sleep(0)
    gc.collect()
    assert noise == []
