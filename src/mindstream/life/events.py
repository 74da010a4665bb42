"""What can happen in a life. Its log is its state: whoever opens it again goes on from these rows (see life/state).

Calls of tools are the ground's `tool_called` and `observed`, in the slot `life`. Every step of a turn has an id that
says where it stands: `12.3` is the third step of turn 12, `12.3.1` the first call that it wished, and `12.3.1.2` the
second step of the M1 that this call set to work.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.clock import Moment
from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event

SLOT = "life"
"""Signs what a life writes; the slot of its work and of its calls."""
Standing = Literal["open", "waiting", "done", "stopped"]
"""Where a task stands: it can be worked on, it waits for its time, it is done, or it was given up."""
Order = Literal["pause", "resume", "stop"]


class LifeBegan(Event):
    """A goal was given to a mind: its first one, or another."""

    kind = "life_began"
    goal: Quotes[str]
    language: NoWords[str]
    """Of the roles' words and of what is said to the user: `en` or `zh`."""
    orders: Quotes[tuple[str, ...]] = ()
    """Standing orders, in words: when, and what."""


class LifeOpened(Event):
    """A process took a life up with other models, or another command, than the one before it."""

    kind = "life_opened"
    models: NoWords[dict[str, str]] = Field(default_factory=dict)
    """By role, without credentials; none: rules."""
    command: Quotes[str] = ""
    """The command line that continues it; "": no process had one."""


class TurnBegan(Event):
    """A turn of M2's loop began."""

    kind = "turn_began"
    turn: int
    because: NoWords[str]
    """What woke it, in a word: task, order, user, answer, goal."""
    words: Quotes[str]
    """What M2 is told at its beginning: the time, what is new, the ledger."""
    seen: int = 0
    """The row of the log up to which it has taken in what others did."""


class Asked(Event):
    """A model is about to be asked; where no `replied` follows, it may have been."""

    kind = "asked"
    id: NoWords[str]
    role: NoWords[str]
    news: Quotes[str] = ""
    """What came up since the step before, as the model is told."""
    seen: int = 0
    """As of a turn."""
    tokens: int = 0
    """How long the prompt is, estimated."""


class WishedCall(BaseModel):
    """A call that a model wishes."""

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
    """What the call took, prompt and reply, of all requests; an estimate where the endpoint says nothing."""
    requests: int = 1
    """How often the model was asked for it: what broke off, or did not fit, is asked again."""
    cost_usd: float | None = None
    error: Quotes[str] = ""
    """Why there is no reply."""


class TurnEnded(Event):
    """M2 had no more calls to make, or could not go on."""

    kind = "turn_ended"
    turn: int
    words: Quotes[str]
    error: Quotes[str] = ""


class Folded(Event):
    """The oldest turns of M2's context became a memory; the turns themselves stay in the log, to be read by number."""

    kind = "folded"
    upto: int
    """The last of the turns that were folded."""
    since: int
    text: Quotes[str]
    record: NoWords[str] = ""
    """The memory's id."""
    model: NoWords[str]
    state: Quotes[str] = ""
    """All that a life is made of but its last turns, as JSON: where reading begins (see state)."""


class TaskChanged(Event):
    """Something was put into the ledger, or changed in it."""

    kind = "task_changed"
    task: int
    text: Quotes[str]
    standing: Standing
    until: Moment | None = None
    """When a task that waits can be worked on."""
    place: float = 0.0
    """Tasks are worked on in this order."""
    result: Quotes[str] = ""


class Questioned(Event):
    """M2 asks the user (the tool I)."""

    kind = "questioned"
    id: NoWords[str]
    tip: Quotes[str]
    until: Moment
    """How long it is waited for; an answer that comes later is news."""
    shown: bool = True
    """False: it is not the hour to disturb, or the words of the day are spent; it stands to be read."""


class Answered(Event):
    """Somebody answered a question."""

    kind = "answered"
    id: NoWords[str]
    text: Quotes[str]
    session: NoWords[str] = ""


class PermissionAsked(Event):
    """A call that changes the world waits for leave."""

    kind = "leave_asked"
    id: NoWords[str]
    tool: NoWords[str]
    arguments: Quotes[str]
    foreign: bool = False
    """Words of strangers may stand in it."""


class PermissionGiven(Event):
    """A person said whether a call may be made."""

    kind = "leave_given"
    id: NoWords[str]
    yes: bool


class PermissionUsed(Event):
    """A call was made, or not, as a person had said: the next one like it asks again."""

    kind = "leave_used"
    id: NoWords[str]
    """The call that leave was asked for."""


class Beat(Event):
    """A standing order came due; whether that is worth a turn was decided, without one."""

    kind = "beat"
    order: int
    due: Moment
    worth: float
    """How probable it is that a turn is worth its price, 0 to 1."""


class Proposed(Event):
    """M2 looked for work of its own, since its ledger had none (`--forever`)."""

    kind = "proposed"
    tasks: Quotes[tuple[str, ...]] = ()
    """What goes into the ledger; none: it rests."""
    because: Quotes[str] = ""
    until: Moment | None = None
    """Until when it rests, where it said so."""


class Noticed(Event):
    """Something outside changed: a file, a hook."""

    kind = "noticed"
    text: Quotes[str]


class Commanded(Event):
    """A person paused a life, let it go on, or stopped it."""

    kind = "commanded"
    order: Order
    because: Quotes[str] = ""


class Rested(Event):
    """A life does nothing more until somebody acts: why."""

    kind = "rested"
    because: Quotes[str]
    """Empty: it goes on, for there is room in its budget again."""


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
