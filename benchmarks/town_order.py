"""Measure the out-of-order scheduler of towns: on a published trace without a model, and for a day with a model server.

    python benchmarks/town_order.py --trace trace_25x3000.npz --json [--plot docs/town-order.svg]
    python benchmarks/town_order.py --day --json [--town smallville] [--steps 8640] [--slots 32] [--lives scenes]

`--trace`: a recorded run of 25 residents (positions, and number of model calls by resident and step). A call takes one
unit of simulated time; a resident's calls of a step follow each other. 25: all steps. 50 and 100: two and four copies,
1,000 tiles apart, of the steps from 2,160 on; each copy begins 40 steps later. `critical_path`: the longest sum of one
resident's calls. `true_path`: the longest chain if residents wait only for those who are within the radius. `bound`:
the makespan of the same rule without a limit of slots. During the replay random pairs of residents at different steps
are checked against the rule dist > radius + (steps apart - 1).

`--day`: a town in lock-step and out of order, in real time. Rules that behave like a model write the replies, and a
local HTTP server delivers them with latencies from 0.4 to 4 s (lognormal, median 1.2 s), equal for equal requests. With
`--simulated` there is no server: the clock of the event loop jumps over the latencies, and other work takes no time.
`critical_path`: the longest sum of latencies of one resident's calls and conversations. `waiting`: lock-step in which
each step waits for all calls that it has started, as if every reply were needed in the next step.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import math
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from mindstream_town.inspect.estimate import LIVED, Counting
from mindstream_town.packs import open_setting
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.scenes.prompts import TalkScene
from mindstream_town.scheduler import Group, Scheduler
from mindstream_town.town import Order, Town
from mindstream_town.world.tree import Spot

from mindstream import chance
from mindstream.arrays import Ints
from mindstream.models.model import Distribution, Part, Piece, Request, current_cause
from mindstream.models.providers.provider import provider
from mindstream.models.roles import Models

RADIUS, GAP, SHIFT, SIX_O_CLOCK = 8, 1_000, 40, 2_160
SLOTS = (8, 16, 32, 64)
PUBLISHED = {
    "lock-step": {"25": 1909, "50": 2789, "100": 4410},
    "out of order": {"25": 1236, "50": 892, "100": 843},
    "critical path": {"25": 383, "50": 287, "100": 273},
}
PAIRS_AT_ONCE = 1_000
PAUSE_S = 0.01
"""Time in which threads of the store are awaited before the simulated clock jumps."""


def apart(spot: Spot, across: Ints, down: Ints) -> Ints:
    """Return the distance in steps without knowledge of walls, as in AI Metropolis."""
    straight = np.maximum(np.abs(across - spot[0]), np.abs(down - spot[1]))
    steps: Ints = np.maximum(straight - RADIUS - 1, 0)
    return steps


@dataclass
class Replay:
    """A replay of a trace in simulated time, and the time that the scheduler takes.

    Args:
        spots: [resident, step, 2]. calls: [resident, step].
        slots: maximum number of simultaneous calls.
    """

    spots: Ints
    calls: Ints
    slots: int = 2**30
    checks: bool = False
    now: int = 0
    seconds: float = 0.0
    pairs: int = 0
    violations: int = 0
    _queue: list[tuple[int, Group, str]] = field(default_factory=list)
    _running: list[tuple[int, int, Group, str, int]] = field(default_factory=list)

    def run(self) -> Replay:
        residents, steps = self.calls.shape
        self._names = [str(number) for number in range(residents)]
        self._walk = {name: [(x, y) for x, y in self.spots[n].tolist()] for n, name in enumerate(self._names)}
        self._work = {name: self.calls[n].tolist() for n, name in enumerate(self._names)}
        self._scheduler = Scheduler(apart, dict.fromkeys(self._names, 0), [self._walk[n][0] for n in self._names])
        left, number = Counter[Group](), count()
        while True:
            for group in self._groups(steps):
                busy = [name for name in group.members if self._work[name][group.step]]
                if not busy:
                    self._done(group)
                left[group] = len(busy)
                self._queue += ((self._work[name][group.step], group, name) for name in busy)
            self._start(number)
            if not self._running:
                return self
            self._check()
            self.now = self._running[0][0]
            while self._running and self._running[0][0] == self.now:
                _, _, group, name, more = heapq.heappop(self._running)
                if more:
                    self._queue.append((more, group, name))
                    continue
                left[group] -= 1
                if not left[group]:
                    self._done(group)

    def _groups(self, steps: int) -> Iterator[Group]:
        groups, began = self._scheduler.groups(steps), time.process_time()
        for group in groups:
            self.seconds += time.process_time() - began
            yield group
            began = time.process_time()
        self.seconds += time.process_time() - began

    def _done(self, group: Group) -> None:
        began = time.process_time()
        self._scheduler.done(group, group.step + 1, [self._walk[name][group.step + 1] for name in group.members])
        self.seconds += time.process_time() - began

    def _start(self, number: Iterator[int]) -> None:
        """Give the free slots to the calls for which most residents wait."""
        free = self.slots - len(self._running)
        if len(self._queue) > free:
            self._queue.sort(key=lambda each: self._scheduler.rank(each[1]))
        starting, self._queue = self._queue[:free], self._queue[free:]
        for calls, group, name in starting:
            heapq.heappush(self._running, (self.now + 1, next(number), group, name, calls - 1))

    def _check(self) -> None:
        if not self.checks:
            return
        one, two = np.random.default_rng(self.now).integers(0, len(self._names), (2, PAIRS_AT_ONCE))
        order = self._scheduler
        ahead = np.abs(order.steps[one] - order.steps[two])
        far = np.maximum(np.abs(order.across[one] - order.across[two]), np.abs(order.down[one] - order.down[two]))
        self.pairs += int((ahead > 0).sum())
        self.violations += int(((ahead > 0) & (far <= RADIUS + ahead - 1)).sum())


def copied(spots: Ints, calls: Ints, copies: int) -> tuple[Ints, Ints]:
    """Return the trace; of several copies, each begins later in the morning and 1,000 tiles further."""
    if copies == 1:
        return spots, calls
    steps = calls.shape[1] - SIX_O_CLOCK - SHIFT * (copies - 1)
    begins = [SIX_O_CLOCK + SHIFT * number for number in range(copies)]
    moved = [spots[:, at : at + steps + 1] + np.array([GAP * n, 0]) for n, at in enumerate(begins)]
    return np.concatenate(moved), np.concatenate([calls[:, at : at + steps] for at in begins])


def true_path(spots: Ints, calls: Ints) -> int:
    """Return the longest chain of calls if residents wait only for those who are in sight."""
    ends = np.zeros(len(calls), dtype=np.int64)
    for step in range(calls.shape[1]):
        here = spots[:, step]
        near = np.abs(here[:, None] - here[None]).max(axis=2) <= RADIUS
        ends = np.where(near, ends[None], 0).max(axis=1) + calls[:, step]
    return int(ends.max())


def measure_trace(file: Path) -> dict[str, Any]:
    """Replay the trace with the scheduler."""
    with np.load(file) as trace:
        spots, calls = trace["pos"].astype(np.int64), trace["calls"].astype(np.int64)
    names = ("makespan", "critical_path", "true_path", "bound", "lock_step", "calls", "slots", "us_per_agent_step_by")
    report: dict[str, Any] = {name: {} for name in names} | {"violations": 0, "pairs": 0, "published": PUBLISHED}
    for copies in (1, 2, 4):
        here, asked = copied(spots, calls, copies)
        size, by_slots = str(len(asked)), {slots: Replay(here, asked, slots).run() for slots in SLOTS}
        free = Replay(here, asked, checks=True).run()
        report["makespan"][size] = by_slots[SLOTS[-1]].now
        report["bound"][size] = free.now
        report["slots"][size] = {str(slots): each.now for slots, each in by_slots.items()}
        report["critical_path"][size] = int(asked.sum(axis=1).max())
        report["true_path"][size] = true_path(here, asked)
        report["lock_step"][size] = int(asked.max(axis=0).sum())
        report["calls"][size] = int(asked.sum())
        report["us_per_agent_step_by"][size] = round(by_slots[SLOTS[-1]].seconds / asked.size * 1e6, 1)
        report["violations"] += free.violations
        report["pairs"] += free.pairs
    report["us_per_agent_step"] = max(report["us_per_agent_step_by"].values())
    return report


def latency_s(text: str) -> float:
    """Return a latency for a request: lognormal with median 1.2 s, between 0.4 and 4 s."""
    return min(4.0, max(0.4, random.Random(chance.fraction("latency", text)).lognormvariate(math.log(1.2), 0.6)))


class OverHttp:
    """A model that asks a local OpenAI-compatible server; rules that behave like a model write the server's replies.

    Args:
        slots: number of requests that the server answers at the same time.
    """

    name = "openai-compatible"

    def __init__(self, slots: int) -> None:
        self._mind, self._answers, self._slots = Counting(name=LIVED), dict[str, str](), asyncio.Semaphore(slots)
        self.calls, self.most, self._now, self.chains = 0, 0, 0, Counter[str]()

    async def __aenter__(self) -> OverHttp:
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._client = provider(f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1#any")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        await self._runner.cleanup()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        said, text = "", "\n".join(each.text for each in request.messages)
        async with aclosing(self._mind.reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    said += part.text
                elif isinstance(part, Distribution):
                    said = max(part.weights, key=lambda each: each[1])[0]
        self._answers[text] = said
        ask = request.prompt
        names = {current_cause().resident} | ({side.who for side in ask.sides} if isinstance(ask, TalkScene) else set())
        self.chains.update(dict.fromkeys(names, latency_s(text)))
        async with aclosing(self._ask(request, text)) as parts:
            async for part in parts:
                yield part

    def _ask(self, request: Request, text: str) -> AsyncGenerator[Part]:  # noqa: ARG002
        return self._client.reply(request)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        text = "\n".join(each["content"] for each in body["messages"])
        async with self._slots:
            self.calls, self._now = self.calls + 1, self._now + 1
            self.most = max(self.most, self._now)
            await asyncio.sleep(latency_s(text))
            self._now -= 1
        choice = {"index": 0, "finish_reason": "stop"}
        if not body.get("stream"):
            message = {"role": "assistant", "content": self._answers[text]}
            return web.json_response({"id": "c", "choices": [choice | {"message": message}]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "any"}
        chunk["choices"] = [choice | {"delta": {"role": "assistant", "content": self._answers[text]}}]
        await response.write(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())
        return response


class Waits(OverHttp):
    """A model that waits for the latency instead of asking a server."""

    async def _ask(self, request: Request, text: str) -> AsyncGenerator[Part]:  # noqa: ARG002
        async with self._slots:
            self.calls += 1
            await asyncio.sleep(latency_s(text))
        yield Piece(self._answers[text])


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when neither tasks nor threads have work."""

    _now, _jobs = 0.0, 0
    is_writing: Callable[[], bool] = staticmethod(lambda: False)
    """Whether the town waits for the thread of the store that writes."""

    def time(self) -> float:
        return self._now

    def run_in_executor(self, *given: Any) -> Any:  # type: ignore[override]
        job = super().run_in_executor(*given)
        self._jobs += 1
        job.add_done_callback(self._ended)
        return job

    def _ended(self, _: object) -> None:
        self._jobs -= 1

    def _run_once(self) -> None:
        inner: Any = self
        if not inner._ready and inner._scheduled:
            is_busy = self._jobs or self.is_writing()
            if events := inner._selector.select(None if is_busy else PAUSE_S):
                inner._process_events(events)
            else:
                self._now = max(self._now, inner._scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


def wait_in_each_step(town: Town) -> None:
    """Let each step of a town wait for all calls that it has started."""
    clockwork = town._clockwork
    live = clockwork._live

    async def wait(names: Sequence[str], step: int, turns: dict[str, ResidentTurn]) -> Any:
        found = await live(names, step, turns)
        await asyncio.gather(*(call for each in town.residents.values() for call in each.later.values()))
        return found

    vars(clockwork)["_live"] = wait


async def live(given: argparse.Namespace, order: Order, *, waits: bool) -> dict[str, Any]:
    """Run a town in an order; return the measurements.

    Args:
        waits: whether each step waits for all calls that it has started.
    """
    setting = open_setting(given.town, seed=given.seed)
    setting = replace(setting, profile=setting.profile.model_copy(update={"lives": given.lives}))
    with tempfile.TemporaryDirectory() as folder:
        async with (
            (Waits if given.simulated else OverHttp)(given.slots) as model,
            Town.open(folder, setting, model=Models(model), order=order, slots=given.slots) as town,
        ):
            loop = asyncio.get_running_loop()
            if isinstance(loop, JumpingLoop):
                loop.is_writing = lambda: (task := town._writing._task) is not None and not task.done()
            if waits:
                wait_in_each_step(town)
            clock = loop.time
            began, cpu = clock(), time.process_time()
            await town.run(until=given.steps - 1)
            return {
                "seconds": round(clock() - began, 1), "cpu_seconds": round(time.process_time() - cpu, 1),
                "calls": model.calls, "most_at_once": model.most,
                "critical_path": round(max(model.chains.values()), 1), "digest": await town.digest(),
            }  # fmt: skip


def measure_day(given: argparse.Namespace) -> dict[str, Any]:
    """Run the same day out of order, in lock-step, and in lock-step with steps that wait for all their calls."""
    report: dict[str, Any] = {"slots": given.slots, "steps": given.steps, "load": os.getloadavg()[0]}
    orders: dict[str, tuple[Order, bool]] = {
        "free": ("free", False), "lockstep": ("lockstep", False), "waiting": ("lockstep", True),
    }  # fmt: skip
    for name, (order, waits) in orders.items():
        with asyncio.Runner(loop_factory=JumpingLoop if given.simulated else None) as runner:
            report[name] = runner.run(live(given, order, waits=waits))
    report["same_journal"] = len({report[name]["digest"] for name in orders}) == 1
    report["faster_than_waiting"] = round(report["waiting"]["seconds"] / report["free"]["seconds"], 2)
    report["faster"] = round(report["lockstep"]["seconds"] / report["free"]["seconds"], 2)
    report["share_of_critical_path"] = round(report["free"]["critical_path"] / report["free"]["seconds"], 2)
    return report


COLOURS = {"lock-step": "#b0b8c0", "out of order": "#1764ab", "critical path": "#2e8b57"}


def draw(report: dict[str, Any]) -> str:
    """Draw the makespans next to the published ones, as SVG."""
    bars, width = list[str](), 900
    measured = zip(COLOURS, ("lock_step", "makespan", "critical_path"), strict=True)
    rows = [(kind, size, report[key][size], PUBLISHED[kind][size]) for kind, key in measured for size in report[key]]
    for at, (kind, size, found, published) in enumerate(sorted(rows, key=lambda row: int(row[1]))):
        y, scale = 40 + at * 34 + 14 * (at // 3), 0.13
        bars += [
            f'<text x="8" y="{y + 16}">{size} residents, {kind}</text>',
            f'<rect x="210" y="{y}" width="{found * scale:.0f}" height="13" fill="{COLOURS[kind]}"/>',
            f'<rect x="210" y="{y + 14}" width="{published * scale:.0f}" height="6" fill="#999"/>',
            f'<text x="{218 + found * scale:.0f}" y="{y + 12}">{found:,} (published {published:,})</text>',
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 400" font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="400" fill="#fff"/><text x="8" y="22" font-size="15">Makespan on the published '
        f"trace: one unit per model call, 64 slots (grey: published)</text>{''.join(bars)}</svg>\n"
    )


def main(typed: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="the recorded run to replay")
    parser.add_argument("--plot", type=Path, help="write a figure of the makespans to this file")
    parser.add_argument("--day", action="store_true", help="run a day with a model server")
    parser.add_argument("--town", default="smallville", help="a bundled town, or a file [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the town [%(default)s]")
    parser.add_argument("--steps", type=int, default=8_640, help="steps of the day [%(default)s]")
    parser.add_argument("--slots", type=int, default=32, help="simultaneous calls [%(default)s]")
    parser.add_argument("--lives", choices=("scenes", "paper"), default="scenes", help="mode [%(default)s]")
    parser.add_argument("--simulated", action="store_true", help="run the day in simulated time, without a server")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(typed)
    if not given.trace and not given.day:
        parser.error("name a trace (--trace FILE), or add --day")
    report = measure_trace(given.trace) if given.trace else {}
    if given.plot and given.trace:
        given.plot.write_text(draw(report), "utf-8")
    if given.day:
        report["day"] = measure_day(given)
    print(json.dumps(report, indent=None if given.json else 1))


if __name__ == "__main__":
    main()
