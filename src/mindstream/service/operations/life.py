"""Operations on a user's life: a goal that is pursued for long; this server lives it, or another process does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.errors import ErasedMeanwhile
from mindstream.memory.memory import Memory
from mindstream.memory.store.validation import MAX_UTTERANCE
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import Running
from mindstream.service.operations.shapes import Ask, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import NotFound, Who

if TYPE_CHECKING:
    from mindstream.life.ledger import Task
    from mindstream.life.state import LifeState


class LifeRequest(Ask):
    """`at`: as it stood after that row of the log."""

    at: int | None = Field(None, ge=1, le=2**62)


class GoalRequest(Ask):
    """What is to be reached, and standing orders, when and what: "every day at 8:00: ask me how I slept"."""

    goal: str = Field(min_length=1, max_length=20_000)
    orders: list[str] = Field([], max_length=50)


class LiveRequest(Ask):
    """How long it is lived by this server: so many turns at most, until nothing is left to do; `stay`: wait then.

    `without_model`: rules may continue a life that was lived with a model.
    """

    turns: int | None = Field(None, ge=1, le=100_000)
    stay: bool = False
    without_model: bool = False


class SayRequest(Ask):
    """Something that is said to a life."""

    text: str = Field(min_length=1, max_length=MAX_UTTERANCE)


class AnswerRequest(SayRequest):
    """An answer to what it asks; `id`: to which question, else to the oldest that is waited for."""

    id: str = Field("", max_length=100)


class LeaveRequest(Ask):
    """Whether a call that changes something may be made; `id`: which, else the only one."""

    yes: bool
    id: str = Field("", max_length=100)


class PauseRequest(Ask):
    """`pause` it, let it `resume`, or `stop` it; it obeys before its next step."""

    order: Literal["pause", "resume", "stop"] = "pause"
    because: str = Field("", max_length=1_000)


class Question(Reply):
    """What it asks; `late`: it waits no longer."""

    id: str
    text: str
    late: bool


class Due(Reply):
    """A standing order, its number from 1 on, and when it is due next."""

    order: str
    number: int
    at: Moment


class LifeShape(Reply):
    """How a life stands; `lived`: a process lives it now; `halted`: why nothing is done, "" if it is not halted.

    `due`: when each standing order is due next. `unknown_orders`: why an order cannot be read, by its number.
    `changed`: what the request changed: a task, the question that was answered, the call that was decided on.
    """

    goal: str
    orders: list[str]
    lived: bool
    halted: str
    turn: int
    in_turn: bool
    tasks: list[JsonValue]
    questions: list[Question]
    leave_wanted: list[JsonValue]
    spent: JsonValue
    due: list[Due] = Field([])
    unknown_orders: dict[int, str] = Field({})
    changed: dict[str, JsonValue] = Field({})


class Lived(Reply):
    """Why it is lived no longer by this server: done, waiting, halted, turns or time."""

    ended: str
    life: LifeShape


@operation("life.status", "read", "GET /users/{user}/life", cli="life status")
async def status(house: House, who: Who, ask: LifeRequest) -> LifeShape:
    """Say how a life stands, or stood after a row of the log."""
    return await _shape(house, await house.memory(who), ask.at)


@operation("life.goal", "write", "POST /users/{user}/life/goal", cli="live --goal")
async def goal(house: House, who: Who, ask: GoalRequest) -> LifeShape:
    """Give a user's life a goal; `life.live` lets this server live it."""
    from mindstream.life import commands

    memory = await house.memory(who)
    await commands.give_goal(memory, ask.goal, ask.orders)
    return await _shape(house, memory)


@operation("life.live", "write", "POST /users/{user}/life/live", long=True, cli="live")
async def live(house: House, who: Who, ask: LiveRequest, one: Running) -> Lived:
    """Live it in this server, with the tools that the operator offers, until there is nothing left to do."""
    from mindstream.service.living import LifeSettings, open_life

    memory = await _memory(house, who)
    policy = await house.policy(who)
    offered = house.offered
    tools = tuple(name for name in offered.tools if name != "recall")  # it has a tool of its own for that
    wanted = LifeSettings(tools=tools, docs=offered.docs, mcp=offered.mcp, without_model=ask.without_model)
    models = house.models_of(who, lambda _: None)
    first: int | None = None
    with one.reading_anew() as read_anew:
        while True:
            try:
                opening = open_life(house.settings, wanted, memory, note=one.tell, models=models, policy=policy)
                async with opening as life:
                    one.tell(f"it lives for: {life.state.goal}")
                    first = life.state.turn if first is None else first
                    left = None if ask.turns is None else max(0, ask.turns - (life.state.turn - first))
                    ended = await life.run(left, stay=ask.stay)
                break
            except ErasedMeanwhile as erased:  # words were forgotten: it goes on with what its log holds without them
                if erased.whole:
                    raise
                await read_anew()
    return Lived(ended=ended, life=await _shape(house, memory))


@operation("life.say", "write", "POST /users/{user}/life/say", cli="life say")
async def say(house: House, who: Who, ask: SayRequest) -> LifeShape:
    """Say something to a life; it is remembered as said."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    await commands.say(memory, ask.text)
    return await _shape(house, memory)


@operation("life.answer", "write", "POST /users/{user}/life/answer", cli="life answer")
async def answer(house: House, who: Who, ask: AnswerRequest) -> LifeShape:
    """Answer what it asks; also later, when it waits no longer."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    asked = await commands.answer(memory, ask.text, ask.id, session="life")
    return await _shape(house, memory, changed={"id": asked.id, "tip": asked.tip})


@operation("life.leave", "write", "POST /users/{user}/life/leave", cli="life allow")
async def leave(house: House, who: Who, ask: LeaveRequest) -> LifeShape:
    """Allow or refuse a call that changes something: this one, with these arguments."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    return await _shape(house, memory, changed={"id": await commands.give_leave(memory, ask.yes, ask.id)})


@operation("life.pause", "write", "POST /users/{user}/life/pause", cli="life pause")
async def pause(house: House, who: Who, ask: PauseRequest) -> LifeShape:
    """Pause it, let it go on, or stop it; it obeys before its next step, whoever lives it."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    await commands.order(memory, ask.order, ask.because)
    return await _shape(house, memory)


async def _memory(house: House, who: Who) -> Memory:
    """Return the memory of a user whose life has a goal."""
    memory = await house.memory(who)
    await _state(memory)
    return memory


async def _state(memory: Memory) -> LifeState:
    from mindstream.life.state import read_state

    state = await read_state(memory)
    if not state.goal:
        raise NotFound('this user\'s life has no goal yet: `life.goal` gives it one, or `mindstream live --goal "…"`')
    return state


async def _shape(
    house: House, memory: Memory, at: int | None = None, changed: dict[str, JsonValue] | None = None
) -> LifeShape:
    from mindstream.life import opened
    from mindstream.life.schedule import unknown_orders
    from mindstream.life.state import read_state_at

    state, lived = await asyncio.gather(_state(memory), opened.is_lived(memory))
    state = state if at is None else await read_state_at(memory, at)
    waiting = {id_: each for id_, each in (state.questions | state.late).items() if id_ not in state.answers}
    return LifeShape(
        goal=state.goal,
        orders=list(state.orders),
        lived=lived,
        halted=state.halted,
        turn=state.turn,
        in_turn=state.in_turn,
        tasks=[task.model_dump(mode="json") for task in state.ledger.ordered()],
        questions=[Question(id=id_, text=each.tip, late=id_ in state.late) for id_, each in waiting.items()],
        leave_wanted=[each.model_dump(mode="json") for each in state.wishes.values()],
        spent=state.spent.model_dump(mode="json"),
        due=_due(house, state),
        unknown_orders=dict(unknown_orders(state.orders)),
        changed=changed or {},
    ).made_from(state)


def _due(house: House, state: LifeState) -> list[Due]:
    """Return when standing orders are due next, in the operator's zone."""
    from mindstream.life.schedule import known_orders

    zone, now = house.usual_zone(), house.clock.now()
    return [
        Due(
            order=state.orders[number - 1],
            number=number,
            text=each.text,
            at=each.next_after(max(now, state.beats.get(number, state.ordered)), zone),
        )
        for number, each in known_orders(state.orders)
    ]


class AddTaskRequest(Ask):
    """Something to be done."""

    text: str = Field(min_length=1, max_length=300)


class TaskNumber(Ask):
    """A task of the ledger."""

    number: int = Field(ge=1, le=2**31)


class MoveTaskRequest(TaskNumber):
    """`before`: the task that it is to come before."""

    before: int = Field(ge=1, le=2**31)


@operation("life.add_task", "write", "POST /users/{user}/life/tasks", cli="life add")
async def add_task(house: House, who: Who, ask: AddTaskRequest) -> LifeShape:
    """Put a task into the ledger."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    return await _changed(house, memory, await commands.add_task(memory, ask.text))


@operation("life.drop_task", "write", "POST /users/{user}/life/tasks/{number}/drop", cli="life drop")
async def drop_task(house: House, who: Who, ask: TaskNumber) -> LifeShape:
    """Give a task up; it stays in the log."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    return await _changed(house, memory, await commands.stop_task(memory, ask.number))


@operation("life.open_task", "write", "POST /users/{user}/life/tasks/{number}/open", cli="life open")
async def open_task(house: House, who: Who, ask: TaskNumber) -> LifeShape:
    """Let a task be worked on now: one that waits, is done, or was given up."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    return await _changed(house, memory, await commands.open_task(memory, ask.number))


@operation("life.move_task", "write", "POST /users/{user}/life/tasks/{number}/move", cli="life move")
async def move_task(house: House, who: Who, ask: MoveTaskRequest) -> LifeShape:
    """Have a task worked on before another."""
    from mindstream.life import commands

    memory = await _memory(house, who)
    return await _changed(house, memory, await commands.move_task(memory, ask.number, ask.before))


async def _changed(house: House, memory: Memory, task: Task) -> LifeShape:
    return await _shape(house, memory, changed=task.model_dump(mode="json"))
