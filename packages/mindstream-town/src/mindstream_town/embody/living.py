"""The turn of a controlled resident: its user decides, and no model is asked to decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pydantic import Field

from mindstream.frozen import Frozen
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
"""Change of (x, y) for a step in each direction on a map of tiles; y grows downwards."""


class Begin(Frozen):
    """Take control of a resident; `place`: the address where a visitor enters."""

    person: str
    place: str = ""


class Go(Frozen):
    """Walk to a place, by its address."""

    place: str


class Step(Frozen):
    """Take one step, to a neighbouring spot."""

    spot: tuple[int, int]


class Do(Frozen):
    """Do something for some minutes, here or at another address."""

    what: str = Field(min_length=1, max_length=LONGEST_DONE)
    minutes: int = Field(15, ge=1, le=MOST_MINUTES)
    place: str = ""


class Say(Frozen):
    """Say something to a resident (`to`: full name). `to_all`: all others nearby who are free remember it, too."""

    text: str = Field(min_length=1, max_length=LONGEST_SAID)
    to: str
    to_all: bool = False


class End(Frozen):
    """End the talk, or refuse it if the controlled resident has not answered yet."""


class Leave(Frozen):
    """Give up control."""


Deed: TypeAlias = Begin | Go | Step | Do | Say | End | Leave


STANDING, AWAY = "standing about", "away"
IMPORTANCE = 3.0
"""Importance of the memory of a user's act, on the scale of 1 to 10."""


def is_here(resident: Resident) -> bool:
    """Return whether a resident is in the town; a visitor is there only while a user controls it."""
    return not resident.person.visits or bool(resident.state.embodied)


def doing(state: ResidentState) -> str:
    """Return the resident's activity in words; "standing about" after a talk has ended, "" before the first act."""
    if state.act is None:
        return ""
    return STANDING if state.act.why == "talk" and not state.partner else state.act.what


async def live_as(turn: ResidentTurn, deed: Deed | None, ended: bool, taken: Mapping[str, Spot]) -> None:
    """Let the controlled resident perceive, then apply the user's action. `Say`, `End` and `Leave` are applied later,
    after all turns of the step (`Encounters`). If there is no action and the resident's act has ended, it waits.

    Args:
        ended: whether the resident's act has ended.
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
            stand(turn, turn.spot, deed.spot)
        case Do():
            await remember_done(turn)
            _act(turn, deed.what, deed.place, deed.minutes)
        case None if ended:
            await remember_done(turn)
            stand(turn)


def _begin(turn: ResidentTurn, deed: Begin, taken: Mapping[str, Spot]) -> None:
    """Take control of a resident at its position, or of a visitor at its entrance."""
    turn.write(Embodied(step=turn.step, person=deed.person))
    spot = turn.spot
    if turn.person.visits:
        spot = entrance(turn.setting, deed.place, taken)
        near = turn.setting.places_near(spot)
        turn.write(
            Perceived(step=turn.step, seen=(), places=tuple(each for each in near if each not in turn.state.knows))
        )
    stand(turn, spot)


def entrance(setting: Setting, place: str, taken: Mapping[str, Spot]) -> Spot:
    """Return a spot in a place for a visitor. Walkable spots come first; among these, spots without a resident
    (`taken`); among these, spots without an object."""
    world, full, address = setting.world, set(taken.values()), setting.addresses[place]
    spots = [each for each in world.spots(address) if world.walkable(each)] or list(world.spots(address))
    return min(spots, key=lambda each: (each in full, world.address_at(each) != address))


def stand(turn: ResidentTurn, *spots: Spot, what: str = STANDING) -> None:
    """Let the resident walk along `spots` and wait at the last one for the user's next action, at most a day in all.
    Without `spots`, it waits at its position."""
    spots = spots or (turn.spot,)
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
    """Return the address of the room or object at a spot; "" outside of rooms."""
    address = setting.world.address_at(spot)
    return str(address) if address.level >= ARENA else ""


def _act(turn: ResidentTurn, what: str, place: str, minutes: int) -> None:
    spot = turn.spot
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
    """Add the user's last act to the resident's memory, as an observation."""
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
    """Give up control: a resident plans the rest of its day, a visitor leaves the town."""
    await remember_done(turn)
    turn.write(Released(step=turn.step, person=turn.by))
    turn.by = ""
    if turn.person.visits:
        stand(turn, what=AWAY)
        return
    if turn.state.day == turn.day:
        await plan_rest(turn)
    await next_act(turn)
