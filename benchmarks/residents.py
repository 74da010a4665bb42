"""Many streams in one folder: what a recall takes after others have written, and what the process holds.

    python benchmarks/residents.py [--streams 200] [--records 1000] [--json]

All streams share a store and its recaller. Each is asked once (its columns are filled), then again and again while
another stream writes a record before each question: the store has changed, this stream has not. Control: the same with
a shelf for 64 streams, as it was before; it fills columns again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from babble import Babble

from mindstream import Memory, SqliteStore, SystemClock
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import embedder


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / 2**20


async def asked(streams: list[Memory], rounds: int, writers: list[Memory]) -> list[float]:
    """Return seconds of each recall; one of these streams writes before each."""
    told, questions, took = Babble(1).sentences(rounds), Babble(2).sentences(rounds, 4, 9), []
    for n in range(rounds):
        stream = streams[n % len(streams)]
        if writers:
            await writers[n % len(writers)].retain(told[n])
        begun = time.perf_counter()
        await stream.recall(questions[n], touch=False)
        took.append(time.perf_counter() - begun)
    return took


async def measured(count: int, records: int) -> dict[str, float]:
    embed = embedder("wordllama")
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(folder)
        streams = [Memory(store, f"resident {n}", embed, SystemClock(), strength=None) for n in range(count)]
        for n, stream in enumerate(streams):
            await stream.retain_all([RecordDraft(text=text) for text in Babble(10 + n).sentences(records)])
        before = resident_mb()
        await asked(streams, count, [])
        filled = resident_mb()
        others, own = streams[: count // 10], streams[count // 10 :]
        took = await asked(own, 3 * count, others)
        quiet = await asked(own, 3 * count, [])
        itself = await asked(own, len(own), own)
        streams[0]._recaller.shelf = IndexCache(store, embed.name, embed.width, streams=64)  # it is everybody's
        control = await asked(own, count, others)
        for stream in streams:
            await stream.close()
        await store.close()
    return {
        "recall_p50_ms": round(float(np.percentile(took, 50)) * 1000, 2),
        "recall_p99_ms": round(float(np.percentile(took, 99)) * 1000, 2),
        "after_it_was_written_to_p50_ms": round(float(np.percentile(itself, 50)) * 1000, 2),
        "while_nobody_writes_p50_ms": round(float(np.percentile(quiet, 50)) * 1000, 2),
        "control_p50_ms": round(float(np.percentile(control, 50)) * 1000, 2),
        "columns_mb": round(filled - before, 1),
        "bytes_a_record": round((filled - before) * 2**20 / (count * records)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--records", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = asyncio.run(measured(given.streams, given.records))
    print(json.dumps(found) if given.json else "\n".join(f"{name:20} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
