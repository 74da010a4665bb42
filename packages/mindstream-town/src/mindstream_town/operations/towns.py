"""Operations on the towns that the operator offers: state, time, forks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from operator import not_
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field, JsonValue

from mindstream.identifiers import StreamName
from mindstream.memory.memory import Memory
from mindstream.minds.calls import CallLog
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import Ask, EmptyRequest, NotBlank, Principal, Reply, Short, operation
from mindstream.service.operations.runtime import Runtime
from mindstream.settings import Settings
from mindstream_town.state import Belief

if TYPE_CHECKING:
    from mindstream_town.inspect.history import History
    from mindstream_town.opened import Look
    from mindstream_town.replay import GrowingRecording
    from mindstream_town.setting import Setting
    from mindstream_town.state import ResidentState
    from mindstream_town.town import Town

MOST_FRAMES = 500
Condition = Literal["full", "no_reflection", "no_reflection_no_plan", "none"]
"""The values of `Condition` in residents/interview.py. They are repeated here because that module is imported only when
it is used."""
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


class TownName(Ask):
    """One town."""

    town: Short


class StatusRequest(TownName):
    """A town at a time of its clock, such as "Feb 13 10:00"; "" means now."""

    at: Short = ""


class WhyRequest(StatusRequest):
    """A resident of a town, and a time (`at`). The resident's first name is enough."""

    resident: NotBlank


class WhisperRequest(TownName):
    """A thought for a resident's memory, as a whole sentence."""

    resident: NotBlank
    text: str = Field(min_length=1, max_length=10_000)


class TownRunRequest(TownName):
    """The number of steps to run."""

    steps: int = Field(ge=1, le=10_000_000)


class FramesRequest(TownName):
    """The moments of a town from step `first` to `last` (null: the newest), one per `every` steps.

    A reply has at most `limit` moments. For more, set `first` to the reply's `next`.
    """

    first: int = Field(0, ge=0, le=2**40)
    last: int | None = Field(None, ge=0, le=2**40)
    every: int = Field(6, ge=1, le=1_000_000)
    limit: int = Field(100, ge=1, le=MOST_FRAMES)


class ResidentShape(Reply):
    """A resident's activity and place; `lived_by`: the user who controls it, "" for none."""

    name: str
    doing: str
    place: str
    spot: list[int]
    asleep: bool
    talking_with: str
    lived_by: str = ""


class TownShape(Reply):
    """A town at a step."""

    town: str
    name: str
    step: int
    time: str
    residents: list[ResidentShape]
    conditions: dict[str, str]


class ForkRequest(TownName):
    """The step after which to fork a town."""

    step: int = Field(ge=0, le=2**40)


class ForkShape(Reply):
    """The fork `town` of the town `of`, as of a step."""

    town: str
    of: str
    step: int


class TownList(Reply):
    """The names of all offered towns and forks, and the forks with their origins.

    `notices`: forks that cannot be read, one line each.
    """

    towns: list[str]
    forks: list[ForkShape]
    notices: list[str] = Field([], exclude_if=not_)


class Whispered(Reply):
    """The resident who has the thought, and the id of its record."""

    resident: str
    id: str


class TownRan(Reply):
    """The step that a town has reached."""

    step: int
    time: str


class Frame(Reply):
    """A moment of a town."""

    step: int
    time: str
    residents: list[ResidentShape]


class Frames(Reply):
    """Moments of a town; `next`: the first step of the next page, null at the end."""

    frames: list[Frame]
    next: int | None


class Why(Reply):
    """The reasons of a resident's act, as a tree; `text`: the same in lines."""

    resident: str
    text: str
    reason: JsonValue


def settings_of(runtime: Runtime, principal: Principal, name: str) -> Settings:
    """Return the settings for an offered town."""
    return runtime.settings.model_copy(update={"data": runtime.town(principal, name)})


def look_in(runtime: Runtime, principal: Principal, name: str) -> AbstractAsyncContextManager[Look]:
    """Open an offered town to read it."""
    from mindstream_town import opened as service

    return service.look_in(settings_of(runtime, principal, name))


@contextlib.asynccontextmanager
async def open_town(runtime: Runtime, principal: Principal, name: str) -> AsyncIterator[Town]:
    """Open a town with the caller's models. The caller's budget pays for the model calls, which are logged for
    `/cost`."""
    from mindstream_town import opened as service

    if runtime.models.only_rules:
        async with service.open_town(settings_of(runtime, principal, name)) as town:
            yield town
        return
    calls = CallLog()
    models = runtime.models_of(principal, calls.take)
    async with (
        calls.writing(bill_of(runtime, principal, name)),
        service.open_town(settings_of(runtime, principal, name), models=models) as town,
    ):
        yield town


def watched(runtime: Runtime, principal: Principal, name: str) -> GrowingRecording:
    """Return the cached recording of a town; only new rows are read."""
    from mindstream_town.replay import GrowingRecording

    return runtime.towns.of(runtime.town(principal, name), GrowingRecording)


def bill_of(runtime: Runtime, principal: Principal, name: str) -> Memory:
    """Return the tenant's stream of model calls of a town."""
    return Memory(runtime.tenant(principal).store, StreamName("town", name), runtime.embedder, runtime.clock)


@operation("towns.list", "read", "GET /towns", mcp="list_towns")
async def list_towns(runtime: Runtime, principal: Principal, request: EmptyRequest) -> TownList:  # noqa: ARG001
    """List the towns that the operator offers, and their forks."""
    forks = [ForkShape(town=each.name, of=each.of, step=each.step) for each in runtime.forks.all(principal).values()]
    offered = {name for tenant, name in runtime.offered.towns if tenant == principal.tenant}
    return TownList(
        towns=sorted(offered | {each.town for each in forks}),
        forks=sorted(forks, key=lambda each: each.town),
        notices=runtime.forks.notices(principal),
    )


@operation("towns.status", "read", "GET /towns/{town}", mcp="town_status", cli="town status")
async def status(runtime: Runtime, principal: Principal, request: StatusRequest) -> TownShape:
    """Return the time of a town, with the place and activity of each resident who is there (a visitor may be away)."""
    from mindstream_town.inspect.lookup import format_time

    async with look_in(runtime, principal, request.town) as look:
        state, step = await look.at(request.at)
        return TownShape(
            town=request.town,
            name=look.setting.name,
            step=step,
            time=format_time(look.setting, step),
            residents=[
                _resident(look.setting, each, step)
                for name, each in sorted(state.states.items())
                if not _is_away(look.setting, each)
            ],
            conditions={place: each.text for place, each in sorted(state.conditions.items())},
        )


async def _find_moment(runtime: Runtime, principal: Principal, request: WhyRequest) -> tuple[History, str, int]:
    """Return a town's history, and the name and the step that a request means."""
    from mindstream_town.inspect.lookup import find_resident
    from mindstream_town.opened import find_past_step

    history = await watched(runtime, principal, request.town).history()
    name = find_resident(history.setting, request.resident)
    return history, name, find_past_step(history.setting, request.at, history.step) if request.at else history.step


@operation("towns.why", "read", "GET /towns/{town}/why", mcp="town_why", cli="town why")
async def why(runtime: Runtime, principal: Principal, request: WhyRequest) -> Why:
    """Explain a resident's act: percepts, memories, decisions and plans."""
    from mindstream_town.inspect import why as reasons

    history, name, step = await _find_moment(runtime, principal, request)
    reason = await asyncio.to_thread(reasons.explain, history, name, step)
    return Why(resident=name, text="\n".join(reason.lines()), reason=reason.as_json())


class Beliefs(Reply):
    """A resident's beliefs at a step."""

    resident: str
    step: int
    beliefs: list[Belief]


@operation("towns.beliefs", "read", "GET /towns/{town}/beliefs", mcp="town_beliefs", cli="town beliefs")
async def beliefs(runtime: Runtime, principal: Principal, request: WhyRequest) -> Beliefs:
    """Return what a resident believes next to what happened, and where each belief began."""
    from mindstream_town.inspect.why import beliefs_of

    history, name, step = await _find_moment(runtime, principal, request)
    found = await asyncio.to_thread(beliefs_of, history, name, step)
    return Beliefs(resident=name, step=step, beliefs=found)


@operation(
    "towns.whisper", "write", "POST /towns/{town}/whisper", mcp="town_whisper", cli="town whisper", tenant_wide=True
)
async def whisper(runtime: Runtime, principal: Principal, request: WhisperRequest) -> Whispered:
    """Add a thought to a resident's memory; the resident may use it in plans, and tell it to others."""
    from mindstream_town.inspect.lookup import find_resident

    async with open_town(runtime, principal, request.town) as town:
        name = find_resident(town.setting, request.resident)
        record = await town.whisper(name, request.text)
    return Whispered(resident=name, id=record.id)


@operation("towns.fork", "write", "POST /towns/{town}/fork", cli="town fork", status=201, tenant_wide=True)
async def fork(runtime: Runtime, principal: Principal, request: ForkRequest) -> ForkShape:
    """Copy a town as of a step; the fork has the same past and seed, and continues independently."""
    taken = {name for tenant, name in runtime.offered.towns if tenant == principal.tenant}
    from mindstream_town.forking import fork as copy_town

    made = await runtime.forks.add(
        principal, request.town, runtime.town(principal, request.town), request.step, taken, copy_town
    )
    return ForkShape(town=made.name, of=made.of, step=made.step)


@operation("towns.drop", "write", "DELETE /towns/{town}", tenant_wide=True)
async def drop(runtime: Runtime, principal: Principal, request: TownName) -> TownList:
    """Delete a fork. Towns that the operator offers cannot be deleted."""
    runtime.forks.drop(principal, request.town)
    return await list_towns(runtime, principal, EmptyRequest())


@operation("towns.run", "write", "POST /towns/{town}/run", long=True, cli="town run", tenant_wide=True)
async def run(runtime: Runtime, principal: Principal, request: TownRunRequest, one: RunningOperation) -> TownRan:
    """Run a town for some steps; finished steps are kept if an error stops it."""
    from mindstream_town.inspect.lookup import format_time

    async with look_in(runtime, principal, request.town) as look:
        setting, last = look.setting, look.now + request.steps

    def on_step(step: int) -> None:
        if step % 60 == 0 or step >= last:
            one.report(f"{format_time(setting, step)}, steps to go: {last - step}")

    async with open_town(runtime, principal, request.town) as town:
        await town.run(max(town.step, last), on_step)
        reached = town.step
    return TownRan(step=reached, time=format_time(setting, reached))


@operation("towns.frames", "read", "GET /towns/{town}/frames")
async def frames(runtime: Runtime, principal: Principal, request: FramesRequest) -> Frames:
    """Return moments of a town, to draw it."""
    history = await watched(runtime, principal, request.town).history()
    return await asyncio.to_thread(_frames, history, request)


def _frames(history: History, request: FramesRequest) -> Frames:
    setting, last = history.setting, history.step if request.last is None else min(request.last, history.step)
    steps = range(request.first, last + 1, request.every)
    shown = [
        Frame(
            step=step,
            time=setting.when(step).isoformat(),
            residents=[
                _resident(setting, state, step)
                for name in history.names
                if not _is_away(setting, state := history.state(name, step))
            ],
        )
        for step in steps[: request.limit]
    ]
    return Frames(frames=shown, next=steps[request.limit] if len(steps) > request.limit else None)


def _resident(setting: Setting, state: ResidentState, step: int) -> ResidentShape:
    spot = state.spot(max(step, 0))
    return ResidentShape(
        name=state.name,
        doing=state.act.what if state.act else "",
        place=str(setting.world.address_at(spot)),
        spot=list(spot),
        asleep=state.asleep,
        talking_with=state.partner,
        lived_by=state.embodied,
    )


def _is_away(setting: Setting, state: ResidentState) -> bool:
    """Return whether a visitor is not in the town."""
    return setting.people[state.name].visits and not state.embodied
