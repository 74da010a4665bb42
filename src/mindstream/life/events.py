"""Events of a life. The state of a life is computed from these log rows, so any process can continue it (see
life/state).

A tool call is logged as the events `tool_called` and `observed`, in the slot `life`. Every step of a turn has an id
that says where it is: `12.3` is the third step of turn 12, `12.3.1` the first call that it requested, and `12.3.1.2`
the second step of the role (such as M1) that this call started.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mindstream.clock import Moment
from mindstream.frozen import Frozen
from mindstream.log.declared import Name, NoWords, Quotes
from mindstream.log.events import Event

SLOT = "life"
"""The author of a life's log rows; also the name (slot) of its queued work and its tool calls in the log."""
Standing = Literal["open", "waiting", "done", "stopped"]
"""State of a task. `open`: can be worked on; `waiting`: waits for a time, or until a person opens the task again;
`done`; `stopped`: given up."""
Order = Literal["pause", "resume", "stop"]


class LifeBegan(Event):
    """A mind was given a new goal or new standing orders, or its halted life was resumed with the same ones."""

    kind = "life_began"
    goal: Quotes[str]
    language: Name
    """Language of the roles' prompts and of messages to the user: `en` or `zh`."""
    orders: Quotes[tuple[str, ...]] = ()
    """Standing orders as text, each with a time and a task."""


class LifeOpened(Event):
    """A process began to run a life, with other models or another command than the process before it."""

    kind = "life_opened"
    models: NoWords[dict[str, str]] = Field(default_factory=dict)
    """Model names by role, without credentials; empty: rules instead of models."""
    command: Quotes[str] = ""
    """The command line that continues the life; "": unknown."""


class TurnBegan(Event):
    """A turn of M2, the model role that decides what to do, began."""

    kind = "turn_began"
    turn: int
    because: Name
    """The reason of the turn in a word or two, such as `task`, `order 1`, `user` or `news`."""
    words: Quotes[str]
    """The message to M2 (the role that decides) at the beginning of the turn: the time, the reason, the news, and the
    ledger of tasks."""
    seen: int = 0
    """The last log row whose news M2 has been shown."""


class Asked(Event):
    """A model is about to be called. Without a later `replied`, it is unknown whether the call was made."""

    kind = "asked"
    id: Name
    role: Name
    news: Quotes[str] = ""
    """News since the previous step, as in the prompt."""
    seen: int = 0
    """The last log row whose news M2 (the role that decides) has been shown."""
    tokens: int = 0
    """Estimated number of tokens of the prompt."""


class WishedCall(Frozen):
    """A call that a model requests."""

    tool: Name
    arguments: Quotes[str]


class Replied(Event):
    """A model has replied, or failed. This step is not requested again.

    If the id begins with `tool-`, the call is no step of a turn; only its tokens and cost are noted.
    """

    kind = "replied"
    id: Name
    role: Name
    model: Name
    text: Quotes[str]
    calls: tuple[WishedCall, ...] = ()
    tokens: int = 0
    """Tokens used by the prompts and replies of all requests of this step. If the endpoint does not report them, they
    are estimated, or 0 if the model failed."""
    requests: int = 1
    """Number of requests; interrupted or invalid replies are requested again."""
    cost_usd: float | None = None
    error: Quotes[str] = ""
    """Why there is no reply; "": the model replied."""


class TurnEnded(Event):
    """A turn ended: M2 (the role that decides) requested no more calls, made its last permitted step, or could not
    reply.
    """

    kind = "turn_ended"
    turn: int
    words: Quotes[str]
    error: Quotes[str] = ""


class Folded(Event):
    """A summary replaced the oldest turns in the context of M2 (the role that decides).

    The summary is also stored as a memory. The turns stay in the log and can be read by number.
    """

    kind = "folded"
    upto: int
    """Number of the last turn that the summary replaces."""
    since: int
    text: Quotes[str]
    record: Name = ""
    """The id of the memory record of the summary."""
    model: Name
    state: Quotes[str] = ""
    """The state of the life after the summary, as JSON. Later reads of the log start from this state (see life/state).
    """


class TaskChanged(Event):
    """A task was added to the ledger or changed."""

    kind = "task_changed"
    task: int
    text: Quotes[str]
    standing: Standing
    until: Moment | None = None
    """When a waiting task can be worked on."""
    place: float = 0.0
    """Position in the ledger; tasks are sorted by this number."""
    result: Quotes[str] = ""


class Questioned(Event):
    """M2, the model role that decides, asked the user a question with its tool `I`."""

    kind = "questioned"
    id: Name
    tip: Quotes[str]
    until: Moment
    """When M2 (the role that decides) stops waiting for the answer; a later answer is shown to M2 as news."""
    shown: bool = True
    """Whether the user is notified of the question. False outside active hours, and if the day's word limit would be
    exceeded.
    """


class Answered(Event):
    """A question was answered."""

    kind = "answered"
    id: Name
    text: Quotes[str]
    session: Name = ""


class PermissionAsked(Event):
    """A call waits for approval, because its tool changes the world, or because its arguments contain an address that
    no trusted source gave."""

    kind = "leave_asked"
    id: Name
    tool: Name
    arguments: Quotes[str]
    foreign: bool = False
    """Whether the arguments may contain third-party content."""


class PermissionGiven(Event):
    """A person decided whether a call may be made."""

    kind = "leave_given"
    id: Name
    yes: bool


class PermissionUsed(Event):
    """A person's decision about a call was used for this call; the next equal call needs approval again."""

    kind = "leave_used"
    id: Name
    """The id of the call that needed approval."""


class Beat(Event):
    """A standing order was due, and it was decided whether it is worth a turn."""

    kind = "beat"
    order: int
    due: Moment
    worth: float
    """Estimated probability that a turn is worth its price, 0 to 1. 1 if the model failed; 0 if the order's task is
    still open or does not fit into the ledger."""


class Proposed(Event):
    """M2, the role that decides, looked for work, because no task of the ledger could be done (`--forever`)."""

    kind = "proposed"
    tasks: Quotes[tuple[str, ...]] = ()
    """The tasks that are added to the ledger; (): M2 (the role that decides) failed or proposed no new task."""
    because: Quotes[str] = ""
    """M2's reason, or why M2 (the role that decides) failed."""
    until: Moment | None = None
    """When M2 (the role that decides) wants to look for work again; None: M2 found work, or named no future time."""


class Noticed(Event):
    """An external change was reported to the life, such as a changed file."""

    kind = "noticed"
    text: Quotes[str]


class Commanded(Event):
    """A person paused, resumed or stopped a life."""

    kind = "commanded"
    order: Order
    because: Quotes[str] = ""


class Rested(Event):
    """A life halts until a person acts or the budget has room again. With an empty reason: the life continues."""

    kind = "rested"
    because: Quotes[str]
    """Why the life halts; "": it continues, because its budget has room again."""


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
