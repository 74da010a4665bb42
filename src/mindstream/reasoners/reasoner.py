"""`Reasoner`, the protocol of components that think in the background: a slot, a trigger, and `think(context)`."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, JsonValue

from mindstream import chance
from mindstream.clock import Moment
from mindstream.errors import InputError, ToolError
from mindstream.foreign_code import ForeignTask
from mindstream.log.events import Heard, Logged, Observed, Said, Signal, Thought, ToolCalled, Waiting
from mindstream.log.work import Work
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.store import Entry, Revision
from mindstream.memory.stream import Patch
from mindstream.models.model import Call
from mindstream.text.links import links
from mindstream.tools.call import Observation, UntrustedText, refusal_of, ungiven, watched_call
from mindstream.tools.tool import Tool, traits_of


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An event (usually an utterance), with the properties by which triggers decide whether it wakes a reasoner.

    Attributes:
        number: number of events of this kind in the mind's log, including this one.
        phase, before: the phase of the conversation now, and the phase at the previous utterance.
        kind: the kind of the event.
    """

    number: int
    phase: str
    before: str
    kind: str = "heard"


@dataclass(frozen=True, slots=True)
class Trigger:
    """When a reasoner wakes.

    It wakes on an event that meets all of `every`, `phases`, `entering` and `on`. It also wakes after a silence
    (`idle_s`), and at a time (`at`).

    Attributes:
        every: wake on every n-th event; 0: on no event.
        phases: wake only in these phases; (): in any phase.
        entering: wake only at the first event after the phase has changed.
        on: kinds of the events; `heard` is an utterance.
        idle_s: wake once after this many seconds without an event of the kinds in `on`.
        at: wake at this time; afterwards `Reasoner.trigger` should return another time.
        each: whether every process that has the mind open wakes its own reasoner at the time `at`. A life uses this,
            because a life has a separate lease. False: only one process does the work that a silence or a set time
            causes.
    """

    every: int = 1
    phases: tuple[str, ...] = ()
    entering: bool = False
    idle_s: float | None = None
    at: Moment | None = None
    on: tuple[str, ...] = ("heard",)
    each: bool = False

    def fires(self, turn: Occurrence) -> bool:
        """Return whether this event wakes the reasoner."""
        if turn.kind not in self.on or self.every == 0 or turn.number % self.every:
            return False
        if self.entering and turn.phase == turn.before:
            return False
        return not self.phases or turn.phase in self.phases


EVERY_TURN = Trigger()


FRESH_S = 600.0
"""Maximum age of a recorded tool result that is reused, in seconds."""
MAX_SEARCHED = 1_000
"""Maximum number of log rows that are searched for recorded calls."""


async def recorded_results(memory: Memory, slot: str, since: int) -> dict[tuple[str, str], deque[str]]:
    """Return the tool results of interrupted runs of a slot since a log row, by tool and arguments.

    Results of failed calls, results older than FRESH_S, and results of runs that ended are not included.
    """
    made: dict[str, ToolCalled] = {}
    given: defaultdict[tuple[str, str], deque[str]] = defaultdict(deque)
    kinds = ["tool_called", "observed", "thought"]
    for row in await memory.store.events(memory.key, since, kinds, MAX_SEARCHED):
        match row.event:
            case Thought(slot=of) if of == slot:
                made.clear()
                given.clear()
            case ToolCalled(slot=of, id=id_) if of == slot and id_:
                made[id_] = row.event
            case Observed(slot=of, failed=False) as seen if of == slot and memory.clock.now() - row.at <= FRESH_S:
                if call := made.pop(seen.id, None):
                    given[call.tool, call.arguments].append(UntrustedText(seen.text) if seen.foreign else seen.text)
    return given


@dataclass(frozen=True, slots=True)
class Utterance:
    """An utterance for a reasoner to think about.

    Attributes:
        seq: the log row of the utterance.
        record: the id of the utterance's memory record.
        session: the name of the conversation.
        at: the time of the log row.
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
    """The events that caused a run, and its resources.

    Attributes:
        slot: the slot of the reasoner.
        utterances: the utterances to think about, oldest first; several if they came during an earlier run.
        conversation: the last records of the conversation before the newest utterance, oldest first: answers and
            earlier utterances, without the utterances in `utterances`. If there is no utterance: the last records of
            all conversations.
        reply: the answer to the newest utterance; "" if there is none yet.
        waits: whether the talker waits for the result of this run before it answers the newest utterance.
        newer: claims utterances that came after the run began, and returns them.
        tools: tools of the mind.
        events: the log rows that woke the reasoner, oldest first.
        found: results of successful tool calls of this run.
        strangers: tool results with third-party content. If there are any, all records of the run are marked as
            tainted.
        searched: results of search tools. The pages that these results name may be fetched.
        recorded: tool results of interrupted runs about the same events, as one table; empty until the log is read.
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
    recorded: list[dict[tuple[str, str], deque[str]]] = field(default_factory=list)

    @property
    def session(self) -> str:
        """The session of the newest utterance; "" if there is none."""
        return self.utterances[-1].session if self.utterances else ""

    @property
    def evidence(self) -> tuple[str, ...]:
        """The ids of the memory records of the utterances."""
        return tuple(utterance.record for utterance in self.utterances)

    def note_draft(self, text: str, predicate: str, object: str, by: str) -> RecordDraft:
        """Return the draft of a note about the user, with the utterances of this run as evidence."""
        about, at = Triple("user", predicate, object), self.utterances[-1].at
        return RecordDraft(text=text, kind="note", by=by, evidence=self.evidence, depth=1, about=about, created=at)

    async def call(self, tool: str, /, **arguments: JsonValue) -> str:
        """Call one of `tools`, log the call, and return its result.

        If an interrupted run about the same events made the same call, its result is returned without a new call.

        Raises:
            ToolError: the tool is unknown, the arguments do not fit, or the call failed.
        """
        found = await watched_call(Call(tool, json.dumps(arguments), chance.token()), self.tools, self)
        if found.failed:
            raise ToolError(found.text)
        return found.text

    async def take_newer(self) -> str:
        """Claim utterances that came since the run began; return their words, "" if there are none."""
        return "\n".join(utterance.text for utterance in await self.newer())

    async def recorded_result(self, call: Call) -> str | None:
        """Return the result of the same call in an interrupted run, or the reason for refusing the call.

        Each recorded result is used once, and counts as a result of this run. Return None if the call has to be made.
        """
        if why := self._refusal(call):
            return why
        if self.events and not self.recorded:
            since = min(row.seq for row in self.events)
            self.recorded.append(await recorded_results(self.memory, self.slot, since))
        results = self.recorded[0].get((call.tool, call.arguments)) if self.recorded else None
        if not results:
            return None
        given = results.popleft()  # each recorded result is used once
        self.found.append(given)
        self.strangers.extend([given] * isinstance(given, UntrustedText))
        return given

    async def log_call(self, call: Call) -> None:
        """Log a tool call."""
        event = ToolCalled(slot=self.slot, tool=call.tool, arguments=call.arguments, id=call.id)
        await self.memory.commit(Entry(event, self.slot))

    async def log_observation(self, call: Call, found: Observation) -> None:
        """Log a tool result, and add its text to lists of the run:

        - to `found`, unless the call failed,
        - to `strangers`, if the result is untrusted,
        - to `searched`, if the tool is a search tool.
        """
        if not found.failed:
            self.found.append(found.text)
        if found.untrusted:
            self.strangers.append(found.text)
        if any(traits_of(tool).finds for tool in self.tools if tool.spec.name == call.tool):
            self.searched.append(found.text)
        event = Observed(
            slot=self.slot, tool=call.tool, text=found.text, failed=found.failed, foreign=found.untrusted, id=call.id
        )
        await self.memory.commit(Entry(event, self.slot))

    def _refusal(self, call: Call) -> str:
        """Return why a call is refused; "": the call is allowed.

        After third-party content was read, an address in a call must come from the user or a search.
        """
        tool = next((each for each in self.tools if each.spec.name == call.tool), None)
        if tool is None or not self.strangers:
            return ""
        said = (each.text for each in self.conversation if each.data.get("by_user"))
        given = links([*(each.text for each in self.utterances), *said, *self.searched])
        address = ungiven(tool, call.arguments, given)
        return refusal_of(address) if address else ""


Writing = tuple[Sequence[Entry], Sequence[Revision]]


@dataclass(frozen=True, slots=True)
class BeliefPatch:
    """A change of a belief: a value replaces, a list adds, null clears (see `Belief` in memory/stream).

    Attributes:
        shape: the Pydantic model of the slot's belief.
        evidence: ids of the records on which the change is based.
    """

    slot: str
    shape: type[BaseModel]
    patch: Patch
    evidence: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Briefing:
    """A reasoner's advice for the talker, which uses its own words in the answer.

    Attributes:
        stands: how things stand with the user now.
        ask: the one question that the talker should ask next.
        offer: the next thing that the talker should say, in suitable words.
        care: a caution, or something that the talker should not say.
        asked: the subjects of the questions of earlier briefings and this one, the newest last; "" for a briefing
            without a question. Several briefings in a row with the same subject count once. The talker does not see
            this list.
        upto: the log row of the last message that the briefing is about.
    """

    stands: str = ""
    ask: str = ""
    offer: str = ""
    care: str = ""
    asked: tuple[str, ...] = ()
    upto: int = 0

    def __str__(self) -> str:
        parts = {"how it stands": self.stands, "ask": self.ask, "offer": self.offer, "care": self.care}
        return "\n".join(f"{name}: {text}" for name, text in parts.items() if text)

    def __bool__(self) -> bool:
        return bool(self.stands or self.ask or self.offer or self.care)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a reasoner's run; one commit writes it together with the end of the run's work.

    Attributes:
        thought: a summary for display. If it is "" and no event caused the run, nothing is written.
        model: the name of the model that was used.
        records: records to remember; their author (`by`) defaults to the slot.
        beliefs: changes of beliefs, merged into the latest versions when they are written.
        write: returns further log entries and record revisions, based on the latest beliefs; called again after a
            conflict with another writer.
        briefing: advice for the talker.
        follow_up: an unsolicited message to the user. The mind's responder decides whether to send it; the shipped
            responders do not if the user has written again.
    """

    thought: str
    model: str = ""
    records: Sequence[RecordDraft] = ()
    beliefs: Sequence[BeliefPatch] = ()
    write: Callable[[], Awaitable[Writing]] | None = None
    briefing: Briefing = Briefing()
    follow_up: str = ""


class Reasoner(Protocol):
    """A component that thinks in the background of a conversation (Christakopoulou 2024).

        class Counting:
            slot, trigger, timeout_s = "count", Trigger(every=1), 10.0

            async def think(self, context: RunContext) -> RunResult:
                return RunResult("counted", records=[RecordDraft(text=f"{len(context.utterances)} messages")])

        Mind.open("data", user="ann", reasoners=[Counting()])

    A class with these members is a reasoner; it needs no base class.
    """

    @property
    def slot(self) -> str:
        """The name under which the reasoner's records and unfinished work are stored.

        Only one run per slot is in progress at a time.
        """

    @property
    def trigger(self) -> Trigger:
        """When the reasoner wakes."""

    @property
    def timeout_s(self) -> float:
        """The timeout of a run, in seconds."""

    async def think(self, context: RunContext) -> RunResult:
        """Think about the events of a context, and return the result.

        If the method raises, no result is written, and the work is tried again later. After TRIES failed runs, the work
        is dead-lettered. If the method raises because its model is unavailable, the work waits until the model is
        available again.
        """


def checked_reasoner(reasoner: Reasoner) -> Reasoner:
    """Check that a reasoner fulfils the protocol, and return it.

    Raises:
        InputError: a member is missing or wrong; the message says which.
    """
    name = reasoner.__name__ if isinstance(reasoner, type) else type(reasoner).__name__
    slot, timeout_s = getattr(reasoner, "slot", None), getattr(reasoner, "timeout_s", None)
    needs = {
        f"to be an instance: {name}()": not isinstance(reasoner, type),
        "a slot, the name of the part of memory that it writes": isinstance(slot, str) and slot,
        "a trigger that says when it wakes, such as Trigger(every=1)": isinstance(
            getattr(reasoner, "trigger", 0), Trigger
        ),
        "timeout_s, the timeout of a run in seconds, above 0": isinstance(timeout_s, int | float) and timeout_s > 0,
        "async def think(self, context: RunContext) -> RunResult": callable(getattr(reasoner, "think", None)),
    }
    if lack := next((need for need, is_met in needs.items() if not is_met), ""):
        raise InputError(f"the reasoner {name} needs {lack}")
    return reasoner


TRIES = 3
"""Number of failed runs after which work is dead-lettered."""
CRASHES = 20
"""Maximum number of times that work is claimed but neither finished nor released, because the process died. At the next
claim it is dead-lettered."""
MAX_REST_S = 60.0
"""Maximum pause until an unavailable model is tried again, in seconds."""
STUCK = 3
"""Number of store failures in a row after which callers of `Background.settled` stop waiting."""


@dataclass(eq=False)
class Run:
    """A run in progress. Its list of work grows when the run claims newer utterances."""

    work: list[Work]
    thinking: ForeignTask[RunResult] | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.work)

    @property
    def about(self) -> tuple[int, ...]:
        """The log rows that caused the work; work that silence or a set time caused has none."""
        return tuple(each.cause for each in self.work if each.cause > 0)


@dataclass(eq=False)
class Slot:
    """A reasoner and its state.

    Attributes:
        silent_at: time of the next check for silence (`Trigger.idle_s`), in seconds of the event loop's clock; None: no
            check before the next utterance.
        hour: the last time `Trigger.at` at which the reasoner was woken in this process.
        run: the run in progress.
        due: time of the next attempt after a failure, in seconds of the event loop's clock; None: the last attempt did
            not fail.
        stuck: number of store failures in a row.
        outages: number of times in a row that the model was unavailable.
        quiet: number of polls in a row that found nothing, at most QUIET (background.py). Each such poll quadruples the
            poll interval.
    """

    reasoner: Reasoner
    woken: Signal = field(default_factory=Signal)
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
        """Whether the slot pauses before its next attempt."""
        return self.due is not None and asyncio.get_running_loop().time() < self.due

    @property
    def is_waiting_out(self) -> bool:
        """Whether the slot pauses because its model is unavailable; callers of `settled` do not wait for it."""
        return self.outages > 0 and self.is_resting

    def rest(self, seconds: float) -> None:
        """Pause the slot for this many seconds."""
        self.due = asyncio.get_running_loop().time() + seconds


REMEMBERED = 40
"""Maximum number of chat records that are read for a run's context: the newest ones."""


async def build_context(
    stream: Memory, slot: str, rows: Sequence[Logged], newer: Newer, tools: Sequence[Tool] = ()
) -> RunContext:
    """Gather the context of a run from the log rows that woke the reasoner.

    The context includes:
    - the utterances, and the conversation before them
    - the answer to the newest utterance
    - whether the talker waits for this reasoner
    """
    utterances = utterances_in(rows)

    async def taking() -> Sequence[Utterance]:
        """Claim newer utterances, and add them to those of the run."""
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
    found = [row.event for row in await stream.store.events(stream.key, newest.seq, ["waiting", "said"], 20)]
    about = [each for each in found if isinstance(each, Waiting | Said) and each.answers == newest.seq]
    has_answer = bool(reply) or any(isinstance(each, Said) for each in about)  # an excuse is a `Said`, not a record
    waits = not has_answer and any(isinstance(each, Waiting) and slot in each.slots for each in about)
    return RunContext(slot, stream, utterances, before, reply, waits, taking, tools, rows)


async def rows_of(stream: Memory, work: Sequence[Work]) -> list[Logged]:
    """Return the log rows that caused work; erased ones are left out."""
    causes = [each.cause for each in work if each.cause > 0]
    found = [await stream.store.events(stream.key, after=cause - 1, limit=1) for cause in causes]
    return [row for rows, cause in zip(found, causes, strict=True) for row in rows if row.seq == cause]


def utterances_in(rows: Sequence[Logged]) -> list[Utterance]:
    """Return the utterances among log rows."""
    return [
        Utterance(row.seq, row.event.text, row.event.record, row.event.session, row.at)
        for row in rows
        if isinstance(row.event, Heard)
    ]
