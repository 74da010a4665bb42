"""Kill a run of twelve steps with `kill -9`, resume it, and count how often each step had an effect.

    python benchmarks/kill_run.py --json [--points 60]

Each step appends a line to a file. One tool takes an idempotency key and looks in its file for the key; the other takes
none. A process runs the plan on a data folder and is killed at a random time between two lines; then another process
completes it. Expected: each keyed line once; of the others, at most those in flight at the kill twice; the same answer.
The model is scripted; two steps run concurrently.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from killed import FORK, books, lines_of

from mindstream.memory.memory import Memory
from mindstream.models.model import Call, Request
from mindstream.models.rules import FakeModel
from mindstream.planning.executor import Limits, allow
from mindstream.planning.planner import Planner, Strategy

STEPS, TASK, RUN = 12, "Append twelve lines.", "killed"
LONGEST_WAIT_S = 0.03
"""Approximate duration of a step, in seconds."""
LEASE_S = 0.5
"""Lease duration in seconds: how long the run still belongs to a process that was killed."""
WAYS: tuple[Strategy, ...] = ("rewoo", "react", "plan-execute")


def written(folder: Path) -> int:
    """Count the lines that both tools have written."""
    return len(lines_of(folder / "plain")) + len(lines_of(folder / "keyed"))


def call(n: int) -> tuple[str, str]:
    """Return the tool and the line of the n-th step: two steps with one tool, two with the other, and so on."""
    return ("append", "append_once")[(n - 1) // 2 % 2], f"{n}"


def plan() -> str:
    """Write the plan: two parallel chains of six steps."""
    lines = []
    for n in range(1, STEPS + 1):
        name, line = call(n)
        after = f" after #E{n - 2}" if n > 2 else ""
        lines.append(f"Plan: append.\n#E{n}{after} = {name}[line={line}]\n")
    return "".join(lines)


def model() -> FakeModel:
    """Return the model; a process that resumes asks it from the start again, since it keeps no state."""
    calls = [[Call(*_written(n)), Call(*_written(n + 1))] for n in range(1, STEPS, 2)]

    def answer(request: Request) -> str:
        return "done" if f"line {STEPS}" in request.messages[-1].text else "MISSING"

    return FakeModel({
        "make_plan": [plan()], "act_on_task": [*calls, "done"], "answer_from_evidence": [answer] * STEPS,
    })  # fmt: skip


def _written(n: int) -> tuple[str, str]:
    name, line = call(n)
    return name, json.dumps({"line": line})


async def run(folder: Path, how: Strategy, said: Callable[[str], None]) -> None:
    """Solve the task on a folder, or resume it; print when it begins and ends."""
    async with Memory.open(folder, "ada") as stream:
        said("began")
        planner = Planner(
            model=model(), tools=books(folder, 0.01), how=how, approve=allow({"append", "append_once"}), replans=0,
            limits=Limits(lease_s=LEASE_S), memory=stream,
        )  # fmt: skip
        solution = await planner.solve(TASK, run=RUN)
        said(f"answer {solution.answer}")


def start(folder: Path, how: Strategy) -> tuple[BaseProcess, Connection]:
    """Start a process that runs it, and wait until it begins; it is forked, so that it has nothing to import."""
    ours, theirs = FORK.Pipe(duplex=False)
    process = FORK.Process(target=_work, args=(folder, how, theirs))
    process.start()
    theirs.close()
    assert ours.recv() == "began"
    return process, ours


def _work(folder: Path, how: Strategy, told: Connection) -> None:
    asyncio.run(run(folder, how, told.send))


def last_words(process: BaseProcess, told: Connection) -> str:
    """Wait for the process to end; return its last output line, "" if there is none."""
    try:
        return str(told.recv())
    except EOFError:
        return ""
    finally:
        process.join()


async def in_flight(folder: Path) -> int:
    """Count the steps that the log has started and not ended."""
    async with Memory.open(folder, "ada") as stream:
        rows = await stream.store.events(stream.key, 0, ("step_began", "step_found"), 10_000)
        steps = [(row.event.kind, getattr(row.event, "step", "")) for row in rows]
        return len({step for kind, step in steps if kind == "step_began"}
                   - {step for kind, step in steps if kind == "step_found"})  # fmt: skip


def kill_at(how: Strategy, lines: int, seconds: float) -> dict[str, object]:
    """Kill a run `seconds` seconds after it has written `lines` lines, complete it, and count."""
    with tempfile.TemporaryDirectory() as given:
        folder = Path(given)
        process, told = start(folder, how)
        while written(folder) < lines:
            time.sleep(0.001)
        time.sleep(seconds)
        process.kill()
        last_words(process, told)
        flying, there = asyncio.run(in_flight(folder)), written(folder)
        answer = last_words(*start(folder, how))
        plain, keyed = Counter(lines_of(folder / "plain")), Counter(lines_of(folder / "keyed"))
        return {
            "lines_when_killed": there, "in_flight": flying, "same_answer": answer == "answer done",
            "plain": len(plain), "plain_repeated": sum(plain.values()) - len(plain),
            "keyed": len({line.partition(" ")[2] for line in keyed}), "keyed_lines": sum(keyed.values()),
        }  # fmt: skip


def measure(how: Strategy, points: int, seed: int) -> dict[str, object]:
    """Kill a run at `points` random times between two lines."""
    draw = random.Random(seed)
    found = [kill_at(how, n % STEPS, draw.random() * LONGEST_WAIT_S) for n in range(points)]
    half = STEPS // 2
    return {
        "points": points,
        "killed_in_the_middle": sum(0 < int(str(each["lines_when_killed"])) < STEPS for each in found),
        "same_answer": sum(bool(each["same_answer"]) for each in found),
        "keyed_once_each": sum(each["keyed"] == each["keyed_lines"] == half for each in found),
        "plain_all_there": sum(each["plain"] == half for each in found),
        "plain_repeats": sum(int(str(each["plain_repeated"])) for each in found),
        "repeats_beyond_in_flight": sum(
            int(str(each["plain_repeated"])) > int(str(each["in_flight"])) for each in found
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--how", choices=WAYS)
    given = parser.parse_args()
    found = {how: measure(how, given.points, given.seed) for how in ([given.how] if given.how else WAYS)}
    print(json.dumps(found, indent=1) if given.json else "\n".join(f"{how}: {row}" for how, row in found.items()))


if __name__ == "__main__":
    main()
