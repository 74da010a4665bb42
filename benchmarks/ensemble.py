"""So many towns one after the other, and on workers: how long each way takes, and whether all leave the same journals.

    python benchmarks/ensemble.py --json [--towns 20] [--hours 24] [--workers 2] [--engines ray,processes]

A town is Smallville, 25 people by rules. Seconds are by the clock on the wall, with all that an engine takes to begin
and to end; one after the other the towns live in one process that is warm. `ratio`: which share of that an engine takes
(expected: at most 0.6, where two processors are free). `cpu`: the processors' own seconds, which other work on the
machine hardly changes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from mindstream.service.evaluation.ensemble import Wish, jobs_of, live_run, run_ensemble
from mindstream.settings import Settings

RULES = Settings(model="rules")


def wish(into: Path, asked: argparse.Namespace, ray: bool = False) -> Wish:
    """Return the towns."""
    last, seeds = round(asked.hours * 360) - 1, tuple(range(1, asked.towns + 1))
    return Wish("smallville", seeds, lambda _: last, into, workers=asked.workers, ray=ray)


def cpu() -> float:
    """Return the processors' seconds of this process and of those that it has waited for."""
    used = (resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


async def measure(asked: argparse.Namespace) -> dict[str, Any]:
    """Let them live each way, in folders of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        await live_run(jobs_of(RULES, wish(folder / "warm", asked))[0])
        began, used = time.perf_counter(), cpu()
        alone = [await live_run(job) for job in jobs_of(RULES, wish(folder / "alone", asked))]
        seconds = time.perf_counter() - began
        found: dict[str, Any] = {"one_after_the_other": {"s": round(seconds, 1), "cpu": round(cpu() - used, 1)}}
        for engine in asked.engines.split(","):
            began, used = time.perf_counter(), cpu()
            done = await run_ensemble(RULES, wish(folder / engine, asked, engine == "ray"))
            taken = time.perf_counter() - began
            same = [each.digest for each in done.lived] == [each.digest for each in alone]
            spent = round(cpu() - used, 1)
            found[engine] = {
                "s": round(taken, 1),
                "cpu": spent,
                "ratio": round(taken / seconds, 3),
                "same_journals": same,
            }
    asked_for = {"towns": asked.towns, "hours": asked.hours, "workers": asked.workers}
    return asked_for | {"processors": os.cpu_count(), "load": round(os.getloadavg()[0], 1)} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--towns", type=int, default=20)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", default="ray,processes")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    asked = parser.parse_args()
    found = asyncio.run(measure(asked))
    print(json.dumps(found) if asked.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
