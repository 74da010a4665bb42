"""Measure many towns one after the other and on workers: duration, CPU time, and whether the journals are the same.

    python benchmarks/ensemble.py --json [--towns 20] [--hours 24] [--workers 2] [--engines processes,ray] [--kept FILE]

A town is Smallville, 25 residents by rules. Half of the towns run one after the other before the engines, half after
them, in a warm process, so that a changing load favours no variant. Seconds are wall-clock time, including all that an
engine takes to start and stop (for Ray also its import), as a user experiences it. `load`: the machine's load before
and after, including this benchmark's. `ratio`: an engine's seconds divided by those of the sequential run (expected: at
most 0.6, if two cores are free). `cpu`: CPU seconds of all processes that an engine started, including Ray's own
(Linux only; otherwise 0). `ratio_of_cpu`: the ratio if every worker had its own core and Ray had nothing to wait for.
With `--kept` an interrupted measurement resumes after its last complete part.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mindstream_evals.runs.ensemble import Wish, jobs_of, live_run, run_ensemble

from mindstream.evaluation_cache import EvaluationCache
from mindstream.settings import Settings

RULES = Settings(model="rules")
LOOK_S = 0.25
"""Interval in seconds between two readings of CPU time; what a process uses after its last reading is not counted."""
Row = dict[str, Any]


def wish(into: Path, asked: argparse.Namespace, ray: bool = False) -> Wish:
    """Return the towns."""
    last, seeds = round(asked.hours * 360) - 1, tuple(range(1, asked.towns + 1))
    return Wish("smallville", seeds, lambda _: last, into, workers=asked.workers, ray=ray)


class Spent:
    """CPU seconds of this process and all its descendants, read repeatedly.

    Not `RUSAGE_CHILDREN`: Ray does not wait for its workers.
    """

    def __init__(self) -> None:
        self._last: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on)

    def __enter__(self) -> Spent:
        self._own = time.process_time()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.s = time.process_time() - self._own + sum(self._last.values())

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_S):
            self._last |= descendants(os.getpid())


def descendants(of: int) -> dict[int, float]:
    """Return the CPU seconds of all descendants of a process."""
    found, children = dict[int, float](), dict[int, list[int]]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            pid = int(file.parent.name)
            found[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            children.setdefault(int(fields[1]), []).append(pid)
    below = list(children.get(of, ()))
    for pid in below:
        below += children.get(pid, ())
    return {pid: found[pid] for pid in below}


async def live_here(folder: Path, asked: argparse.Namespace, half: int) -> list[str]:
    """Run every second town in this process; return their digests."""
    return [(await live_run(job)).digest for job in jobs_of(RULES, wish(folder, asked))[half::2]]


async def live_there(folder: Path, asked: argparse.Namespace, ray: bool) -> list[str]:
    """Run all towns on an engine's workers; return their digests."""
    done = await run_ensemble(RULES, wish(folder, asked, ray))
    if done.failed:
        raise SystemExit(f"a town failed: {done.failed[0]}")
    return [each.digest for each in done.lived]


async def timed(work: Awaitable[list[str]]) -> Row:
    """Run a part; return its measurements."""
    before, began = os.getloadavg()[0], time.perf_counter()
    with Spent() as spent:
        digests = await work
        s = time.perf_counter() - began
    return {"s": s, "cpu": spent.s, "load": [round(before, 1), round(os.getloadavg()[0], 1)], "digests": digests}


async def measure(asked: argparse.Namespace) -> Row:
    """Run every variant, each in its own folders; skip variants whose result is already stored."""
    kept, engines = EvaluationCache(asked.kept), asked.engines.split(",")
    ways: dict[str, Callable[[Path], Awaitable[list[str]]]] = {"first half": lambda at: live_here(at, asked, 0)}
    ways |= {name: lambda at, ray=name == "ray": live_there(at, asked, ray) for name in engines}
    ways["second half"] = lambda at: live_here(at, asked, 1)
    rows: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as scratch:
        await live_run(jobs_of(RULES, wish(Path(scratch) / "warm", asked))[0])
        for name, way in ways.items():
            key = json.dumps([name, asked.towns, asked.hours, asked.workers])
            if (found := kept.find(key)) is None:
                found = await timed(way(Path(scratch) / name))
                kept.keep(key, found)
            rows[name] = found
            print(f"{name}: {found['s']:.1f} s, load {found['load']}", file=sys.stderr, flush=True)
    return report(asked, rows, engines)


def report(asked: argparse.Namespace, rows: dict[str, Row], engines: list[str]) -> Row:
    """Combine the measurements."""
    halves = rows["first half"], rows["second half"]
    s, spent = (sum(each[name] for each in halves) for name in ("s", "cpu"))
    digests = sorted(digest for each in halves for digest in each["digests"])
    found: Row = {"towns": asked.towns, "hours": asked.hours, "workers": asked.workers, "processors": os.cpu_count()}
    loads = [each["load"] for each in halves]
    found["one_after_the_other"] = {"s": round(s, 1), "cpu": round(spent, 1), "load": loads}
    for name in engines:
        row = rows[name]
        found[name] = {"s": round(row["s"], 1), "load": row["load"], "ratio": round(row["s"] / s, 3)}
        found[name]["same_journals"] = sorted(row["digests"]) == digests
        found[name]["cpu"] = round(row["cpu"], 1)
        found[name]["ratio_of_cpu"] = round(row["cpu"] / asked.workers / spent, 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--towns", type=int, default=20)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", default="processes,ray")
    parser.add_argument("--kept", type=Path, help="file that stores each complete part, to resume from")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    asked = parser.parse_args()
    found = asyncio.run(measure(asked))
    print(json.dumps(found) if asked.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
