"""Measure scaling in one report: recall in a million records, and several processes compared with one.

    python benchmarks/scale.py --cache DIR --json                  all of it: within 20 minutes on two quiet cores
    python benchmarks/scale.py --cache DIR --no-recall --kills 40 --minds 100 --per-second 4 --seconds 30

Combines scale_recall.py (each store in its own process) and scale_processes.py; each part can be left out. Missing
memories of the cache are built first, which takes an hour and is not counted. Ratios are reported next to times, since
a busy machine changes them less: PostgreSQL to SQLite (recall), four processes to one (an answer).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scale_processes

FIELDS = ("p50_ms", "recall_vs_exact", "first_ms", "first_without_kept_ms")
OF_PROCESSES = (
    "processes", "minds", "overhead_p50_ms", "overhead_p99_ms", "times_alone", "rss_growth", "acknowledged", "lost",
    "doubled", "unanswered", "kills",
)  # fmt: skip


def measure_recall(given: argparse.Namespace, store: str) -> dict[str, Any]:
    """Return the measurements of scale_recall.py for a store."""
    script = Path(__file__).with_name("scale_recall.py")
    words = ["--cache", str(given.cache), "--store", store, "--sizes", given.sizes, "--scans", str(given.scans)]
    done = subprocess.run(
        [sys.executable, str(script), *words, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    sizes = json.loads(done.stdout)["recall"]
    return {size: {name: row[name] for name in FIELDS} for size, row in sizes.items()}


def join_stores(stores: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the first store's figures by size, and for each other store its figures and their ratio to the first."""
    first, *others = stores.values()
    rows = {size: dict(row) for size, row in first.items()}
    for name, other in zip([*stores][1:], others, strict=True):
        for size, row in other.items():
            times = {
                each: round(rows[size][each] / row[each], 2) for each in FIELDS if each.endswith("_ms") and row[each]
            }
            rows[size] |= {name: row, f"times_{name}": times}
    return rows


def run(given: argparse.Namespace) -> dict[str, Any]:
    """Run the selected parts."""
    row: dict[str, Any] = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    if given.recall:
        row["recall"] = join_stores({store: measure_recall(given, store) for store in given.stores.split(",")})
    if given.processes:
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # killed servers are expected
        found = asyncio.run(scale_processes.run(given))
        row |= {name: found[name] for name in OF_PROCESSES if name in found}
        if "alone" in found:
            alone, four = found["alone"], found["four"]
            row["alone"], row["four"] = alone, four
            row["four_to_one"] = {
                name: round(four[name] / alone[name], 2)
                for name in ("overhead_p50_ms", "overhead_p99_ms", "cpu_ms_per_utterance") if alone[name]
            }  # fmt: skip
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="folder of the recall memories; without it, recall is skipped")
    parser.add_argument("--recall", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--stores", default="postgres,sqlite", help="stores; ratios compare the others with the first")
    parser.add_argument("--sizes", default="1000,100000,1000000")
    parser.add_argument("--scans", type=int, default=20, help="number of questions compared with a full scan")
    parser.add_argument("--processes", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--minds", type=int, default=scale_processes.MINDS)
    parser.add_argument("--per-second", type=float, default=scale_processes.PER_SECOND)
    parser.add_argument("--seconds", type=float, default=60.0, help="0: only the kills")
    parser.add_argument(
        "--warm", type=float, default=scale_processes.WARM, help="utterances per second while opening minds"
    )
    parser.add_argument("--kills", type=int, default=scale_processes.KILLS, help="0: none")
    parser.add_argument("--reasoner-s", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    given.recall = given.recall and given.cache is not None
    row = run(given)
    print(json.dumps(row) if given.json else "\n".join(f"{name}: {value}" for name, value in row.items()))
    if bars := list(scale_processes.broken(row)):
        print("\n".join(bars), file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
