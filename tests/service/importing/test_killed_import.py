"""An import whose process is killed resumes where it stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from foreign_samples import held, take_in

from mindstream import SqliteStore

COUNT, AFTER = 3_000, 1_000
KILLED_AFTER = """
import asyncio, io, os, signal, sys
from mindstream import ManualClock, SqliteStore
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.importing.reading import reader
from mindstream.service.importing.reading import Source
from mindstream.service.importing.writing import Import

def told(done):
    if done >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

run = Import("mem0", SqliteStore(sys.argv[2]), WordLlama(), ManualClock(1_790_000_000.0), "ann")
asyncio.run(run.run(reader("mem0")(Source("file", open(sys.argv[1], "rb")), run.tally), told))
"""
"""Imports a file, and dies by SIGKILL after a number of items."""


async def test_a_killed_import_resumes_and_writes_each_record_once(tmp_path: Path) -> None:
    memories = [{"id": f"{n}", "memory": f"Ann saw light {n}", "created_at": "2024-05-01"} for n in range(COUNT)]
    file, folder = tmp_path / "mem0.json", tmp_path / "data"
    file.write_text(json.dumps({"results": memories}), "utf-8")
    arguments = [sys.executable, "-c", KILLED_AFTER, str(file), str(folder), str(AFTER)]
    done = await asyncio.create_subprocess_exec(*arguments)
    assert await done.wait() == -signal.SIGKILL

    store = SqliteStore(folder)
    assert len(await held(store)) == AFTER
    run = await take_in(store, "mem0", file.read_bytes())
    assert (run.done.known, run.done.written) == (AFTER, COUNT - AFTER)
    assert [record.text for record in await held(store)] == [f"Ann saw light {n}" for n in range(COUNT)]
    await store.close()
