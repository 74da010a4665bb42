"""Measure the latency that the runtime adds to a talker's answer, and the benefit of reasoning in the background.

    python benchmarks/talker.py --json [--gate belief] [--seconds 90]    100 open conversations, 10 utterances a second
    python benchmarks/talker.py --turns 10000 --json                     one conversation, instant models: is it flat?
    python benchmarks/talker.py --utterances 1000 --json                 count faults (talker_faults.py)
    … --gate never | --gate always | --filler-s 60                       controls: each must fail (exit code 1)

Models run in a separate server process (latency_server.py: the talker's first token after 50 ms, a reasoner run of 8 s)
and are used through the real provider. overhead: time from passing the utterance to the mind to its first delta, minus
the time between the request's arrival at the server and its first token, by the server's own timestamps. Turns that
wait have no such number (their words are the Reasoner's, or are late); for them `filler_p50_ms` is reported.
staleness: number of earlier utterances that the belief used for an answer did not yet include. single agent: the same
mind, configured to reason before each answer, without a filler. One utterance warms the process up; then all loaded
objects are frozen (`gc.freeze`), as a server should do: a full collection over all imported modules takes 0.1 s.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from talker_faults import Taken, broken_bars, count_faults, draw, put, watch

from mindstream import Coach
from mindstream.coach.packs.load import load as load_pack
from mindstream.coach.talker import Decision, Situation
from mindstream.log.events import Heard, Piece, Said, Thought, Waiting
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Store
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.models.embedders.embedder import embedder
from mindstream.models.roles import Models

CONVERSATIONS, PER_SECOND = 100, 10.0
SAID = (
    "Noise keeps me awake most nights.", "I think it is the light from the street.", "I go to bed at eleven.",
    "Usually I have a coffee after dinner.", "Can you make me a plan?", "Thanks, that is kind of you.",
    "My partner snores a little.", "What is the next step?", "I tried earplugs once.", "It went quite well.",
    "I don't like that step.", "Work has been stressful lately.", "What do you remember about me?",
    "I would like to wake up rested.", "On weekends I sleep in until ten.", "Good evening!",
)  # fmt: skip


class Same:
    """A gate with a constant decision; `always`: every answer waits for the Reasoner, the single agent."""

    def __init__(self, name: str) -> None:
        self.name = name

    def decide(self, situation: Situation) -> Decision:
        return Decision(self.name == "always", why=situation.phase.name)


@dataclass
class Turn:
    """One utterance: the times at which it was sent, and of the first filler, the first delta and the end (seconds)."""

    text: str
    begun: float
    filler: float | None = None
    piece: float | None = None
    ended: float = 0.0

    @property
    def mark(self) -> str:
        """The text that identifies this utterance."""
        return self.text[self.text.rfind("(") :]


@contextlib.contextmanager
def latency_server(reasoner_s: float, talker_first_s: float) -> Iterator[int]:
    """Run the server; yield its port."""
    command = [sys.executable, str(Path(__file__).with_name("latency_server.py"))]
    command += ["--reasoner-s", str(reasoner_s), "--talker-first-s", str(talker_first_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@contextlib.asynccontextmanager
async def minds(
    store: Store, models: Models, gate: str, count: int, timeouts: Timeouts | None = None
) -> AsyncIterator[list[Mind]]:
    """Open conversations of many users that share a store, a table of models, an embedder and a pack."""
    embed, pack = embedder("wordllama"), load_pack("sleep")
    async with contextlib.AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(
                Mind.open(
                    store,
                    responder=Coach.using(pack=pack, gate=Same(gate) if gate in ("always", "never") else gate),
                    user=f"user{n}",
                    model=models,
                    embed=embed,
                    timeouts=timeouts,
                )
            )
            for n in range(count)
        ]


async def turn(mind: Mind, text: str) -> Turn:
    """Send an utterance and record when words arrive."""
    taken = Turn(text, time.monotonic())
    async for logged in mind.hear(text):
        now = time.monotonic()
        if isinstance(logged.event, Waiting):
            taken.filler = now
        elif isinstance(logged.event, Piece) and taken.piece is None:
            taken.piece = now
    taken.ended = time.monotonic()
    return taken


async def load(talking: Sequence[Mind], seconds: float, per_second: float) -> list[Turn]:
    """Send utterances at a steady mean rate, to each conversation in turn."""
    chance, running = random.Random(7), []
    begun = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for n in range(int(seconds * per_second)):
            due = begun + (n + chance.random()) / per_second
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            mind, nth = n % len(talking), n // len(talking)
            text = f"{SAID[(nth * 5 + mind) % len(SAID)]} ({mind}.{nth})"
            running.append(group.create_task(turn(talking[mind], text)))
    return [task.result() for task in running]


def served(port: int) -> dict[str, tuple[float, float]]:
    """Return the arrival of the talker's request at the server and the time of its first token; clear the log."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/log") as reply:
        log = json.load(reply)
    return {asked["mark"]: (asked["came"], asked["first"]) for asked in log if asked["model"] == "talker"}


async def staleness(store: SqliteStore, slot: str) -> list[int]:
    """Count, for each answer, the earlier utterances that were processed only after it."""
    counts = []
    for name in await store.streams():
        rows = await store.events(name, limit=10**6)
        thought = {
            seq: row.seq for row in rows if isinstance(row.event, Thought) and row.event.slot == slot
            for seq in row.event.about
        }  # fmt: skip
        heard = [row.seq for row in rows if isinstance(row.event, Heard)]
        for row in rows:
            if isinstance(row.event, Said):
                earlier = (seq for seq in heard if seq < row.event.answers)
                counts.append(sum(thought.get(seq, 0) > row.seq for seq in earlier))
    return counts


def percentile(values: Sequence[float], at: float) -> float:
    return round(float(np.percentile(values, at)) * 1000, 2) if values else float("nan")


async def conversations(given: argparse.Namespace) -> dict[str, Any]:
    """Run the main measurement, then the single agent."""
    with latency_server(given.reasoner_s, given.talker_first_s) as port, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{port}/v1"
        names = {"default": f"openai:reasoner@{url}", "talker": f"openai:talker@{url}"}
        store = SqliteStore(folder)
        async with (
            Models.named(names, at_once=1000) as models,
            minds(store, models, given.gate, given.conversations) as talking,
        ):
            await turn(talking[0], "Hello!")
            served(port)
            gc.collect()
            if not given.thawed:
                gc.freeze()
            begun, cpu = time.monotonic(), time.process_time()
            turns = await load(talking, given.seconds, given.per_second)
            spent, cpu = time.monotonic() - begun, time.process_time() - cpu
            own = served(port)
            stale = await staleness(store, talking[0].responder.name)
        async with (
            Models.named(names, at_once=1000) as models,
            minds(SqliteStore(Path(folder) / "single"), models, "always", given.single) as talking,
        ):
            single = await load(talking, given.single / given.per_second, given.per_second)
        await store.close()
    return results(turns, own, single, stale) | {
        "cpu_ms_per_utterance": round(cpu * 1000 / len(turns), 2),
        "cpu_share_of_a_core": round(cpu / spent, 3),
        "conversations": given.conversations, "utterances": len(turns), "seconds": round(spent, 1), "gate": given.gate,
    }  # fmt: skip


def results(
    turns: list[Turn], own: dict[str, tuple[float, float]], single: list[Turn], stale: list[int]
) -> dict[str, Any]:
    """Compute the measures."""
    direct = [(t.begun, *own[t.mark], t.piece) for t in turns if t.filler is None and t.piece and t.mark in own]
    waited = [t for t in turns if t.filler is not None]
    overhead = [piece - begun - (first - came) for begun, came, first, piece in direct]
    firsts = [(t.filler or t.piece or t.ended) - t.begun for t in turns]
    return {
        "overhead_p50_ms": percentile(overhead, 50),
        "overhead_p99_ms": percentile(overhead, 99),
        "overhead_max_ms": percentile(overhead, 100),
        "before_the_model_p50_ms": percentile([came - begun for begun, came, _, _ in direct], 50),
        "before_the_model_p99_ms": percentile([came - begun for begun, came, _, _ in direct], 99),
        "after_its_first_token_p50_ms": percentile([piece - first for _, _, first, piece in direct], 50),
        "after_its_first_token_p99_ms": percentile([piece - first for _, _, first, piece in direct], 99),
        "models_first_token_p50_ms": percentile([first - came for _, came, first, _ in direct], 50),
        "first_words_p50_ms": percentile(firsts, 50),
        "first_words_p99_ms": percentile(firsts, 99),
        "filler_p50_ms": percentile([t.filler - t.begun for t in waited if t.filler], 50),
        "waited_answer_p50_ms": percentile([t.piece - t.begun for t in waited if t.piece], 50),
        "single_agent_first_words_p50_ms": percentile([(t.piece or t.ended) - t.begun for t in single], 50),
        "wait_rate": round(len(waited) / len(turns), 3),
        "staleness_turns_mean": round(statistics.fmean(stale), 3) if stale else None,
    }


async def faults(given: argparse.Namespace) -> dict[str, Any]:
    """Send labelled utterances to many conversations, faster than they are processed, and count the faults."""
    chance, count = random.Random(11), max(1, round(given.conversations * 0.6))
    with latency_server(given.reasoner_s, given.talker_first_s) as port, tempfile.TemporaryDirectory() as folder:
        url = f"http://127.0.0.1:{port}/v1"
        names = {"default": f"openai:reasoner@{url}", "talker": f"openai:talker@{url}", "safety": "rules"}
        store, running = SqliteStore(folder), []
        async with (
            Models.named(names, at_once=1000) as models,
            minds(store, models, given.gate, count, Timeouts(filler_s=given.filler_s)) as talking,
        ):
            begun, stalls = time.monotonic(), [0.0]
            watching = asyncio.ensure_future(watch(stalls))
            async with asyncio.TaskGroup() as group:
                for n in range(given.utterances):
                    due = begun + (n + chance.random()) / given.per_second
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
                    mind = talking[n % count]
                    kind, text = draw(n % count, n // count, Coach.of(mind).plan.now is not None)
                    running.append(group.create_task(put(mind, Taken(n % count, kind, text, time.monotonic()))))
            await asyncio.gather(*(mind.settled() for mind in talking))
            watching.cancel()
            logs = {n: await store.events(mind.memory.key, limit=10**6) for n, mind in enumerate(talking)}
            found = count_faults([task.result() for task in running], logs, talking[0].responder.name)
        await store.close()
    settings = {"utterances": given.utterances, "conversations": count, "gate": given.gate, "filler_s": given.filler_s}
    return found | {"stall_s": round(max(stalls), 2)} | settings


async def flat(given: argparse.Namespace) -> dict[str, Any]:
    """One long conversation with instant models (rules): overhead around the turns 10, 100, 1,000, …"""
    marks = [10**n for n in range(1, 8) if 10**n <= given.turns] or [given.turns]
    taken: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, user="ann", responder=Coach.using(gate=given.gate)) as mind:
            for n in range(given.turns + 20):
                cpu = time.process_time()
                said = await turn(mind, re.sub(r"\W*$", "", SAID[n % len(SAID)]) + f" ({n}).")
                await mind.settled()
                first = said.piece if said.filler is None else said.filler
                taken.append(((first or said.ended) - said.begun, time.process_time() - cpu))
    around = {mark: taken[max(0, mark - 30) : mark + 20] for mark in marks}
    return {
        "turns": given.turns, "gate": given.gate,
        "overhead_p50_ms_at_turn": {m: percentile([words for words, _ in some], 50) for m, some in around.items()},
        "overhead_p90_ms_at_turn": {m: percentile([words for words, _ in some], 90) for m, some in around.items()},
        "cpu_ms_per_turn_at_turn": {m: percentile([spent for _, spent in some], 50) for m, some in around.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gate", default="", help="talker, belief, never, always [the product's default]")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument("--per-second", type=float, default=PER_SECOND)
    parser.add_argument("--reasoner-s", type=float, default=8.0)
    parser.add_argument("--talker-first-s", type=float, default=0.05)
    parser.add_argument("--single", type=int, default=50, help="number of utterances sent to the single agent")
    parser.add_argument("--turns", type=int, default=0, help="alternative mode: one conversation of this many turns")
    parser.add_argument("--utterances", type=int, default=0, help="alternative mode: count faults in these")
    parser.add_argument("--filler-s", type=float, default=Timeouts().filler_s, help="seconds until a filler")
    parser.add_argument("--thawed", action="store_true", help="do not freeze the objects loaded at the start")
    parser.add_argument("--quick", action="store_true", help="a few seconds, for tests; the figures mean nothing")
    given = parser.parse_args()
    if given.quick:
        given.seconds, given.conversations, given.reasoner_s, given.single = 2.0, 5, 0.3, 5
    run = faults if given.utterances else flat if given.turns else conversations
    found = asyncio.run(run(given))
    print(json.dumps(found) if given.json else "\n".join(f"{name:34} {value}" for name, value in found.items()))
    if given.utterances and (broken := broken_bars(found)):
        sys.exit("\n".join(broken))


if __name__ == "__main__":
    main()
