"""Many processes admit to one pool that learns, and recall from it, at once; one is killed in the middle.

    python benchmarks/pool_processes.py [--processes 8] [--pairs 20] [--json]

Prints whether anything that was acknowledged is lost, whether the versions of the retriever are one line that covers
each admission once, and what a recall takes beside all that; control: the same processes one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from mindstream.models.ask import ask
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.grading.draft_rubric import DraftRubric
from mindstream.sharing.learning import LEAST
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever

ANOTHER = Path(__file__).parents[1] / "tests" / "sharing" / "learning_process.py"
ID = 24


async def fill(folder: str) -> None:
    async with Pool.open(folder, "cities", retriever=Retriever()) as pool:
        await pool.create("songs", "olga")
        await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="songs")), "olga")
        pairs = [Pair(f"Write a toast to thing {at}", f"Here is to {at}, and to you.") for at in range(2 * LEAST)]
        await lay_in(pool, pairs, "olga")


def begin(folder: str, name: str, pairs: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(ANOTHER), folder, name, str(pairs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> tuple[list[str], list[float]]:
    """Return the ids that a process was told are admitted, and what its recalls took."""
    lines = process.communicate()[0].split("\n")
    took = [float(each) for line in lines if line.startswith("took") for each in line.split()[1:]]
    return [line for line in lines[:-1] if len(line) == ID], took


async def check(folder: str, told: list[str]) -> dict[str, Any]:
    async with Pool.open(folder, "cities", retriever=Retriever()) as pool:
        state = await pool.state()
    rows = state.versions
    admitted = [id_ for id_, each in state.standings.items() if each.verdict and each.verdict.verdict == "admitted"]
    line = [(each.number, each.parent, each.after) for each in rows]
    wanted = [(n + 1, n, rows[n - 1].upto if n else 0) for n in range(len(rows))]
    times = [sum(row.after < state.standings[id_].judged <= row.upto for row in rows) for id_ in admitted]
    return {
        "acknowledged": len(told), "lost": len(set(told) - set(admitted)), "admitted": len(admitted),
        "versions": len(rows), "held": sum(each.held for each in rows), "one_line": line == wanted,
        "covered_once": times.count(1), "covered_never": times.count(0), "covered_twice": sum(n > 1 for n in times),
    }  # fmt: skip


def together(processes: int, pairs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(folder))
        all_ = [begin(folder, f"w{n}", pairs) for n in range(processes)]
        began = time.perf_counter()
        for each in all_:
            go(each)
        first = all_[0].stdout
        assert first
        told = [line for _ in range(pairs // 2) if len(line := first.readline().strip()) == ID]
        all_[0].kill()
        took: list[float] = []
        for each in all_:
            ids, seconds = ended(each)
            told, took = told + ids, took + seconds
        found = asyncio.run(check(folder, told))
    return {**found, "recall_ms_p50": ms(took, 50), "recall_ms_p95": ms(took, 95), "seconds": seconds_since(began)}


def alone(processes: int, pairs: int) -> dict[str, Any]:
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(fill(folder))
        for n in range(processes):
            process = begin(folder, f"w{n}", pairs)
            go(process)
            took += ended(process)[1]
    return {"recall_ms_p50": ms(took, 50), "recall_ms_p95": ms(took, 95)}


def ms(seconds: list[float], percent: float) -> float:
    return round(float(np.percentile(seconds, percent)) * 1000, 2)


def seconds_since(began: float) -> float:
    return round(time.perf_counter() - began, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {"processes": given.processes, "pairs_each": given.pairs, **together(given.processes, given.pairs)}
    found["one_after_the_other"] = alone(given.processes, given.pairs)
    print(json.dumps(found) if given.json else "\n".join(f"{name:20} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
