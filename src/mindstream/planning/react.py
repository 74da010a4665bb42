"""ReAct: thought, action and observation, repeated (Yao 2023). It uses the general tool loop (tools/call.py), with the
watchers and limits of a run."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass, field, replace

from mindstream.errors import BudgetSpent, ReplyInvalid, ToolError
from mindstream.json_values import JsonObject
from mindstream.models.model import Call, ToolSpec
from mindstream.models.reply import first_json
from mindstream.planning.executor import CLOCK, EMPTY, Wish, key_of, refusal
from mindstream.planning.plan import TOOL_NAME, Evidence, Plan, PlannedStep, find_parts
from mindstream.planning.prompts import ActOnTask
from mindstream.planning.run import PlanningRun
from mindstream.text.links import links
from mindstream.tools.call import (
    MAX_CALLS,
    MAX_PER_REPLY,
    Observation,
    UntrustedText,
    addresses_of,
    call_tool,
    run_tool_loop,
    ungiven,
)
from mindstream.tools.tool import Tool, Traits, key_argument, traits_of

STEPS = 12
"""Maximum number of model calls of a run."""
A_DAY_S = 86_400.0
"""Timeout of a call in seconds (a day), including the wait for a person's approval. The tool itself has another
timeout."""


async def react(run: PlanningRun) -> None:
    """Answer the task by ReAct. The calls are stored as the run's plan, which can be inspected and run again."""
    watcher = _Watched(run)
    guarded = watcher.offered
    guarded += [_Guarded(tool, watcher) for tool in run.tools]
    prompt = ActOnTask(
        task=run.task,
        exemplars=tuple(run.exemplars),
        calls=min(MAX_CALLS, run.allowance.tool_calls_left(MAX_CALLS)),
        calls_per_reply=MAX_PER_REPLY,
        replies=STEPS - 1,
    )
    model = run.models["worker"]
    run.read(await run_tool_loop(model, prompt, guarded, watcher, steps=STEPS, role="worker", tool_timeout_s=A_DAY_S))


@dataclass(frozen=True)
class _Guarded:
    """A tool whose calls count against the run's limits.

    A call needs approval if the tool changes the world. It also needs approval if the model has read third-party
    content, and the call contains an address that no trusted source gave.
    """

    tool: Tool
    watched: _Watched

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def traits(self) -> Traits:
        """The tool's traits without the timeout, which would also count the time that a person takes to approve."""
        return replace(traits_of(self.tool), timeout_s=None)

    async def __call__(self, call: Call) -> str:
        run = self.watched.run
        try:
            run.allowance.take_call(self.traits.cost_usd or 0.0)
        except BudgetSpent as error:
            self.watched.offered.clear()  # without tools, the model's next reply is the answer
            raise ToolError(f"not called: {error}. Answer from the results you have.") from None
        foreign = self.watched.foreign
        address = ungiven(self.tool, call.arguments, self.watched.given()) if foreign else ""
        if self.traits.changes or address:
            step = self.watched.step(call)
            wish = Wish(tool=step.tool, arguments=call.arguments, foreign=foreign, address=address, step=step)
            if not await run.approve(wish):
                raise ToolError(refusal(wish))
        if not foreign:
            self.watched.own_calls.append(call.arguments)
        found = await call_tool(self.watched.with_key(call, self), [self.tool], run.limits.timeout_s)
        if found.failed or not found.text.strip():
            raise ToolError(found.text if found.failed else EMPTY)
        if self.traits.finds:
            self.watched.searched.append(found.text)
        return UntrustedText(found.text) if found.untrusted else found.text


@dataclass
class _Watched:
    """Store the calls as steps of the plan, notify the run's watchers, and reuse the evidence of an interrupted run."""

    run: PlanningRun
    offered: list[_Guarded] = field(default_factory=list)
    """The tools that the model may call; none once a limit of the run has refused a call."""
    foreign: bool = False
    own_calls: list[str] = field(default_factory=list)
    """Arguments of the calls made before third-party content was read."""
    searched: list[str] = field(default_factory=list)
    """Results of search tools; the pages that they name may be fetched."""
    _steps: dict[tuple[str, str, str], PlannedStep] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _given: defaultdict[tuple[str, str], deque[Evidence]] = field(default_factory=lambda: defaultdict(deque))

    def __post_init__(self) -> None:
        for evidence in self.run.evidence.values():
            self._given[evidence.tool, _written(evidence.arguments)].append(evidence)
        self.foreign = self.foreign or self.run.is_untrusted
        self.run.evidence = {}

    def given(self) -> frozenset[str]:
        """Return the web addresses that may be fetched without approval after third-party content was read.

        These are the addresses in the task, in results of search tools, and in calls that were made before third-party
        content was read.
        """
        return links([self.run.task, *self.searched]).union(*map(addresses_of, self.own_calls))

    def step(self, call: Call) -> PlannedStep:
        """Return the plan step of a call; the same call always has the same step."""
        this = call.id, call.tool, call.arguments  # some models give every call the same id
        if this not in self._steps:
            known = TOOL_NAME.fullmatch(call.tool) and any(tool.spec.name == call.tool for tool in self.run.tools)
            name = call.tool if known else "unknown"
            self._steps[this] = PlannedStep(id=f"E{len(self._steps) + 1}", tool=name, arguments=_arguments(call))
        return self._steps[this]

    def with_key(self, call: Call, tool: Tool) -> Call:
        """Return a call with an idempotency key, if the tool takes a key.

        The n-th of several equal calls gets the same key whenever the run is resumed.
        """
        if not (name := key_argument(tool)):
            return call
        step = self.step(call)
        same = [each.id for each in self._steps.values() if (each.tool, each.arguments) == (step.tool, step.arguments)]
        done = [id for id in same if id in self.run.evidence and not self.run.evidence[id].failed]
        given = {**_arguments(call), name: ""}
        key = key_of(self.run.name, f"{call.tool}.{len(done) + 1}", given)
        return replace(call, arguments=json.dumps({**given, name: key}, ensure_ascii=False))

    async def recorded_result(self, call: Call) -> str | None:
        held = self._given.get((call.tool, _written(_arguments(call))))
        if not held:
            return None
        evidence = held.popleft()
        found = Observation(evidence.text, evidence.failed, evidence.foreign)
        await self._keep(self.step(call), found, evidence.seconds, tell=False)
        return evidence.text

    async def log_call(self, call: Call) -> None:
        step = self.step(call)
        self._began[step.id] = CLOCK.elapsed()
        for watcher in self.run.watchers:
            await watcher.began(step, call.arguments)

    async def log_observation(self, call: Call, found: Observation) -> None:
        step = self.step(call)
        await self._keep(step, found, CLOCK.elapsed() - self._began[step.id])

    async def take_newer(self) -> str:
        return ""

    async def _keep(self, step: PlannedStep, found: Observation, seconds: float, tell: bool = True) -> None:
        self.foreign = self.foreign or found.untrusted
        evidence = Evidence(step.id, found.text, found.failed, self.foreign, step.tool, step.arguments, 1, seconds)
        self.run.evidence[step.id] = evidence
        self.run.plan = Plan(task=self.run.task, steps=tuple(self._steps.values()), foreign=self.foreign)
        for watcher in self.run.watchers if tell else ():
            await watcher.found(evidence)


def _arguments(call: Call) -> JsonObject:
    """Return the arguments of a call; {} if they are invalid JSON, which the tool reports when it is called.

    If an argument looks like a reference to evidence, all arguments are returned as one text, named `arguments`:
    ReAct does not insert evidence.
    """
    try:
        value = first_json(call.arguments, dict)
    except ReplyInvalid:
        return {}
    return {"arguments": call.arguments} if any(part for _, part in find_parts(value)) else value


def _written(arguments: object) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)
