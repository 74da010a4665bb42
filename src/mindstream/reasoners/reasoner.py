"""The protocol of all reasoners: a slot, and a way to think on an occasion that comes to a conclusion."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from pydantic import BaseModel, JsonValue

from mindstream import chance
from mindstream.clock import Moment
from mindstream.errors import InputError, ToolError
from mindstream.foreign_code import ForeignTask
from mindstream.log.events import Heard, Logged, Observed, Thought, ToolCalled, Waiting
from mindstream.log.work import Work
from mindstream.memory.belief import Patch
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.model import Call
from mindstream.text.links import links
from mindstream.tools.call import ForeignText, Observation
from mindstream.tools.given_addresses import refusal_of, ungiven
from mindstream.tools.loop import watched_call
from mindstream.tools.tool import Tool, traits_of


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happens, as triggers see it; mostly an utterance.

    Attributes:
        number: how often that has happened to this mind, this time included.
        phase, before: the phase that the talk is in now, and was in the time before.
        kind: what happens: the kind of the event.
    """

    number: int
    phase: str
    before: str
    kind: str = "heard"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Wakes a reasoner on utterances, or other events, that meet all of its conditions, or on silence.

    Attributes:
        every: on every so many of them; 0: on none.
        phases: only in these phases; empty: in any.
        entering: only at the first one after the phase has changed.
        on: the kinds of events that it is for (`heard`: an utterance).
        idle_s: when so many seconds have passed without an utterance, once until the next one.
        at: at that moment, by itself; a reasoner that has a time of its own gives another trigger when it has been.
        each: at that moment in each process that has the mind open, where what is done then has a lease of its own (a
            life). Else one of all processes does what silence or a moment calls for, as with what is heard.
    """

    every: int = 1
    phases: tuple[str, ...] = ()
    entering: bool = False
    idle_s: float | None = None
    at: Moment | None = None
    on: tuple[str, ...] = ("heard",)
    each: bool = False

    def fires(self, turn: Occurrence) -> bool:
        """Return whether this wakes the reasoner."""
        if turn.kind not in self.on or self.every == 0 or turn.number % self.every:
            return False
        if self.entering and turn.phase == turn.before:
            return False
        return not self.phases or turn.phase in self.phases


EVERY_TURN = Trigger()


FRESH_S = 600.0
"""What a tool gave longer ago is asked for again."""
MOST = 1_000
"""So many rows of the log are looked through."""


class Calls:
    """What the calls of a slot's runs gave since a row of the log (None: there were none), each to be given once.

    A call that failed is made again. Those of a run that came to an end are done with.
    """

    def __init__(self, memory: Memory, slot: str, since: int | None) -> None:
        self._memory, self._slot, self._since = memory, slot, since
        self._given: defaultdict[tuple[str, str], deque[str]] | None = None

    async def recorded_result(self, call: Call) -> str | None:
        """Return what such a call gave, and keep it no longer; None where there was none."""
        if self._given is None:
            self._given = await self._read()
        texts = self._given.get((call.tool, call.arguments))
        return texts.popleft() if texts else None

    async def _read(self) -> defaultdict[tuple[str, str], deque[str]]:
        made: dict[str, ToolCalled] = {}
        given: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)
        if self._since is None:
            return given
        stream, slot, now = self._memory, self._slot, self._memory.clock.now()
        for row in await stream.store.events(stream.key, self._since, ["tool_called", "observed", "thought"], MOST):
            match row.event:
                case Thought() if row.event.slot == slot:
                    made.clear()
                    given.clear()
                case ToolCalled() if row.event.slot == slot and row.event.id:
                    made[row.event.id] = row.event
                case Observed() if row.event.slot == slot and not row.event.failed and now - row.at <= FRESH_S:
                    if call := made.pop(row.event.id, None):
                        text = ForeignText(row.event.text) if row.event.foreign else row.event.text
                        given[call.tool, call.arguments].append(text)
        return given


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something the user said that a reasoner is to think about.

    Attributes:
        seq: its row in the log.
        record: the memory record of its words.
    """

    seq: int
    text: str
    record: str
    session: str
    at: Moment


Newer = Callable[[], Awaitable[Sequence[Utterance]]]


async def nothing_newer() -> Sequence[Utterance]:
    return ()


@dataclass(frozen=True)
class RunContext:
    """Why a reasoner wakes, and what it may use.

    Attributes:
        utterances: what to think about, oldest first; more than one where they came faster than it thinks.
        conversation: the last records of the talk before these utterances, oldest first, with what the Talker said.
        reply: what the Talker has said to the newest utterance already; "" where it has not.
        waits: the Talker waits for this run before it answers.
        newer: claims what was said since, so that this run thinks about it too.
        tools: what the mind lets its reasoners call.
        events: the rows of the log that woke it, oldest first: utterances, and whatever else triggers ask for.
        found: what tools have given so far; `strangers`: what of it strangers wrote. Where there is any, all that the
            run comes to is tainted. `searched`: what of it names pages that may be fetched.
    """

    slot: str
    memory: Memory
    utterances: Sequence[Utterance]
    conversation: Sequence[Record]
    reply: str = ""
    waits: bool = False
    newer: Newer = nothing_newer
    tools: Sequence[Tool] = ()
    events: Sequence[Logged] = ()
    found: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    searched: list[str] = field(default_factory=list)

    @property
    def session(self) -> str:
        """The session of the newest utterance; "" where there is none."""
        return self.utterances[-1].session if self.utterances else ""

    async def call(self, tool: str, /, **arguments: JsonValue) -> str:
        """Call one of `tools` and return what it gave; the log has the call.

        A run that goes on where another was broken off is given what that one's call gave.

        Raises:
            ToolError: there is no such tool, the arguments do not fit, or it failed.
        """
        found = await watched_call(Call(tool, json.dumps(arguments), chance.token()), self.tools, self)
        if found.failed:
            raise ToolError(found.text)
        return found.text

    async def take_newer(self) -> str:
        """Take what was said since the run began into it; return its words, "" where there are none."""
        return "\n".join(utterance.text for utterance in await self.newer())

    async def recorded_result(self, call: Call) -> str | None:
        """Return the result of the call in an interrupted run, or why it is refused; None: make the call."""
        if why := self._refusal(call):
            return why
        given = await self.calls.recorded_result(call)
        if given is not None:
            self.found.append(given)
            self.strangers.extend([given] * isinstance(given, ForeignText))
        return given

    async def log_call(self, call: Call) -> None:
        """Log a tool's call."""
        event = ToolCalled(slot=self.slot, tool=call.tool, arguments=call.arguments, id=call.id)
        await self.memory.commit(Entry(event, self.slot))

    async def log_observation(self, call: Call, found: Observation) -> None:
        """Log what a tool gave back."""
        if not found.failed:
            self.found.append(found.text)
        if found.foreign:
            self.strangers.append(found.text)
        if any(traits_of(tool).finds for tool in self.tools if tool.spec.name == call.tool):
            self.searched.append(found.text)
        event = Observed(
            slot=self.slot, tool=call.tool, text=found.text, failed=found.failed, foreign=found.foreign, id=call.id
        )
        await self.memory.commit(Entry(event, self.slot))

    def _refusal(self, call: Call) -> str:
        """Refuse an address that neither the user nor a search gave, once third-party content was read."""
        tool = next((each for each in self.tools if each.spec.name == call.tool), None)
        if tool is None or not self.strangers:
            return ""
        said = (each.text for each in self.conversation if each.data.get("by_user"))
        given = links([*(each.text for each in self.utterances), *said, *self.searched])
        address = ungiven(tool, call.arguments, given)
        return refusal_of(address) if address else ""

    @cached_property
    def calls(self) -> Calls:
        """The calls that runs about the same have made and not come to an end with."""
        since = min((row.seq for row in self.events), default=None)
        return Calls(self.memory, self.slot, since)


Writing = tuple[Sequence[Entry], Sequence[Revision]]


@dataclass(frozen=True, slots=True)
class BeliefPatch:
    """What changes in a belief: a value replaces, a list adds, null clears (see memory/belief).

    Attributes:
        shape: what the belief of this slot is made of.
        evidence: ids of the records that it rests on.
    """

    slot: str
    shape: type[BaseModel]
    patch: Patch
    evidence: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Briefing:
    """What whoever speaks is told by whoever thinks; it speaks from it in its own words.

    Attributes:
        stands: how it stands: what is going on, what holds.
        ask: the one thing worth finding out next.
        offer: what to say now, as it could be said.
        care: a caution, or what not to say.
    """

    stands: str = ""
    ask: str = ""
    offer: str = ""
    care: str = ""

    def __str__(self) -> str:
        parts = {"how it stands": self.stands, "ask": self.ask, "offer": self.offer, "care": self.care}
        return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)

    def __bool__(self) -> bool:
        return bool(self.stands or self.ask or self.offer or self.care)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a reasoner has come to; written in one commit with the end of its work, or not at all.

    Attributes:
        thought: in a few words, for people to read; "" where it woke by itself and there was nothing: no row is
            written.
        model: who thought it.
        records: what is to be remembered of it; `by` is the slot where it is not said.
        beliefs: what changes in beliefs; merged into what is believed when it is written, whoever else wrote.
        write: makes what else is to be written against what is believed at that moment; called again on a conflict.
        briefing: what the Talker is to speak from.
        follow_up: what the mind should say unasked, if the Talker has already spoken.
    """

    thought: str
    model: str = ""
    records: Sequence[RecordDraft] = ()
    beliefs: Sequence[BeliefPatch] = ()
    write: Callable[[], Awaitable[Writing]] | None = None
    briefing: Briefing = Briefing()
    follow_up: str = ""


class Reasoner(Protocol):
    """Whoever thinks behind the talk (Christakopoulou 2024): `Mind.open(reasoners=[…])` takes some."""

    @property
    def slot(self) -> str:
        """Name the part of memory that it writes; at most one run per slot goes on at a time."""

    @property
    def trigger(self) -> Trigger:
        """Say when it wakes."""

    @property
    def timeout_s(self) -> float:
        """Say for how many seconds a run may think."""

    async def think(self, context: RunContext) -> RunResult:
        """Think about what was heard.

        Whatever it raises is the failure of this run: what is believed stays as it is, the work is tried again, a
        bounded number of times, and is then set aside. Where it raises that its model cannot be had, the work rests
        until that is there again.
        """


def checked_reasoner(reasoner: Reasoner) -> Reasoner:
    """Return a reasoner that has all that one has.

    Raises:
        InputError: something is missing, or is no such thing; the message says what.
    """
    name = reasoner.__name__ if isinstance(reasoner, type) else type(reasoner).__name__
    slot, timeout_s = getattr(reasoner, "slot", None), getattr(reasoner, "timeout_s", None)
    if isinstance(reasoner, type):
        lack = f"an instance: {name}()"
    elif not isinstance(slot, str) or not slot:
        lack = "a slot, the name of the part of memory that it writes"
    elif not isinstance(getattr(reasoner, "trigger", None), Trigger):
        lack = "a trigger that says when it wakes, as Trigger(every=1)"
    elif not isinstance(timeout_s, int | float) or not timeout_s > 0:
        lack = "timeout_s, the seconds that a run may think, above 0"
    elif not callable(getattr(reasoner, "think", None)):
        lack = "async def think(self, context: RunContext) -> RunResult"
    else:
        return reasoner
    raise InputError(f"the reasoner {name} needs {lack}")


TRIES = 3
"""So many runs about an utterance may fail; then it is set aside."""
CRASHES = 20
"""So often it may be taken up and neither finished nor put back, as where the process dies of it."""
LONGEST_REST_S = 60.0
"""A reasoner whose model cannot be had asks it again after so long, or sooner."""
STUCK = 3
"""After so many failures of the store in a row nobody waits for it any longer."""


@dataclass(eq=False)
class Run:
    """A run that goes on; what it is about grows when it is steered."""

    work: list[Work]
    thinking: ForeignTask[RunResult] | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.work)

    @property
    def about(self) -> tuple[int, ...]:
        """The seqs of the utterances; an occasion has none."""
        return tuple(each.cause for each in self.work if each.cause > 0)


@dataclass(eq=False)
class Slot:
    """A reasoner and what goes on for it.

    Attributes:
        silent_at: when it may use the silence, in seconds of the loop's clock; None: it has, since something was heard.
        hour: the last moment of its trigger on which it was woken here.
        due: when it tries again after a failure, in seconds of the loop's clock.
        stuck: how often in a row the store could not be used.
        outages: how often in a row its model could not be had.
        quiet: how often in a row nothing was open when it looked of itself; it looks less often then.
    """

    reasoner: Reasoner
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    silent_at: float | None = None
    hour: Moment | None = None
    run: Run | None = None
    due: float | None = None
    stuck: int = 0
    outages: int = 0
    quiet: int = 0

    @property
    def name(self) -> str:
        return self.reasoner.slot

    @property
    def is_resting(self) -> bool:
        """It waits before it tries again, after a failure or for a model that cannot be had."""
        return self.due is not None and asyncio.get_running_loop().time() < self.due

    @property
    def is_waiting_out(self) -> bool:
        """Its model cannot be had, and is left alone for a while: nothing comes of waiting for it."""
        return self.outages > 0 and self.is_resting

    def rest(self, seconds: float) -> None:
        """Try nothing for so long."""
        self.due = asyncio.get_running_loop().time() + seconds


REMEMBERED = 40
"""How many records of the talk a reasoner is shown."""


async def build_context(
    stream: Memory, slot: str, rows: Sequence[Logged], newer: Newer, tools: Sequence[Tool] = ()
) -> RunContext:
    """Gather what a run may look at.

    Of utterances: the talk before them, the Talker's reply to the newest, and whether it waits instead.
    """
    utterances = utterances_in(rows)

    async def taking() -> Sequence[Utterance]:
        """Take what comes while the run goes on into what it is about."""
        fresh = await newer()
        utterances.extend(fresh)
        return fresh

    if not utterances:
        talk = await stream.latest("chat", REMEMBERED)
        return RunContext(slot, stream, utterances, talk, newer=taking, tools=tools, events=rows)
    newest, own = utterances[-1], {utterance.record for utterance in utterances}
    talk = await stream.latest("chat", REMEMBERED, episode=newest.session)
    before: list[Record] = [record for record in talk if record.id not in own and record.seq < newest.seq]
    reply = "\n".join(r.text for r in talk if r.seq > newest.seq and not r.data.get("by_user"))
    waiting = await stream.store.events(stream.key, after=newest.seq, kinds=["waiting"], limit=20)
    waits = any(isinstance(row.event, Waiting) and row.event.answers == newest.seq for row in waiting)
    return RunContext(slot, stream, utterances, before, reply, waits and not reply, taking, tools, rows)


async def rows_of(stream: Memory, work: Sequence[Work]) -> list[Logged]:
    """Read from the log what work was caused by; what was erased meanwhile is left out."""
    causes = [each.cause for each in work if each.cause > 0]
    found = [await stream.store.events(stream.key, after=cause - 1, limit=1) for cause in causes]
    return [row for rows, cause in zip(found, causes, strict=True) for row in rows if row.seq == cause]


def utterances_in(rows: Sequence[Logged]) -> list[Utterance]:
    """Return what was said, of all that happened."""
    return [
        Utterance(row.seq, row.event.text, row.event.record, row.event.session, row.at)
        for row in rows
        if isinstance(row.event, Heard)
    ]
