"""Events of a life. The log is its state: a process that opens it continues from these rows (see life/state).

Tool calls are `tool_called` and `observed`, in the slot `life`. Every step of a turn has an id that says where it is:
`12.3` is the third step of turn 12, `12.3.1` the first call that it requested, and `12.3.1.2` the second step of the M1
that this call started.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.clock import Moment
from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event

SLOT = "life"
"""Author of a life's rows; the slot of its work and its calls."""
Standing = Literal["open", "waiting", "done", "stopped"]
"""State of a task: it can be worked on, it waits for its time, it is done, or it was given up."""
Order = Literal["pause", "resume", "stop"]


class LifeBegan(Event):
    """A mind was given a goal: its first or another one."""

    kind = "life_began"
    goal: Quotes[str]
    language: NoWords[str]
    """Of the roles' prompts and of words to the user: `en` or `zh`."""
    orders: Quotes[tuple[str, ...]] = ()
    """Standing orders in words: time, and task."""


class LifeOpened(Event):
    """A process continued a life with other models, or another command, than the one before."""

    kind = "life_opened"
    models: NoWords[dict[str, str]] = Field(default_factory=dict)
    """By role, without credentials; none: rules."""
    command: Quotes[str] = ""
    """The command line that continues it; "": unknown."""


class TurnBegan(Event):
    """A turn of M2's loop began."""

    kind = "turn_began"
    turn: int
    because: NoWords[str]
    """Its reason in a word: task, order, user, answer, goal."""
    words: Quotes[str]
    """M2's message at its beginning: the time, news, the ledger."""
    seen: int = 0
    """The last log row that news were read from."""


class Asked(Event):
    """A model is about to be called; without a later `replied`, it may have been."""

    kind = "asked"
    id: NoWords[str]
    role: NoWords[str]
    news: Quotes[str] = ""
    """News since the step before, in the prompt's words."""
    seen: int = 0
    """As in a turn."""
    tokens: int = 0
    """Estimated length of the prompt."""


class WishedCall(BaseModel):
    """A call that a model requests."""

    model_config = ConfigDict(frozen=True)

    tool: NoWords[str]
    arguments: Quotes[str]


class Replied(Event):
    """A model has replied; it is not asked the same again."""

    kind = "replied"
    id: NoWords[str]
    role: NoWords[str]
    model: NoWords[str]
    text: Quotes[str]
    calls: tuple[WishedCall, ...] = ()
    tokens: int = 0
    """Used by all requests, prompts and replies; an estimate if the endpoint reports nothing."""
    requests: int = 1
    """Number of requests: interrupted or unfit replies are requested again."""
    cost_usd: float | None = None
    error: Quotes[str] = ""
    """Why there is no reply."""


class TurnEnded(Event):
    """M2 had no more calls to make, or could not continue."""

    kind = "turn_ended"
    turn: int
    words: Quotes[str]
    error: Quotes[str] = ""


class Folded(Event):
    """The oldest turns of M2's context became a memory; the turns themselves stay in the log, readable by number."""

    kind = "folded"
    upto: int
    """The last folded turn."""
    since: int
    text: Quotes[str]
    record: NoWords[str] = ""
    """The memory's id."""
    model: NoWords[str]
    state: Quotes[str] = ""
    """The state of the life without its last turns, as JSON: reading begins here (see state)."""


class TaskChanged(Event):
    """A task was added to the ledger or changed."""

    kind = "task_changed"
    task: int
    text: Quotes[str]
    standing: Standing
    until: Moment | None = None
    """When a waiting task can be worked on."""
    place: float = 0.0
    """The tasks' order."""
    result: Quotes[str] = ""


class Questioned(Event):
    """M2 asks the user (the tool I)."""

    kind = "questioned"
    id: NoWords[str]
    tip: Quotes[str]
    until: Moment
    """How long M2 waits; a later answer is news."""
    shown: bool = True
    """False: it is not shown, because of the hour or the day's word limit; it can be read."""


class Answered(Event):
    """A question was answered."""

    kind = "answered"
    id: NoWords[str]
    text: Quotes[str]
    session: NoWords[str] = ""


class PermissionAsked(Event):
    """A call that changes the world waits for approval."""

    kind = "leave_asked"
    id: NoWords[str]
    tool: NoWords[str]
    arguments: Quotes[str]
    foreign: bool = False
    """Whether it may contain third-party content."""


class PermissionGiven(Event):
    """A person decided whether a call may be made."""

    kind = "leave_given"
    id: NoWords[str]
    yes: bool


class PermissionUsed(Event):
    """A decision was used for a call; the next equal call needs approval again."""

    kind = "leave_used"
    id: NoWords[str]
    """The call that needed approval."""


class Beat(Event):
    """A standing order was due; whether it is worth a turn was decided, without a turn."""

    kind = "beat"
    order: int
    due: Moment
    worth: float
    """Probability that a turn is worth its price, 0 to 1."""


class Proposed(Event):
    """M2 looked for work of its own, because its ledger had none (`--forever`)."""

    kind = "proposed"
    tasks: Quotes[tuple[str, ...]] = ()
    """Tasks for the ledger; none: it rests."""
    because: Quotes[str] = ""
    until: Moment | None = None
    """Until when it rests, if it said so."""


class Noticed(Event):
    """Something changed outside: a file, a hook."""

    kind = "noticed"
    text: Quotes[str]


class Commanded(Event):
    """A person paused, resumed or stopped a life."""

    kind = "commanded"
    order: Order
    because: Quotes[str] = ""


class Rested(Event):
    """A life halts until a person acts, and why."""

    kind = "rested"
    because: Quotes[str]
    """Empty: it continues, because its budget has room again."""


EVENTS: tuple[type[Event], ...] = (
    LifeBegan,
    LifeOpened,
    TurnBegan,
    Asked,
    Replied,
    TurnEnded,
    Folded,
    TaskChanged,
    Questioned,
    Answered,
    PermissionAsked,
    PermissionGiven,
    PermissionUsed,
    Beat,
    Proposed,
    Noticed,
    Commanded,
    Rested,
)
