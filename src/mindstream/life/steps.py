"""Steps that are done once: if the log has a model's reply or a call's result already, it is read from there.

An interrupted turn is replayed from its beginning: finished steps are read from the log, and the first unfinished step
is done. Rows are queued, and written together before the next external action, so that a step costs one commit.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from mindstream import caches, chance
from mindstream.clock import ManualClock, Moment
from mindstream.errors import BudgetSpent, ModelError
from mindstream.foreign_code import describe
from mindstream.life.events import SLOT, Answered, Asked, Questioned, Replied, WishedCall
from mindstream.life.state import FROM_OUTSIDE, LifeBudget, LifeState, read_state
from mindstream.log.events import Event, Logged, Observed, ToolCalled
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Touch
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry, Fence, Revision
from mindstream.models.model import Call, Cause, Model, Part, Request, Usage, calls_for, estimate_tokens
from mindstream.models.prompt import gather_reply
from mindstream.models.wrappers.meter import Metered
from mindstream.tools.call import Observation

Effect = Callable[[int], Awaitable["Done"]]
"""A function that makes a call. Its argument is the number of the call's log row. Later rows may be from an earlier
attempt that a crash has interrupted."""


class Halted(Exception):  # noqa: N818 (a stop, not an error)
    """A life was paused or stopped between two steps, or texts were erased; its turn can be resumed."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a call, and the changes that are committed together with it.

    Attributes:
        found: the result.
        records: records to remember.
        events: further events for the log.
        touch: the effect of a recall: the returned records are strengthened, and the records that were found but not
            returned are weakened.
        revisions: changes of records, such as the end of a memory's validity.
    """

    found: Observation
    records: tuple[Record, ...] = ()
    events: tuple[Event, ...] = ()
    touch: Touch | None = None
    revisions: tuple[Revision, ...] = ()


@dataclass
class Steps:
    """Does each step of a life only once: a step whose result is in the log is not repeated.

    Args:
        fence: a lease. Writes are accepted only while this process holds the lease. None: no check.
    """

    memory: Memory
    state: LifeState
    budget: LifeBudget
    inbox: Inbox
    fence: Fence | None = None
    _pending: list[Entry] = field(default_factory=list)
    _touch: Touch | None = None
    _revisions: tuple[Revision, ...] = ()

    def __post_init__(self) -> None:
        self.inbox.pending = lambda: [entry.event for entry in self._pending]

    def note(self, event: Event, records: Sequence[Record] = ()) -> None:
        """Apply an event to the state, and queue it; it is written before the next external action."""
        self.note_applied(event, records)
        self.state.apply(event, self.memory.clock.now())

    def note_applied(self, event: Event, records: Sequence[Record] = ()) -> None:
        """Queue an event that was already applied to the state."""
        self._pending.append(Entry(event, SLOT, tuple(records), system=True))

    async def flush(self) -> list[Logged]:
        """Write the queued events in one commit, and return their rows; [] if none are queued.

        Raises:
            LeaseLost: another process has taken over this life.
            StorageError: the events cannot be written; this life must be opened again.
        """
        if not self._pending:
            return []
        entries, self._pending = self._pending, []
        touch, self._touch = self._touch, None
        revisions, self._revisions = self._revisions, ()
        logged = await self.memory.commit(*entries, revisions=revisions, fence=self.fence, touch=touch)
        self.inbox.written = logged[-1].seq
        return logged

    async def reply(
        self, id_: str, role: str, model: Model, request: Request, news: str = "", seen: int = 0
    ) -> Replied:
        """Ask a model, log the reply, and return it.

        If the step was done before, return the reply in the log. If the model fails, the reply has an `error`.

        Raises:
            BudgetSpent: the budget allows no further call.
            Halted: a person has paused or stopped this life, or texts were erased.
        """
        if known := self.state.replies.get(id_):
            return known
        await self.inbox.read()
        if self.state.halted or self.inbox.reread:
            raise Halted(self.state.halted or "texts were erased, so the turn is read again without them")
        if id_ not in self.state.asked:
            self.budget.check(self.state.spent, self.memory.clock.now())
            self.note(Asked(id=id_, role=role, news=news, seen=seen, tokens=request.tokens))
        about = tuple(row.seq for row in await self.flush() if isinstance(row.event, Asked))
        asked, failed = list[Metered](), ""
        try:
            with calls_for(Cause(rows=about)):
                text, calls, usage = await gather_reply(model, replace(request, on_call=asked.append))
        except BudgetSpent:
            raise
        except ModelError as error:
            text, calls, usage, failed = "", (), Usage(0, 0), describe(error)
        used = _sum(asked) or usage  # failed requests cost money, too
        if used is None:
            used = Usage(request.tokens, estimate_tokens(text + "".join(each.arguments for each in calls)))
        replied = Replied(
            id=id_,
            role=role,
            model=model.name,
            text=text,
            calls=tuple(WishedCall(tool=call.tool, arguments=call.arguments) for call in calls),
            tokens=used.tokens,
            requests=len(asked) or 1,
            cost_usd=used.cost_usd,
            error=failed,
        )
        self.note(replied)
        return replied

    async def call(self, id_: str, call: Call, effect: Effect) -> Observation:
        """Make a call by `effect`, log it, and return the result. If the log already has the result, return the logged
        one.

        Exceptions of `effect` are not caught.
        """
        if known := self.state.results.get(id_):
            return Observation(known.text, known.failed, known.foreign)
        if id_ not in self.state.called:
            self.note(ToolCalled(slot=SLOT, tool=call.tool, arguments=call.arguments, id=id_))
            self.state.called[id_] = (await self.flush())[-1].seq
        with calls_for(Cause(rows=(self.state.called[id_],))):
            done = await effect(self.state.called[id_])
        for event in done.events:
            self.note(event)
        self._touch, self._revisions = done.touch, done.revisions
        found = done.found
        observed = Observed(
            slot=SLOT, tool=call.tool, text=found.text, failed=found.failed, foreign=found.untrusted, id=id_
        )
        self.note(observed, done.records)
        if done.touch is not None or done.records or done.revisions:
            await self.flush()
        return found


def _sum(asked: Sequence[Metered]) -> Usage | None:
    """Return the total usage of several requests; None if no request has reported its usage.

    The cost is the sum of the known costs.
    """
    known = [call.usage for call in asked if call.usage is not None]
    if not known:
        return None
    costs = [usage.cost_usd for usage in known if usage.cost_usd is not None]
    return Usage(
        sum(usage.input_tokens for usage in known),
        sum(usage.output_tokens for usage in known),
        sum(costs) if costs else None,
    )


class BilledModel:
    """A model whose calls count against a life's budget, but are not steps of a turn. A resumed turn repeats the calls.

    Attributes:
        steps: the steps of the life; None until the life is open.
    """

    def __init__(self, model: Model, steps: Steps | None = None) -> None:
        self.name = model.name
        self.steps = steps
        self._model = model

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        """Check the budget, then reply and log the usage; raise BudgetSpent if no further call is allowed."""
        steps, usage = self.steps, Usage(0, 0)
        if steps is None:
            raise RuntimeError("a billed model was called before its life was open")
        id_, role = f"tool-{chance.token()}", request.role
        estimated = request.tokens
        steps.budget.check(steps.state.spent, steps.memory.clock.now())
        steps.note(Asked(id=id_, role=role, tokens=estimated))
        await steps.flush()
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    usage = part if isinstance(part, Usage) else usage
                    yield part
        finally:
            tokens = usage.tokens or estimated
            steps.note(Replied(id=id_, role=role, model=self.name, text="", tokens=tokens, cost_usd=usage.cost_usd))


A_PAGE = 500
"""Maximum number of log rows that are read at once."""

POLL_S = 0.5
"""Poll interval for rows of other processes, in seconds."""


SimulatedUser: TypeAlias = Callable[[str], Awaitable[str | None]]
"""A function that answers the life's questions to the user in simulations; it returns None if there is no answer."""


async def newest_from_outside(stream: Memory) -> int:
    """Return the number of the newest log row of the kinds in FROM_OUTSIDE; 0 if there is none."""
    found = [await stream.store.last(stream.key, kind) for kind in FROM_OUTSIDE]
    return max((row.seq for row in found if row is not None), default=0)


class Inbox:
    """Read log rows that people and other processes write, and wait for them."""

    def __init__(self, memory: Memory, state: LifeState, user: SimulatedUser | None = None) -> None:
        self._memory, self._state, self._user = memory, state, user
        self.written = 0
        """The newest log row that this life has written itself."""
        self.pending: Callable[[], Sequence[Event]] = tuple
        """Returns the events that the life has applied to its state but not written yet."""
        self.reread = False
        """Whether texts were erased, so that the whole state was read again; a turn in progress must then restart."""
        self._looked = 0
        self._changed: int | None = None

    async def put(self, question: Questioned) -> None:
        """Pass a question to the simulated user, if there is one, and log the answer. (Real users read the question
        from the log.)"""
        if self._user and question.shown and (answer := await self._user(question.tip)):
            await self._memory.commit(Entry(Answered(id=question.id, text=answer), self._memory.name))

    async def read(self) -> None:
        """Apply new rows of people and other processes to the state.

        If texts were erased, by any process, the whole state is read from the log again.
        """
        if await self._is_erased():
            caches.empty(self._memory.key)
            fresh = await read_state(self._memory, hears=self._state.hears)
            for event in self.pending():
                fresh.apply(event, self._memory.clock.now())
            for name in LifeState.model_fields:
                setattr(self._state, name, getattr(fresh, name))
            self.reread = True
        while True:
            upto, after = self.written, max(self._looked, self._state.seen)
            rows = await self._memory.store.events(self._memory.key, after, FROM_OUTSIDE, A_PAGE)
            for row in rows:
                self._state.seen = row.seq
                if not row.system:
                    self._state.apply(row.event, row.at, row.seq)
            if len(rows) < A_PAGE:
                self._looked = max(self._looked, upto)  # the last page: all rows up to `upto` were read
                return

    async def _is_erased(self) -> bool:
        """Return whether texts of this mind were erased since the last call; False at the first call."""
        is_first = self._changed is None
        changes = await self._memory.store.changes(self._memory.key, self._changed or 0, most=1)
        self._changed = changes.upto
        return bool(changes.gone) and not is_first

    async def wait(self, until: Moment | None, is_enough: Callable[[], bool]) -> None:
        """Wait until a condition holds or a time is reached. A manual clock is set to that time at once."""
        clock = self._memory.clock
        await self.read()
        while not is_enough() and (until is None or clock.now() < until):
            if isinstance(clock, ManualClock) and until is not None:
                clock.advance(until - clock.now())
            else:
                await self._pause(POLL_S if until is None else min(POLL_S, until - clock.now()))
            await self.read()

    async def _pause(self, seconds: float) -> None:
        """Wait for some seconds, or until this process writes a row of the kinds in FROM_OUTSIDE."""
        with self._memory.feed.listening() as events, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                async for logged in events:
                    if logged.event.kind in FROM_OUTSIDE and not logged.system:
                        return
                await asyncio.sleep(seconds)
