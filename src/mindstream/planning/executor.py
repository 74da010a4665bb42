"""Runs planned steps: each as soon as what it needs is there, side by side, whatever tools do (spec: Kim 2024, 3.2).

A step may be begun while the planner still writes the next one. What fails is evidence that says so; what needs it is
not called, unless the evidence only stands among other words: then these say that it is missing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from mindstream.clock import SystemClock
from mindstream.errors import BudgetSpent, InputError
from mindstream.memory.lease import LEASE_S
from mindstream.models.model import Call
from mindstream.planning.arguments import Reference, bind, find_parts
from mindstream.planning.batches import Batches
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.text.links import links
from mindstream.tools.call import Observation, call_tool
from mindstream.tools.given_addresses import addresses_of, refusal_of, ungiven
from mindstream.tools.tool import PLAIN, Tool, Traits, checked_tools, traits_of


class RunWatcher(Protocol):
    """Told of a run as it goes on. What one of them raises ends the run: a log that cannot be written must."""

    async def planned(self, plan: Plan, because: str) -> None:
        """A plan was made, or changed, because of something."""

    async def missed(self, steps: Collection[str]) -> None:
        """The answer was missing from what these steps found: the plan is about to be mended."""

    async def kept(self) -> None:
        """Nothing of the plan was mended."""

    async def began(self, step: PlannedStep, arguments: str) -> None:
        """A tool is about to be called, with these arguments as JSON: what stands here may have happened."""

    async def found(self, evidence: Evidence) -> None:
        """A step has its evidence, or failed."""


class Unwatched:
    """A watcher that does nothing; others inherit what they do not care about."""

    async def planned(self, plan: Plan, because: str) -> None:
        pass

    async def missed(self, steps: Collection[str]) -> None:
        pass

    async def kept(self) -> None:
        pass

    async def began(self, step: PlannedStep, arguments: str) -> None:
        pass

    async def found(self, evidence: Evidence) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Wish:
    """A call that changes the world, and wants leave.

    Attributes:
        arguments: what the tool would be called with, as JSON, evidence filled in.
        foreign: words of strangers stand in the arguments.
        address: why approval is needed for a call that only reads: nobody trusted gave this address.
    """

    step: PlannedStep
    arguments: str
    foreign: bool
    address: str = ""


Approver: TypeAlias = Callable[[Wish], Awaitable[bool]]
"""Says whether a call may be made."""


def refusal(wish: Wish) -> str:
    """Say that a call was not made, and what would let it."""
    if wish.address:
        return refusal_of(wish.address)
    if wish.foreign:
        return "not called: it changes the world, words of strangers fill its arguments, and nobody gave leave for it"
    return f"not called: it changes the world, and nobody gave leave for it (--allow {wish.step.tool} does)"


async def refuse(_: Wish) -> bool:
    """Give no leave: what stands in where there is nobody to ask."""
    return False


def allow(tools: Collection[str], otherwise: Approver = refuse) -> Approver:
    """Give leave to these tools, except where words of strangers fill their arguments; ask `otherwise` for the rest."""

    async def leave(wish: Wish) -> bool:
        return (wish.step.tool in tools and not wish.foreign) or await otherwise(wish)

    return leave


def one_at_a_time(leave: Approver) -> Approver:
    """Ask for the next call when the one before is answered: a person reads one question at a time."""
    asking = asyncio.Lock()

    async def ask(wish: Wish) -> bool:
        async with asking:
            return await leave(wish)

    return ask


CLOCK = SystemClock()
_encode = json.JSONEncoder(ensure_ascii=False).encode
EMPTY = "the tool gave nothing"
MOST_WRITTEN = 5_000_000
"""So long may the arguments of a plan's calls be together: a short plan can name long evidence often."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may do at once, and how long one call may take where its tool does not say.

    Attributes:
        lease_s: how long the run stays with this process when it dies; then another may go on with it.
    """

    at_once: int = 16
    timeout_s: float = 30.0
    lease_s: float = LEASE_S


LIMITS = Limits()
Knows = Callable[[PlannedStep, Evidence], Awaitable[str]]
"""Says what is known of a step that failed, "" where that is nothing."""


class Executor:
    """Runs steps that are handed to it with `begin`, then `finish`.

    Args:
        run: the run's name, a part of the idempotency key of a call (see `key_of`).
        found: evidence from before; its steps are not run again.
        foreign: the plan is not trusted (`Plan.foreign`): each call that changes something is asked about.
        instead: says what is known of a step that failed; None: it stays failed.
        take_call: counts one call of a tool, and what it costs; raises BudgetSpent where no more is allowed.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        run: str = "run",
        limits: Limits | None = None,
        leave: Approver = refuse,
        watchers: Sequence[RunWatcher] = (),
        found: Mapping[str, Evidence] | None = None,
        foreign: bool = False,
        take_call: Callable[[float], None] = lambda _: None,
        instead: Knows | None = None,
    ) -> None:
        self.evidence: dict[str, Evidence] = dict(found or {})
        self._tools = {tool.spec.name: tool for tool in checked_tools(tools)}
        self._run, self._limits, self._leave, self._watchers = run, limits or Limits(), leave, watchers
        self._take_call, self._instead, self._foreign = take_call, instead, foreign
        self._written = 0
        self._free = asyncio.Semaphore(self._limits.at_once)
        self._free_of: dict[str, asyncio.Semaphore] = {}
        self._batches = Batches()
        self._steps: dict[str, PlannedStep] = {}
        self._needs: dict[str, tuple[str, ...]] = {}
        self._settled = dict(self.evidence)  # what may be built on: its watchers have been told
        self._waiting: dict[str, PlannedStep] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._ended: list[asyncio.Task[None]] = []

    def begin(self, step: PlannedStep) -> None:
        """Run a step as soon as what it needs has been found; one that was begun, or has its evidence, is left."""
        if step.id not in self._steps and step.id not in self._settled:
            self._steps[step.id] = self._waiting[step.id] = step
            self._needs[step.id] = step.needs
            self._start(step)

    def has_begun(self, step: PlannedStep) -> bool:
        """Tell whether this very step was begun; another one may have its id."""
        return self._steps.get(step.id) is step

    def fail(self, step: PlannedStep, why: str) -> Evidence:
        """Give a step that cannot be called as it is planned the reason for its evidence; if it runs, it is ended."""
        if running := self._running.pop(step.id, None):
            running.cancel()
            self._ended.append(running)
        self._waiting.pop(step.id, None)
        self._steps.setdefault(step.id, step)
        self.evidence[step.id] = Evidence(step.id, why, failed=True, tool=step.tool)
        self._settle(self.evidence[step.id])
        return self.evidence[step.id]

    async def finish(self) -> dict[str, Evidence]:
        """Wait for all steps: no more are to come, so what waits for one that was never begun has waited in vain.

        Raises:
            Whatever a watcher raised; the other steps are broken off.
        """
        wanted = {need for needs in self._needs.values() for need in needs}
        for id in wanted - self._steps.keys() - self._settled.keys():
            self._settle(Evidence(id, f"no step {id} was planned", failed=True))
        try:
            while self._running:
                done, _ = await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            knotted, self._waiting = self._waiting, {}
            for id in knotted:
                await self._keep(Evidence(id, "it waits for itself, by way of others", failed=True))
        finally:
            await self.stop()
        return self.evidence

    async def stop(self, why: str = "") -> None:
        """Break off what runs; `why` becomes the evidence of all that is not there yet."""
        self._waiting.clear()
        tasks = [*self._running.values(), *self._ended]
        for task in tasks:
            task.cancel()
        await self._batches.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
        for step in self._steps.values():
            if why and step.id not in self.evidence:
                self.evidence[step.id] = Evidence(step.id, why, failed=True, tool=step.tool)

    def _start(self, step: PlannedStep) -> None:
        """Run a step that waits, if all that it needs is there."""
        if all(id in self._settled for id in self._needs[step.id]):
            del self._waiting[step.id]
            self._running[step.id] = asyncio.create_task(self._run_step(step))

    async def _run_step(self, step: PlannedStep) -> None:
        evidence = await self._find(step, {id: self._settled[id] for id in self._needs[step.id]})
        if evidence.failed and self._instead and (known := await self._instead(step, evidence)):
            evidence = replace(evidence, text=known, failed=False, own=True)
        await self._keep(evidence)
        del self._running[step.id]  # one that raised stays, for `finish` to raise it

    async def _keep(self, evidence: Evidence) -> None:
        """Keep a step's evidence, tell the watchers, and only then start what waited for it."""
        self.evidence[evidence.step] = evidence
        for watcher in self._watchers:
            await watcher.found(evidence)
        self._settle(evidence)

    def _settle(self, evidence: Evidence) -> None:
        """Start what waited for a step."""
        self._settled[evidence.step] = evidence
        for step in tuple(self._waiting.values()):
            self._start(step)

    async def _find(self, step: PlannedStep, needed: Mapping[str, Evidence]) -> Evidence:
        tool = self._tools.get(step.tool)
        traits = traits_of(tool)
        foreign = any(each.foreign for each in needed.values())

        def failed(why: str, arguments: Mapping[str, JsonValue] | None = None, tries: int = 0) -> Evidence:
            return Evidence(step.id, why, True, foreign, step.tool, arguments or {}, tries)

        if tool is None:
            return failed(f"there is no tool {step.tool!r}; there are: {', '.join(self._tools) or 'none'}")
        if broken := _cannot_do_without(step, needed):
            return failed(f"not called: it needs {', '.join(f'#{each.step}' for each in broken)}, which failed")
        texts = {id: f"(nothing: {each.text})" if each.failed else each.text for id, each in needed.items()}
        try:
            arguments = bind(step.arguments, texts)
        except InputError as error:
            return failed(f"not called: {error}")
        if traits.key and traits.key in tool.spec.parameters.get("properties", {}):
            arguments[traits.key] = key_of(self._run, step.id, {**arguments, traits.key: ""})
        written = _encode(arguments)
        self._written += len(written)
        if self._written > MOST_WRITTEN:
            return failed(
                f"not called: the arguments of this plan's calls have over {MOST_WRITTEN:,} characters together"
            )
        untrusted = foreign or self._foreign
        wish = Wish(step, written, untrusted, self._ungiven(step, tool, written, needed) if untrusted else "")
        if (traits.changes or wish.address) and not await self._leave(wish):
            return failed(refusal(wish), arguments)
        began = CLOCK.elapsed()
        observed, tries = await self._observe(step, tool, traits, written)
        seconds = CLOCK.elapsed() - began
        foreign = foreign or observed.foreign
        return Evidence(step.id, observed.text, observed.failed, foreign, step.tool, arguments, tries, seconds)

    def _ungiven(self, step: PlannedStep, tool: Tool, written: str, needed: Mapping[str, Evidence]) -> str:
        """Return an address of a call that neither the plan nor a search gave; "" where there is none."""
        found = links(each.text for each in needed.values() if traits_of(self._tools.get(each.tool)).finds)
        planned = frozenset[str]() if self._foreign else addresses_of(dict(step.arguments))
        return ungiven(tool, written, found | planned)

    async def _observe(self, step: PlannedStep, tool: Tool, traits: Traits, written: str) -> tuple[Observation, int]:
        """Call a tool, again where it failed and may be; return what came of it, and how often it was called."""
        wanted = 1 + (traits.retries if traits.key or not traits.changes else 0)
        observed = Observation("", failed=True)
        for attempt in range(1, wanted + 1):
            async with self._free_for(step.tool, traits):
                try:
                    self._take_call(traits.cost_usd or 0.0)
                except BudgetSpent as error:
                    return Observation(f"not called: {error}", failed=True), attempt - 1
                for watcher in self._watchers:
                    await watcher.began(step, written)
                observed = await self._called(Call(step.tool, written, step.id), tool, traits)
            if not observed.failed:
                break
        return observed, attempt

    async def _called(self, call: Call, tool: Tool, traits: Traits) -> Observation:
        timeout_s = traits.timeout_s or self._limits.timeout_s
        if traits.batch:
            observed = await self._batches.call(call, traits.batch, timeout_s)
            observed = replace(observed, foreign=observed.foreign or traits.foreign)
        else:
            async with self._free:
                observed = await call_tool(call, [tool], timeout_s)
        return observed if observed.failed or observed.text.strip() else replace(observed, text=EMPTY, failed=True)

    def _free_for(self, tool: str, traits: Traits = PLAIN) -> asyncio.Semaphore:
        """Return what is held while one of a tool's calls goes on."""
        if tool not in self._free_of:
            self._free_of[tool] = asyncio.Semaphore(traits.at_once if not traits.batch else 10_000)
        return self._free_of[tool]


def key_of(run: str, step: str, arguments: Mapping[str, JsonValue]) -> str:
    """Make the idempotency key of a call: a step that is called with something else has another one."""
    written = json.dumps(arguments, sort_keys=True, ensure_ascii=False).encode(errors="replace")
    return f"{run}/{step}/{blake2b(written, digest_size=6).hexdigest()}"


def _cannot_do_without(step: PlannedStep, needed: Mapping[str, Evidence]) -> list[Evidence]:
    """Return the failed evidence that a step cannot be called without: where it is not one piece of a text."""
    failed = [each for each in needed.values() if each.failed]
    whole = {part.step for _, part in find_parts(step.arguments) if isinstance(part, Reference)} if failed else ()
    return [each for each in failed if each.step in whole or each.step in step.after]
