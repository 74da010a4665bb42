"""Measure the duration of durable writes, embedding included, and the memory per record.

    python benchmarks/writes.py --json [--count 10000]

`single_p50_ms`: one record, until it is on disk. `batch_per_s`: records per second in batches of 500. `fsync_p50_ms`:
time for a 4 kB fsync on this disk, needed to interpret the first figure. `bytes_per_record`: memory that a process
needs per record for recall.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
from babble import Babble

from mindstream.clock import SystemClock
from mindstream.identifiers import StreamName
from mindstream.log.database import FILE
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import WordLlama
from mindstream.text.lexical import MAPPED, GrowingArray

SINGLES, BATCH = 300, 500


def fsync_ms(folder: str) -> float:
    """Return the median time of a 4 kB write with fsync."""
    took = []
    with (Path(folder) / "probe").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(b"\0" * 4096)
            start = time.perf_counter()
            os.fsync(file.fileno())
            took.append((time.perf_counter() - start) * 1000)
    return float(np.median(took))


async def singles(stream: Memory, texts: list[str], note: bool) -> float:
    """Return the median milliseconds of writing one record."""
    took = []
    for text in texts:
        start = time.perf_counter()
        await stream.retain(text, "note" if note else "observation", importance=3)
        took.append((time.perf_counter() - start) * 1000)
    return float(np.median(took))


async def batches(stream: Memory, texts: list[str]) -> float:
    """Return how many records a second are written in batches."""
    start = time.perf_counter()
    for begin in range(0, len(texts), BATCH):
        some = enumerate(texts[begin : begin + BATCH], begin)
        news = [RecordDraft(text=text, kind="chat", by="Ann", episode=f"{i // 20}") for i, text in some]
        await stream.retain_all(news)
    return len(texts) / (time.perf_counter() - start)


async def memory_of_a_record(store: SqliteStore, stream: str) -> float:
    """Return the bytes that a stream's columns hold, divided by its records."""
    columns = Columns(StreamName("user", stream).key, WordLlama.name, WordLlama.width)
    gc.collect()
    tracemalloc.start()
    async for _ in columns.reading(store):
        pass
    columns.vectors.cosines(np.ones(WordLlama.width, np.float32), np.arange(1))
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    arrays = [each._rows for each in gc.get_objects() if isinstance(each, GrowingArray)]
    held += sum(each.nbytes for each in arrays if each.nbytes >= MAPPED)  # not traced
    return held / len(columns)


async def run(count: int) -> dict[str, float]:
    """Measure in a new folder."""
    texts = Babble(1).sentences(count + 2 * SINGLES)
    with tempfile.TemporaryDirectory() as folder:
        store, embedder, clock = SqliteStore(folder), WordLlama(), SystemClock()
        await embedder.embed(["warm"])
        result = {"fsync_p50_ms": fsync_ms(folder)}
        filled = Memory(store, "filled", embedder, clock)
        result["batch_per_s"] = await batches(filled, texts[2 * SINGLES :])
        result["single_p50_ms"] = await singles(filled, texts[:SINGLES], note=False)
        result["single_note_p50_ms"] = await singles(filled, texts[SINGLES : 2 * SINGLES], note=True)
        result["bytes_per_record"] = await memory_of_a_record(store, "filled")
        await store.close()
        result["bytes_per_record_on_disk"] = (Path(folder) / FILE).stat().st_size / (count + 2 * SINGLES)
    return {name: round(value, 3 if name.endswith("ms") else 0) for name, value in result.items()}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    result = asyncio.run(run(asked.count))
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for name, value in result.items():
        print(f"{name:26} {value}")


if __name__ == "__main__":
    main()
