"""The events of the log. A row of the log is an event with its number, its mind, its time and its author (`by`).

Rows outlive the code that wrote them. A class may gain a field with a default, lose a field, or widen a type: old rows
are read as before. To rename a kind or a field, append a step to `MIGRATIONS` (memory/store/tables.py) that rewrites
the old rows: it runs once, in one transaction. To remove a kind, delete its class: its rows are read as `Unknown`, and
kept. tests/folders contains data folders written by earlier versions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import not_
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mindstream import plugins
from mindstream.clock import Moment, format_iso
from mindstream.identifiers import StreamKey
from mindstream.log.declared import Name, Names, NoWords, Own, Quotes


class Event(BaseModel):
    """An event of a mind, such as a message. The class of the event declares which fields contain users' words
    (log/declared)."""

    model_config = ConfigDict(frozen=True)

    kind: ClassVar[str] = ""
    kept: ClassVar[bool] = True
    """Whether the event is written to the log. False: it is only shown to listeners when it happens."""
    of_all: ClassVar[bool] = False
    """True: the event contains a copy of data of all streams, stored for speed. It is searched for erased words of any
    user, and may be deleted at any time."""
    long: ClassVar[frozenset[str]] = frozenset()
    """Long fields, which are left out of lists of rows. A client requests them for a single row."""

    __str__ = BaseModel.__repr__

    def entry(self) -> tuple[str, str]:
        """Return the event's kind and payload, as the log stores them."""
        return self.kind, self.model_dump_json()


class Opened(Event):
    """A session began or was resumed."""

    kind = "opened"
    session: Name
    pack: Name = ""
    """The name of the mind's responder; for a coach, the name of its pack."""
    models: NoWords[dict[str, str]]
    """The model of each role."""


class Heard(Event):
    """The user said something. Once it is in the log, no crash can lose it."""

    kind = "heard"
    text: Own[str]
    session: Name
    record: Name
    """The id of the memory record with the words."""


class Waiting(Event):
    """The user is told that the answer is not there yet.

    The Talker waits for a Reasoner, the Talker's model is slow, or another answer of the conversation is still running.
    """

    kind = "waiting"
    text: Quotes[str]
    """The filler sentence, without any content; "" while another answer is running."""
    slots: Names
    """What the answer waits for: the slot of a Reasoner, or `talker` (another answer). Empty: the model is slow."""
    answers: int
    """The seq of the user's message."""
    belief_version: int


class Piece(Event):
    """A part of an answer, while the Talker is writing it."""

    kind = "piece"
    kept = False
    text: Quotes[str]
    answers: int


class Redacted(Event):
    """Personal data was removed from a message before it was stored. The event names the kinds of data, not the
    data."""

    kind = "redacted"
    kinds: NoWords[dict[str, int]]
    """Number of removed items of each kind."""


class MindErased(Event):
    """All data of a mind was erased: clients must stop showing it."""

    kind = "mind_erased"
    kept = False


class Reading(Event):
    """The Talker's model was called and has not returned a word yet; a slow model may need a minute for the prompt."""

    kind = "reading"
    kept = False
    model: Name
    answers: int


class Said(Event):
    """The Talker has answered."""

    kind = "said"
    text: Own[str]
    answers: int
    belief_version: int
    """The version of the belief that the answer is based on."""
    model: Name
    """The model's name. `rules`: no model was called; `safety`: the answer is an alarm's words; `unavailable`: the
    model failed."""
    waited: bool = False
    """The Talker waited for the Reasoner before it answered."""
    late: bool = False
    """The Talker waited for the Reasoner, then answered before the Reasoner had finished."""
    record: Name = ""
    alone: bool = False
    """No follow-up can be sent after the answer: the channel of the message cannot deliver one, or the responder sends
    none."""


class Thought(Event):
    """A Reasoner has finished processing one or more messages."""

    kind = "thought"
    slot: Name
    about: tuple[int, ...]
    """The seqs of the messages. A message is in at most one Thought of each slot."""
    text: Quotes[str]
    model: Name
    stands: Quotes[str] = ""
    ask: Quotes[str] = ""
    offer: Quotes[str] = ""
    care: Quotes[str] = ""
    """The four fields of the briefing for the Talker: `stands`, the situation; `ask`, what to find out next; `offer`,
    what to say; `care`, what not to say."""
    asked: Quotes[tuple[str, ...]] = Field((), exclude_if=not_)
    """The subjects of the questions in this and earlier briefings, the newest last. An item "" stands for a briefing
    without a question."""


class SetAside(Event):
    """A Reasoner failed repeatedly at these messages and gave them up. The Reasoner continues with later messages."""

    kind = "set_aside"
    slot: Name
    about: tuple[int, ...]
    """The seqs of the messages; no Thought of this slot is about them."""
    reason: Quotes[str]
    attempts: int
    """Number of runs that claimed these messages, the last one included."""


class ModelCalled(Event):
    """A model was called."""

    kind = "model_called"
    role: Name
    prompt: Name
    model: Name
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Number of the input tokens that the endpoint had cached."""
    first_part_s: float | None = None
    seconds: float = 0.0
    cost_usd: float | None = None
    cut: Name = ""
    """The parts of the prompt that were left out to fit the model's window, with their amounts: `conversation -3`."""
    error: Quotes[str] = ""
    mended: bool = False
    """The reply was not valid JSON but in a form like JSON5 or Python, and was accepted after it was rewritten as
    JSON."""
    about: tuple[int, ...] = Field((), exclude_if=not_)
    """The seqs of the rows that the call answers or processes."""
    resident: Name = Field("", exclude_if=not_)
    """The resident of a town who called the model."""
    step: int | None = Field(None, exclude_if=lambda step: step is None)
    """The step of the town's simulation."""
    called_at: Moment | None = Field(None, exclude_if=lambda at: at is None)
    """The real time of the call, set if the row has the simulated time of a town; None: the row's time is real."""
    asked: Quotes[str] = Field("", exclude_if=not_)
    """The messages of the prompt as JSON, pairs of a role and a text; "" if prompts are not stored."""
    answered: Quotes[str] = Field("", exclude_if=not_)
    """The reply; "" if replies are not stored."""

    long = frozenset({"asked", "answered"})

    def time(self, row_at: Moment) -> Moment:
        """Return the real time of the call; `row_at` is the time of its row."""
        return row_at if self.called_at is None else self.called_at

    def messages(self) -> list[tuple[str, str]]:
        """Return the messages as pairs of role and text. If an erasure has made the JSON invalid, return the raw
        text."""
        try:
            found = json.loads(self.asked) if self.asked else []
        except ValueError:
            return [("", self.asked)]
        return [(str(each[0]), str(each[1])) for each in found if isinstance(each, list) and len(each) == 2]


class ToolCalled(Event):
    """A Reasoner called a tool."""

    kind = "tool_called"
    slot: Name
    tool: Name
    arguments: Quotes[str]
    id: Name = ""
    """The id of the call; the event with the result (`Observed`) has the same id."""


class Observed(Event):
    """The result of a tool."""

    kind = "observed"
    slot: Name
    tool: Name
    text: Quotes[str]
    """The part of the result that the Reasoner got (see tools/call)."""
    failed: bool = False
    foreign: bool = False
    """The result is untrusted text, such as a web page."""
    id: Name = ""
    """The id of the call (`ToolCalled.id`)."""


class BeliefChanged(Event):
    """A new version of a belief was written: by a Reasoner, or because items of the belief were forgotten."""

    kind = "belief_changed"
    slot: Name
    version: int
    patch: Own[dict[str, JsonValue]]


class PlanChanged(Event):
    """A Reasoner made or changed the plan."""

    kind = "plan_made"
    version: int
    text: Own[str]
    """The plan in the Reasoner's words."""
    changed: Own[str] = ""
    """The changes from the previous version of the plan, and the reason."""


class FollowUp(Event):
    """The mind sends an unsolicited follow-up.

    Either a Reasoner or the check for danger had a result only after the Talker had answered. Or the message has no
    answer because a model or a process failed.
    """

    kind = "follow_up"
    text: Own[str]
    answers: int
    record: Name = ""


class Remembered(Event):
    """Records were written to the stream by something other than a conversation, such as an import."""

    kind = "remembered"
    count: int
    kinds: NoWords[dict[str, int]]


class DocumentsRead(Event):
    """The author of this log row searches the documents of this stream.

    When the last author of such a row is erased, the stream is erased, too.
    """

    kind = "documents_read"


class Corrected(Event):
    """A record was corrected. Reasoners that used the old record may run again (`Trigger(on=("corrected",))`)."""

    kind = "corrected"
    old: Name
    """The id of the corrected record."""
    new: Name
    """The id of the record that replaces it; "": the record was withdrawn without a replacement."""


class RecallMade(Event):
    """A recall found records that can strengthen or decay.

    Records that it returned may have become stronger. Records that it found but did not return may have become weaker.
    """

    kind = "recalled"
    moment: Moment
    returned: Names
    passed_over: Names = ()
    forgotten: Names = ()
    """The records in `passed_over` that the recall archived: their level (memory/forgetting_curve) fell below 0."""


class PolicySet(Event):
    """The policy of this memory was set (see memory/policy); it replaces the previous one."""

    kind = "policy_set"
    policy: NoWords[dict[str, JsonValue]]


class Slept(Event):
    """A step of the sleep, the regular maintenance of a memory, is done (see memory/lifecycle/sleep)."""

    kind = "slept"
    step: Literal["fading", "dream", "importance", "duplicates", "expiry", "compaction", "undo"]
    cause: int = 0
    """For the step `fading`: the seq of the row that the sleep was started for; 0: none. For other steps: the seq of
    the step `fading` of the same sleep."""
    looked_at: int = 0
    changed: int = 0
    records: Names = ()
    """The records that the step archived (`fading`, `expiry`), wrote (`dream`: the dream; `duplicates`: the records
    that replace duplicates) or restored (`undo`)."""
    weakened: Names = ()
    """Records that got weaker but were not archived."""
    text: Own[Quotes[str]] = ""
    """The text of the dream; "" for other steps."""
    model: Name = ""
    error: Quotes[str] = ""
    """Why the step failed; "" if it did not fail."""


class Reflected(Event):
    """The mind derived thoughts from its observations.

    The sum of importance that triggers a reflection starts again at 0 (see reasoners/reflect).
    """

    kind = "reflected"
    upto: Name
    """The id of the memory's newest record when the reflection began."""
    questions: Quotes[tuple[str, ...]]
    thoughts: Names
    """The ids of the new thoughts."""
    model: Name


class Failed(Event):
    """Something failed; the conversation continues."""

    kind = "error"
    text: Quotes[str]
    where: Name


class MessageRefused(Event):
    """A provider's content filter refuses prompts with this message; later prompts leave it out."""

    kind = "message_refused"
    record: Name
    """The id of the memory record that holds the message."""
    heard: int
    """The number of the message's row in the log."""
    model: Name
    reason: Quotes[str]
    """The provider's error message."""


class Unknown(Event):
    """A row of the log that this version cannot read: written by a newer version, or damaged. It is kept unchanged."""

    kind = "unknown"
    named: Name
    """The kind of event that the row states."""
    payload: Quotes[str]

    def entry(self) -> tuple[str, str]:
        return self.named, self.payload


GROUND: tuple[type[Event], ...] = (
    Opened, Heard, Waiting, Piece, Redacted, MindErased, Reading, Said, Thought, SetAside, ModelCalled, ToolCalled,
    Observed, BeliefChanged, PlanChanged, FollowUp, Remembered, DocumentsRead, Corrected, RecallMade, PolicySet,
    Slept, Reflected, Failed, MessageRefused,
)  # fmt: skip
_kinds: dict[str, type[Event]] = {each.kind: each for each in GROUND}
_read: set[str] = set()


def add_kinds(plugin: str, events: Iterable[type]) -> None:
    """Add a plugin's kinds of events to those that can be read. A module that defines events may call this itself:
    otherwise the first row of one of these kinds imports the events of all plugins.

    Raises:
        ValueError: one of them is not an event, or its kind is already taken.
    """
    for each in events:
        if not issubclass(each, Event) or _kinds.setdefault(each.kind, each) is not each:
            raise ValueError(
                f"the plugin {plugin!r} registers {each.__name__} as an event: expected a subclass of"
                f" Event whose kind no other event has, found the kind {getattr(each, 'kind', None)!r}"
            )


def every_kind() -> dict[str, type[Event]]:
    """Return the kinds of events that can be read: the kinds of the core, and the kinds of all registered plugins.

    Raises:
        ValueError: a class that a plugin registers is not an event, or its kind is already taken.
    """
    for plugin in plugins.registered():
        if plugin.name not in _read:
            _read.add(plugin.name)
            add_kinds(plugin.name, plugin.events())
    return _kinds


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of the log.

    Attributes:
        seq: the row's number; 0 for an event that is not stored.
        system: mindstream itself wrote the row, even if `by` is the name of a user.
    """

    seq: int
    mind: StreamKey
    at: Moment
    by: str
    event: Event
    system: bool = False

    def row(self) -> dict[str, Any]:
        """Return the event as plain data: `event` (the kind), `seq`, `at`, `by`, then the event's fields except long
        ones."""
        head: dict[str, Any] = {"event": self.event.kind, "seq": self.seq or None, "at": self.at, "by": self.by}
        return head | self.event.model_dump(mode="json", exclude=set(self.event.long) or None)


def read_event(kind: object, payload: object) -> Event:
    """Return the event of a row of the log; `Unknown` if the row cannot be read."""
    shape = _kinds.get(kind) or every_kind().get(kind) if isinstance(kind, str) else None
    if shape is not None and isinstance(payload, str):
        try:
            return shape.model_validate_json(payload)
        except ValidationError:
            pass
    return Unknown(named=printable(kind), payload=printable(payload))


def printable(value: object) -> str:
    """Return any value of a row as text that can be printed and stored."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    return text.encode("utf-8", "replace").decode()


LAST = 50


class Timeline(list[Logged]):
    """Rows of a log, oldest first; a notebook shows them as an HTML table."""

    @classmethod
    async def of(cls, rows: AsyncIterable[Logged], last: int = LAST) -> Self:
        """Return the last `last` rows: `await Timeline.of(memory.log())`."""
        kept = deque[Logged](maxlen=last)
        async for row in rows:
            kept.append(row)
        return cls(kept)

    def _repr_html_(self) -> str:
        from mindstream.html_tables import table

        rows = [
            (row.seq, format_iso(row.at)[:19].replace("T", " "), row.by, row.event.kind, _told(row)) for row in self
        ]
        return table("timeline", ("seq", "at", "by", "event", ""), rows)


def _told(row: Logged) -> str:
    fields = row.event.model_dump(mode="json", exclude=set(row.event.long) | {"spent"}, exclude_defaults=True)
    text = str(fields.pop("text", ""))
    rest = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return text or rest


ROOM = 900
"""Maximum number of events that wait for one listener; if there are more, the oldest are dropped."""


class Signal:
    """A flag that one task waits for, with a timeout. Waiting takes half the time that it takes with `asyncio.Event`
    and `asyncio.timeout`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: asyncio.Future[None] | None = None

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def set(self) -> None:
        """Set the flag and wake the task that waits for it."""
        self._is_set = True
        _ring(self._waiting)

    def clear(self) -> None:
        """Clear the flag, so that the next `wait` waits."""
        self._is_set = False

    async def wait(self, within_s: float | None = None) -> bool:
        """Wait until the flag is set, at most `within_s` seconds; return whether it is set."""
        if not self._is_set:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = None if within_s is None else loop.call_later(within_s, _ring, self._waiting)
            try:
                await self._waiting
            finally:
                self._waiting = None
                if timer is not None:
                    timer.cancel()
        return self._is_set


def _ring(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class Feed:
    """Passes every event of this process to listeners. Stored events can also be read from the store.

    A listener that does not read delays no other listener and uses bounded memory. Such a listener loses the oldest
    events, and then finds a gap in the numbers (`seq`) of the events.
    """

    def __init__(self) -> None:
        self._listeners: set[asyncio.Queue[Logged | None]] = set()
        self._subscribers: list[Callable[[Logged], None]] = []

    def publish(self, logged: Logged) -> None:
        """Pass an event to all listeners and subscribers."""
        for told in self._subscribers:
            told(logged)
        for listener in self._listeners:
            _put(listener, logged)

    @contextlib.contextmanager
    def listening(self) -> Iterator[AsyncIterator[Logged]]:
        """Yield an iterator over the events that are published while the block runs."""
        listener: asyncio.Queue[Logged | None] = asyncio.Queue(ROOM)
        self._listeners.add(listener)
        try:
            yield _each(listener)
        finally:
            self._listeners.discard(listener)

    @contextlib.contextmanager
    def subscribe(self, told: Callable[[Logged], None]) -> Iterator[None]:
        """Call `told` with each event, synchronously, until the block ends; `told` must be fast and must not raise."""
        self._subscribers.append(told)
        try:
            yield
        finally:
            self._subscribers.remove(told)

    def close(self) -> None:
        """End all listeners' iterations."""
        for listener in self._listeners:
            _put(listener, None)


def _put(listener: asyncio.Queue[Logged | None], logged: Logged | None) -> None:
    if listener.full():
        listener.get_nowait()
    listener.put_nowait(logged)


async def _each(listener: asyncio.Queue[Logged | None]) -> AsyncIterator[Logged]:
    while (logged := await listener.get()) is not None:
        yield logged
