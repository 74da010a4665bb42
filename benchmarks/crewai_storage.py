"""Compare CrewAI's memory on a mindstream store with its own LanceDB storage, in one run on one machine.

    python benchmarks/crewai_storage.py [--records 100000] [--width 384]

Both receive the same records in batches of 1,000 (vectors around 200 centres, ten scopes, three categories). Searches
for ten records cover all records, one scope, one category. Times are milliseconds per operation. `forgotten`: deletion
of one record, permanently here, by LanceDB's own method there. `found`: how many of the ten exact nearest neighbours a
search returns. `memory`: resident memory of the process in MB.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"CREWAI_TRACING_ENABLED": "false", "CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}

import numpy as np
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord
from numpy.typing import NDArray

from mindstream.adapters.crewai import MindstreamStorage

BATCH, CENTRES, TIMES, K = 1_000, 200, 50, 10


def vectors(count: int, width: int) -> NDArray[np.float32]:
    """Return unit vectors clustered around some centres, like texts on some topics."""
    chance = np.random.default_rng(1)
    centres = chance.standard_normal((CENTRES, width))
    rows = centres[chance.integers(0, CENTRES, count)] + chance.standard_normal((count, width))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def records(rows: NDArray[np.float32], start: int) -> list[MemoryRecord]:
    """Return a batch of records."""
    return [
        MemoryRecord(
            id=f"r{n}", content=f"Fact {n} of topic {n % 20}.", scope=f"/crew/team{n % 10}", categories=[f"c{n % 3}"],
            metadata={"n": n}, embedding=rows[n].tolist(),
        )
        for n in range(start, min(start + BATCH, len(rows)))
    ]  # fmt: skip


def timed(doing: Callable[[], object], times: int = 1) -> float:
    """Return the mean milliseconds per call."""
    began = time.perf_counter()
    for _ in range(times):
        doing()
    return 1000 * (time.perf_counter() - began) / times


def resident_mb() -> int:
    """Return the resident memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def measure(storage: Any, rows: NDArray[np.float32], queries: NDArray[np.float32]) -> dict[str, float]:
    """Measure one storage."""
    before, asked = resident_mb(), [query.tolist() for query in queries]
    nearest = [{f"r{n}" for n in np.argsort(-(rows @ query))[:K]} for query in queries]
    turn = iter(asked * 100)
    save = sum(timed(partial(storage.save, records(rows, at))) for at in range(0, len(rows), BATCH)) / len(rows)
    first = timed(lambda: storage.search(next(turn), limit=K))
    held = resident_mb()
    found = {
        "save": save,
        "first search": first,
        "search": timed(lambda: storage.search(next(turn), limit=K), TIMES),
        "in a scope": timed(lambda: storage.search(next(turn), scope_prefix="/crew/team7", limit=K), TIMES),
        "of a category": timed(lambda: storage.search(next(turn), categories=["c1"], limit=K), TIMES),
        "scope info": timed(lambda: storage.get_scope_info("/crew"), 5),
        "search and save": timed(lambda: (storage.save(records(rows, 0)[:1]), storage.search(next(turn), limit=K)), 5),
        "forgotten": timed(lambda: storage.delete(record_ids=["r1"])),
        "search after": timed(lambda: storage.search(next(turn), limit=K)),
    }
    right = [
        len({each.id for each, _ in storage.search(query, limit=K)} & near)
        for query, near in zip(asked, nearest, strict=True)
    ]
    found |= {"found": sum(right) / len(right), "memory": held - before, "memory, later": resident_mb() - before}
    return found


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=384)
    asked = parser.parse_args()
    rows = vectors(asked.records + TIMES, asked.width)
    table = {}
    for name, made in {"LanceDBStorage": _lancedb, "MindstreamStorage": _ours}.items():
        with tempfile.TemporaryDirectory() as folder:
            table[name] = measure(made(folder), rows[:-TIMES], rows[-TIMES:])
    columns = list(next(iter(table.values())))
    print(f"| ms, {asked.records:,} records | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for name, row in table.items():
        print(f"| {name} | {' | '.join(f'{row[each]:.2f}' for each in columns)} |")


def _lancedb(folder: str) -> Any:
    return LanceDBStorage(path=folder, vector_dim=None)


def _ours(folder: str) -> Any:
    return MindstreamStorage(folder)


if __name__ == "__main__":
    main()
