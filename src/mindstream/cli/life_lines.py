"""What happens in a life, in words: a line for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindstream.cli.clean import short
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
from mindstream.life.ledger import Task, line_of
from mindstream.life.roles import CLOSED, OPENED
from mindstream.life.state import LifeState
from mindstream.log.events import Event
from mindstream.text.counting import count_of

WORTH = 0.5
WAKES = "`mindstream life add` gives it a task, `life say` tells it something, `live --goal` gives another goal"
"""What wakes a life that has nothing left to do."""
ORDERED = {"pause": "paused", "resume": "goes on", "stop": "stopped"}


def describe_life(event: Event) -> str:
    """Return a line about an event of a life; "" for all others."""
    match event:
        case LifeBegan():
            orders = "; orders: " + "; ".join(event.orders) if event.orders else ""
            return f"goal: {event.goal}{orders}"
        case TurnBegan():
            return f"turn {event.turn}, because of: {event.because}"
        case Asked():
            return f"{event.role} is asked ({event.id}), about {event.tokens:,} tokens"
        case Replied() if event.error:
            return f"{event.role} could not answer: {event.error}"
        case Replied():
            calls = ", ".join(wish.tool for wish in event.calls)
            return f"{event.role}: {short(event.text, 400)}{f' → {calls}' if calls else ''}"
        case TurnEnded() if event.error:
            return f"turn {event.turn} failed: {event.error}"
        case TurnEnded():
            return f"turn {event.turn} is over: {event.words}"
        case Folded():
            return f"turns {event.since} to {event.upto} became a memory: {short(event.text, 400)}"
        case _:
            return _describe_outside(event)


def _describe_outside(event: Event) -> str:
    """Return a line about what is between a life and the world."""
    match event:
        case TaskChanged():
            return describe_task(event)
        case Questioned():
            quiet = "" if event.shown else " (nobody is disturbed now)"
            return f"asks you{quiet}: {event.tip}"
        case Answered():
            return f"you answered: {event.text}"
        case LeaveAsked():
            strangers = "; words of strangers stand in it" if event.foreign else ""
            return f"wants leave for {event.tool}({event.arguments}), which may change something{strangers}"
        case LeaveGiven():
            return f"you {'allowed' if event.yes else 'refused'} the call {event.id}"
        case Beat():
            return f"standing order {event.order} came due: {'worth' if event.worth >= WORTH else 'not worth'} a turn"
        case Noticed():
            return f"noticed: {event.text}"
        case Commanded():
            return f"{ORDERED[event.order]}{f': {event.because}' if event.because else ''}"
        case Rested():
            return f"rests: {event.because}" if event.because else "goes on: there is room in the budget again"
    return ""


def describe_task(event: TaskChanged) -> str:
    """Say what became of a task."""
    match event.standing:
        case "waiting":
            return f"task {event.task} waits until {format_spoken(event.until)}: {event.text}" if event.until else ""
        case "done":
            return f"task {event.task} is done: {event.text}{f' → {event.result}' if event.result else ''}"
        case "stopped":
            return f"task {event.task} was dropped: {event.text}"
    return f"task {event.task}: {event.text}"


def thought(text: str) -> str:
    """Return what M0 thought, without the marks around it."""
    return text.removeprefix(OPENED).removesuffix(CLOSED)


def describe_standing(state: LifeState, now: Moment, wakes: Moment | None, is_lived: bool) -> str:
    """Say what a life does now.

    Args:
        wakes: when there is something to do by itself; None: not before somebody acts.
    """
    if state.in_turn or state.unread or state.wishes or (wakes is not None and wakes <= now):
        if state.halted:
            return f"{state.halted}; {describe_way_on(state.halted, is_lived)}"
        if is_lived:
            return f"in turn {state.turn}" if state.in_turn else "works"
        return f"nobody lives it now; `mindstream live` goes on{f' with turn {state.turn}' if state.in_turn else ''}"
    if wakes is not None:
        rests = f"rests until {format_spoken(wakes)}" + (
            "" if is_lived else "; nobody lives it now, `mindstream live --stay` does"
        )
    else:
        rests = f"nothing is left to do; {WAKES}"
    return f"{state.halted}; {describe_way_on(state.halted, is_lived)}; {rests}" if state.halted else rests


def describe_way_on(halted: str, is_lived: bool) -> str:
    """Say what lets a life go on that was halted for this reason."""
    if halted.startswith("budget"):
        return "`mindstream live` with a larger limit goes on"
    if is_lived or halted.startswith(("paused", "stopped")):
        return "`mindstream life resume` lets it go on"
    return "`mindstream live` tries again"


def describe_spent(spent: Spent) -> str:
    """Say what it has spent, in a line."""
    if spent.calls and not spent.tokens:
        return f"{count_of(spent.calls, 'step')} of rules"
    money = f", ${spent.usd:.4f}" if spent.usd else ""
    return f"{count_of(spent.calls, 'call')} of models, {spent.tokens:,} tokens{money}"


def list_tasks(tasks: Iterable[Task], now: Moment) -> Iterator[str]:
    """Write tasks, a line each, with what came of them."""
    for task in tasks:
        yield line_of(task, now) + (f" → {short(task.result, 200)}" if task.result else "")


def list_open(state: LifeState) -> Iterator[str]:
    """Write what waits for a person: questions, and calls that want leave."""
    for id_, question in (state.questions | state.late).items():
        if id_ not in state.answers:
            late = " (not waited for any longer)" if id_ in state.late else ""
            yield f"asks you ({id_}){late}: {question.tip}"
    for id_, wish in state.wishes.items():
        strangers = "; words of strangers stand in it" if wish.foreign else ""
        yield f"wants leave ({id_}) for {wish.tool}({short(wish.arguments, 400)}){strangers}"
