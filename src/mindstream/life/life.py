"""`Life` pursues a goal with three model roles (M2 orchestrates, M1 does tasks, M0 thinks), a task ledger and a memory.

After a crash, the life continues from its log.

async with Life.open(memory, models, goal="Write a brief on …", tools=documents) as life:
    print(await life.run(turns=50))
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mindstream import tracing
from mindstream.clock import DAY_S, Moment
from mindstream.errors import BudgetSpent, HeldElsewhere, InputError, ModelError
from mindstream.guidance import opens
from mindstream.life import opened as lives
from mindstream.life import stand_in  # noqa: F401 (registers the rules that answer without a model)
from mindstream.life.commands import give_goal
from mindstream.life.events import SLOT, Beat, Rested, TurnBegan, TurnEnded
from mindstream.life.m2 import M2, fold, look_for_work, turns_to_fold
from mindstream.life.opened import require_models, write_opened
from mindstream.life.permission import Permits
from mindstream.life.prompts import IsWorthTurn
from mindstream.life.roles import Roles
from mindstream.life.schedule import DueOrder, Rhythm
from mindstream.life.state import LifeBudget, LifeState, read_state
from mindstream.life.steps import BilledModel, Halted, Inbox, SimulatedUser, Steps, newest_from_outside
from mindstream.life.tools import (
    RETURNED,
    LedgerTools,
    LifeTool,
    OutsideTools,
    ask_tool,
    recall_tool,
    retain_tool,
    sleep_tool,
)
from mindstream.memory.lease import LEASE_S
from mindstream.memory.memory import Memory
from mindstream.memory.policy import DRAWN, Retention, adopt_policy, own_policy
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.memory.store.store import Fence
from mindstream.minds.calls import RefusedMessages
from mindstream.models.decide import decide
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.moved import renamed_keywords
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger
from mindstream.text.words import count_of
from mindstream.tools.call import Approve, ApprovedTool
from mindstream.tools.tool import Tool
from mindstream.tools.tool_search import ToolIndex
from mindstream.tracing import span

TRIES, REST_S = 5, 2.0
"""TRIES: number of failed turns in a row after which the life halts. REST_S: length in seconds of the pause after the
first failed turn; each further pause is twice as long."""
WORTH = 0.5
"""Minimum estimated probability that a turn is worth its price; below it, a due standing order is skipped."""


@dataclass(frozen=True, kw_only=True)
class LifeConfig:
    """Settings of a life. The log does not store them. Of the model roles, M2 decides and M1 does tasks.

    Attributes:
        budget: limits of spending.
        rhythm: when the life may act by itself.
        permits: which calls that change the world need no approval.
        prompt_tokens: maximum length of M2's prompt in tokens.
        returned: number of memories that the tool R (recall) returns.
        drawn: number of records that a sleep (the tool S) draws at random, to let them decay. A sleep of a large memory
            draws more.
        dream_tools: names of the tools that M1 may call while it writes a dream; (): M1 writes the dream in one call.
        attached: maximum number of external tools that one search attaches. A search at the beginning of each task
            attaches the tools that fit the task; M1 can attach more with the tool `find_tools`.
        lease_s: duration of the lease on the life, in seconds. If this process dies, another process may continue the
            life after this time.
        hears: whether the user's utterances in conversations are addressed to this life; False: the mind's responder,
            such as a coach, answers them.
        retention: retention policy for the memory if no policy is recorded for it yet (memory/policy).
        offers: whether M1's results are offered to the source of exemplars. Results of failed or interrupted work, and
            results with third-party content, are not offered.
    """

    budget: LifeBudget = field(default_factory=LifeBudget)
    rhythm: Rhythm = field(default_factory=Rhythm)
    permits: Permits = field(default_factory=Permits)
    prompt_tokens: int = 8_000
    returned: int = RETURNED
    drawn: int = DRAWN
    dream_tools: tuple[str, ...] = ()
    attached: int = 6
    lease_s: float = LEASE_S
    hears: bool = True
    retention: Retention = "decay"
    offers: bool = False


class Life:
    """A goal that the model roles M2, M1 and M0 pursue turn by turn, also after a crash.

    Open a life with `Life.open`, then call `run`.

        async with (
            Memory("data", "ann") as memory,
            Life.open(memory, "openai:gpt-5-mini", goal="Find out about the ferry.", tools=[search]) as life,
        ):
            print(await life.run(turns=20))  # why it ended: done, halted, or turns

    M2 decides, M1 carries out tasks with tools, M0 thinks about questions. After an interruption the same program
    continues the life: a step whose result is in the log is not done again.

    Attributes:
        state: the current state, computed from the log rows of the life.
        models: the models of M2, M1 and M0.
        steps: runs the steps of the life within the budget.
    """

    def __init__(
        self,
        memory: Memory,
        models: Models,
        state: LifeState,
        fence: Fence,
        *,
        tools: Sequence[Tool],
        config: LifeConfig,
        user: SimulatedUser | None,
        exemplars: Exemplars | None = None,
    ) -> None:
        self.memory, self.state, self.config = memory, state, config
        self.models, self._exemplars = models, exemplars
        self._inbox = Inbox(memory, state, user)
        self.steps = Steps(memory, state, config.budget, self._inbox, fence)
        self._outside = OutsideTools(
            ToolIndex(tools, memory.embedder), state, config.permits, memory.name, config.attached
        )
        model, _, _ = (models.of(role) for role in ("M2", "M1", "M0"))  # raises here if a role has no model
        self._m2 = M2(self.steps, model, self._own_tools(), config.prompt_tokens, config.rhythm.zone)
        self._failed = 0

    @classmethod
    @renamed_keywords(models="model")
    @opens
    async def open(
        cls,
        memory: Memory,
        model: AnyModels,
        *,
        goal: str = "",
        orders: Sequence[str] = (),
        tools: Sequence[Tool] = (),
        config: LifeConfig = LifeConfig(),
        user: SimulatedUser | None = None,
        exemplars: Exemplars | None = None,
        without_model: bool = False,
        command: str = "",
        approve: Approve | None = None,
    ) -> AsyncIterator[Life]:
        """Begin or continue a mind's life. Until the block ends, no other process can run it.

        Args:
            model: the models of M2, M1 and M0 (see `Mind.open`).
            goal: the goal, which replaces the current goal; "": the current goal.
            orders: standing orders, which replace the current orders. Each has a time and a task: "every day at 8:00:
                ask me how I slept". (): the current orders.
            tools: tools for M1. For each task, a search finds the tools that fit the task.
            config: budget, hours, permissions, and other settings.
            user: answers M2's questions in simulations; real users answer through the log (see life/commands.py).
            exemplars: finds similar tasks and how they were done, such as a `Member` of a pool.
            without_model: whether rules may continue a life that had a language model.
            command: the command line that continues the life; it is logged for people who look at the life later.
            approve: which calls of tools that change the world are approved (see tools/call.py): the names of approved
                tools, or a function that decides about each call. A call that is not approved waits until the user
                allows it through the log. `approve` replaces `config.permits`, except for `permits.always`.

        Raises:
            InputError: there is no goal, an order cannot be read, or the life had a language model and now has none.
            HeldElsewhere: another process runs the life.
            StorageError: the log cannot be read or written.
        """
        if approve is not None:
            config = replace(config, permits=replace(Permits.of(approve), always=config.permits.always))
        async with contextlib.AsyncExitStack() as opened:
            shared = await opened.enter_async_context(open_models(model, memory.clock))
            if not without_model:
                await require_models(memory, shared)
            if goal or orders:
                await give_goal(memory, goal, orders)
            fence = await opened.enter_async_context(lives.hold(memory, config.lease_s))
            await _set_retention(memory, config.retention)
            state = await read_state(memory, hears=config.hears)
            guarded = RefusedMessages(memory).around(shared)
            life = cls(memory, guarded, state, fence, tools=tools, config=config, user=user, exemplars=exemplars)
            await write_opened(memory, shared, command, fence)
            try:
                yield life
            finally:
                await life.steps.flush()  # finished steps are written also after an error

    async def run(
        self, turns: int | None = None, until: Moment | None = None, *, wait: bool = True, stay: bool | None = None
    ) -> str:
        """Run turns until there is nothing to do; return why the run ended.

        The result is `done` (nothing is left to do), `waiting` (something is due later, see `wait`), `halted` (a
        person, the budget or failed turns have halted the life), `turns` or `time` (these limits were reached).

        Args:
            turns: maximum number of turns; None: no limit.
            until: moment from which on no turn begins; None: no limit.
            wait: whether to wait for tasks and orders that are due later. False: return when nothing can be done now.
            stay: whether to wait for people even if nothing is due later; None: only if `until` is given. With `wait`,
                the run also waits for people while the life is paused or a call needs approval.
        """
        lived, stay = 0, until is not None if stay is None else stay
        while True:
            await self._inbox.read()
            if turns is not None and lived >= turns:
                return "turns"
            if until is not None and self.memory.clock.now() >= until:
                return "time"
            if because := await self.reason_to_act():
                await self._turn(because)
                lived += 1
                continue
            if await self._look_for_work():
                continue
            state = self.state
            wakes = self.config.rhythm.next_wake(state, self.memory.clock.now())
            if state.halted.startswith("stopped") or not wait:
                return "halted" if state.halted else "waiting" if wakes else "done"
            if (
                wakes is None
                and not (stay or self._goes_on_tomorrow())
                and not state.halted.startswith("paused")
                and not state.wishes
            ):
                return "halted" if state.halted else "done"
            times = [at for at in (wakes, until, self._next_day()) if at is not None]
            await self._inbox.wait(min(times, default=None), partial(self._is_roused, self.state.halted))

    async def reason_to_act(self) -> str:
        """Return the reason for a turn now in a word or two, such as `user` or `order 1`; "": there is none.

        If nothing more urgent is a reason, a model decides about each due standing order until one is worth a turn.
        """
        state, now = self.state, self.memory.clock.now()
        if state.halted:
            return self._after_budget(now)
        if state.in_turn:
            return "goes on"
        if state.failed and state.turns:
            return state.turns[-1].because  # the last turn failed, so its reason still needs a turn
        if any(news.by_user for news in state.unread):
            return "user"
        if not self.config.rhythm.is_active(now):
            return ""
        if state.unread:
            return "news"
        for due in self.config.rhythm.due_orders(state, now):
            if await self._beat(due):
                return f"order {due.number}"
        return "task" if next(state.ledger.to_do(now), None) else ""

    # The turn.

    async def _turn(self, because: str) -> None:
        """Run or resume a turn until the turn ends, the budget is spent, or the life is halted."""
        state, self._inbox.reread = self.state, False
        if not state.in_turn:
            await self._fold()
            words = self._m2.opening(because)
            self.steps.note(TurnBegan(turn=state.turn + 1, because=because, words=words, seen=state.seen))
        try:
            with span(tracing.INVOKE_AGENT, SLOT, {tracing.AGENT: SLOT, "mindstream.turn": state.turn}):
                ended = await self._m2.turn(state.turn)
        except BudgetSpent as error:
            self.steps.note(Rested(because=f"budget: {error}"))
            await self.steps.flush()
            return
        except Halted:
            await self.steps.flush()
            return
        self.steps.note(ended)
        await self.steps.flush()
        await self._rest_after(ended)

    async def _look_for_work(self) -> bool:
        """Let M2 (the role that decides) look for work, if this is due; return whether it was due."""
        state, now, rhythm = self.state, self.memory.clock.now(), self.config.rhythm
        look = rhythm.next_look(state)
        if look is None or look > now or state.halted or not rhythm.is_active(now):
            return False
        self._inbox.reread = False
        try:
            await look_for_work(self.steps, self._m2.model, rhythm.zone)
        except BudgetSpent as error:
            self.steps.note(Rested(because=f"budget: {error}"))
        except Halted:
            pass
        await self.steps.flush()
        return True

    def _goes_on_tomorrow(self) -> bool:
        """Return whether the life continues by itself when the next day's budget begins.

        It does so if it looks for work by itself (`Rhythm.beat_s`), and if only a daily limit has halted the life.
        """
        forever, spent = self.config.rhythm.beat_s is not None, self.state.spent
        return forever and self.state.halted.startswith("budget") and not self.config.budget.is_over(spent)

    async def _fold(self) -> None:
        turns = [message for turn in self.state.turns for message in turn.messages]
        tokens = self._m2.request(turns).tokens
        if oldest := turns_to_fold(self.state, tokens, self.config.prompt_tokens):
            with contextlib.suppress(BudgetSpent, Halted):  # the next turn reports the same error
                await fold(self.steps, self._m2.model, oldest)

    async def _rest_after(self, ended: TurnEnded) -> None:
        """Pause after a failed turn. After TRIES failed turns in a row, halt until a person resumes the life."""
        self._failed = self._failed + 1 if ended.error else 0
        if self._failed >= TRIES:
            self._failed = 0  # after a person has resumed the life, it has all attempts again
            self.steps.note(Rested(because=f"{TRIES} turns failed, the last with: {ended.error}"))
            await self.steps.flush()
        elif self._failed:
            until = self.memory.clock.now() + REST_S * 2 ** (self._failed - 1)
            await self._inbox.wait(until, lambda: bool(self.state.halted))

    # When the life wakes.

    async def _beat(self, due: DueOrder) -> bool:
        """Decide whether a due standing order is worth a turn; log and return the decision.

        If the order is worth a turn, its task is added to the ledger. An order is not worth a turn if its task is still
        open, or if the ledger is full.
        """
        try:
            task = self.state.ledger.add(due.order.what)
        except InputError:  # the order's task is still open, or the ledger is full
            task = None
        worth = await self._worth(due) if task else 0.0
        self.steps.note(Beat(order=due.number, due=due.due, worth=worth))
        if task and worth >= WORTH:
            self.steps.note(task)
        await self.steps.flush()
        return worth >= WORTH

    async def _worth(self, due: DueOrder) -> float:
        """Return the probability that a standing order is worth a turn; 1 if the model fails."""
        question = IsWorthTurn(order=due.order.text, since=tuple(each.text for each in self.state.folds[-1:]))
        model = self.models.of("gate", "M2")
        with contextlib.suppress(ModelError):
            return (await decide(BilledModel(model, self.steps), question))["yes"]
        return 1.0

    def _is_roused(self, halted: str) -> bool:
        """Return whether to stop waiting.

        The life stops waiting if there may be a reason for a turn, or if a person paused, stopped or resumed the life.

        Args:
            halted: the life's `state.halted` when the waiting began.
        """
        state, now = self.state, self.memory.clock.now()
        if state.halted or halted:  # while the life is halted, even utterances wait
            return state.halted != halted
        is_active = self.config.rhythm.is_active(now)
        by_user = any(news.by_user for news in state.unread)
        return by_user or (is_active and bool(state.unread or any(state.ledger.to_do(now))))

    def _next_day(self) -> Moment | None:
        """Return when the next day's budget begins, if the budget has halted the life; otherwise None."""
        now = self.memory.clock.now()
        return now + DAY_S - now % DAY_S if self.state.halted.startswith("budget") else None

    def _after_budget(self, now: Moment) -> str:
        """End a halt by the budget if the budget has room again; return the reason for a turn.

        The result is "" if there is no reason for a turn, or if the budget has not halted the life or has no room.
        """
        if not self.state.halted.startswith("budget"):
            return ""
        try:
            self.config.budget.check(self.state.spent, now)
        except BudgetSpent:
            return ""
        self.steps.note(Rested(because=""))
        if self.state.in_turn:
            return "goes on"
        return "task" if next(self.state.ledger.to_do(now), None) else ""

    def _own_tools(self) -> Mapping[str, LifeTool]:
        steps, config, language = self.steps, self.config, self.state.language
        roles = Roles(steps, self.models, language, self._outside, self._exemplars, config)
        own: tuple[LifeTool, ...] = (
            recall_tool(steps, language, config.returned),
            retain_tool(steps, language),
            sleep_tool(steps, language, self.models.of("M1"), config.drawn, roles.dreaming),
            roles.m1_tool(),
            ask_tool(steps, config.rhythm, language),
            *LedgerTools(steps, language, config.rhythm.zone).tools(),
        )
        return {tool.spec.name: tool for tool in own}


async def _set_retention(memory: Memory, retention: Retention) -> None:
    """Let the records of a life's memory decay, and record this policy unless a policy is recorded.

    Nothing is changed in these cases:

    - `retention` is `keep`, or `keep` is recorded for the memory;
    - the memory was opened with a policy under which records already decay, or do not strengthen at all.
    """
    if retention == "keep" or memory.strength is None or not memory.keeps_all:
        return
    recorded = (await own_policy(memory.store, memory.key)).get("retention", "")
    if recorded != "keep":
        await adopt_policy(memory.store, memory.key, memory.clock.now(), {} if recorded else retention)
        memory.follow(replace(memory.strength, keeps_all=False))


POLL_S = 5.0
"""Poll interval for answers and news from other processes, in seconds."""


@dataclass
class LifeReasoner:
    """Pursue a goal in the background of a mind: `Mind.open(…, reasoners=[LifeReasoner(models, goal="…")])`.

    Each step is committed. Only one process and session of the mind at a time runs the life.

    Attributes:
        turns: maximum number of the life's turns in one run of the reasoner.
    """

    models: Models
    goal: str = ""
    orders: Sequence[str] = ()
    tools: Sequence[Tool] = ()
    config: LifeConfig = field(default_factory=lambda: LifeConfig(hears=False))
    exemplars: Exemplars | None = None
    turns: int = 20
    slot: str = "living"
    timeout_s: float = 3_600.0
    _next: Moment = 0.0
    _wakes: Moment | None = 0.0
    _seen: int = 0

    @property
    def trigger(self) -> Trigger:
        """Wake when the next check is due, and at every utterance if the life hears them (`LifeConfig.hears`)."""
        return Trigger(every=1 if self.config.hears else 0, at=self._next, each=True)

    async def think(self, context: RunContext) -> RunResult:
        """Run the life while there is something to do, at most `turns` turns.

        Raises:
            InputError: there is no goal, an order cannot be read, or the life had a language model and now has none.
        """
        stream = context.memory
        now = stream.clock.now()
        self._next = now + POLL_S
        is_due = self._wakes is not None and self._wakes <= now
        if not is_due and await newest_from_outside(stream) <= self._seen:
            return RunResult("", "")
        # without the wrapper that asks for the mind's approval: the life asks for approval itself
        given = [each.inner if isinstance(each, ApprovedTool) else each for each in context.tools]
        tools = [*self.tools, *(tool for tool in given if tool not in self.tools)]
        opened = Life.open(
            stream,
            self.models,
            goal=self.goal,
            orders=self.orders,
            tools=tools,
            config=self.config,
            exemplars=self.exemplars,
        )
        try:
            async with opened as life:
                before = life.state.turn
                self._seen = await newest_from_outside(stream)  # `run` reads all rows up to this one
                await life.run(self.turns, wait=False)
                now, lived = stream.clock.now(), life.state.turn - before
                self._wakes = self.config.rhythm.next_wake(life.state, now)
                self._next = min(now + POLL_S, self._wakes or now + POLL_S)
        except HeldElsewhere:
            return RunResult("", "")
        self.goal = ""  # the log has the goal from now on
        return RunResult(f"lived {count_of(lived, 'turn')}" if lived else "", self.models.of("M2").name)
