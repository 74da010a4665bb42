"""The state of a life: its turns, its spending, and the context that its models are shown.

A `Folded` event contains the whole state, so reading a long log starts from its last fold.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel, Field

from mindstream.clock import Moment
from mindstream.errors import BudgetSpent
from mindstream.life.events import (
    EVENTS,
    SLOT,
    Answered,
    Asked,
    Beat,
    Commanded,
    Folded,
    LifeBegan,
    Noticed,
    PermissionAsked,
    PermissionGiven,
    PermissionUsed,
    Proposed,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import Ledger, Task
from mindstream.life.prompts import NOT_YET
from mindstream.log.events import Event, Heard, Logged, Observed, ToolCalled
from mindstream.memory.memory import Memory
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import read_log
from mindstream.models.model import Call, Message
from mindstream.models.untrusted import cut, delimited
from mindstream.text.words import count_words


class Turn(BaseModel):
    """A turn in the context of M2, the model role that decides what to do."""

    number: int
    because: str = ""
    messages: list[Message] = []
    tainted: bool = False
    """Whether the turn contains third-party content."""


class News(BaseModel):
    """An event caused by people or other processes: its log row, a line about it, and whether the user caused it."""

    row: int
    line: str
    by_user: bool = True


class Fold(BaseModel):
    """A summary that replaces older turns in the context of M2 (the role that decides).

    `tainted`: whether the turns contained third-party content.
    """

    text: str
    tainted: bool = False


class Opened(BaseModel):
    """The time and the tasks of the ledger when the newest turn began, and the news that the newest turn has shown to
    M2 (the role that decides)."""

    at: Moment = 0.0
    tasks: list[Task] = []
    news: list[str] = []


class LifeSpent(BaseModel):
    """The spending of a life: in total, and on the day (UTC) of the last call or question."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    day: str = ""
    usd_today: float = 0.0
    tokens_today: int = 0
    words_today: int = 0
    """Number of words of the unsolicited questions that the user was shown on the day `day`."""


KINDS = (*(each.kind for each in EVENTS), "tool_called", "observed", "heard")
FROM_OUTSIDE = ("heard", "answered", "leave_given", "noticed", "commanded", "task_changed", "life_began")
"""Kinds of events that people and other processes can write at any time."""
RESULT, WORDS, ARGUMENT, QUESTION = 4_000, 1_500, 600, 300
"""Maximum number of characters of a text in the context of M2 (the role that decides).

RESULT: of a result. WORDS: of a reply, or of a line of news. ARGUMENT: of an argument. QUESTION: of a question.
"""
SAID, ANSWERED = "The user said: ", "The user answered later what you asked, "
LEAVE = "The call "
"""Beginnings of lines of news. SAID and ANSWERED begin a line with the user's words. LEAVE begins a line with the
decision about a call that needed approval."""
SESSION = "life"
"""The session whose utterances are always addressed to the life (see `LifeState.hears`)."""
LATE = 5
"""Maximum number of expired questions that can still be answered; only the newest ones are remembered."""
SUMMARIES = 4
"""Maximum number of summaries of older turns in the prompt of M2 (the role that decides): the newest ones. M2 can find
older summaries with its recall tool R."""


class LifeState(BaseModel):
    """The state of a life. M2 is the model role that decides what to do.

    Attributes:
        began: when the life began; ordered: when its standing orders were given.
        turn: the number of the newest turn; in_turn: whether this turn is still in progress.
        turns: the turns in M2's context.
        folds: the newest summaries of older turns, the oldest first.
        asked, replies, called, results: the steps of the current turn, by id.
        unread: news that M2 has not been shown yet.
        seen: the last log row from which news was read.
        beats: when each standing order, by number, was last due and handled.
        looked: when M2 last looked for work on its own.
        idle: why M2 found no work when it last looked; "": M2 found work, or there was a turn since.
        idle_until: when M2 wants to look for work again; None: M2 has named no time.
        questions: open questions to the user; late: expired ones, the newest first.
        answers: answers that M2 has not read yet, by question.
        wishes: calls that wait for approval, by id.
        decided: calls that a person has approved or refused, and that M2 has not made again since, by id.
        leave: for each call in `decided`, whether the person approved the call.
        halted: why the life does nothing until a person acts or the budget has room; "": it runs.
    """

    goal: str = ""
    language: str = "en"
    orders: tuple[str, ...] = ()
    began: Moment = 0.0
    ordered: Moment = 0.0
    ledger: Ledger = Field(default_factory=Ledger)
    turn: int = 0
    in_turn: bool = False
    opened: Opened = Field(default_factory=Opened)
    turns: list[Turn] = []
    folds: list[Fold] = []
    asked: dict[str, Asked] = {}
    replies: dict[str, Replied] = {}
    called: dict[str, int] = {}
    results: dict[str, Observed] = {}
    unread: list[News] = []
    seen: int = 0
    beats: dict[int, Moment] = {}
    looked: Moment = 0.0
    idle: str = ""
    idle_until: Moment | None = None
    questions: dict[str, Questioned] = {}
    late: dict[str, Questioned] = {}
    answers: dict[str, str] = {}
    wishes: dict[str, PermissionAsked] = {}
    decided: dict[str, PermissionAsked] = {}
    leave: dict[str, bool] = {}
    spent: LifeSpent = Field(default_factory=LifeSpent)
    hears: bool = Field(default=True, exclude=True)
    """Whether the user's utterances in conversations are addressed to the life; False: the mind's responder, such as a
    coach, answers them."""
    quiet_turns: int = 0
    """Number of turns in a row without a call; a turn for a reason other than `task` resets it to 0."""
    failed: str = ""
    """The error of the newest turn; "": it did not fail. After a failed turn, the next one has the same reason."""
    halted: str = ""

    def times_running(self, id_: str) -> int:
        """Return how many times in a row M2 has made the same call, up to the call with this id.

        Only the calls in M2's context count. The result is 1 if the context does not have the call.

        A turn for a reason other than `task` starts a new count.
        """
        calls: list[tuple[str, str, str]] = []
        for turn in self.turns:
            if turn.because != "task":
                calls.clear()
            calls += [(call.tool, call.arguments, call.id) for each in turn.messages for call in each.calls]
        here = next((n for n, call in enumerate(calls) if call[2] == id_), None)
        if here is None:
            return 1
        same = [call[:2] == calls[here][:2] for call in reversed(calls[: here + 1])]
        return same.index(False) if False in same else len(same)

    def drop_step(self, id_: str) -> None:
        """Remove a finished step that belongs to no turn."""
        self.asked.pop(id_, None)
        self.replies.pop(id_, None)

    @property
    def tainted(self) -> bool:
        """Whether M2's context contains third-party content."""
        return any(turn.tainted for turn in self.turns) or any(fold.tainted for fold in self.folds)

    def apply(self, event: Event, at: Moment, seq: int = 0) -> None:
        """Apply an event of the log; `seq`: the number of its row, 0 if unknown."""
        match event:
            case LifeBegan():
                self.goal, self.language = event.goal, event.language
                self.began, self.halted, self.looked, self.idle = self.began or at, "", 0.0, ""
                if self.orders != event.orders:
                    self.orders, self.ordered, self.beats = event.orders, at, {}
            case TurnBegan():
                self._begin_turn(event, at)
            case Asked():
                self._ask(event, at)
            case Replied():
                self._reply(event, at)
            case ToolCalled() if event.slot == SLOT:
                self.called[event.id] = seq
            case Observed() if event.slot == SLOT:
                self._observe(event)
            case TurnEnded():
                self._end_turn(event)
            case TaskChanged():
                self.ledger.apply(event)
            case Beat():
                self.beats[event.order] = event.due
            case Proposed():
                self.looked, self.idle_until = at, event.until
                self.idle = "" if event.tasks else event.because or "nothing"
            case Rested() if event.because or self.halted.startswith("budget"):
                self.halted = event.because
            case Folded():
                tainted = any(turn.tainted for turn in self.turns if turn.number <= event.upto)
                self.folds = [*self.folds, Fold(text=event.text, tainted=tainted)][-SUMMARIES:]
                self.turns = [turn for turn in self.turns if turn.number > event.upto]
            case _:
                self._take_in(event, at, seq)

    def _begin_turn(self, event: TurnBegan, at: Moment) -> None:
        self.turn, self.in_turn, self.seen = event.turn, True, max(self.seen, event.seen)
        self.idle, self.idle_until = "", None
        self.turns.append(Turn(number=event.turn, because=event.because, messages=[Message("user", event.words)]))
        self.opened = Opened(at=at, tasks=self.ledger.ordered())
        self._is_told(event.seen)

    def _ask(self, event: Asked, at: Moment) -> None:
        if event.id not in self.asked:
            self._spend(at, 1, event.tokens)
        self.asked[event.id] = event
        self.seen = max(self.seen, event.seen)
        if event.news and is_of_m2(event.id):
            self.turns[-1].messages.append(Message("user", event.news))
            self._is_told(event.seen)

    def _reply(self, event: Replied, at: Moment) -> None:
        self.replies[event.id] = event
        asked = self.asked.get(event.id)
        tokens = event.tokens - (asked.tokens if asked else 0)
        self._spend(at, event.requests - 1, tokens, event.cost_usd or 0.0)
        if is_of_m2(event.id):
            calls = tuple(
                Call(wish.tool, shown_arguments(wish.arguments), f"{event.id}.{n}")
                for n, wish in enumerate(event.calls, 1)
            )
            self.turns[-1].messages.append(Message("assistant", cut(event.text, WORDS), calls))

    def _observe(self, event: Observed) -> None:
        self.results[event.id] = event
        asked = self.questions.pop(event.id, None)
        self.answers.pop(event.id, None)
        if asked is not None and event.text in NOT_YET.values():
            self.late = dict([(event.id, asked), *self.late.items()][:LATE])
        if event.id.count(".") == 2:
            turn = self.turns[-1]
            turn.tainted = turn.tainted or event.foreign
            result = delimited(cut(event.text, RESULT), "result")
            turn.messages.append(Message("tool", result, call_id=event.id, tool=event.tool))

    def _end_turn(self, event: TurnEnded) -> None:
        self.in_turn, self.failed = False, event.error
        # a turn that a message or a standing order began counts as work even without a call: M2 may only answer
        is_at_work = self.results or self.turns[-1].because != "task"
        self.quiet_turns = 0 if is_at_work else self.quiet_turns + 1
        for steps in (self.asked, self.replies, self.called, self.results):
            steps.clear()

    def _is_told(self, upto: int) -> None:
        self.opened.news += [news.line for news in self.unread if news.row <= upto]
        self.unread = [news for news in self.unread if news.row > upto]

    def _take_in(self, event: Event, at: Moment, seq: int) -> None:
        """Apply an event from outside a turn: news, a question or its answer, an approval, or a command to pause,
        resume or stop."""
        match event:
            case Heard() if (self.hears or event.session == SESSION) and event.text != MARK:
                self._tell(seq, f"{SAID}{event.text}")
            case Noticed():
                self._tell(seq, f"Noticed: {event.text}", by_user=False)
            case Questioned():
                self.questions[event.id] = event
                self._turn_day(at)
                self.spent.words_today += count_words(event.tip) if event.shown else 0
            case Answered() if event.id in self.questions:
                self.answers[event.id] = event.text
            case Answered():
                asked = self.late.pop(event.id, None)
                question = cut(" ".join(asked.tip.split()), QUESTION) if asked else f"question {event.id}"
                self._tell(seq, f"{ANSWERED}“{question}”: {event.text}")
            case PermissionAsked():
                self.wishes[event.id] = event
            case PermissionUsed():
                self.decided.pop(event.id, None)
                self.leave.pop(event.id, None)
            case PermissionGiven() if event.id in self.wishes:
                self.decided[event.id] = wish = self.wishes.pop(event.id)
                self.leave[event.id] = event.yes
                said = "may be made now: make it again" if event.yes else "may not be made"
                self._tell(seq, f"{LEAVE}{wish.tool}({cut(wish.arguments, ARGUMENT)}) {said}.")
            case Commanded():
                paused = {"pause": "paused", "stop": "stopped", "resume": ""}[event.order]
                self.halted = f"{paused}: {event.because}" if paused and event.because else paused

    def _tell(self, seq: int, line: str, *, by_user: bool = True) -> None:
        self.unread.append(News(row=seq, line=cut(line, WORDS), by_user=by_user))

    def _spend(self, at: Moment, calls: int, tokens: int, usd: float = 0.0) -> None:
        self._turn_day(at)
        spent = self.spent
        spent.calls, spent.tokens, spent.usd = spent.calls + calls, spent.tokens + tokens, spent.usd + usd
        spent.tokens_today, spent.usd_today = spent.tokens_today + tokens, spent.usd_today + usd

    def _turn_day(self, at: Moment) -> None:
        if (day := day_of(at)) != self.spent.day:
            self.spent = self.spent.model_copy(
                update={"day": day, "usd_today": 0.0, "words_today": 0, "tokens_today": 0}
            )


def day_of(moment: Moment) -> str:
    """Return the day of a moment (UTC) as text, such as `2026-11-29`."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def is_of_m2(id_: str) -> bool:
    """Return whether the id of a step is the id of a model call of M2, such as `12.3`."""
    return id_.count(".") == 1


def shown_arguments(arguments: str) -> str:
    """Return a call's arguments for the context of M2 (the role that decides).

    A text of up to ARGUMENT characters is returned unchanged. For a longer text, the result is JSON with the first 10
    arguments, each cut to ARGUMENT characters. If the longer text is not a JSON object, it counts as one argument.
    """
    if len(arguments) <= ARGUMENT:
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        value = {"arguments": arguments}
    kept = {
        str(name)[:80]: each if len(str(each)) <= ARGUMENT else cut(str(each), ARGUMENT)
        for name, each in list(value.items())[:10]
    }
    return json.dumps(kept, ensure_ascii=False)


async def read_state_at(stream: Memory, seq: int) -> LifeState:
    """Return the state that a life had after a log row."""
    state = LifeState()
    async for row in read_log(stream.store, stream.key, kinds=KINDS):
        if row.seq > seq:
            break
        _apply_row(state, row)
    return state


async def read_state(stream: Memory, *, hears: bool = True) -> LifeState:
    """Read the state of a life from its log; a mind without a life gives a state without a goal.

    `hears`: whether the user's messages in all conversations are messages to the life; False: only the messages in the
    life's own conversation (SESSION).
    """
    last = await stream.store.last(stream.key, "folded")
    state, after = LifeState(hears=hears), 0
    if last is not None and isinstance(last.event, Folded) and last.event.state:
        state, after = LifeState.model_validate_json(last.event.state), last.seq
        state.hears = hears
        async for row in read_log(stream.store, stream.key, state.seen, FROM_OUTSIDE):
            if row.seq >= after:
                break
            if not row.system:
                _apply_row(state, row)
    async for row in read_log(stream.store, stream.key, after, KINDS):
        _apply_row(state, row)
    return state


def _apply_row(state: LifeState, row: Logged) -> None:
    state.apply(row.event, row.at, row.seq)
    if row.event.kind in FROM_OUTSIDE and not row.system:
        state.seen = max(state.seen, row.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeBudget:
    """Limits of a life's spending; None: no limit. They are checked before each call, so the last call can exceed them.

    Attributes:
        calls, tokens: maximum number of model calls and of tokens.
        usd: maximum cost in US dollars; a call of unknown price counts as free.
        usd_per_day, tokens_per_day: maximum cost and number of tokens on one day (UTC).
        words_per_day: maximum number of words of unsolicited questions (the tool I) on one day.
    """

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None
    usd_per_day: float | None = None
    tokens_per_day: int | None = None
    words_per_day: int | None = None

    def check(self, spent: LifeSpent, now: Moment) -> None:
        """Raise BudgetSpent if no further model call is allowed."""
        for what, allowed, so_far in (*self._of_life(spent), *self._of_day(spent, now)):
            if allowed is not None and so_far >= allowed:
                raise BudgetSpent(
                    f"the limit of {allowed:g} {what.format('s' * (allowed != 1))} is reached (spent: {so_far:g}):"
                    " raise it to continue"
                )

    def is_over(self, spent: LifeSpent) -> bool:
        """Return whether a limit of the whole life is reached, so that waiting for the next day is pointless."""
        return any(allowed is not None and so_far >= allowed for _, allowed, so_far in self._of_life(spent))

    def room_today(self, spent: LifeSpent, now: Moment) -> str:
        """Return the rest of today's budget as text; "" if there is no daily limit."""
        left = [(what, allowed - so_far) for what, allowed, so_far in self._of_day(spent, now) if allowed is not None]
        return ", ".join(f"{n:g} {what.removesuffix(' a day').format('s' * (n != 1))}" for what, n in left)

    def _of_life(self, spent: LifeSpent) -> tuple[tuple[str, float | None, float], ...]:
        """Return the limits of the whole life.

        Each has the limited quantity (`{}` stands for the s of the plural), the limit, and the amount spent.
        """
        return (
            ("call{}", self.calls, spent.calls),
            ("token{}", self.tokens, spent.tokens),
            ("US dollar{}", self.usd, spent.usd),
        )

    def _of_day(self, spent: LifeSpent, now: Moment) -> tuple[tuple[str, float | None, float], ...]:
        """Return the daily limits: the limited quantity (`{}` stands for the s of the plural), the limit, and the
        amount spent on the day of `now`."""
        usd, tokens = (spent.usd_today, spent.tokens_today) if spent.day == day_of(now) else (0.0, 0)
        return ("US dollar{} a day", self.usd_per_day, usd), ("token{} a day", self.tokens_per_day, tokens)

    def may_speak(self, spent: LifeSpent, words: int, now: Moment) -> bool:
        """Return whether the day's limit allows this many unsolicited words."""
        said = spent.words_today if spent.day == day_of(now) else 0
        return self.words_per_day is None or said + words <= self.words_per_day
