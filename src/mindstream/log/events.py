"""What can happen, typed. A row of the log is an event with its number, its mind, its time and who did it.

Rows outlive the code that wrote them. A class may gain a field that has a default, lose a field, widen a type: old rows
are read as before. Whoever renames a kind or a field appends a step to `MIGRATIONS` (memory/store/tables.py) that rewrites
rows: it runs once, in one transaction, so that a process that dies in it leaves the file as it was. A kind that is no
more needs nothing: its rows are read as `Unknown`, and kept. tests/folders holds what earlier versions wrote.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mindstream.clock import Moment
from mindstream.log.names import StreamKey


class Event(BaseModel):
    """Something that happened to a mind."""

    model_config = ConfigDict(frozen=True)

    kind: ClassVar[str] = ""
    kept: ClassVar[bool] = True
    """False: shown as it happens, not written to the log."""

    def entry(self) -> tuple[str, str]:
        """Return its kind and its payload as the log keeps them."""
        return self.kind, self.model_dump_json()


class Opened(Event):
    """A session began or was resumed."""

    kind = "opened"
    session: str
    pack: str = ""
    """Who speaks for the mind; a coach is called like its pack."""
    models: dict[str, str]
    """Who answers for each role."""


class Heard(Event):
    """The user said something; once this stands in the log it is never lost."""

    kind = "heard"
    text: str
    session: str
    record: str
    """The id of the memory record that holds the words."""


class Waiting(Event):
    """The Talker waits for a Reasoner and says so."""

    kind = "waiting"
    text: str
    """The filler: states nothing."""
    slots: tuple[str, ...]
    """Which reasoners it waits for."""
    answers: int
    """The seq of what was heard."""
    belief_version: int


class Piece(Event):
    """A piece of what is being said."""

    kind = "piece"
    kept = False
    text: str
    answers: int


class Reading(Event):
    """The Talker's model has been asked and has not said a word yet: where it is slow, it reads for a minute."""

    kind = "reading"
    kept = False
    model: str
    answers: int


class Said(Event):
    """The Talker has answered."""

    kind = "said"
    text: str
    answers: int
    belief_version: int
    """The version of the belief that it spoke from."""
    model: str
    """Who found the words; `rules` where no model did."""
    waited: bool = False
    late: bool = False
    """It waited, and spoke before the Reasoner had finished."""
    record: str = ""


class Thought(Event):
    """A Reasoner has finished thinking about what was heard."""

    kind = "thought"
    slot: str
    about: tuple[int, ...]
    """The seqs of the utterances that it thought about: each stands in exactly one Thought of a slot."""
    text: str
    model: str
    words: str = ""
    """What the Talker is to say, in the Reasoner's words."""
    ask_next: str = ""
    """What the Talker should ask when it fits."""


class SetAside(Event):
    """Utterances that a Reasoner could not think about, though it tried again; later ones are thought about."""

    kind = "set_aside"
    slot: str
    about: tuple[int, ...]
    """The seqs of the utterances: what stands here stands in no Thought of the slot."""
    reason: str
    attempts: int
    """How often it was tried."""


class ModelCalled(Event):
    """A model was asked."""

    kind = "model_called"
    role: str
    prompt: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """How many of the input tokens the endpoint had kept from an earlier prompt."""
    first_part_s: float | None = None
    seconds: float = 0.0
    cost_usd: float | None = None
    cut: str = ""
    """What was left out of the prompt so that it fits the model's window."""
    error: str = ""
    mended: bool = False
    """The reply was no JSON, and was read by a library: as JSON5."""


class ToolCalled(Event):
    """A Reasoner called a tool."""

    kind = "tool_called"
    slot: str
    tool: str
    arguments: str
    id: str = ""
    """The same in what it gave (`observed`)."""


class Observed(Event):
    """What a tool gave back."""

    kind = "observed"
    slot: str
    tool: str
    text: str
    """All of it that was taken (see tools/call)."""
    failed: bool = False
    foreign: bool = False
    """Strangers wrote it."""
    id: str = ""
    """The call's."""


class BeliefChanged(Event):
    """A Reasoner wrote a new version of a belief."""

    kind = "belief_changed"
    slot: str
    version: int
    patch: dict[str, JsonValue]


class FollowUp(Event):
    """The mind says more, unasked, once: the Reasoner came after the Talker had spoken."""

    kind = "follow_up"
    text: str
    answers: int
    record: str = ""


class Remembered(Event):
    """Records were written to the stream other than by talking."""

    kind = "remembered"
    count: int
    kinds: dict[str, int]


class Corrected(Event):
    """A record was corrected: whoever believed the older one may want to know (`Trigger(on=("corrected",))`)."""

    kind = "corrected"
    old: str
    """The id of the record that is history now."""
    new: str
    """The id of the record that took its place; "": it was taken back, and none did."""


class Slept(Event):
    """A step of a sleep is done (see memory/lifecycle/sleep)."""

    kind = "slept"
    step: Literal["fading", "dream", "importance", "duplicates", "expiry", "compaction", "undo"]
    cause: int = 0
    """The row of the log that it follows from: of fading, what the sleep was begun for (0: none); else the fading."""
    looked_at: int = 0
    changed: int = 0
    records: tuple[str, ...] = ()
    """What came of it: the forgotten, the dream, what replaces duplicates, the expired, what is held again."""
    weakened: tuple[str, ...] = ()
    """What is held less well, and not forgotten."""
    text: str = ""
    """The dream."""
    model: str = ""
    error: str = ""
    """Why the step came to nothing."""


class Reflected(Event):
    """The mind has drawn thoughts from what it saw; the counter of importance begins anew (see reasoners/reflect)."""

    kind = "reflected"
    upto: str
    """The id of the newest record that was reflected upon."""
    questions: tuple[str, ...]
    thoughts: tuple[str, ...]
    """The ids of the new thoughts."""
    model: str


class Failed(Event):
    """Something did not work; the conversation goes on."""

    kind = "error"
    text: str
    where: str


class Unknown(Event):
    """A row of the log that this mindstream cannot read: a newer one's, or damaged. Kept as it stands."""

    kind = "unknown"
    named: str
    """The kind that the row names."""
    payload: str

    def entry(self) -> tuple[str, str]:
        return self.named, self.payload


KINDS: dict[str, type[Event]] = {}
"""The kinds of events that can be read: the ground's, and those that rooms have registered."""
ROOMS = tuple(f"mindstream.{room}.events" for room in ("coach", "planning", "life", "sharing", "town"))
"""Where rooms register theirs; loaded when a kind is met that is not known."""


def register(*kinds: type[Event]) -> None:
    """Let a room's own events be read from the log; where the room is not loaded they are `Unknown`, and are kept.

    Raises:
        ValueError: another event has that kind already.
    """
    for kind in kinds:
        if KINDS.setdefault(kind.kind, kind) is not kind:
            raise ValueError(f"there are two events of the kind {kind.kind!r}")


register(
    Opened, Heard, Waiting, Piece, Reading, Said, Thought, SetAside, ModelCalled, ToolCalled, Observed, BeliefChanged,
    FollowUp, Remembered, Corrected, Slept, Reflected, Failed,
)  # fmt: skip


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
        """Return the event as plain data: `event` (its kind), `seq`, `at`, `by`, then its own fields."""
        head: dict[str, Any] = {"event": self.event.kind, "seq": self.seq or None, "at": self.at, "by": self.by}
        return head | self.event.model_dump(mode="json")


def event(kind: object, payload: object) -> Event:
    """Read an event from a row of the log; what does not fit is `Unknown`."""
    shape = KINDS.get(kind) or _rooms().get(kind) if isinstance(kind, str) else None
    if shape is not None and isinstance(payload, str):
        try:
            return shape.model_validate_json(payload)
        except ValidationError:
            pass
    return Unknown(named=printable(kind), payload=printable(payload))


@cache
def _rooms() -> dict[str, type[Event]]:
    """Let the rooms register their events; return all kinds."""
    for room in ROOMS:
        importlib.import_module(room)
    return KINDS


def printable(value: object) -> str:
    """Write whatever stands in a row as text that can be printed and written again."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)
    return text.encode("utf-8", "replace").decode()
