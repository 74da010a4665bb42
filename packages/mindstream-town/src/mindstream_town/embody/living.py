"""A step of a controlled resident: the user decides, no model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from mindstream.log.events import Remembered
from mindstream.memory.store.record import RecordDraft
from mindstream_town.events import Act, Acted, Embodied, Perceived, Released
from mindstream_town.residents.places import with_article, words_of
from mindstream_town.residents.plan import next_act, plan_rest, walk_to
from mindstream_town.residents.sight import perceive
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.routes import write_walk
from mindstream_town.world.tree import ARENA, Spot

LONGEST_SAID = 600
"""Maximum characters of one utterance."""
LONGEST_DONE = 300
MOST_MINUTES = 1_440
Way = Literal["up", "down", "left", "right"]
WAYS: dict[Way, tuple[int, int]] = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""Steps on a map of tiles, whose y grows downwards."""


class _Deed(BaseModel):
    model_config = ConfigDict(frozen=True)


class Begin(_Deed):
    """Take control; `place`: the address where a visitor enters."""

    person: str
    place: str = ""


class Go(_Deed):
    """Walk to a place, by its address."""

    place: str


class Step(_Deed):
    """Take one step, to a neighbouring spot."""

    spot: tuple[int, int]


class Do(_Deed):
    """Do something for some minutes, here or at another address."""

    what: str = Field(min_length=1, max_length=LONGEST_DONE)
    minutes: int = Field(15, ge=1, le=MOST_MINUTES)
    place: str = ""


class Say(_Deed):
    """Say something to a resident, by full name; `to_all`: all who are near and free remember it."""

    text: str = Field(min_length=1, max_length=LONGEST_SAID)
    to: str
    to_all: bool = False


class End(_Deed):
    """End the talk; before the first answer, refuse it."""


class Leave(_Deed):
    """Give control back."""


Deed: TypeAlias = Begin | Go | Step | Do | Say | End | Leave


STANDING, AWAY = "standing about", "away"
IMPORTANCE = 3.0
"""Importance of the memory of a user's act."""


def is_here(resident: Resident) -> bool:
    """Return whether a resident is in the town; a visitor is while a user controls it."""
    return not resident.person.visits or bool(resident.state.embodied)


def doing(state: ResidentState) -> str:
    """Return a resident's activity in words; after the end of a talk it stands until its next step."""
    if state.act is None:
        return ""
    return STANDING if state.act.why == "talk" and not state.partner else state.act.what


async def live_as(turn: ResidentTurn, deed: Deed | None, ended: bool, taken: Mapping[str, Spot]) -> None:
    """Perceive, then do what the user does; words are spoken when all turns are over.

    Args:
        ended: the act has ended.
        taken: the positions of all residents.
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
    """Take control of a resident where it is, or of a visitor at its entrance."""
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
    """Return a spot in a place for a visitor: a free one without an object, if possible."""
    world, full, address = setting.world, set(taken.values()), setting.addresses[place]
    spots = [each for each in world.spots(address) if world.walkable(each)] or list(world.spots(address))
    return min(spots, key=lambda each: (each in full, world.address_at(each) != address))


def stand(turn: ResidentTurn, *spots: Spot, what: str = STANDING) -> None:
    """Let the resident wait at its position, or at the last of these spots, until the user acts."""
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
    """Remember the user's last act like a percept."""
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
    """Give control back: a resident plans the rest of its day, a visitor leaves the town."""
    await remember_done(turn)
    turn.write(Released(step=turn.step, person=turn.by))
    turn.by = ""
    if turn.person.visits:
        stand(turn, what=AWAY)
        return
    if turn.state.day == turn.setting.day(turn.step):
        await plan_rest(turn)
    await next_act(turn)
