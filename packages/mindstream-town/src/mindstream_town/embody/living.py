"""A step of somebody as whom a person lives: the person is its mind, and nobody is asked what it will do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from mindstream.log.events import Remembered
from mindstream.memory.store.record import RecordDraft
from mindstream_town.events import Act, Acted, Embodied, Perceived, Released
from mindstream_town.residents.perceive import perceive
from mindstream_town.residents.places import with_article, words_of
from mindstream_town.residents.plan import next_act, plan_rest, walk_to
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.routes import write_walk
from mindstream_town.world.tree import ARENA
from mindstream_town.world.world import Spot

LONGEST_SAID = 600
"""So many characters are said at once."""
LONGEST_DONE = 300
MOST_MINUTES = 1_440
Way = Literal["up", "down", "left", "right"]
WAYS: dict[Way, tuple[int, int]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""On a map of tiles, whose y goes down."""


class _Deed(BaseModel):
    model_config = ConfigDict(frozen=True)


class Begin(_Deed):
    """Live as somebody from now on.

    Attributes:
        place: the address where a visitor comes in.
    """

    person: str
    place: str = ""


class Go(_Deed):
    """Walk to a place, by its address."""

    place: str


class Step(_Deed):
    """Take one step, to a spot beside one's own."""

    spot: tuple[int, int]


class Do(_Deed):
    """Do something for so many minutes, there or (by its address) elsewhere."""

    what: str = Field(min_length=1, max_length=LONGEST_DONE)
    minutes: int = Field(15, ge=1, le=MOST_MINUTES)
    place: str = ""


class Say(_Deed):
    """Say something to somebody, by the whole name; `to_all`: all who are near and free hear and remember it."""

    text: str = Field(min_length=1, max_length=LONGEST_SAID)
    to: str
    to_all: bool = False


class End(_Deed):
    """Talk no more; where one has said nothing yet: do not answer."""


class Leave(_Deed):
    """Live as somebody no longer."""


Deed: TypeAlias = Begin | Go | Step | Do | Say | End | Leave


STANDING, AWAY = "standing about", "away"
IMPORTANCE = 3.0
"""Of what a person has done as somebody."""


def is_here(resident: Resident) -> bool:
    """Tell whether somebody is in the town: a visitor is while a person lives as it."""
    return not resident.person.visits or bool(resident.state.embodied)


def doing(state: ResidentState) -> str:
    """Say what somebody does; who has come to the end of a talk stands about until its next step."""
    if state.act is None:
        return ""
    return STANDING if state.act.why == "talk" and not state.partner else state.act.what


async def live_as(turn: ResidentTurn, deed: Deed | None, ended: bool, taken: Mapping[str, Spot]) -> None:
    """Let somebody perceive, and do what its person does; what is said comes when all have had their turns.

    Args:
        ended: what it did has come to its end.
        taken: where everybody stands.
    """
    turn.resident.begin(turn.now)
    await perceive(turn)
    turn.by = turn.state.embodied
    match deed:
        case Begin():
            turn.by = deed.person
            _begin(turn, deed, taken)
        case Go():
            await remember_done(turn)
            _act(turn, f"walking to {with_article(words_of(deed.place))}", deed.place, 0)
        case Step():
            await remember_done(turn)
            stand(turn, turn.state.spot(turn.step), deed.spot)
        case Do():
            await remember_done(turn)
            _act(turn, deed.what, deed.place, deed.minutes)
        case None if ended:
            await remember_done(turn)
            stand(turn)


def _begin(turn: ResidentTurn, deed: Begin, taken: Mapping[str, Spot]) -> None:
    """Let a person live as somebody from here on: as a resident where that is, as a visitor where it comes in."""
    turn.write(Embodied(step=turn.step, person=deed.person))
    spot = turn.state.spot(turn.step)
    if turn.person.visits:
        spot = entrance(turn.setting, deed.place, taken)
        near = turn.setting.places_near(spot)
        turn.write(
            Perceived(step=turn.step, seen=(), places=tuple(each for each in near if each not in turn.state.knows))
        )
    stand(turn, spot)


def entrance(setting: Setting, place: str, taken: Mapping[str, Spot]) -> Spot:
    """Return where somebody stands who comes into a place: on a spot of its own, at no thing, if there is one."""
    world, full, address = setting.world, set(taken.values()), setting.addresses[place]
    spots = [each for each in world.spots(address) if world.walkable(each)] or list(world.spots(address))
    return min(spots, key=lambda each: (each in full, world.address_at(each) != address))


def stand(turn: ResidentTurn, *spots: Spot, what: str = STANDING) -> None:
    """Let somebody stand where it is, or at the last of these spots, until its person does something."""
    spots = spots or (turn.state.spot(turn.step),)
    act = Act(
        what=what,
        place="" if what == AWAY else place_at(turn.setting, spots[-1]),
        since=turn.step,
        until=turn.step + turn.profile.a_day,
        path=write_walk(spots),
        why="wait",
    )
    turn.write(Acted(step=turn.step, act=act))


def place_at(setting: Setting, spot: Spot) -> str:
    """Return the room or thing at a spot; "" outside."""
    address = setting.world.address_at(spot)
    return str(address) if address.level >= ARENA else ""


def _act(turn: ResidentTurn, what: str, place: str, minutes: int) -> None:
    spot = turn.state.spot(turn.step)
    path = walk_to(turn, place) if place else None
    act = Act(
        what=what,
        place=place if path else place_at(turn.setting, spot),
        since=turn.step,
        until=turn.step + 1,
        path=path or write_walk([spot]),
        why="",
    )
    until = max(act.arrives + minutes * turn.profile.a_minute, turn.step + 1)
    turn.write(Acted(step=turn.step, act=act.model_copy(update={"until": until})))


async def remember_done(turn: ResidentTurn) -> None:
    """Let somebody remember what its person has just done, as any other thing that it saw."""
    done, setting = turn.state.act, turn.setting
    if done is None or done.why or not turn.state.embodied:
        return
    since, until = setting.when(done.since), setting.when(turn.step)
    where = f" ({words_of(done.place)})" if done.place and not done.what.endswith(words_of(done.place)) else ""
    text = f"{turn.name} was {done.what}{where} from {since:%H:%M} to {until:%H:%M}"
    keywords = tuple(dict.fromkeys((turn.name.lower(), done.what.lower()[:80])))
    new = RecordDraft(text=text, kind="observation", by=turn.name, importance=IMPORTANCE, keywords=keywords)
    turn.write(Remembered(count=1, kinds={"observation": 1}), await turn.build(new))


async def leave(turn: ResidentTurn) -> None:
    """Let a person live as somebody no longer: a resident plans the rest of its day, a visitor is gone."""
    await remember_done(turn)
    turn.write(Released(step=turn.step, person=turn.by))
    turn.by = ""
    if turn.person.visits:
        stand(turn, what=AWAY)
        return
    if turn.state.day == turn.setting.day(turn.step):
        await plan_rest(turn)
    await next_act(turn)
