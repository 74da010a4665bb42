"""Operations on a user's life (a long-term goal); this server runs it, or another process does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.errors import ErasedMeanwhile
from mindstream.life import commands, opened
from mindstream.life.events import Questioned
from mindstream.life.ledger import Task
from mindstream.life.schedule import known_orders, unknown_orders
from mindstream.life.state import LifeState, read_state, read_state_at
from mindstream.memory.memory import Memory
from mindstream.memory.store.validation import MAX_UTTERANCE
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.shapes import Ask, Reply
from mindstream.service.operations.table import operation


class LifeRequest(Ask):
    """`at`: its state after that row of the log."""

    at: int | None = Field(None, ge=1, le=2**62)


class GoalRequest(Ask):
    """The goal, and standing orders: when and what, as "every day at 8:00: ask me how I slept"."""

    goal: str = Field(min_length=1, max_length=20_000)
    orders: list[str] = Field([], max_length=50)


class LiveRequest(Ask):
    """How long this server runs it: for a maximum number of turns, until nothing is left to do; `stay`: wait then.

    `without_model`: rules may continue a life that was run with a model.
    """

    turns: int | None = Field(None, ge=1, le=100_000)
    stay: bool = False
    without_model: bool = False


class SayRequest(Ask):
    """An utterance to a life."""

    text: str = Field(min_length=1, max_length=MAX_UTTERANCE)


class AnswerRequest(SayRequest):
    """An answer to a question of the life; `id`: which question, else the oldest that waits."""

    id: str = Field("", max_length=100)


class LeaveRequest(Ask):
    """The approval or refusal of a call that changes something; `id`: which call, else the only one."""

    yes: bool
    id: str = Field("", max_length=100)


class PauseRequest(Ask):
    """`pause`, `resume` or `stop` it; this takes effect before its next step."""

    order: Literal["pause", "resume", "stop"] = "pause"
    because: str = Field("", max_length=1_000)


class Question(Reply):
    """A question of the life; `late`: it no longer waits for the answer."""

    id: str
    text: str
    late: bool


class Due(Reply):
    """A standing order, its number from 1 on, and when it is due next."""

    order: str
    number: int
    at: Moment


class LifeShape(Reply):
    """The state of a life; `lived`: a process runs it now; `halted`: why it does nothing, "" if it is active.

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
    """Why this server stopped running it: done, waiting, halted, turns or time."""

    ended: str
    life: LifeShape


@operation("life.status", "read", "GET /users/{user}/life", cli="life status")
async def status(runtime: Runtime, principal: Principal, request: LifeRequest) -> LifeShape:
    """Return the state of a life, now or after a row of the log."""
    return await _shape(runtime, await runtime.memory(principal), request.at)


@operation("life.goal", "write", "POST /users/{user}/life/goal", cli="live --goal")
async def goal(runtime: Runtime, principal: Principal, request: GoalRequest) -> LifeShape:
    """Give a user's life a goal; `life.live` makes this server run it."""
    memory = await runtime.memory(principal)
    await commands.give_goal(memory, request.goal, request.orders)
    return await _shape(runtime, memory)


@operation("life.live", "write", "POST /users/{user}/life/live", long=True, cli="live")
async def live(runtime: Runtime, principal: Principal, request: LiveRequest, one: RunningOperation) -> Lived:
    """Run it in this server, with the tools that the operator offers, until nothing is left to do."""
    from mindstream.service.living import LifeSettings, open_life

    memory = await runtime.memory(principal)
    await _state(memory)
    policy, offered = await runtime.policy(principal), runtime.offered
    tools = tuple(name for name in offered.tools if name != "recall")  # it has a tool of its own for that
    wanted = LifeSettings(tools=tools, docs=offered.docs, mcp=offered.mcp, without_model=request.without_model)
    models = runtime.models_of(principal, lambda _: None)
    first: int | None = None
    with one.rereading() as reread:
        while True:
            try:
                opening = open_life(runtime.settings, wanted, memory, note=one.report, models=models, policy=policy)
                async with opening as life:
                    one.report(f"its goal: {life.state.goal}")
                    first = life.state.turn if first is None else first
                    left = None if request.turns is None else max(0, request.turns - (life.state.turn - first))
                    ended = await life.run(left, stay=request.stay)
                break
            except ErasedMeanwhile as erased:  # words were forgotten: it continues with what its log still contains
                if erased.whole:
                    raise
                await reread()
    return Lived(ended=ended, life=await _shape(runtime, memory))


@operation("life.say", "write", "POST /users/{user}/life/say", cli="life say")
async def say(runtime: Runtime, principal: Principal, request: SayRequest) -> LifeShape:
    """Say something to a life; it is remembered as an utterance."""
    return await _change(runtime, principal, lambda memory: commands.say(memory, request.text))


@operation("life.answer", "write", "POST /users/{user}/life/answer", cli="life answer")
async def answer(runtime: Runtime, principal: Principal, request: AnswerRequest) -> LifeShape:
    """Answer a question of the life; also late, when it no longer waits."""
    return await _change(
        runtime, principal, lambda memory: commands.answer(memory, request.text, request.id, session="life")
    )


@operation("life.leave", "write", "POST /users/{user}/life/leave", cli="life allow")
async def leave(runtime: Runtime, principal: Principal, request: LeaveRequest) -> LifeShape:
    """Approve or refuse a call that changes something: this one, with these arguments."""
    return await _change(runtime, principal, lambda memory: commands.give_leave(memory, request.yes, request.id))


@operation("life.pause", "write", "POST /users/{user}/life/pause", cli="life pause")
async def pause(runtime: Runtime, principal: Principal, request: PauseRequest) -> LifeShape:
    """Pause, resume or stop it; this takes effect before its next step, in whatever process it runs."""
    return await _change(runtime, principal, lambda memory: commands.order(memory, request.order, request.because))


async def _change(
    runtime: Runtime, principal: Principal, change: Callable[[Memory], Awaitable[Task | Questioned | str | None]]
) -> LifeShape:
    """Change a life that has a goal, and return its state."""
    memory = await runtime.memory(principal)
    await _state(memory)
    match await change(memory):
        case Task() as task:
            changed = task.model_dump(mode="json")
        case Questioned(id=id_, tip=tip):
            changed = {"id": id_, "tip": tip}
        case id_:
            changed = {"id": id_} if id_ else {}
    return await _shape(runtime, memory, changed=changed)


async def _state(memory: Memory) -> LifeState:
    state = await read_state(memory)
    if not state.goal:
        raise NotFound('this user\'s life has no goal yet: `life.goal` gives it one, or `mindstream live --goal "…"`')
    return state


async def _shape(
    runtime: Runtime, memory: Memory, at: int | None = None, changed: dict[str, JsonValue] | None = None
) -> LifeShape:
    state, lived = await asyncio.gather(_state(memory), opened.is_lived(memory))
    state = state if at is None else await read_state_at(memory, at)
    waiting = {id_: each for id_, each in (state.questions | state.late).items() if id_ not in state.answers}
    zone, now = runtime.default_zone(), runtime.clock.now()
    return LifeShape.from_object(
        state,
        lived=lived,
        tasks=[task.model_dump(mode="json") for task in state.ledger.ordered()],
        questions=[Question(id=id_, text=each.tip, late=id_ in state.late) for id_, each in waiting.items()],
        leave_wanted=[each.model_dump(mode="json") for each in state.wishes.values()],
        spent=state.spent.model_dump(mode="json"),
        due=[
            Due(
                order=state.orders[number - 1],
                number=number,
                at=each.next_after(max(now, state.beats.get(number, state.ordered)), zone),
            )
            for number, each in known_orders(state.orders)
        ],
        unknown_orders=dict(unknown_orders(state.orders)),
        changed=changed or {},
    )


class AddTaskRequest(Ask):
    """A task to add."""

    text: str = Field(min_length=1, max_length=300)


class TaskNumber(Ask):
    """A task of the ledger."""

    number: int = Field(ge=1, le=2**31)


class MoveTaskRequest(TaskNumber):
    """`before`: the task before which it is placed."""

    before: int = Field(ge=1, le=2**31)


@operation("life.add_task", "write", "POST /users/{user}/life/tasks", cli="life add")
async def add_task(runtime: Runtime, principal: Principal, request: AddTaskRequest) -> LifeShape:
    """Add a task to the ledger."""
    return await _change(runtime, principal, lambda memory: commands.add_task(memory, request.text))


@operation("life.drop_task", "write", "POST /users/{user}/life/tasks/{number}/drop", cli="life drop")
async def drop_task(runtime: Runtime, principal: Principal, request: TaskNumber) -> LifeShape:
    """Drop a task; it stays in the log."""
    return await _change(runtime, principal, lambda memory: commands.stop_task(memory, request.number))


@operation("life.open_task", "write", "POST /users/{user}/life/tasks/{number}/open", cli="life open")
async def open_task(runtime: Runtime, principal: Principal, request: TaskNumber) -> LifeShape:
    """Make a task current that waits, is done, or was dropped."""
    return await _change(runtime, principal, lambda memory: commands.open_task(memory, request.number))


@operation("life.move_task", "write", "POST /users/{user}/life/tasks/{number}/move", cli="life move")
async def move_task(runtime: Runtime, principal: Principal, request: MoveTaskRequest) -> LifeShape:
    """Place a task before another."""
    return await _change(runtime, principal, lambda memory: commands.move_task(memory, request.number, request.before))
