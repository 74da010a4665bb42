"""Run a long life with a scripted model: is M2's prompt bounded, are time and memory flat, do rehearsed facts last?

    python benchmarks/life.py --json [--turns 10000]

A manual clock advances half an hour per answer of M2. In turn 10 two facts are noted (U). One is recalled
repeatedly (R), the other never; every 24 turns there is a sleep (S). At the end both are asked for. The
control is the same life without sleep: nothing is archived then. `idle_24h_calls`: model calls in 24 hours in which
every task is done; afterwards a task is added to the ledger, and the life must work on it at once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from life_model import LifeModel, Say, call, result

from mindstream.clock import DAY_S, ManualClock, SystemClock
from mindstream.life import commands
from mindstream.life.life import Life, LifeConfig
from mindstream.life.tools import MARK
from mindstream.memory.memory import Memory
from mindstream.models.model import Request
from mindstream.models.roles import Models

GOAL = "Look after the lighthouse and keep its book."
REHEARSED = "The spare key of the lighthouse hangs behind the blue barometer."
UNREHEARSED = "The painter who came in March was called Osric Fennimore."
ASKED, LOST = "Where does the spare key of the lighthouse hang?", "What was the painter called who came in March?"
SLEEPS, RECALLS, WORKS = 24, 31, 7
REAL = SystemClock()


@dataclass
class Script:
    """The script of M2 and M1, turn by turn."""

    turns: int
    sleeps: bool = True
    answers: dict[str, str] = field(default_factory=dict)

    def m2(self, turn: int, step: int, request: Request) -> Say:
        if step > 1:
            return self._end(turn, step, request)
        if turn == 10:
            return [call("U", memory=REHEARSED), call("U", memory=UNREHEARSED)]
        if turn == self.turns - 1:
            return [call("R", query=ASKED)]
        if turn == self.turns:
            return [call("R", query=LOST)]
        if turn % SLEEPS == 0 and self.sleeps:
            return [call("S")]
        if turn % RECALLS == 0:
            return [call("R", query=ASKED)]
        if turn % WORKS == 0:
            return [call("M1", task=f"Count the ships of watch {turn}.", context="The book lies on the desk.")]
        return [call("U", memory=f"In watch {turn} the wind was {turn % 12} and {turn % 17} gulls sat on the rail.")]

    def m1(self, _turn: int, step: int, request: Request) -> Say:
        return [call("M0", question="How many ships?", context="")] if step == 1 else result(request.turns)[:200]

    def _end(self, turn: int, step: int, request: Request) -> Say:
        if turn == self.turns - 1:
            self.answers[ASKED] = result(request.turns)
        if turn == self.turns:
            self.answers[LOST] = result(request.turns)
            if step == 2:
                return [call("finish_task", task=1, result="the watch is over")]
        return "The watch went well."


async def live(folder: Path, turns: int, sleeps: bool, told: bool) -> dict[str, object]:
    """Run `turns` turns and measure."""
    clock, script = ManualClock(), Script(turns, sleeps)
    model = LifeModel(clock, script.m2, script.m1)
    ms = array("d")  # a list of floats would take four times the memory, which is measured here
    rss: list[float] = []
    async with Memory.open(folder, "keeper", clock=clock, seed=1) as stream:
        async with Life.open(stream, Models(model), goal=GOAL, config=LifeConfig(prompt_tokens=6_000)) as life:
            while len(ms) < turns and life.state.turn < turns:
                began = REAL.elapsed()
                await life.run(turns=1, wait=False)
                ms.append((REAL.elapsed() - began) * 1000)
                if len(ms) % 100 == 0:
                    gc.collect()
                    rss.append(resident_mb())
                    if told:
                        print(f"\r{len(ms)} turns, {ms[-1]:.1f} ms, {rss[-1]:.0f} MB ", end="", file=sys.stderr)
            longest = await longest_prompt(stream)
            calls = model.calls
            clock_after = clock.now() + DAY_S
            ended = await life.run(until=clock_after)
            idle = model.calls - calls
            await commands.add_task(stream, "Polish the lamp.")
            await life.run(turns=1, wait=False)
            at_once = model.calls > calls + idle
        found = await stream.recall(LOST, 5, kinds=("note",), where=MARK, touch=False)
        return {
            "turns": len(ms), "prompt_tokens_max": longest, "prompt_limit": life.config.prompt_tokens,
            "ms_per_turn_first": round(statistics.mean(ms[:1000]), 2),
            "ms_per_turn_last": round(statistics.mean(ms[-1000:]), 2),
            "rss_mb_first": round(rss[min(9, len(rss) - 1)], 1), "rss_mb_last": round(rss[-1], 1),
            "rehearsed_answered": "blue barometer" in script.answers.get(ASKED, ""),
            "unrehearsed_recalled": any("Osric" in each.record.text for each in found),
            "unrehearsed_in_dream": await is_in_dream(stream, UNREHEARSED),
            "idle_24h_calls": idle, "idle_ended": ended, "ledger_worked_on_at_once": at_once,
        }  # fmt: skip


async def longest_prompt(stream: Memory) -> int:
    """Return the length of M2's longest prompt, as estimated at the time of the request."""
    longest, after = 0, 0
    while rows := await stream.store.events(stream.key, after, ["asked"], 1000):
        after = rows[-1].seq
        longest = max([longest, *(row.event.tokens for row in rows if getattr(row.event, "role", "") == "M2")])  # type: ignore[attr-defined]
    return longest


async def is_in_dream(stream: Memory, text: str) -> bool:
    """Return whether an archived record is in the evidence of a dream, at any depth."""
    archive = {record.id: record for record in await stream.archive()}
    gone = {id_ for id_, record in archive.items() if text in record.text}
    dreams = [*(record for record in archive.values() if record.kind == "dream"), *await stream.latest("dream", 5000)]
    return any(gone & set(dream.evidence) for dream in dreams)


def resident_mb() -> float:
    """Return this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10_000, help="how many [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--control", action="store_true", help="also run without sleep: nothing may be archived")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(live(Path(folder), given.turns, sleeps=True, told=not given.json))
    if given.control:
        with tempfile.TemporaryDirectory() as folder:
            report["control"] = asyncio.run(live(Path(folder), min(given.turns, 2000), sleeps=False, told=False))
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
