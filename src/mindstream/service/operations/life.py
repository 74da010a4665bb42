"""Operations on a user's life: an agent that pursues a long-term goal, in this server or in another process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.errors import ErasedMeanwhile
from mindstream.guidance import next_step
from mindstream.json_values import JsonObject
from mindstream.life import commands, opened
from mindstream.life.events import Questioned
from mindstream.life.ledger import Task
from mindstream.life.schedule import known_orders, unknown_orders
from mindstream.life.state import LifeState, read_state, read_state_at
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import MAX_UTTERANCE
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import Ask, NotFound, Principal, Reply, RowNumber, Short, operation
from mindstream.service.operations.runtime import Runtime


class LifeRequest(Ask):
    """`at`: return the state of the life after this row of the log; by default the current state."""

    at: RowNumber | None = None


class GoalRequest(Ask):
    """The goal, and standing orders. An order is a time and a task, such as "every day at 8:00: ask me how I slept".
    Without orders, the current orders stay."""

    goal: str = Field(min_length=1, max_length=20_000)
    orders: list[str] = Field([], max_length=50)


class LiveRequest(Ask):
    """How long this server runs the life.

    `turns`: at most this many turns; by default until nothing is left to do. `stay`: if nothing is left to do, wait for
    new tasks. `without_model`: the rule-based default may continue a life that was run with a model before.
    """

    turns: int | None = Field(None, ge=1, le=100_000)
    stay: bool = False
    without_model: bool = False


class SayRequest(Ask):
    """A message to a life."""

    text: str = Field(min_length=1, max_length=MAX_UTTERANCE)


class AnswerRequest(SayRequest):
    """An answer to a question of the life.

    `id`: the id of the question; "": the oldest open question, or the last expired question if none is open.
    """

    id: Short = ""


class LeaveRequest(Ask):
    """The approval (`yes`) or refusal of a tool call with side effects. `id`: the call; "": the only waiting call."""

    yes: bool
    id: Short = ""


class PauseRequest(Ask):
    """`order`: pause, resume or stop the life; this takes effect before its next step. `because`: the reason."""

    order: Literal["pause", "resume", "stop"] = "pause"
    because: str = Field("", max_length=1_000)


class Question(Reply):
    """An open question of the life; `late`: the life continued without the answer, but still accepts it."""

    id: str
    text: str
    late: bool


class Due(Reply):
    """A standing order; `number`: its place among the orders, from 1 on; `at`: when it is due next."""

    order: str
    number: int
    at: Moment


class LifeShape(Reply):
    """The state of a life.

    `lived`: a process runs it now. `halted`: why it does nothing, "" if it is active. `in_turn`: a turn has begun and
    not ended. `leave_wanted`: tool calls that wait for an approval. `spent`: the model usage. `due`: when each standing
    order is due next. `unknown_orders`: why an order cannot be understood, by the order's number. `changed`: what the
    request changed: a task, the question that was answered, or the call that was approved or refused.
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
    changed: JsonObject = Field({})


class Lived(Reply):
    """The life after this server stopped running it.

    `ended`: why the server stopped: `done` (nothing is left to do), `halted`, or `turns` (the requested number of turns
    was reached).
    """

    ended: str
    life: LifeShape


@operation("life.status", "read", "GET /users/{user}/life", cli="life status")
async def status(runtime: Runtime, principal: Principal, request: LifeRequest) -> LifeShape:
    """Return the state of a life, now or after a row of the log."""
    return await _shape(runtime, await runtime.memory(principal), request.at)


@operation("life.goal", "write", "POST /users/{user}/life/goal", cli="live --goal")
async def goal(runtime: Runtime, principal: Principal, request: GoalRequest) -> LifeShape:
    """Set the goal of a user's life. To run the life in this server, request `life.live`."""
    memory = await runtime.memory(principal)
    await commands.give_goal(memory, request.goal, request.orders)
    return await _shape(runtime, memory)


@operation("life.live", "write", "POST /users/{user}/life/live", long=True, cli="live")
async def live(runtime: Runtime, principal: Principal, request: LiveRequest, one: RunningOperation) -> Lived:
    """Run a life in this server, with the tools that the operator offers.

    The run ends when the life is stopped, or the requested number of turns is reached. Unless `stay` is true, it also
    ends when nothing is left to do, or when a spent budget or failed turns halt the life. A paused life waits.
    """
    from mindstream.service.living import LifeSettings, open_life

    memory = await runtime.memory(principal)
    await _state(memory)
    policy, offered = await runtime.policy(principal), runtime.offered
    tools = tuple(name for name in offered.tools if name != "recall")  # a life has its own tool for recall
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
            except ErasedMeanwhile as erased:
                if erased.whole:
                    raise
                await reread()  # words were forgotten: continue with the rows that the log still contains
    return Lived(ended=ended, life=await _shape(runtime, memory))


@operation("life.say", "write", "POST /users/{user}/life/say", cli="life say")
async def say(runtime: Runtime, principal: Principal, request: SayRequest) -> LifeShape:
    """Send a message to a life; its memory keeps it as an utterance."""
    return await _change(runtime, principal, lambda memory: commands.say(memory, request.text))


@operation("life.answer", "write", "POST /users/{user}/life/answer", cli="life answer")
async def answer(runtime: Runtime, principal: Principal, request: AnswerRequest) -> LifeShape:
    """Answer a question of the life, also if the life has continued without the answer."""
    return await _change(
        runtime, principal, lambda memory: commands.answer(memory, request.text, request.id, session="life")
    )


@operation("life.leave", "write", "POST /users/{user}/life/leave", cli="life allow")
async def leave(runtime: Runtime, principal: Principal, request: LeaveRequest) -> LifeShape:
    """Approve or refuse one tool call with side effects, with exactly these arguments."""
    return await _change(runtime, principal, lambda memory: commands.give_leave(memory, request.yes, request.id))


@operation("life.pause", "write", "POST /users/{user}/life/pause", cli="life pause")
async def pause(runtime: Runtime, principal: Principal, request: PauseRequest) -> LifeShape:
    """Pause, resume or stop a life; this takes effect before its next step, in any process that runs it."""
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
        live = next_step('live --goal "…"')
        raise NotFound(f"this user's life has no goal: set one with {live}, or by the API operation `life.goal`")
    return state


async def _shape(
    runtime: Runtime, memory: Memory, at: int | None = None, changed: JsonObject | None = None
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
    """A task of the life, by its number in the task list."""

    number: int = Field(ge=1, le=2**31)


class MoveTaskRequest(TaskNumber):
    """`before`: the number of the task before which this task is placed."""

    before: int = Field(ge=1, le=2**31)


@operation("life.add_task", "write", "POST /users/{user}/life/tasks", cli="life add")
async def add_task(runtime: Runtime, principal: Principal, request: AddTaskRequest) -> LifeShape:
    """Add a task to the task list of a life."""
    return await _change(runtime, principal, lambda memory: commands.add_task(memory, request.text))


@operation("life.drop_task", "write", "POST /users/{user}/life/tasks/{number}/drop", cli="life drop")
async def drop_task(runtime: Runtime, principal: Principal, request: TaskNumber) -> LifeShape:
    """Drop a task of a life; the log still contains it."""
    return await _change(runtime, principal, lambda memory: commands.stop_task(memory, request.number))


@operation("life.open_task", "write", "POST /users/{user}/life/tasks/{number}/open", cli="life open")
async def open_task(runtime: Runtime, principal: Principal, request: TaskNumber) -> LifeShape:
    """Reopen a task that waits, is done, or was dropped: the life can work on it now."""
    return await _change(runtime, principal, lambda memory: commands.open_task(memory, request.number))


@operation("life.move_task", "write", "POST /users/{user}/life/tasks/{number}/move", cli="life move")
async def move_task(runtime: Runtime, principal: Principal, request: MoveTaskRequest) -> LifeShape:
    """Place a task before another task of the life."""
    return await _change(runtime, principal, lambda memory: commands.move_task(memory, request.number, request.before))
