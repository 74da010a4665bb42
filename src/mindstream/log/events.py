"""The events of the log. A row of the log is an event with its number, its mind, its time and its author.

Rows outlive the code that wrote them. A class may gain a field with a default, lose a field, or widen a type: old rows
are read as before. To rename a kind or a field, append a step to `MIGRATIONS` (memory/store/tables.py) that rewrites
rows: it runs once, in one transaction. A removed kind needs nothing: its rows are read as `Unknown`, and kept.
tests/folders contains what earlier versions wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from operator import not_
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mindstream import plugins
from mindstream.clock import Moment
from mindstream.log.declared import NoWords, Own, Quotes
from mindstream.log.names import StreamKey


class Event(BaseModel):
    """Something that happened to a mind; its class declares which texts contain users' words."""

    model_config = ConfigDict(frozen=True)

    kind: ClassVar[str] = ""
    kept: ClassVar[bool] = True
    """False: shown as it happens, not written to the log."""
    of_all: ClassVar[bool] = False
    """A copy of rows of all streams, for speed: it is searched when any user's words are erased, and may be deleted."""
    long: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out of lists and streams of rows: they are requested one by one."""

    __str__ = BaseModel.__repr__

    def entry(self) -> tuple[str, str]:
        """Return its kind and its payload, as the log stores them."""
        return self.kind, self.model_dump_json()


class Opened(Event):
    """A session began or was resumed."""

    kind = "opened"
    session: NoWords[str]
    pack: NoWords[str] = ""
    """The responder of the mind; a coach has the name of its pack."""
    models: NoWords[dict[str, str]]
    """The model of each role."""


class Heard(Event):
    """The user said something; once it is in the log it is never lost."""

    kind = "heard"
    text: Own[str]
    session: NoWords[str]
    record: NoWords[str]
    """The id of the memory record with the words."""


class Waiting(Event):
    """The Talker waits for a Reasoner and says so."""

    kind = "waiting"
    text: Quotes[str]
    """The filler: it states nothing."""
    slots: NoWords[tuple[str, ...]]
    """Which reasoners it waits for."""
    answers: int
    """The seq of the utterance."""
    belief_version: int


class Piece(Event):
    """A part of an answer that is being given."""

    kind = "piece"
    kept = False
    text: Quotes[str]
    answers: int


class Redacted(Event):
    """Personal data was removed from a message before it was stored: of which kinds, not its content."""

    kind = "redacted"
    kinds: NoWords[dict[str, int]]
    """How many of each."""


class MindErased(Event):
    """All data of a mind was erased: clients that show any of it must drop it."""

    kind = "mind_erased"
    kept = False


class Reading(Event):
    """The Talker's model was called and has not returned a word yet: a slow one reads for a minute."""

    kind = "reading"
    kept = False
    model: NoWords[str]
    answers: int


class Said(Event):
    """The Talker has answered."""

    kind = "said"
    text: Own[str]
    answers: int
    belief_version: int
    """The version of the belief that it used."""
    model: NoWords[str]
    """The model; `rules` if no model was called."""
    waited: bool = False
    late: bool = False
    """It waited, and answered before the Reasoner had finished."""
    record: NoWords[str] = ""
    alone: bool = False
    """No follow-up is possible on its channel."""


class Thought(Event):
    """A Reasoner has finished its reasoning about utterances."""

    kind = "thought"
    slot: NoWords[str]
    about: tuple[int, ...]
    """The seqs of the utterances; each is in exactly one Thought of a slot."""
    text: Quotes[str]
    model: NoWords[str]
    stands: Quotes[str] = ""
    ask: Quotes[str] = ""
    offer: Quotes[str] = ""
    care: Quotes[str] = ""
    """The briefing for the Talker: the situation, what to find out next, what to say, what not to say."""


class SetAside(Event):
    """Utterances that a Reasoner failed at repeatedly; later ones are processed."""

    kind = "set_aside"
    slot: NoWords[str]
    about: tuple[int, ...]
    """The seqs of the utterances; they are in no Thought of the slot."""
    reason: Quotes[str]
    attempts: int
    """Number of attempts."""


class ModelCalled(Event):
    """A model was called."""

    kind = "model_called"
    role: NoWords[str]
    prompt: NoWords[str]
    model: NoWords[str]
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Number of the input tokens that the endpoint had cached."""
    first_part_s: float | None = None
    seconds: float = 0.0
    cost_usd: float | None = None
    cut: NoWords[str] = ""
    """The parts of the prompt that were left out to fit the model's window."""
    error: Quotes[str] = ""
    mended: bool = False
    """The reply was not valid JSON, and was parsed as JSON5."""
    about: tuple[int, ...] = Field((), exclude_if=not_)
    """The seqs of the rows that it answers or reasons about."""
    resident: NoWords[str] = Field("", exclude_if=not_)
    """The resident of a town who called it."""
    step: int | None = Field(None, exclude_if=lambda step: step is None)
    """The step of the town."""
    called_at: Moment | None = Field(None, exclude_if=lambda at: at is None)
    """The real time of the call, if the row has a town's time; None: the row's time."""
    asked: Quotes[str] = Field("", exclude_if=not_)
    """If it is stored: the messages, as JSON: pairs of a role and a text."""
    answered: Quotes[str] = Field("", exclude_if=not_)
    """If it is stored: the reply."""

    long = frozenset({"asked", "answered"})

    def time(self, row_at: Moment) -> Moment:
        """Return the real time of the call; `row_at`: the time of its row."""
        return row_at if self.called_at is None else self.called_at

    def messages(self) -> list[tuple[str, str]]:
        """Return the messages, as pairs of role and text; erased words may have left invalid JSON."""
        try:
            found = json.loads(self.asked) if self.asked else []
        except ValueError:
            return [("", self.asked)]
        return [(str(each[0]), str(each[1])) for each in found if isinstance(each, list) and len(each) == 2]


class ToolCalled(Event):
    """A Reasoner called a tool."""

    kind = "tool_called"
    slot: NoWords[str]
    tool: NoWords[str]
    arguments: Quotes[str]
    id: NoWords[str] = ""
    """The id of the call, also in its result (`Observed`)."""


class Observed(Event):
    """The result of a tool."""

    kind = "observed"
    slot: NoWords[str]
    tool: NoWords[str]
    text: Quotes[str]
    """The used part of the result (see tools/call)."""
    failed: bool = False
    foreign: bool = False
    """It is untrusted text."""
    id: NoWords[str] = ""
    """The id of the call."""


class BeliefChanged(Event):
    """A Reasoner wrote a new version of a belief."""

    kind = "belief_changed"
    slot: NoWords[str]
    version: int
    patch: Own[dict[str, JsonValue]]


class PlanChanged(Event):
    """A Reasoner made or changed the plan."""

    kind = "plan_made"
    version: int
    text: Own[str]
    """The plan in the Reasoner's words."""
    changed: Own[str] = ""
    """The changes to the plan before, and the reason."""


class FollowUp(Event):
    """The mind sends an unsolicited follow-up, once: the Reasoner finished after the Talker had answered."""

    kind = "follow_up"
    text: Own[str]
    answers: int
    record: NoWords[str] = ""


class Remembered(Event):
    """Records were written to the stream, not by a conversation."""

    kind = "remembered"
    count: int
    kinds: NoWords[dict[str, int]]


class DocumentsRead(Event):
    """Its author has a folder's documents searched in this stream, which is erased with the last such user."""

    kind = "documents_read"


class Corrected(Event):
    """A record was corrected; reasoners that used the older one may react (`Trigger(on=("corrected",))`)."""

    kind = "corrected"
    old: NoWords[str]
    """The id of the record that was replaced."""
    new: NoWords[str]
    """The id of the new record; "": it was withdrawn without one."""


class RecallMade(Event):
    """A recall with an effect: the returned records get stronger, those passed over get weaker."""

    kind = "recalled"
    moment: Moment
    returned: NoWords[tuple[str, ...]]
    passed_over: NoWords[tuple[str, ...]] = ()
    forgotten: NoWords[tuple[str, ...]] = ()
    """Records passed over that were archived by it: their level fell below 0."""


class PolicySet(Event):
    """The policy of this memory was set (see memory/policy); it replaces the one before."""

    kind = "policy_set"
    policy: NoWords[dict[str, JsonValue]]


class Slept(Event):
    """A step of a sleep is done (see memory/lifecycle/sleep)."""

    kind = "slept"
    step: Literal["fading", "dream", "importance", "duplicates", "expiry", "compaction", "undo"]
    cause: int = 0
    """The row of the log that caused it: of fading, the start of the sleep (0: none); of other steps, the fading."""
    looked_at: int = 0
    changed: int = 0
    records: NoWords[tuple[str, ...]] = ()
    """Its results: archived records, the dream, replacements of duplicates, expired records, restored records."""
    weakened: NoWords[tuple[str, ...]] = ()
    """Records that got weaker, but were not archived."""
    text: Own[Quotes[str]] = ""
    """The dream."""
    model: NoWords[str] = ""
    error: Quotes[str] = ""
    """Why the step failed."""


class Reflected(Event):
    """The mind derived thoughts from its observations; the sum of importance restarts (see reasoners/reflect)."""

    kind = "reflected"
    upto: NoWords[str]
    """The id of the newest record of the reflection."""
    questions: Quotes[tuple[str, ...]]
    thoughts: NoWords[tuple[str, ...]]
    """The ids of the new thoughts."""
    model: NoWords[str]


class Failed(Event):
    """Something failed; the conversation continues."""

    kind = "error"
    text: Quotes[str]
    where: NoWords[str]


class MessageRefused(Event):
    """A provider's content filter refuses prompts with this message; it is left out of prompts from now on."""

    kind = "message_refused"
    record: NoWords[str]
    """The id of the memory record that holds the message."""
    heard: int
    """The seq of the message."""
    model: NoWords[str]
    reason: Quotes[str]
    """The provider's message."""


class Unknown(Event):
    """A row of the log that this version cannot read: of a newer version, or damaged. It is kept unchanged."""

    kind = "unknown"
    named: NoWords[str]
    """The kind in the row."""
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


def every_kind() -> dict[str, type[Event]]:
    """Return the kinds of events that can be read: those of the core and of all registered plugins.

    Raises:
        ValueError: two events have the same kind.
    """
    for plugin in plugins.registered():
        if plugin.name not in _read:
            _read.add(plugin.name)
            for each in plugin.events():
                if not issubclass(each, Event) or _kinds.setdefault(each.kind, each) is not each:
                    raise ValueError(f"{each.__name__} of the plugin {plugin.name!r} is no event, or one of two")
    return _kinds


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of the log. `seq`: 0 for an event that is not stored; `system`: mindstream wrote it, whatever `by` says."""

    seq: int
    mind: StreamKey
    at: Moment
    by: str
    event: Event
    system: bool = False

    def row(self) -> dict[str, Any]:
        """Return the event as plain data: `event` (its kind), `seq`, `at`, `by`, then its fields except long ones."""
        head: dict[str, Any] = {"event": self.event.kind, "seq": self.seq or None, "at": self.at, "by": self.by}
        return head | self.event.model_dump(mode="json", exclude=set(self.event.long) or None)


def read_event(kind: object, payload: object) -> Event:
    """Return the event of a row of the log; an unreadable one is `Unknown`."""
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
