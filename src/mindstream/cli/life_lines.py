"""What happens in a life, in words: a line for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindstream.cli.clean import short
from mindstream.cli.life_words import cause, count, words
from mindstream.clock import Moment, format_spoken
from mindstream.life.context import Spent
from mindstream.life.events import (
    Answered,
    Asked,
    Beat,
    Commanded,
    Folded,
    LeaveAsked,
    LeaveGiven,
    LifeBegan,
    Noticed,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import Task
from mindstream.life.roles import CLOSED, OPENED
from mindstream.life.state import LifeState
from mindstream.log.events import Event

WORTH = 0.5


def describe_life(event: Event, language: str = "en") -> str:
    """Return a line about an event of a life; "" for all others. What a screen never shows is English."""
    match event:
        case LifeBegan():
            orders = words("orders", language, "; ".join(event.orders)) if event.orders else ""
            return words("goal", language, event.goal) + orders
        case TurnBegan():
            return f"turn {event.turn}, because of: {event.because}"
        case Asked():
            return f"{event.role} is asked ({event.id}), about {event.tokens:,} tokens"
        case Replied() if event.error:
            return words("unanswered", language, event.role, event.error)
        case Replied():
            calls = ", ".join(wish.tool for wish in event.calls)
            return f"{event.role}: {short(event.text, 400)}{f' → {calls}' if calls else ''}"
        case TurnEnded() if event.error:
            return words("failed", language, event.turn, event.error)
        case TurnEnded():
            return f"turn {event.turn} is over: {event.words}"
        case Folded():
            return words("folded", language, event.since, event.upto, short(event.text, 400))
        case _:
            return _describe_outside(event, language)


def _describe_outside(event: Event, language: str) -> str:
    """Return a line about what is between a life and the world."""
    match event:
        case TaskChanged():
            return describe_task(event, language)
        case Questioned():
            return words("asks" if event.shown else "asks_quiet", language, event.tip)
        case Answered():
            return words("answered", language, event.text)
        case LeaveAsked():
            strangers = words("strangers", language) if event.foreign else ""
            return words("leave", language, event.tool, event.arguments) + strangers
        case LeaveGiven():
            return words("allowed" if event.yes else "refused", language, event.id)
        case Beat():
            return words("worth" if event.worth >= WORTH else "not_worth", language, event.order)
        case Noticed():
            return words("noticed", language, event.text)
        case Commanded():
            return words(event.order, language) + (words("why", language, event.because) if event.because else "")
        case Rested():
            return words("rests", language, event.because) if event.because else words("room", language)
    return ""


def describe_task(event: TaskChanged, language: str = "en") -> str:
    """Say what became of a task."""
    match event.standing:
        case "waiting":
            until = format_spoken(event.until, language=language) if event.until else ""
            return words("waits", language, event.task, until, event.text) if until else ""
        case "done":
            return words("done", language, event.task, event.text) + (
                f" → {short(event.result, 600)}" if event.result else ""
            )
        case "stopped" if event.result:
            return words("not_done", language, event.task, event.text, short(event.result, 600))
        case "stopped":
            return words("dropped", language, event.task, event.text)
    return words("task", language, event.task, event.text)


def thought(text: str) -> str:
    """Return what M0 thought, without the marks around it."""
    return text.removeprefix(OPENED).removesuffix(CLOSED)


def describe_standing(state: LifeState, now: Moment, wakes: Moment | None, is_lived: bool) -> str:
    """Say what a life does now.

    Args:
        wakes: when there is something to do by itself; None: not before somebody acts.
    """
    language = state.language
    halted = (
        words("halted", language, cause(state.halted, language), describe_way_on(state, is_lived))
        if state.halted
        else ""
    )
    if state.in_turn or state.unread or state.wishes or (wakes is not None and wakes <= now):
        if halted:
            return halted
        if is_lived:
            return words("in_turn", language, state.turn) if state.in_turn else words("works", language)
        return words("nobody_turn", language, state.turn) if state.in_turn else words("nobody", language)
    if wakes is not None:
        rests = describe_rest(wakes, language) + ("" if is_lived else words("nobody_stays", language))
    else:
        rests = words("ended_done", language)
    return words("halted", language, halted, rests) if halted else rests


def describe_rest(wakes: Moment | None, language: str) -> str:
    """Say until when it rests."""
    if wakes is None:
        return words("rests_open", language)
    return words("rests_until", language, format_spoken(wakes, language=language))


def describe_way_on(state: LifeState, is_lived: bool) -> str:
    """Say what lets a life go on that was halted."""
    if state.halted.startswith("budget"):
        return words("way_budget", state.language)
    is_ordered = is_lived or state.halted.startswith(("paused", "stopped"))
    return words("way_resume" if is_ordered else "way_again", state.language)


def describe_spent(spent: Spent, language: str = "en") -> str:
    """Say what it has spent, in a line."""
    if spent.calls and not spent.tokens:
        return count(spent.calls, "step of rules", language)
    money = f", ${spent.usd:.4f}" if spent.usd else ""
    return words("tokens", language, count(spent.calls, "call of models", language), f"{spent.tokens:,}", money)


def describe_so_far(state: LifeState) -> str:
    """Say how many turns it has lived, and what they took."""
    spent = describe_spent(state.spent, state.language)
    return words("so_far", state.language, count(state.turn, "turn", state.language), spent)


def list_tasks(tasks: Iterable[Task], now: Moment, language: str = "en") -> Iterator[str]:
    """Write tasks, a line each, with what came of them."""
    for task in tasks:
        name, until = f"line_{task.standing}", list[str]()
        if task.standing == "waiting":
            name = "line_open" if task.can_be_done(now) else "line_waits" if task.until else "line_waits_open"
            until = [format_spoken(task.until, language=language)] if task.until else []
        line = words(name, language, task.number, task.text, *until)
        yield line + (f" → {short(task.result, 200)}" if task.result else "")


def list_open(state: LifeState) -> Iterator[str]:
    """Write what waits for a person: questions, and calls that want leave."""
    for id_, question in (state.questions | state.late).items():
        if id_ not in state.answers:
            yield words("late_question" if id_ in state.late else "open_question", state.language, id_, question.tip)
    for id_, wish in state.wishes.items():
        strangers = words("strangers", state.language) if wish.foreign else ""
        yield words("open_leave", state.language, id_, wish.tool, short(wish.arguments, 400)) + strangers
