"""What can happen, typed. A row of the log is an event with its number, its mind, its time and who did it.

Rows outlive the code that wrote them. A class may gain a field that has a default, lose a field, widen a type: old
rows are read as before. Whoever renames a kind or a field appends a step to `MIGRATIONS` (memory/store/tables.py)
that rewrites rows: it runs once, in one transaction, so that a process that dies in it leaves the file as it was. A
kind that is no more needs nothing: its rows are read as `Unknown`, and kept. tests/folders holds what earlier
versions wrote.
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
    """Something that happened to a mind; of each text its class declares whether it holds people's words."""

    model_config = ConfigDict(frozen=True)

    kind: ClassVar[str] = ""
    kept: ClassVar[bool] = True
    """False: shown as it happens, not written to the log."""
    of_all: ClassVar[bool] = False
    """A copy of what rows of all streams say, made to be quick: searched whosever words are erased; may be deleted."""
    long: ClassVar[frozenset[str]] = frozenset()
    """Fields that are left out where rows are listed or told as they come: they are asked for one by one."""

    __str__ = BaseModel.__repr__

    def entry(self) -> tuple[str, str]:
        """Return its kind and its payload as the log keeps them."""
        return self.kind, self.model_dump_json()


class Opened(Event):
    """A session began or was resumed."""

    kind = "opened"
    session: NoWords[str]
    pack: NoWords[str] = ""
    """Who speaks for the mind; a coach is called like its pack."""
    models: NoWords[dict[str, str]]
    """Who answers for each role."""


class Heard(Event):
    """The user said something; once this stands in the log it is never lost."""

    kind = "heard"
    text: Own[str]
    session: NoWords[str]
    record: NoWords[str]
    """The id of the memory record that holds the words."""


class Waiting(Event):
    """The Talker waits for a Reasoner and says so."""

    kind = "waiting"
    text: Quotes[str]
    """The filler: states nothing."""
    slots: NoWords[tuple[str, ...]]
    """Which reasoners it waits for."""
    answers: int
    """The seq of what was heard."""
    belief_version: int


class Piece(Event):
    """A piece of what is being said."""

    kind = "piece"
    kept = False
    text: Quotes[str]
    answers: int


class Redacted(Event):
    """Something was taken out of what was heard before it was kept: of which kinds, and not what."""

    kind = "redacted"
    kinds: NoWords[dict[str, int]]
    """How many of each."""


class MindErased(Event):
    """All that was kept of a mind was erased: whoever shows something of it lets go of that."""

    kind = "mind_erased"
    kept = False


class Reading(Event):
    """The Talker's model has been asked and has not said a word yet: where it is slow, it reads for a minute."""

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
    """The version of the belief that it spoke from."""
    model: NoWords[str]
    """Who found the words; `rules` where no model did."""
    waited: bool = False
    late: bool = False
    """It waited, and spoke before the Reasoner had finished."""
    record: NoWords[str] = ""
    alone: bool = False
    """Nothing could follow it where it was said."""


class Thought(Event):
    """A Reasoner has finished thinking about what was heard."""

    kind = "thought"
    slot: NoWords[str]
    about: tuple[int, ...]
    """The seqs of the utterances that it thought about: each stands in exactly one Thought of a slot."""
    text: Quotes[str]
    model: NoWords[str]
    stands: Quotes[str] = ""
    ask: Quotes[str] = ""
    offer: Quotes[str] = ""
    care: Quotes[str] = ""
    """The briefing for the Talker: how it stands, what to find out next, what to say, what not to."""


class SetAside(Event):
    """Utterances that a Reasoner could not think about, though it tried again; later ones are thought about."""

    kind = "set_aside"
    slot: NoWords[str]
    about: tuple[int, ...]
    """The seqs of the utterances: what stands here stands in no Thought of the slot."""
    reason: Quotes[str]
    attempts: int
    """How often it was tried."""


class ModelCalled(Event):
    """A model was asked."""

    kind = "model_called"
    role: NoWords[str]
    prompt: NoWords[str]
    model: NoWords[str]
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the endpoint had kept from an earlier prompt."""
    first_part_s: float | None = None
    seconds: float = 0.0
    cost_usd: float | None = None
    cut: NoWords[str] = ""
    """What was left out of the prompt so that it fits the model's window."""
    error: Quotes[str] = ""
    mended: bool = False
    """The reply was no JSON, and was read by a library: as JSON5."""
    about: tuple[int, ...] = Field((), exclude_if=not_)
    """The seqs of the rows that it answers, or thinks about."""
    resident: NoWords[str] = Field("", exclude_if=not_)
    """Who in a town asked."""
    step: int | None = Field(None, exclude_if=lambda step: step is None)
    """At which step of the town."""
    called_at: Moment | None = Field(None, exclude_if=lambda at: at is None)
    """When it was asked in real time, where the row has a town's time; None: at the row's time."""
    asked: Quotes[str] = Field("", exclude_if=not_)
    """Where it is kept: the messages, as JSON: pairs of a role and a text."""
    answered: Quotes[str] = Field("", exclude_if=not_)
    """Where it is kept: the reply, word by word."""

    long = frozenset({"asked", "answered"})

    def time(self, row_at: Moment) -> Moment:
        """Return when it was asked, in real time; `row_at`: the time of its row."""
        return row_at if self.called_at is None else self.called_at

    def messages(self) -> list[tuple[str, str]]:
        """Return what was asked, as pairs of role and text; words that were erased may have left no JSON behind."""
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
    """The same in what it gave (`observed`)."""


class Observed(Event):
    """What a tool gave back."""

    kind = "observed"
    slot: NoWords[str]
    tool: NoWords[str]
    text: Quotes[str]
    """All of it that was taken (see tools/call)."""
    failed: bool = False
    foreign: bool = False
    """Strangers wrote it."""
    id: NoWords[str] = ""
    """The call's."""


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
    """What is different from the plan before, and why."""


class FollowUp(Event):
    """The mind says more, unasked, once: the Reasoner came after the Talker had spoken."""

    kind = "follow_up"
    text: Own[str]
    answers: int
    record: NoWords[str] = ""


class Remembered(Event):
    """Records were written to the stream other than by talking."""

    kind = "remembered"
    count: int
    kinds: NoWords[dict[str, int]]


class DocumentsRead(Event):
    """Whoever did this has a folder's documents searched in this stream; it is erased with the last of them."""

    kind = "documents_read"


class Corrected(Event):
    """A record was corrected: whoever believed the older one may want to know (`Trigger(on=("corrected",))`)."""

    kind = "corrected"
    old: NoWords[str]
    """The id of the record that is history now."""
    new: NoWords[str]
    """The id of the record that took its place; "": it was taken back, and none did."""


class RecallMade(Event):
    """A recall was made that counts: what it returned is held better by it, what it passed over fades."""

    kind = "recalled"
    moment: Moment
    returned: NoWords[tuple[str, ...]]
    passed_over: NoWords[tuple[str, ...]] = ()
    forgotten: NoWords[tuple[str, ...]] = ()
    """Of those that were passed over, what faded below level 0 by it: no recall finds it any more."""


class PolicySet(Event):
    """Somebody set how this memory recalls and fades (see memory/policy); it takes the place of what was set before."""

    kind = "policy_set"
    policy: NoWords[dict[str, JsonValue]]


class Slept(Event):
    """A step of a sleep is done (see memory/lifecycle/sleep)."""

    kind = "slept"
    step: Literal["fading", "dream", "importance", "duplicates", "expiry", "compaction", "undo"]
    cause: int = 0
    """The row of the log that it follows from: of fading, what the sleep was begun for (0: none); else the fading."""
    looked_at: int = 0
    changed: int = 0
    records: NoWords[tuple[str, ...]] = ()
    """What came of it: the forgotten, the dream, what replaces duplicates, the expired, what is held again."""
    weakened: NoWords[tuple[str, ...]] = ()
    """What is held less well, and not forgotten."""
    text: Own[Quotes[str]] = ""
    """The dream."""
    model: NoWords[str] = ""
    error: Quotes[str] = ""
    """Why the step came to nothing."""


class Reflected(Event):
    """The mind has drawn thoughts from what it saw; the counter of importance begins anew (see reasoners/reflect)."""

    kind = "reflected"
    upto: NoWords[str]
    """The id of the newest record that was reflected upon."""
    questions: Quotes[tuple[str, ...]]
    thoughts: NoWords[tuple[str, ...]]
    """The ids of the new thoughts."""
    model: NoWords[str]


class Failed(Event):
    """Something did not work; the conversation goes on."""

    kind = "error"
    text: Quotes[str]
    where: NoWords[str]


class MessageRefused(Event):
    """The content filter of a model's provider refuses prompts with a message; it is left out of them from here on."""

    kind = "message_refused"
    record: NoWords[str]
    """The id of the memory record that holds the message."""
    heard: int
    """The seq of the message."""
    model: NoWords[str]
    reason: Quotes[str]
    """What the provider said."""


class Unknown(Event):
    """A row of the log that this mindstream cannot read: a newer one's, or damaged. Kept as it stands."""

    kind = "unknown"
    named: NoWords[str]
    """The kind that the row names."""
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
    """Return the kinds of events that can be read: those of the core and of all plugins.

    Raises:
        ValueError: two events are of the same kind.
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
    """A row of the log. `seq` is 0 for an event that is not kept; `system`: mindstream wrote it, whatever `by` says."""

    seq: int
    mind: StreamKey
    at: Moment
    by: str
    event: Event
    system: bool = False

    def row(self) -> dict[str, Any]:
        """Return the event as plain data: `event` (its kind), `seq`, `at`, `by`, then its own fields but long ones."""
        head: dict[str, Any] = {"event": self.event.kind, "seq": self.seq or None, "at": self.at, "by": self.by}
        return head | self.event.model_dump(mode="json", exclude=set(self.event.long) or None)


def read_event(kind: object, payload: object) -> Event:
    """Read an event from a row of the log; what does not fit is `Unknown`."""
    shape = _kinds.get(kind) or every_kind().get(kind) if isinstance(kind, str) else None
    if shape is not None and isinstance(payload, str):
        try:
            return shape.model_validate_json(payload)
        except ValidationError:
            pass
    return Unknown(named=printable(kind), payload=printable(payload))


def printable(value: object) -> str:
    """Write whatever stands in a row as text that can be printed and written again."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    return text.encode("utf-8", "replace").decode()
