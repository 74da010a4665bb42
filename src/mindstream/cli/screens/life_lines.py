"""Formats each event of a life, and its state, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindstream.cli.shell.output import short
from mindstream.clock import Moment, format_spoken
from mindstream.life.events import (
    Answered,
    Asked,
    Beat,
    Commanded,
    Folded,
    LifeBegan,
    Noticed,
    PermissionAsked,
    PermissionGiven,
    Proposed,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import Task
from mindstream.life.schedule import known_orders
from mindstream.life.state import LifeSpent, LifeState
from mindstream.log.events import Event
from mindstream.text.words import count_of

WORTH = 0.5
"""Minimum worth, from 0 to 1, at which a standing order that came due gets a turn."""
NOT_LIVED = "no process runs this life now; `mindstream live` continues it"


def describe_life(event: Event) -> str:
    """Return a line about an event of a life; "" for all others."""
    match event:
        case LifeBegan():
            return f"goal: {event.goal}" + (f"; orders: {'; '.join(event.orders)}" if event.orders else "")
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
        case TaskChanged():
            return describe_task(event)
        case Questioned():
            return f"asks you{'' if event.shown else ' (without disturbing you now)'}: {event.tip}"
        case Answered():
            return f"you answered: {event.text}"
        case PermissionAsked():
            call = f"{event.tool}({event.arguments}), which may change something"
            return f"wants permission for {call}{UNTRUSTED if event.foreign else ''}"
        case PermissionGiven():
            return f"you {'allowed' if event.yes else 'refused'} the call {event.id}"
        case Beat():
            return f"standing order {event.order} came due: {'' if event.worth >= WORTH else 'not '}worth a turn"
        case Proposed() if event.tasks:
            return f"proposes: {'; '.join(event.tasks)}" + (f": {event.because}" if event.because else "")
        case Proposed():
            return f"rests: {event.because or '-'}" + (
                f"; looks again {format_spoken(event.until)}" if event.until else ""
            )
        case Noticed():
            return f"noticed: {event.text}"
        case Commanded():
            done = {"pause": "paused", "resume": "continues", "stop": "stopped"}[event.order]
            return done + (f": {event.because}" if event.because else "")
        case Rested():
            return f"rests: {event.because}" if event.because else "continues: the budget has room again"
    return ""


UNTRUSTED = "; it contains untrusted text"


def describe_task(event: TaskChanged) -> str:
    """Return a line about a change of a task; "" if the task waits without an end."""
    match event.standing:
        case "waiting":
            return f"task {event.task} waits until {format_spoken(event.until)}: {event.text}" if event.until else ""
        case "done":
            result = f" → {short(event.result, 600)}" if event.result else ""
            return f"task {event.task} is done: {event.text}{result}"
        case "stopped" if event.result:
            return f"task {event.task} is not done: {event.text} → {short(event.result, 600)}"
        case "stopped":
            return f"task {event.task} was dropped: {event.text}"
    return f"task {event.task}: {event.text}"


def describe_standing(state: LifeState, now: Moment, wakes: Moment | None, is_lived: bool) -> str:
    """Describe the current activity of a life: working, resting or halted.

    Args:
        wakes: the time at which it next has something to do by itself; None: only after a person acts.
    """
    halted = f"{state.halted}; {describe_way_on(state, is_lived)}" if state.halted else ""
    if state.in_turn or state.unread or state.wishes or (wakes is not None and wakes <= now):
        if halted:
            return halted
        if is_lived:
            return f"in turn {state.turn}" if state.in_turn else "works"
        return f"{NOT_LIVED} with turn {state.turn}" if state.in_turn else NOT_LIVED
    rests = describe_end(state)
    if wakes is not None:
        waits = "; no process waits for that: `mindstream live --wait-for-input` would"
        rests = describe_rest(wakes) + ("" if is_lived else waits)
    return f"{halted}; {rests}" if halted else rests


def describe_end(state: LifeState) -> str:
    """Return the message that nothing is left to do, with the tasks of the goal that were given up."""
    orders = {order.what for _, order in known_orders(state.orders)}
    given_up = (each for each in state.ledger.ordered() if each.standing == "stopped" and each.result)
    undone = ", ".join(str(each.number) for each in given_up if each.text not in orders)
    ended = (
        "nothing is left to do; `mindstream life add` gives it a task, `life say` tells it something, "
        "`live --goal` gives another goal"
    )
    return (
        f"not done: task {undone} (`mindstream life open NUMBER` tries it again); otherwise {ended}"
        if undone
        else ended
    )


def describe_unknown(number: int, why: str) -> str:
    """Return the message that a standing order cannot be parsed."""
    return f"standing order {number} cannot be read: {why}; set it again with `mindstream live --every`"


def describe_rest(wakes: Moment | None) -> str:
    """Return the message about the end of a rest."""
    return "rests until a person acts" if wakes is None else f"rests until {format_spoken(wakes)}"


def describe_way_on(state: LifeState, is_lived: bool) -> str:
    """Return the command that lets a halted life continue."""
    if state.halted.startswith("budget"):
        return "`mindstream live` with a larger limit continues it"
    if is_lived or state.halted.startswith(("paused", "stopped")):
        return "`mindstream life resume` continues it"
    return "`mindstream live` tries again"


def describe_spent(spent: LifeSpent) -> str:
    """Return the model calls, tokens and US dollars that a life has spent."""
    if spent.calls and not spent.tokens:
        return count_of(spent.calls, "step of rules")
    return f"{count_of(spent.calls, 'call of models')}, {spent.tokens:,} tokens" + (
        f", ${spent.usd:.4f}" if spent.usd else ""
    )


def describe_so_far(state: LifeState) -> str:
    """Return the number of turns of a life, and their cost."""
    return f"{count_of(state.turn, 'turn')}, {describe_spent(state.spent)} so far"


def list_tasks(tasks: Iterable[Task], now: Moment) -> Iterator[str]:
    """Yield a line for each task, with its result."""
    for task in tasks:
        mark = {"done": " (done)", "stopped": " (given up)"}.get(task.standing, "")
        if task.standing == "waiting" and not task.can_be_done(now):
            mark = f" (waits until {format_spoken(task.until)})" if task.until else " (waits)"
        yield f"{task.number}. {task.text}{mark}" + (f" → {short(task.result, 200)}" if task.result else "")


def list_open(state: LifeState) -> Iterator[str]:
    """Yield a line for each question to the user, and for each call that needs permission."""
    for id_, question in (state.questions | state.late).items():
        if id_ not in state.answers:
            late = " (it no longer waits for the answer)" if id_ in state.late else ""
            yield f"asks you ({id_}){late}: {question.tip}"
    for id_, wish in state.wishes.items():
        call = f"{wish.tool}({short(wish.arguments, 400)})"
        yield f"wants permission ({id_}) for {call}{UNTRUSTED if wish.foreign else ''}"
