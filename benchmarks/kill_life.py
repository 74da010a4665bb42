"""`kill -9` at random moments of one life that goes on each time: what was done how often, and is its journal the same?

    python benchmarks/kill_life.py --json [--points 100] [--turns 300]

A process lives with a scripted model and tools that append lines to files: one takes an idempotency key and asks its
file whether the key is there; the other takes none. It is killed at a random moment, and another one goes on, again
and again. Expected: the keyed lines once each; of the others at most the call twice that was in flight at a kill; the
rows of the log are those of a life that nobody killed: what happened, in which order (not the times). The control
(`--control`) goes on without reading its steps from the log: it must fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from itertools import zip_longest
from pathlib import Path

from life_model import LifeModel, Say, call, result

from mindstream.clock import ManualClock
from mindstream.life.life import Life, LifeConfig
from mindstream.life.permission import Permits
from mindstream.life.state import LifeState
from mindstream.log.events import Logged
from mindstream.log.names import StreamName
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.named import embedder
from mindstream.models.model import Request
from mindstream.models.roles import Models
from mindstream.tools.tool import FunctionTool, tool
from mindstream.tools.traits import Traits

GOAL, NAMES = "Keep the two books of the harbour.", ("write_plain", "write_once")
FORK = multiprocessing.get_context("fork")
BEGAN = 1_700_000_000.0


def tools(folder: Path) -> tuple[FunctionTool, ...]:
    """Make the two tools; each takes a little while before and after its effect."""

    async def write_plain(line: str) -> str:
        """Write a line into the plain book."""
        await asyncio.sleep(0.001)
        _add(folder / "plain", line)
        await asyncio.sleep(0.001)
        return f"wrote {line}"

    async def write_once(line: str, key: str = "") -> str:
        """Write a line into the careful book, once for each key."""
        await asyncio.sleep(0.001)
        if not any(key == each.partition(" ")[0] for each in _lines(folder / "keyed")):
            _add(folder / "keyed", f"{key} {line}")
        await asyncio.sleep(0.001)
        return f"wrote {line}"

    return tool(write_plain, Traits(changes=True)), tool(write_once, Traits(changes=True, key="key"))


def _add(file: Path, line: str) -> None:
    with file.open("a") as opened:
        opened.write(f"{line}\n")


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


class Script:
    """What M2 and M1 do."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def m2(self, turn: int, step: int, request: Request) -> Say:  # noqa: ARG002
        if step > 1:
            return [call("finish_task", task=1, result="kept")] if turn == self.turns and step == 2 else "Done."
        if turn % 11 == 0:
            return [call("S")]
        if turn % 7 == 0:
            return [call("R", query="Which ship came in watch 3?"), call("R", query="Who paid the harbour dues?")]
        if turn % 2:
            return [call("M1", task=f"Write line {turn} into both books.", context="")]
        return [
            call("U", memory=f"In watch {turn} the ship number {turn * 37 % 101} came in and paid {turn % 9} crowns.")
        ]

    def m1(self, _turn: int, step: int, request: Request) -> Say:
        if step > 1:
            return result(request.turns)[:80]
        line = "".join(sign for sign in request.messages[1].text if sign.isdigit())
        return [call("write_plain", line=line), call("write_once", line=line)]


async def live(folder: Path, turns: int, *, forgets: bool = False) -> bool:
    """Live, or go on, until the last turn is over; return whether it is."""
    store = SqliteStore(folder)
    script, last = Script(turns), await store.events(StreamName("user", "keeper").key, limit=1_000_000)
    clock = ManualClock(last[-1].at if last else BEGAN)
    model = LifeModel(clock, script.m2, script.m1, hours=6)
    config = LifeConfig(permits=Permits(always=NAMES), prompt_tokens=4_000, lease_s=1e-9)
    try:
        goal = "" if last else GOAL
        async with (
            Memory(store, "keeper", embedder("wordllama"), clock, seed=1) as stream,
            Life.open(stream, Models(model), goal=goal, tools=tools(folder), config=config) as life,
        ):
            if forgets:
                _forget_steps(life.state)
            await life.run(turns=turns + 1, wait=False)
            return life.state.turn >= turns and not life.state.in_turn
    finally:
        await store.close()


def _forget_steps(state: LifeState) -> None:
    """The control: go on as if the log held no step of the turn."""
    for known in (state.asked, state.replies, state.called, state.results):
        known.clear()


def _process(folder: Path, turns: int, forgets: bool) -> None:
    done = asyncio.run(live(folder, turns, forgets=forgets))
    (folder / "done").write_text(str(done))


async def journal(folder: Path) -> list[str]:
    """Return what happened, in which order, without what follows from the clock alone."""
    store = SqliteStore(folder)
    rows = await store.events(StreamName("user", "keeper").key, limit=1_000_000)
    await store.close()
    return [f"{row.by} {row.event.kind} {json.dumps(_without_times(row), sort_keys=True)}" for row in rows]


def _without_times(row: Logged) -> dict[str, object]:
    fields = row.event.model_dump(mode="json")
    return {name: value for name, value in fields.items() if name not in ("state", "until")}


def kill_again_and_again(folder: Path, turns: int, points: int, seconds: float, *, forgets: bool = False) -> int:
    """Let processes live one after the other, each killed at a random moment; return how many were killed."""
    draw, killed = random.Random(7), 0
    while True:
        process = FORK.Process(target=_process, args=(folder, turns, forgets))
        process.start()
        process.join(draw.uniform(0.05, 2 * seconds / points) if killed < points else 600)
        if process.is_alive() and process.pid:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            killed += 1
        elif (folder / "done").exists():
            return killed
        elif process.exitcode:
            raise RuntimeError("the process failed")


def compare(turns: int, points: int, *, forgets: bool = False) -> dict[str, object]:
    """Live once in peace and once killed again and again; return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        calm, wild = Path(folder) / "calm", Path(folder) / "wild"
        calm.mkdir()
        wild.mkdir()
        began = time.perf_counter()
        process = FORK.Process(target=_process, args=(calm, turns, False))
        process.start()
        process.join()
        killed = kill_again_and_again(wild, turns, points, time.perf_counter() - began, forgets=forgets)
        one, other = asyncio.run(journal(calm)), asyncio.run(journal(wild))
        plain, keyed = Counter(_lines(wild / "plain")), Counter(each.split()[1] for each in _lines(wild / "keyed"))
        pairs = enumerate(zip_longest(one, other, fillvalue=""))
        return {
            "killed": killed, "turns": turns, "rows": len(one), "same_journal": one == other,
            "first_difference": next(([n, a[:300], b[:300]] for n, (a, b) in pairs if a != b), None),
            "keyed_repeated": sum(n - 1 for n in keyed.values()), "keyed_lines": len(keyed),
            "plain_repeated": sum(n - 1 for n in plain.values()), "plain_lines": len(plain),
            "lines": len(_lines(calm / "plain")),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100, help="how often it is killed [%(default)s]")
    parser.add_argument("--turns", type=int, default=300, help="how many turns [%(default)s]")
    parser.add_argument("--control", action="store_true", help="forget the steps at each start: must fail")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    print(json.dumps(compare(given.turns, given.points, forgets=given.control), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
