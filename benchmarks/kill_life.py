"""Kill a life with `kill -9` at random moments, resume it each time, and compare its effects and its journal.

    python benchmarks/kill_life.py --json [--points 100] [--turns 300]

A process runs a life with a scripted model and tools that append lines to files: one tool takes an idempotency key and
looks in its file for the key; the other takes none. The process is killed at a random moment and another one resumes,
again and again. Expected: each keyed line once; of the others, at most the call that was in flight at a kill twice; the
log has the same events in the same order (not the same times) as that of an uninterrupted life. The control
(`--control`) resumes without reading its steps from the log; it must fail.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import Counter
from functools import partial
from itertools import zip_longest
from pathlib import Path

from killed import FORK, books, kill_again_and_again, lines_of
from life_model import LifeModel, Say, call, result

from mindstream.clock import ManualClock
from mindstream.identifiers import StreamName
from mindstream.life.life import Life, LifeConfig
from mindstream.life.permission import Permits
from mindstream.life.state import LifeState
from mindstream.log.events import Logged
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Request
from mindstream.models.roles import Models

GOAL, NAMES = "Keep the two books of the harbour.", ("append", "append_once")
BEGAN = 1_700_000_000.0


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
        return [call("append", line=line), call("append_once", line=line)]


async def live(folder: Path, turns: int, *, forgets: bool = False) -> bool:
    """Start or resume the life and run it until the last turn is over; return whether it is."""
    store = SqliteStore(folder)
    script, last = Script(turns), await store.events(StreamName("user", "keeper").key, limit=1_000_000)
    clock = ManualClock(last[-1].at if last else BEGAN)
    model = LifeModel(clock, script.m2, script.m1, hours=6)
    config = LifeConfig(permits=Permits(always=NAMES), prompt_tokens=4_000, lease_s=1e-9)
    try:
        goal = "" if last else GOAL
        async with (
            Memory(store, "keeper", embedder("wordllama"), clock, seed=1) as stream,
            Life.open(stream, Models(model), goal=goal, tools=books(folder, 0.001), config=config) as life,
        ):
            if forgets:
                _forget_steps(life.state)
            await life.run(turns=turns + 1, wait=False)
            return life.state.turn >= turns and not life.state.in_turn
    finally:
        await store.close()


def _forget_steps(state: LifeState) -> None:
    """The control: resume as if the log contained no step of the turn."""
    for known in (state.asked, state.replies, state.called, state.results):
        known.clear()


def _process(folder: Path, turns: int, forgets: bool) -> None:
    done = asyncio.run(live(folder, turns, forgets=forgets))
    (folder / "done").write_text(str(done))


async def journal(folder: Path) -> list[str]:
    """Return the events in order, without values that depend on the clock alone."""
    store = SqliteStore(folder)
    rows = await store.events(StreamName("user", "keeper").key, limit=1_000_000)
    await store.close()
    return [f"{row.by} {row.event.kind} {json.dumps(_without_times(row), sort_keys=True)}" for row in rows]


def _without_times(row: Logged) -> dict[str, object]:
    fields = row.event.model_dump(mode="json")
    return {name: value for name, value in fields.items() if name not in ("state", "until")}


def compare(turns: int, points: int, *, forgets: bool = False) -> dict[str, object]:
    """Run one life without kills and one with many kills; return the comparison."""
    with tempfile.TemporaryDirectory() as folder:
        calm, wild = Path(folder) / "calm", Path(folder) / "wild"
        calm.mkdir()
        wild.mkdir()
        began = time.perf_counter()
        process = FORK.Process(target=_process, args=(calm, turns, False))
        process.start()
        process.join()
        longest_s = 2 * (time.perf_counter() - began) / points
        killed = kill_again_and_again(
            partial(FORK.Process, target=_process, args=(wild, turns, forgets)), wild / "done", points, longest_s,
            random.Random(7),
        )  # fmt: skip
        one, other = asyncio.run(journal(calm)), asyncio.run(journal(wild))
        plain, keyed = Counter(lines_of(wild / "plain")), Counter(each.split()[1] for each in lines_of(wild / "keyed"))
        pairs = enumerate(zip_longest(one, other, fillvalue=""))
        return {
            "killed": killed, "turns": turns, "rows": len(one), "same_journal": one == other,
            "first_difference": next(([n, a[:300], b[:300]] for n, (a, b) in pairs if a != b), None),
            "keyed_repeated": sum(n - 1 for n in keyed.values()), "keyed_lines": len(keyed),
            "plain_repeated": sum(n - 1 for n in plain.values()), "plain_lines": len(plain),
            "lines": len(lines_of(calm / "plain")),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100, help="number of kills [%(default)s]")
    parser.add_argument("--turns", type=int, default=300, help="number of turns [%(default)s]")
    parser.add_argument("--control", action="store_true", help="drop the logged steps at each start: must fail")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    print(json.dumps(compare(given.turns, given.points, forgets=given.control), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
