"""Compare the import of mem0 memories with batched writes of the same texts by the library, in one process.

    python benchmarks/importing.py --json [--count 100000]

`batch_per_s`: `Memory.retain_all` of notes in batches of 500. `import_per_s`: `memory import --from mem0` of a file
with the same texts, dates, users and metadata. `ratio`: import divided by batch. `again_s`: seconds of a second import,
which adds nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from babble import Babble

from mindstream.clock import SystemClock, format_iso
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.importing.reading import Source, reader
from mindstream.service.importing.writing import Import

BATCH, BEGAN = 500, 1_700_000_000


def write_file(path: Path, texts: Sequence[str]) -> None:
    """Write the texts to a file in the format of mem0's `get_all`."""
    with path.open("w", encoding="utf-8") as out:
        before = '{"results": ['
        for n, text in enumerate(texts):
            memory: dict[str, Any] = {
                "id": f"{n:032x}", "memory": text, "hash": f"{n:032x}", "metadata": {"topic": f"t{n % 20}", "n": n},
                "created_at": format_iso(BEGAN + n), "updated_at": None, "user_id": "ann", "run_id": f"{n // 20}",
            }  # fmt: skip
            out.write(before + json.dumps(memory))
            before = ","
        out.write("]}")


async def written(folder: str, texts: Sequence[str]) -> float:
    """Return the seconds of batched writes."""
    store = SqliteStore(folder)
    stream = Memory(store, "ann", WordLlama(), SystemClock())
    start = time.perf_counter()
    for begin in range(0, len(texts), BATCH):
        some = enumerate(texts[begin : begin + BATCH], begin)
        await stream.retain_all([
            RecordDraft(text=text, kind="note", by="mem0", episode=f"{n // 20}", created=BEGAN + n,
                        data={"metadata": {"topic": f"t{n % 20}", "n": n}}) for n, text in some
        ])  # fmt: skip
    took = time.perf_counter() - start
    await store.close()
    return took


async def imported(folder: str, file: Path) -> tuple[float, Import]:
    """Return the seconds of an import, and its counts."""
    store = SqliteStore(folder)
    start = time.perf_counter()
    with file.open("rb") as opened:
        run = Import("mem0", store, WordLlama(), SystemClock(), "ann")
        await run.run(reader("mem0")(Source(str(file), opened), run.tally), lambda _: None)
    took = time.perf_counter() - start
    await store.close()
    return took, run


async def measure(count: int) -> dict[str, Any]:
    """Measure in new folders."""
    texts = [f"{text} ({n})" for n, text in enumerate(Babble(1).sentences(count))]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mem0.json"
        write_file(file, texts)
        await WordLlama().embed(["warm"])
        loads = [os.getloadavg()[0]]
        batched = await written(f"{folder}/written", texts)
        took, run = await imported(f"{folder}/imported", file)
        again, second = await imported(f"{folder}/imported", file)
        loads.append(os.getloadavg()[0])
    return {
        "count": count, "batch_per_s": round(count / batched), "import_per_s": round(count / took),
        "ratio": round(batched / took, 2), "written": run.done.written, "again_s": round(again, 1),
        "again_written": second.done.written, "again_known": second.done.known,
        "lost": {name: each.count for name, each in run.tally.lost.items()}, "load": [round(each, 1) for each in loads],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }  # fmt: skip


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    result = asyncio.run(measure(asked.count))
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for name, value in result.items():
        print(f"{name:16} {value}")


if __name__ == "__main__":
    main()
