"""Run planned steps in parallel, each as soon as the steps that it needs have evidence (Kim 2024, 3.2).

A step may begin while the planner still writes the next one. If a step fails, it gets evidence that is marked as
failed. A step that needs failed evidence is not called, unless it only inserts the evidence into a longer text; then a
remark in that text says that the evidence is missing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from json.encoder import encode_basestring as _quote

from pydantic import JsonValue

from mindstream.clock import SystemClock
from mindstream.errors import BudgetSpent, InputError
from mindstream.foreign_code import ForeignFailure, ForeignTask
from mindstream.guidance import LOCATED, unlocated
from mindstream.json_values import JsonObject
from mindstream.memory.lease import LEASE_S
from mindstream.models.fitting import fit
from mindstream.models.model import Call
from mindstream.moved import renamed
from mindstream.planning.plan import Evidence, Plan, PlannedStep, Reference, insert
from mindstream.text.links import links
from mindstream.text.words import batches, count_of
from mindstream.together import cancel_all
from mindstream.tools.call import (
    Approver,
    Observation,
    ToolRequest,
    addresses_of,
    observe_call,
    observe_text,
    refusal_of,
    refuse,
    ungiven,
)
from mindstream.tools.call import allow as allow  # re-exported
from mindstream.tools.tool import PLAIN, Batch, Tool, Traits, checked_tools, key_argument, traits_of

MAX_BATCH = 32
"""Maximum number of calls in a batch."""


@dataclass
class Batches:
    """Collect the calls of a tool that are ready at the same moment, and make them in batches of up to MAX_BATCH."""

    _gathered: dict[str, list[tuple[Call, asyncio.Future[Observation]]]] = field(default_factory=dict)
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def call(self, call: Call, batch: Batch, timeout_s: float) -> Observation:
        """Make a call in a batch with other calls of the same tool; return the result or failure of the call."""
        came: asyncio.Future[Observation] = asyncio.get_running_loop().create_future()
        gathered = self._gathered.setdefault(call.tool, [])
        gathered.append((call, came))
        if len(gathered) == 1:
            asyncio.get_running_loop().call_soon(self._flush, call.tool, batch, timeout_s)
        return await came

    def _flush(self, tool: str, batch: Batch, timeout_s: float) -> None:
        gathered = [each for each in self._gathered.pop(tool) if not each[1].done()]  # done: its caller was cancelled
        for some in batches(gathered, MAX_BATCH):
            task = asyncio.ensure_future(_run_batch(some, batch, timeout_s))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def stop(self) -> None:
        """Cancel the batches in progress."""
        await cancel_all(*self._running)


async def _run_batch(
    gathered: Sequence[tuple[Call, asyncio.Future[Observation]]], batch: Batch, timeout_s: float
) -> None:
    calls = [call for call, _ in gathered]

    async def work() -> Sequence[str]:
        return await batch(calls)

    try:
        results: object = await ForeignTask(work).result(timeout_s)
    except ForeignFailure as error:
        results = [Observation(f"{calls[0].tool} failed: {error}", failed=True)] * len(calls)
    if not isinstance(results, list | tuple) or len(results) != len(calls):
        came_back = count_of(len(results), "result") if isinstance(results, list | tuple) else type(results).__name__
        wanted = count_of(len(calls), "result")
        words = f"{calls[0].tool} failed: expected a list of {wanted}, one per call; it returned {came_back}"
        results = [Observation(words, failed=True)] * len(calls)
    for (call, came), result in zip(gathered, results, strict=True):
        if not came.done():
            came.set_result(_batch_result(call, result))


def _batch_result(call: Call, result: object) -> Observation:
    if isinstance(result, Observation):
        return result
    if isinstance(result, str):
        return observe_text(result)
    return Observation(f"{call.tool} failed: expected text as its result, found {type(result).__name__}", failed=True)


class RunWatcher:
    """Receives notifications of a run's progress. A subclass overrides the methods that it needs.

    If a method raises an exception, the run ends. A run must not continue if its log cannot be written.
    """

    async def planned(self, plan: Plan, because: str) -> None:
        """Note that a plan was made or changed; `because`: the reason."""

    async def missed(self, steps: Collection[str]) -> None:
        """Note that the evidence of these steps lacks the answer, and that the plan is about to be revised."""

    async def kept(self) -> None:
        """Note that a revision left the plan unchanged."""

    async def began(self, step: PlannedStep, arguments: str) -> None:
        """Note that a tool is about to be called with these arguments (JSON). From now on, the call may have its
        effect."""

    async def found(self, evidence: Evidence) -> None:
        """Note the evidence of a step; `evidence.failed` says whether the step failed."""


@dataclass(frozen=True, kw_only=True)
class Wish(ToolRequest):
    """A planned call that needs approval. In its arguments, references are already replaced by evidence."""

    step: PlannedStep


def refusal(wish: Wish) -> str:
    """Return the message for a call that was not approved: the reason, and the flag or argument that allows
    the call (if any)."""
    if wish.address:
        return refusal_of(wish.address)
    if wish.foreign:
        return (
            "not called: the tool changes the world, its arguments contain third-party content, and the call was not"
            " approved"
        )
    way = f"approve=[{wish.tool!r}]" if LOCATED.get() is unlocated else f"--allow {wish.tool}"
    return f"not called: the tool changes the world, and the call was not approved; allow it with {way}"


CLOCK = SystemClock()
_encode_any = json.JSONEncoder(ensure_ascii=False).encode
EMPTY = "the tool returned an empty result"
MOST_WRITTEN = 5_000_000
"""Maximum total length of the arguments of a plan's calls, in characters. Without it, a short plan could insert long
evidence many times."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run.

    Attributes:
        at_once: maximum number of concurrent calls; calls in batches are not counted.
        timeout_s: timeout of a call in seconds, for tools that do not set their own.
        lease_s: duration of the lease on the run, in seconds. If this process dies, another process may resume the run
            after that time.
    """

    at_once: int = 16
    timeout_s: float = 30.0
    lease_s: float = LEASE_S


LIMITS = Limits()
Knows = Callable[[PlannedStep, Evidence], Awaitable[str]]
"""Asks a model for its own knowledge in place of a failed step's evidence; returns "" if it has none."""


class Executor:
    """Run the steps that are passed to `begin`; `finish` waits for them and returns their evidence.

    Args:
        run: the run's name, part of the idempotency keys of calls (see `key_of`).
        approve: decides about calls that need approval.
        found: evidence that steps have already, by step id; these steps are not run again.
        foreign: whether the plan is untrusted (`Plan.foreign`). Then the arguments of every call count as third-party
            content (`Wish.foreign`).
        take_call: counts one tool call and its cost; raises BudgetSpent if the limits allow no further call.
        instead: asks a model for its own knowledge about a failed step; None: the step stays failed.

    Attributes:
        evidence: the evidence by step id.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        run: str = "run",
        limits: Limits | None = None,
        approve: Approver = refuse,
        watchers: Sequence[RunWatcher] = (),
        found: Mapping[str, Evidence] | None = None,
        foreign: bool = False,
        take_call: Callable[[float], None] = lambda _: None,
        instead: Knows | None = None,
    ) -> None:
        self.evidence: dict[str, Evidence] = dict(found or {})
        self._tools = {tool.spec.name: tool for tool in checked_tools(tools)}
        self._run, self._limits, self._approve, self._watchers = run, limits or Limits(), approve, watchers
        self._take_call, self._instead, self._is_untrusted = take_call, instead, foreign
        self._written = 0
        self._free = asyncio.Semaphore(self._limits.at_once)
        self._free_of: dict[str, asyncio.Semaphore] = {}
        self._batches = Batches()
        self._steps: dict[str, PlannedStep] = {}
        self._needs: dict[str, tuple[str, ...]] = {}
        self._settled = dict(self.evidence)  # evidence that later steps may use
        self._waiting: dict[str, PlannedStep] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._finished: asyncio.Future[None] | None = None
        self._ended: list[asyncio.Task[None]] = []

    def begin(self, step: PlannedStep) -> None:
        """Run a step once the steps that it needs have evidence; ignore a step whose id was begun or has evidence."""
        if step.id not in self._steps and step.id not in self._settled:
            self._steps[step.id] = self._waiting[step.id] = step
            self._needs[step.id] = step.needs
            self._start(step)

    def has_begun(self, step: PlannedStep) -> bool:
        """Return whether this step object was begun (not another step with the same id)."""
        return self._steps.get(step.id) is step

    def fail(self, step: PlannedStep, why: str) -> Evidence:
        """Let a step fail because it cannot be called as planned; cancel the step if it runs. `why`: the reason."""
        if running := self._running.pop(step.id, None):
            running.cancel()
            self._ended.append(running)
        self._waiting.pop(step.id, None)
        self._steps.setdefault(step.id, step)
        self.evidence[step.id] = Evidence(step.id, why, failed=True, tool=step.tool)
        self._settle(self.evidence[step.id])
        return self.evidence[step.id]

    async def finish(self) -> dict[str, Evidence]:
        """Wait for all steps, and return their evidence.

        A step that others need but that was never begun counts as failed. Steps that wait for each other fail, too.

        Raises:
            Exception: an exception of a watcher, of the approver, or of the model that is asked about a failed step.
                The other steps are cancelled.
        """
        wanted = {need for needs in self._needs.values() for need in needs}
        for id in wanted - self._steps.keys() - self._settled.keys():
            self._settle(Evidence(id, f"no step {id} was planned", failed=True))
        try:
            for task in [task for task in self._running.values() if task.done()]:
                task.result()
            if self._running:
                self._finished = asyncio.get_running_loop().create_future()
                await self._finished
            circular, self._waiting = self._waiting, {}
            for id in circular:
                await self._keep(Evidence(id, "not called: it waits for steps that wait for each other", failed=True))
        finally:
            await self.stop()
        return self.evidence

    async def stop(self, why: str = "") -> None:
        """Cancel running steps. If `why` is given, all steps without evidence fail with `why` as the reason."""
        self._waiting.clear()
        await cancel_all(*self._running.values(), *self._ended)
        await self._batches.stop()
        for step in self._steps.values():
            if why and step.id not in self.evidence:
                self.evidence[step.id] = Evidence(step.id, why, failed=True, tool=step.tool)

    def _start(self, step: PlannedStep) -> None:
        """Run a waiting step if all steps that it needs have evidence."""
        if self._settled.keys() >= {*self._needs[step.id]}:
            del self._waiting[step.id]
            self._running[step.id] = asyncio.create_task(self._run_step(step))

    async def _run_step(self, step: PlannedStep) -> None:
        try:
            evidence = await self._find(step, {id: self._settled[id] for id in self._needs[step.id]})
            if evidence.failed and self._instead and (known := await self._instead(step, evidence)):
                evidence = replace(evidence, text=known, failed=False, own=True)
            await self._keep(evidence)
        except BaseException as error:
            # the task stays in `_running` unless `fail` cancelled it; `finish` raises the error
            if step.id in self._running and self._finished and not self._finished.done():
                self._finished.set_exception(error)
            raise
        del self._running[step.id]
        if not self._running and self._finished and not self._finished.done():
            self._finished.set_result(None)

    async def _keep(self, evidence: Evidence) -> None:
        """Store a step's evidence, notify the watchers, and then start the steps that waited for it."""
        self.evidence[evidence.step] = evidence
        for watcher in self._watchers:
            await watcher.found(evidence)
        self._settle(evidence)

    def _settle(self, evidence: Evidence) -> None:
        """Make evidence available to other steps, and start the steps that waited for it."""
        self._settled[evidence.step] = evidence
        for step in tuple(self._waiting.values()):
            self._start(step)

    async def _find(self, step: PlannedStep, needed: Mapping[str, Evidence]) -> Evidence:
        tool = self._tools.get(step.tool)
        traits = traits_of(tool)
        foreign = bool(needed) and any(each.foreign for each in needed.values())

        def failed(why: str, arguments: Mapping[str, JsonValue] | None = None) -> Evidence:
            return Evidence(step.id, why, True, foreign, step.tool, arguments or {})

        if tool is None:
            return failed(f"there is no tool {step.tool!r}; the tools are: {', '.join(self._tools) or 'none'}")
        if broken := _failed_essentials(step, needed):
            return failed(f"not called: it needs {', '.join(f'#{each.step}' for each in broken)}, which failed")
        texts = {id: f"(nothing: {each.text})" if each.failed else each.text for id, each in needed.items()}
        try:
            arguments = step.filled(lambda part: insert(part, texts))
        except InputError as error:
            return failed(f"not called: {error}")
        if traits.key and (key := key_argument(tool)):
            arguments[key] = key_of(self._run, step.id, {**arguments, key: ""})
        if tool.spec.checker.find_faults(arguments):  # evidence is text, also where a number is expected
            arguments = fit(arguments, tool.spec.parameters)
        written = _encode(arguments)
        self._written += len(written)
        if self._written > MOST_WRITTEN:
            return failed(
                f"not called: together, the arguments of this plan's calls exceed {MOST_WRITTEN:,} characters"
            )
        untrusted = foreign or self._is_untrusted
        address = self._ungiven(step, tool, written, needed) if untrusted else ""
        if traits.changes or address:
            wish = Wish(tool=step.tool, arguments=written, foreign=untrusted, address=address, step=step)
            if not await self._approve(wish):
                return failed(refusal(wish), arguments)
        began = CLOCK.elapsed()
        observed, tries = await self._observe(step, tool, traits, written)
        seconds = CLOCK.elapsed() - began
        foreign = foreign or observed.untrusted
        return Evidence(step.id, observed.text, observed.failed, foreign, step.tool, arguments, tries, seconds)

    def _ungiven(self, step: PlannedStep, tool: Tool, written: str, needed: Mapping[str, Evidence]) -> str:
        """Return an address in a call that comes neither from a trusted plan nor from a search; "": there is none."""
        found = links(each.text for each in needed.values() if traits_of(self._tools.get(each.tool)).finds)
        planned = frozenset[str]() if self._is_untrusted else addresses_of(dict(step.arguments))
        return ungiven(tool, written, found | planned)

    async def _observe(self, step: PlannedStep, tool: Tool, traits: Traits, written: str) -> tuple[Observation, int]:
        """Call a tool, with retries if the tool allows them; return the result and the number of calls."""
        wanted = 1 + (traits.retries if traits.key or not traits.changes else 0)
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
            observed = replace(observed, untrusted=observed.untrusted or traits.untrusted)
        else:
            async with self._free:
                observed = await observe_call(call, tool, timeout_s)
        return observed if observed.failed or observed.text.strip() else replace(observed, text=EMPTY, failed=True)

    def _free_for(self, tool: str, traits: Traits = PLAIN) -> asyncio.Semaphore:
        """Return the semaphore that limits the concurrent calls of a tool."""
        if tool not in self._free_of:
            self._free_of[tool] = asyncio.Semaphore(traits.at_once if not traits.batch else 10_000)
        return self._free_of[tool]


def _encode(arguments: JsonObject) -> str:
    """Return arguments as JSON text. If all values are texts, the JSON encoder, which is slower, is not used."""
    if any(type(value) is not str for value in arguments.values()):
        return _encode_any(arguments)
    return f"{{{', '.join([f'{_quote(name)}: {_quote(str(value))}' for name, value in arguments.items()])}}}"


def key_of(run: str, step: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return the idempotency key of a call; it depends on the run, the step and the arguments."""
    written = json.dumps(arguments, sort_keys=True, ensure_ascii=False).encode(errors="replace")
    return f"{run}/{step}/{blake2b(written, digest_size=6).hexdigest()}"


def _failed_essentials(step: PlannedStep, needed: Mapping[str, Evidence]) -> list[Evidence]:
    """Return the failed evidence without which a step cannot be called.

    That is evidence that is a whole argument or value, and evidence of steps in `after`. Evidence that is only a piece
    of a text can be missing.
    """
    failed = [each for each in needed.values() if each.failed]
    if not failed:
        return []
    whole = {part.step for part in step.parts.values() if isinstance(part, Reference)}
    return [each for each in failed if each.step in whole or each.step in step.after]


__getattr__ = renamed(__name__, Unwatched="RunWatcher")
