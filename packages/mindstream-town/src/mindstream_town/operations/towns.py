"""Operations on the towns that the operator offers. To live in one: towns_embody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from operator import not_
from typing import TYPE_CHECKING, Literal, get_args

from pydantic import Field, JsonValue

from mindstream.log.names import StreamName
from mindstream.memory.memory import Memory
from mindstream.minds.calls import CallLog
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import Running
from mindstream.service.operations.shapes import Ask, NoQuestion, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream_town.inspect.history import History
    from mindstream_town.replay.growing import GrowingRecording
    from mindstream_town.setting import Setting
    from mindstream_town.state import ResidentState
    from mindstream_town.town import Town

MOST_FRAMES = 500
Condition = Literal["full", "no_reflection", "no_reflection_no_plan", "none"]
"""As in town/residents/interview, which is not loaded for a request."""
CONDITIONS: tuple[Condition, ...] = get_args(Condition)


class TownName(Ask):
    """One town."""

    town: str = Field(max_length=100)


class StatusRequest(TownName):
    """A town at a time of its own, as "Feb 13 10:00"; "": as it is."""

    at: str = Field("", max_length=100)


class WhyRequest(StatusRequest):
    """Somebody at a time; the first name is enough."""

    resident: str = Field(min_length=1, max_length=100)


class WhisperRequest(TownName):
    """A thought that is put into somebody's memory, a whole sentence."""

    resident: str = Field(min_length=1, max_length=100)
    text: str = Field(min_length=1, max_length=10_000)


class TownRunRequest(TownName):
    """How long a town is to live: so many steps more."""

    steps: int = Field(ge=1, le=10_000_000)


class FramesRequest(TownName):
    """The moments of a town from one step to another, every so many; `next` says where the next page begins."""

    first: int = Field(0, ge=0, le=2**40)
    last: int | None = Field(None, ge=0, le=2**40)
    every: int = Field(6, ge=1, le=1_000_000)
    limit: int = Field(100, ge=1, le=MOST_FRAMES)


class ResidentShape(Reply):
    """What somebody does, and where; `lived_by`: the person who lives as them, "" nobody."""

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
    """The step after which a town is forked."""

    step: int = Field(ge=0, le=2**40)


class ForkShape(Reply):
    """A town that was forked from another, `of`, after a step; it is called `town`."""

    town: str
    of: str
    step: int


class TownList(Reply):
    """The names of the towns that are offered, forks among them; which are forks, and of what.

    `notices`: forks that cannot be read, a line for each.
    """

    towns: list[str]
    forks: list[ForkShape]
    notices: list[str] = Field([], exclude_if=not_)


class Whispered(Reply):
    """Who has that in mind now."""

    resident: str
    id: str


class TownRan(Reply):
    """The step that a town has come to."""

    step: int
    time: str


class Frame(Reply):
    """A moment of a town."""

    step: int
    time: str
    residents: list[ResidentShape]


class Frames(Reply):
    """Moments of a town; `next`: the step at which the next page begins, None at the end."""

    frames: list[Frame]
    next: int | None


class Why(Reply):
    """Why somebody does what they do, as a tree; `text`: the same in lines."""

    resident: str
    text: str
    reason: JsonValue


def settings_of(house: House, who: Who, name: str) -> Settings:
    """Return the settings with which a town that is offered to somebody is opened."""
    return house.settings.model_copy(update={"data": house.town(who, name)})


@contextlib.asynccontextmanager
async def open_town(house: House, who: Who, name: str) -> AsyncIterator[Town]:
    """Open a town with the models that the caller may use: their budget pays for its calls, and `/cost` shows them."""
    from mindstream_town import opened as service

    if house.models.only_rules:
        async with service.open_town(settings_of(house, who, name)) as town:
            yield town
        return
    calls = CallLog()
    models = house.models_of(who, calls.take)
    async with (
        calls.writing(bill_of(house, who, name)),
        service.open_town(settings_of(house, who, name), models=models) as town,
    ):
        yield town


def watched(house: House, who: Who, name: str) -> GrowingRecording:
    """Return the cached recording of a town; reading it again reads only what is new."""
    from mindstream_town.replay.growing import GrowingRecording

    return house.towns.of(house.town(who, name), GrowingRecording)


def bill_of(house: House, who: Who, name: str) -> Memory:
    """Return the stream of the tenant in which the calls of its town are counted."""
    return Memory(house.ground(who).store, StreamName("town", name), house.embedder, house.clock)


@operation("towns.list", "read", "GET /towns", mcp="list_towns")
async def list_towns(house: House, who: Who, ask: NoQuestion) -> TownList:  # noqa: ARG001
    """List the towns that the operator offers, and their forks."""
    forks = [ForkShape(town=each.name, of=each.of, step=each.step) for each in house.forks.all(who).values()]
    offered = {name for tenant, name in house.offered.towns if tenant == who.tenant}
    return TownList(
        towns=sorted(offered | {each.town for each in forks}),
        forks=sorted(forks, key=lambda each: each.town),
        notices=house.forks.notices(who),
    )


@operation("towns.status", "read", "GET /towns/{town}", mcp="town_status", cli="town status")
async def status(house: House, who: Who, ask: StatusRequest) -> TownShape:
    """Say what time it is in a town, who is where and does what."""
    from mindstream_town import opened as service
    from mindstream_town.inspect.time_words import format_time

    async with service.look_in(settings_of(house, who, ask.town)) as look:
        state, step = await look.at(ask.at)
        return TownShape(
            town=ask.town,
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


@operation("towns.why", "read", "GET /towns/{town}/why", mcp="town_why", cli="town why")
async def why(house: House, who: Who, ask: WhyRequest) -> Why:
    """Say why somebody does what they do: what they saw, what came to mind, what they decided and had planned."""
    from mindstream_town import opened as service
    from mindstream_town.inspect import why as reasons
    from mindstream_town.inspect.lookup import find_resident

    history = await watched(house, who, ask.town).history()
    name = find_resident(history.setting, ask.resident)
    step = service.find_past_step(history.setting, ask.at, history.step) if ask.at else history.step
    reason = await asyncio.to_thread(reasons.explain, history, name, step)
    return Why(resident=name, text="\n".join(reason.lines()), reason=reason.as_json())


@operation(
    "towns.whisper", "write", "POST /towns/{town}/whisper", mcp="town_whisper", cli="town whisper", tenant_wide=True
)
async def whisper(house: House, who: Who, ask: WhisperRequest) -> Whispered:
    """Put a thought into somebody's memory, as if it had always been there."""
    from mindstream_town.inspect.lookup import find_resident

    async with open_town(house, who, ask.town) as town:
        name = find_resident(town.setting, ask.resident)
        record = await town.whisper(name, ask.text)
    return Whispered(resident=name, id=record.id)


@operation("towns.fork", "write", "POST /towns/{town}/fork", cli="town fork", status=201, tenant_wide=True)
async def fork(house: House, who: Who, ask: ForkRequest) -> ForkShape:
    """Make a town beside another, as that was after a step: with its past and its seed, and a future of its own."""
    taken = {name for tenant, name in house.offered.towns if tenant == who.tenant}
    from mindstream_town.forking import fork as copy_town

    made = await house.forks.add(who, ask.town, house.town(who, ask.town), ask.step, taken, copy_town)
    return ForkShape(town=made.name, of=made.of, step=made.step)


@operation("towns.drop", "write", "DELETE /towns/{town}", tenant_wide=True)
async def drop(house: House, who: Who, ask: TownName) -> TownList:
    """Let go of a fork, with all that it has lived; towns that the operator offers stay."""
    house.forks.drop(who, ask.town)
    return await list_towns(house, who, NoQuestion())


@operation("towns.run", "write", "POST /towns/{town}/run", long=True, cli="town run", tenant_wide=True)
async def run(house: House, who: Who, ask: TownRunRequest, one: Running) -> TownRan:
    """Let a town live so many steps more; what is done is kept, whatever stops it."""
    from mindstream_town import opened as service
    from mindstream_town.inspect.time_words import format_time

    settings = settings_of(house, who, ask.town)
    async with service.look_in(settings) as look:
        setting, last = look.setting, look.now + ask.steps

    def on_step(step: int) -> None:
        if step % 60 == 0 or step >= last:
            one.tell(f"{format_time(setting, step)}, {last - step} steps to go")

    async with open_town(house, who, ask.town) as town:
        await town.run(max(town.step, last), on_step)
        reached = town.step
    return TownRan(step=reached, time=format_time(setting, reached))


@operation("towns.frames", "read", "GET /towns/{town}/frames")
async def frames(house: House, who: Who, ask: FramesRequest) -> Frames:
    """Return moments of a town, for whoever draws it."""
    history = await watched(house, who, ask.town).history()
    return await asyncio.to_thread(_frames, history, ask)


def _frames(history: History, ask: FramesRequest) -> Frames:
    setting, last = history.setting, history.step if ask.last is None else min(ask.last, history.step)
    steps = range(ask.first, last + 1, ask.every)
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
        for step in steps[: ask.limit]
    ]
    return Frames(frames=shown, next=steps[ask.limit] if len(steps) > ask.limit else None)


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
    """Tell whether somebody is a visitor who is not in the town."""
    return setting.people[state.name].visits and not state.embodied
