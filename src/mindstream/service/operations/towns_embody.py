"""Operations by which a person lives in a town: begin, act, look, leave. Each opens the town and lets it go again.

The town's time goes on only with what is done, so a browser may keep a pace of its own: it asks to wait a minute, as
often as it likes, and hears what happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mindstream.errors import InputError
from mindstream.service.operations.house import House
from mindstream.service.operations.shapes import CallerName, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.towns import TownName, open_town
from mindstream.service.operations.who import Who
from mindstream.town.embody.deeds import LONGEST_DONE, LONGEST_SAID, MOST_MINUTES, Way
from mindstream.town.embody.outlook import Surroundings

if TYPE_CHECKING:
    from mindstream.town.embody.embodied import Embodied
    from mindstream.town.town import Town


class EmbodiedName(TownName):
    """A person as somebody in a town.

    `resident`: the whole name. `visitor`: somebody who lives nowhere there. `person`: who lives as a resident; a
    visitor is itself. With a token for one user the person is that user.
    """

    resident: str = Field(min_length=1, max_length=100)
    person: CallerName = Field("a person", min_length=1, max_length=100)
    visitor: bool = False


class EmbodyRequest(EmbodiedName):
    """Live as somebody; `place`: where a visitor comes in, "": at one that is open to all."""

    place: str = Field("", max_length=300)


class ActRequest(EmbodiedName):
    """Do something, and hear what happened since the step `since`.

    `go` takes `place`; `step` takes `way`, and is one step over a map of tiles; `do` takes `text`, `minutes` and maybe
    `place`; `say` takes `text` and maybe `to`; `wait` takes `minutes`, or goes on until what one does is done. With
    `waits` false, `go` and `do` take one step only.
    """

    act: Literal["go", "step", "do", "say", "decline", "wait"]
    text: str = Field("", max_length=max(LONGEST_DONE, LONGEST_SAID))
    to: str = Field("", max_length=100)
    place: str = Field("", max_length=300)
    way: Way | None = None
    minutes: int | None = Field(None, ge=1, le=MOST_MINUTES)
    waits: bool = True
    since: int | None = Field(None, ge=-1, le=2**40)


class LookRequest(EmbodiedName):
    """Look around; `since`: with what happened after that step."""

    since: int | None = Field(None, ge=-1, le=2**40)


class HasLeft(Reply):
    """Who is lived no longer, and when that was."""

    resident: str
    step: int
    time: str


@operation("towns.embody", "write", "POST /towns/{town}/embody/{resident}", mcp="town_embody", cli="town embody")
async def embody(house: House, who: Who, ask: EmbodyRequest) -> Surroundings:
    """Live as a resident, or as a visitor, from now on; or go on where one does."""
    async with open_town(house, who, ask.town) as town:
        me = await town.embody(ask.resident, _person(who, ask), as_visitor=ask.visitor, at=ask.place)
        return await me.look()


@operation("towns.act", "write", "POST /towns/{town}/embody/{resident}/act", mcp="town_act", cli="town embody")
async def do_as(house: House, who: Who, ask: ActRequest) -> Surroundings:
    """Do something as somebody as whom one lives: it ends when it is done, or when somebody speaks to one."""
    async with open_town(house, who, ask.town) as town:
        me = await _living(town, who, ask)
        me.waits, before = ask.waits, town.step
        match ask.act:
            case "go":
                await me.go(ask.place)
            case "step" if ask.way is None:
                raise InputError("a step wants its `way`: up, down, left or right")
            case "step" if ask.way:
                await me.step(ask.way)
            case "do":
                await me.do(ask.text, ask.minutes or 15, ask.place)
            case "say":
                await me.say(ask.text, ask.to)
            case "decline":
                await me.decline()
            case "wait":
                await me.wait(ask.minutes)
        return await me.look(before if ask.since is None else ask.since)


@operation("towns.look", "read", "GET /towns/{town}/embody/{resident}", mcp="town_look", cli="town embody")
async def look(house: House, who: Who, ask: LookRequest) -> Surroundings:
    """Say where one is as somebody, what and who is around, what was said, and what happened."""
    async with open_town(house, who, ask.town) as town:
        return await (await _living(town, who, ask)).look(ask.since)


@operation("towns.leave", "write", "POST /towns/{town}/embody/{resident}/leave", mcp="town_leave", cli="town embody")
async def leave(house: House, who: Who, ask: EmbodiedName) -> HasLeft:
    """Live as somebody no longer: a resident plans the rest of its day, a visitor is gone."""
    from mindstream.town.inspect.time_words import format_time

    async with open_town(house, who, ask.town) as town:
        await (await _living(town, who, ask)).leave()
        return HasLeft(resident=ask.resident, step=town.step, time=format_time(town.setting, town.step))


def _person(who: Who, ask: EmbodiedName) -> str:
    """Return who lives as a resident; "": a visitor, by its own name."""
    return who.bound_user or ("" if ask.visitor else ask.person)


async def _living(town: Town, who: Who, ask: EmbodiedName) -> Embodied:
    """Return a person as whom it lives.

    Raises:
        InputError: it does not, or not any more.
    """
    resident = town.residents.get(ask.resident)
    if resident is None or not resident.state.embodied:
        raise InputError(f"nobody lives as {ask.resident!r} now: begin first")
    return await town.embody(ask.resident, _person(who, ask), as_visitor=ask.visitor)
