"""Inject a thousand random faults into three hundred utterances and check the guarantees of the runtime.

    python benchmarks/chaos.py [--utterances 300] [--faults 1000] [--seed 1] [--json]
    PYTHONPATH=OTHER/src python benchmarks/chaos.py      control: run it against another version of the package

A mind with rules holds several conversations at once while its parts raise one of sixteen kinds of error, or hang, at
one of eleven stages: models, prompts, tools, reasoners, conclusions, gate, embedder, and every operation of the store.
Checked: the runner stays alive; `settled()` returns; each acknowledged utterance is processed exactly once in each slot
or dead-lettered with a reason; no utterance is answered twice; no silence exceeds 5 s; memory stays below 300 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindstream import Coach, Mind, Models, SqliteStore, Timeouts, chance
from mindstream.coach.events import Decided
from mindstream.coach.talker import Decision, Situation, Talk
from mindstream.errors import ModelUnavailable, SettingsError, StorageError
from mindstream.identifiers import StreamName
from mindstream.log.events import Logged
from mindstream.models.embedders.embedder import embedder
from mindstream.models.model import Part, Piece, Request
from mindstream.models.rules import Rules
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, Trigger

SAID = (
    "Noise keeps me awake.", "Make me a plan.", "I drink four coffees.", "My name is Ann.", "What is the next step?",
    "I don't like that step.", "Thanks.", "I wake at three and my thoughts race.", "Find me something to read.",
)  # fmt: skip
KINDS: dict[str, Callable[[], BaseException]] = {
    "KeyError": lambda: KeyError("x"),
    "ValueError": lambda: ValueError("boom"),
    "TypeError": lambda: TypeError("no such thing"),
    "MemoryError": lambda: MemoryError(),
    "RecursionError": lambda: RecursionError("deep"),
    "CancelledError": lambda: asyncio.CancelledError("from inside"),
    "OSError": lambda: OSError(28, "no space left"),
    "locked database": lambda: StorageError("another program has held it for over 10 seconds"),
    "TimeoutError": lambda: TimeoutError(),
    "AssertionError": lambda: AssertionError("no \x1b[31m"),
    "UnicodeEncodeError": lambda: UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    "StopAsyncIteration": lambda: StopAsyncIteration(),
    "SystemExit": lambda: SystemExit(1),
    "ModelUnavailable": lambda: ModelUnavailable("down"),
    "SettingsError": lambda: SettingsError("the words of the prompt should lie here; there is no such file"),
    "ConnectionResetError": lambda: ConnectionResetError("gone"),
}
HANG = "hang"
MARKS = ("", "", "[WAIT]", "[ALONE] ")
"""Possible starts of the Talker's reply: wait, no reasoning needed, or neither."""
WANTED = {"deadline_s": 6.0, "silence_s": 6.0, "thinking_s": 4.0, "lease_s": 3.0}
TIMEOUTS = Timeouts(**{each.name: WANTED[each.name] for each in fields(Timeouts) if each.name in WANTED})
ANSWER_S = 30.0
"""Maximum seconds to wait for an answer."""
OF_THE_STORE = ("commit", "claim", "renew", "give_up", "latest", "events", "open_work", "known", "changes")


@dataclass
class Faults:
    """Raise faults at random, drawn by seed and stage, so that a run can be repeated."""

    seed: int
    allowed: int
    rate: float
    made: Counter[tuple[str, str]] = field(default_factory=Counter)
    draws: Counter[str] = field(default_factory=Counter)
    on: bool = True

    def draw(self, stage: str, hangs: bool = False) -> str:
        """Return the kind of fault to inject now; "" for none."""
        n = self.draws[stage] = self.draws[stage] + 1
        if not self.on or self.made.total() >= self.allowed or chance.fraction(self.seed, stage, n) > self.rate:
            return ""
        kinds = [*KINDS, *([HANG] if hangs else [])]
        if stage.startswith(("store", "gate")):
            kinds.remove("SystemExit")  # these run in the caller's own task
        if stage.endswith("afterwards"):
            kinds.remove("locked database")  # a caller that gets this error has not committed
        kind = chance.pick(kinds, self.seed, stage, "kind", n)
        self.made[stage, kind] += 1
        return kind

    def strike(self, stage: str) -> None:
        """Raise, or not."""
        if kind := self.draw(stage):
            raise KINDS[kind]()

    async def strike_or_hang(self, stage: str) -> None:
        """Raise, hang, or do nothing, as drawn."""
        kind = self.draw(stage, hangs=True)
        if kind == HANG:
            await asyncio.sleep(3600)
        elif kind:
            raise KINDS[kind]()


class FaultyStore:
    """A store in which every method may fail, before or after it has done its work."""

    def __init__(self, store: SqliteStore, faults: Faults) -> None:
        self._store, self._faults = store, faults

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._store, name)
        if name not in OF_THE_STORE:
            return inner
        stage, faults = f"store.{name}", self._faults
        if not asyncio.iscoroutinefunction(inner):

            def read(*given: Any, **named: Any) -> Any:
                faults.strike(stage)
                return inner(*given, **named)

            return read

        async def write(*given: Any, **named: Any) -> Any:
            faults.strike(stage)
            came = await inner(*given, **named)
            faults.strike(f"{stage}, afterwards")
            return came

        return write


class FaultyModel:
    """Rules that fail before, during or after an answer; the prompt's text may be missing."""

    def __init__(self, name: str, faults: Faults) -> None:
        self.name, self._faults, self._rules = name, faults, Rules()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self._faults.strike(f"prompt of the {self.name}")
        await self._faults.strike_or_hang(f"model of the {self.name}")
        if isinstance(request.prompt, Talk):
            yield Piece(chance.pick(MARKS, self._faults.seed, "mark", request.prompt.utterance))
        async for part in self._rules.reply(request):
            yield part
            if chance.fraction(self._faults.seed, self._faults.draws.total()) < 0.05:
                self._faults.strike(f"model of the {self.name}, midway")


class FaultyGate:
    """A gate that sometimes waits, sometimes leaves the decision to the Talker, and sometimes fails."""

    name = "faulty"

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def decide(self, situation: Situation) -> Decision:
        self._faults.strike("gate")
        drawn = chance.fraction(self._faults.seed, "waits", situation.text)
        return Decision(drawn < 0.3, hands_over=drawn > 0.6)


class FaultyEmbedder:
    """The default embedder, which is sometimes unavailable."""

    def __init__(self, faults: Faults) -> None:
        self._inner, self._faults = embedder("wordllama"), faults
        self.name, self.width = self._inner.name, self._inner.width

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._faults.draw("embedder"):
            raise ModelUnavailable("the embedding endpoint is down")
        return await self._inner.embed(texts)


@dataclass
class FaultyReasoner:
    """A custom reasoner that fails in reasoning, in its tools or in writing."""

    faults: Faults
    slot: str = "own"
    trigger: Trigger = EVERY_TURN
    timeout_s: float = 4.0

    async def think(self, context: RunContext) -> RunResult:
        await self.faults.strike_or_hang("reasoner")
        await context.newer()

        async def write() -> tuple[list[Any], list[Any]]:
            self.faults.strike("conclusion")
            return [], []

        return RunResult("thought", "rules", write=write)


@dataclass
class Seen:
    """What came of a run."""

    acknowledged: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    longest_silence_s: float = 0.0
    last_s: float = 0.0
    """The time of the last event of the mind, in any of its open conversations."""

    def notice(self) -> None:
        """Record that an event arrived."""
        now = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now - self.last_s)
        self.last_s = now


async def in_time(events: AsyncGenerator[Logged]) -> AsyncGenerator[Logged]:
    """Yield events as they arrive; raise TimeoutError if the next one takes too long."""
    async with aclosing(events):
        while True:
            async with asyncio.timeout(ANSWER_S):
                logged = await anext(events, None)
            if logged is None:
                return
            yield logged


async def say(mind: Mind, text: str, seen: Seen) -> None:
    """Send an utterance, and send it again if it is refused, as users do."""
    for _ in range(30):
        if await said(mind, text, seen):
            return


async def said(mind: Mind, text: str, seen: Seen) -> bool:
    """Send an utterance once; record silences and errors that reach the caller; return whether it was acknowledged."""
    heard = False
    seen.last_s = time.monotonic()
    try:
        async for logged in in_time(mind.hear(text)):
            seen.notice()
            if logged.event.kind == "heard":
                heard = True
                seen.acknowledged.append(logged.seq)
        seen.notice()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (this is what is looked at)
        (seen.broken if heard else seen.refused)[type(error).__name__] += 1
    return heard


async def talk(folder: Path, utterances: int, faults: Faults, timeouts: Timeouts = TIMEOUTS) -> tuple[Seen, bool, bool]:
    """Hold the conversation; return the observations, whether `settled` returned and whether the runner is alive."""
    seen, store = Seen(), SqliteStore(folder)
    models = Models(Rules(), {"talker": FaultyModel("talker", faults), "reasoner": FaultyModel("reasoner", faults)})
    reasoners = [FaultyReasoner(faults, timeout_s=timeouts.thinking_s)]
    settled = lives = False
    async with Mind.open(
        FaultyStore(store, faults),
        user="ann", model=models, responder=Coach.using(gate=FaultyGate(faults)), embed=FaultyEmbedder(faults),
        reasoners=reasoners,
        timeouts=timeouts,
    ) as mind:  # fmt: skip
        for start in range(0, utterances, 3):
            some = [f"{SAID[n % len(SAID)]} ({n})" for n in range(start, min(utterances, start + 3))]
            await asyncio.gather(*(say(mind, text, seen) for text in some))
            print(f"\r{start + len(some)} said, {faults.made.total()} faults", end="", file=sys.stderr, flush=True)
        faults.on = False
        mind.reasoners.wake()  # otherwise work that waits for an available model would be reported as unfinished
        try:
            async with asyncio.timeout(60):
                mind.reasoners.resume()
                await mind.settled()
            settled = True
        except TimeoutError:
            pass
        lives = sum(task.get_name().startswith("reasoner") for task in asyncio.all_tasks()) == 2
    await store.close()
    return seen, settled, lives


async def judge(folder: Path, seen: Seen, settled: bool, lives: bool) -> AsyncIterator[tuple[str, bool, str]]:
    """Return each guarantee, whether it held, and the figures."""
    store = SqliteStore(folder)
    rows = await store.events(StreamName("user", "ann").key, limit=1_000_000)
    heard = {row.seq for row in rows if row.event.kind == "heard"}
    unwoken = [row.event for row in rows if isinstance(row.event, Decided) and not row.event.thinks]
    alone = {event.answers for event in unwoken if not event.why.endswith(": think")}  # else left for the next run
    yield "the runner lives", lives, ""
    yield "settled() returns", settled, ""
    yield "what was acknowledged is kept", set(seen.acknowledged) <= heard, f"{len(seen.acknowledged)} utterances"
    for slot in ("sleep", "own"):
        done: Counter[int] = Counter()
        aside: Counter[int] = Counter()
        for row in rows:
            if getattr(row.event, "slot", "") == slot and row.event.kind in ("thought", "set_aside"):
                (done if row.event.kind == "thought" else aside).update(getattr(row.event, "about", ()))
        due = heard - alone if slot == "sleep" else heard
        wrong = [seq for seq in heard if done[seq] + aside[seq] != (seq in due)]
        figures = f"{done.total()} thought about, {aside.total()} set aside, {len(wrong)} neither or twice"
        yield f"{slot}: each utterance once, or set aside", not wrong, figures
    said = Counter(getattr(row.event, "answers", 0) for row in rows if row.event.kind == "said")
    followed = Counter(getattr(row.event, "answers", 0) for row in rows if row.event.kind == "follow_up")
    twice = sum(times > 1 for times in (*said.values(), *followed.values()))
    unanswered = len(set(seen.acknowledged) - said.keys())
    yield "no answer twice", not twice, f"{len(said)} answered, {unanswered} not (their answer could not be kept)"
    yield "no silence over 5 s", seen.longest_silence_s <= 5.0, f"longest {seen.longest_silence_s:.2f} s"
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield "no memory over 300 MB", memory_mb <= 300, f"{memory_mb:.0f} MB"
    versions = [getattr(row.event, "version", 0) for row in rows if row.event.kind == "belief_changed"]
    yield "no belief twice or torn", versions == list(range(1, len(versions) + 1)), f"version {len(versions)}"


async def judged(folder: Path, seen: Seen, settled: bool, lives: bool) -> list[tuple[str, bool, str]]:
    return [row async for row in judge(folder, seen, settled, lives)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utterances", type=int, default=300)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=0.08, help="how often a stage fails")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    faults = Faults(given.seed, given.faults, given.rate)
    with tempfile.TemporaryDirectory() as place:
        seen, settled, lives = asyncio.run(talk(Path(place), given.utterances, faults))
        rows = asyncio.run(judged(Path(place), seen, settled, lives))
    print(file=sys.stderr)
    if given.json:
        report = {name: {"held": held, "figures": figures} for name, held, figures in rows}
        print(json.dumps({"faults": faults.made.total(), "refused": seen.refused, "broken": seen.broken, **report}))
    else:
        kinds, stages = Counter[str](), Counter[str]()
        for (stage, kind), count in faults.made.items():
            kinds[kind] += count
            stages[stage] += count
        print(f"{faults.made.total()} faults of {len(kinds)} kinds at {len(stages)} stages")
        print(f"refused at the door: {dict(seen.refused)}; broke off: {dict(seen.broken)}")
        for name, held, figures in rows:
            print(f"{'held  ' if held else 'FAILED'} | {name} | {figures}")
    sys.exit(0 if all(held for _, held, _ in rows) else 1)


if __name__ == "__main__":
    main()
