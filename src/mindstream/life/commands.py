"""A person's commands to a life. They are written to its log, by any process, also while no process runs the life."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream import redaction
from mindstream.errors import InputError
from mindstream.guidance import next_step
from mindstream.life import opened
from mindstream.life.events import (
    Answered,
    Commanded,
    LifeBegan,
    Noticed,
    Order,
    PermissionGiven,
    Questioned,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import LONGEST, Task
from mindstream.life.schedule import read_order
from mindstream.life.state import SESSION, LifeState, read_state
from mindstream.log.events import Event, Heard, Logged
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import MAX_UTTERANCE, RecordDraft, checked_text
from mindstream.memory.store.store import Entry, read_log
from mindstream.text.words import language_of

TURN_KINDS = (
    "turn_began",
    "asked",
    "replied",
    "tool_called",
    "observed",
    "questioned",
    "answered",
    "task_changed",
    "leave_asked",
    "slept",
    "turn_ended",
)
"""Event kinds that belong to a turn."""


async def look(stream: Memory) -> LifeState:
    """Return the state of a mind's life, read from its log.

    Raises:
        InputError: the mind has no life.
    """
    state = await read_state(stream)
    if not state.goal:
        live = next_step('live --goal "…"')
        raise InputError(f"the mind {stream.name!r} has no goal yet; give it one with {live}")
    return state


async def give_goal(stream: Memory, goal: str, orders: Sequence[str] = ()) -> None:
    """Give a mind a goal and standing orders, or replace them; a halted life is resumed.

    Nothing is written if nothing changes and the life is not halted.

    Args:
        goal: the goal; "": the current one stays. A new goal is also added to the ledger as a task, unless an
            unfinished task has the same text.
        orders: standing orders; (): the current ones stay.

    Raises:
        InputError: an order cannot be read, the mind has no goal and none is given, or the ledger is full.
    """
    for each in orders:
        read_order(each)
    state = await read_state(stream)
    goal, orders = redaction.clean(goal).text, [redaction.clean(each).text for each in orders]
    goal, orders = (goal or state.goal).strip(), tuple(orders or state.orders)
    if not goal:
        raise InputError('this mind has no goal yet; give it one with --goal "…"')
    if (goal, orders) == (state.goal, state.orders) and not state.halted:
        return
    words = " ".join(goal.split())[:LONGEST]
    is_there = goal == state.goal or any(task.text == words for task in state.ledger.left())
    begun = LifeBegan(goal=goal, language=language_of(goal), orders=orders)
    await opened.begin(stream, begun, *([] if is_there else [state.ledger.add(goal)]))


async def say(stream: Memory, text: str) -> None:
    """Send an utterance to a life as its user; it is also stored in memory.

    Raises:
        InputError: the text is empty or too long, or the mind has no life.
    """
    words = redaction.clean(checked_text(text, MAX_UTTERANCE)).text
    await look(stream)
    new = RecordDraft(text=words, kind="chat", by=stream.name, episode=SESSION, data={"by_user": True})
    record = (await stream.build_records([new]))[0]
    await stream.commit(Entry(Heard(text=words, session=SESSION, record=record.id), stream.name, (record,)))


async def answer(stream: Memory, text: str, id_: str = "", session: str = "") -> Questioned:
    """Answer a question that the life (its role M2) has asked the user, and return the question.

    Args:
        id_: the id of the question; "": the oldest open question, or the last expired one if none is open.

    Raises:
        InputError: the text is empty or too long, the mind has no life, there is neither an open nor an expired
            question, or no such question has this id.
    """
    words, state = redaction.clean(checked_text(text, MAX_UTTERANCE)).text, await look(stream)
    waiting = [*(each for each in state.questions if each not in state.answers), *state.late]
    if not waiting:
        raise InputError("there is no open question; use `say` to send the life a message")
    if id_ and id_ not in waiting:
        raise InputError(
            f"there is no question {id_!r} to answer; those that can be answered are: {', '.join(waiting)}"
        )
    question = (state.questions | state.late)[id_ or waiting[0]]
    await write_answer(stream, question.id, words, session)
    return question


async def write_answer(stream: Memory, id_: str, text: str, session: str = "") -> None:
    """Log an answer to a question. If it comes after the question's timeout, the life gets it as news."""
    await _write(stream, Answered(id=id_, text=text, session=session))


async def give_leave(stream: Memory, yes: bool, id_: str = "") -> str:
    """Approve or refuse a call that waits for approval, and return its id.

    Args:
        yes: whether the call may be made.
        id_: the id of the call; "": the only waiting call.

    Raises:
        InputError: the mind has no life, no call waits for approval, no waiting call has this id, or several calls wait
            and no id is given.
    """
    wishes = (await look(stream)).wishes
    if not wishes:
        raise InputError("no call waits for approval")
    if (not id_ and len(wishes) > 1) or (id_ and id_ not in wishes):
        listed = "; ".join(f"{each.id}: {each.tool}({each.arguments[:80]})" for each in wishes.values())
        raise InputError(f"name the id of one of the calls that wait for approval: {listed}")
    named = id_ or next(iter(wishes))
    await _write(stream, PermissionGiven(id=named, yes=yes))
    return named


async def order(stream: Memory, what: Order, because: str = "") -> None:
    """Pause, resume or stop a life; the order takes effect before the life's next step.

    Raises:
        InputError: the mind has no life.
    """
    await look(stream)
    await _write(stream, Commanded(order=what, because=because))


async def notice(stream: Memory, text: str) -> None:
    """Inform a life about an external change, such as a changed file.

    Raises:
        InputError: the text is empty or too long, or the mind has no life.
    """
    words = redaction.clean(checked_text(text, MAX_UTTERANCE)).text
    await look(stream)
    await _write(stream, Noticed(text=words))


async def add_task(stream: Memory, text: str) -> Task:
    """Add a task to the ledger, the life's list of tasks.

    Raises:
        InputError: the mind has no life, the text is empty, an open task has the same text, or the ledger is full.
    """
    return await _change(stream, (await look(stream)).ledger.add(redaction.clean(text).text))


async def stop_task(stream: Memory, number: int) -> Task:
    """Stop a task: it counts as given up.

    Raises:
        InputError: the mind has no life, or there is no task of that number.
    """
    return await _change(stream, (await look(stream)).ledger.find(number).changed("stopped"))


async def open_task(stream: Memory, number: int) -> Task:
    """Reopen a task, so that it can be worked on now.

    Raises:
        InputError: the mind has no life, or there is no task of that number.
    """
    return await _change(stream, (await look(stream)).ledger.find(number).changed("open"))


async def move_task(stream: Memory, number: int, before: int) -> Task:
    """Move a task in the ledger, so that it comes directly before another one.

    Raises:
        InputError: the mind has no life, or there is no task of one of the numbers.
    """
    return await _change(stream, (await look(stream)).ledger.move(number, before))


async def _change(stream: Memory, event: TaskChanged) -> Task:
    await _write(stream, event)
    return (await look(stream)).ledger.find_added(event)


async def _write(stream: Memory, event: Event) -> None:
    await stream.commit(Entry(event, stream.name))


async def read_turn(stream: Memory, number: int) -> list[Logged]:
    """Return the log rows of a turn.

    Folded turns can be read, too. In the context of M2 (the role that decides), a summary replaces a folded turn, but
    the log keeps the rows.

    Raises:
        InputError: the mind has no life, or there was no turn of that number.
    """
    newest = (await look(stream)).turn
    rows, is_in = list[Logged](), False
    async for row in read_log(stream.store, stream.key, kinds=TURN_KINDS):
        is_in = row.event.turn == number if isinstance(row.event, TurnBegan) else is_in
        rows += [row] * is_in
        if is_in and isinstance(row.event, TurnEnded):
            break
    if not rows:
        raise InputError(f"there was no turn {number}; the last one was {newest}")
    return rows
