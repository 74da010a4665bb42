"""What a resident of a saved simulation does just now and has planned, as rows of a town's log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta
from itertools import pairwise

from mindstream.log.events import Event
from mindstream.town.events import Act, Acted, Block, BroughtIn, DayPlanned, MovedIn, SpokenLine, Talked
from mindstream.town.formats.saves import PersonaSave
from mindstream.town.formats.scratch import Schedule, Scratch
from mindstream.town.formats.typed import parse_clock
from mindstream.town.residents.places import find_home
from mindstream.town.setting import Setting
from mindstream.town.world.hours import DAY_MINUTES
from mindstream.town.world.walk import write_walk
from mindstream.town.world.world import Spot

ASLEEP = "sleeping"
"""How the authors write that somebody sleeps."""


def rows_of_scratch(setting: Setting, persona: PersonaSave, step: int) -> Iterator[Event]:
    """Yield the rows that bring a resident to where it is after a step; before the first, it only moves in."""
    scratch, person = persona.scratch, setting.people[persona.name]
    spot, knows = find_home(setting, person)
    yield MovedIn(step=max(step, 0), spot=spot, knows=knows)
    if step < 0:
        return
    events = [node for node in persona.memory.in_order() if node.type == "event"]
    seen = [(node.subject, node.predicate, node.object) for node in events[-setting.profile.retention :]]
    rested = {name: step + left for name, left in sorted(scratch.chatting_with_buffer.items()) if left > 0}
    gathered = max(0.0, float(scratch.importance_trigger_max - scratch.importance_trigger_curr))
    yield BroughtIn(step=step, seen=tuple(seen), gathered=gathered, rested=rested)
    act = _act(setting, scratch, spot, step)
    if blocks := _blocks(setting, scratch, act.place):
        day = setting.day(step)
        yield DayPlanned(step=step, day=day, currently=scratch.currently, broad=scratch.daily_req, blocks=blocks)
    yield Acted(step=step, act=act)
    if scratch.chatting_with in setting.people and scratch.chatting_end_time is not None:
        lines = tuple(SpokenLine(by=who, text=text) for who, text in scratch.chat or ())
        until = max(_step_of(setting, scratch.chatting_end_time), step + 1)
        yield Talked(step=step, partner=scratch.chatting_with or "", lines=lines, until=until)


def _act(setting: Setting, scratch: Scratch, spot: Spot, step: int) -> Act:
    """Return what somebody does: it stands where it is, and goes on along the rest of its way."""
    began = min(_step_of(setting, scratch.act_start_time), step) if scratch.act_start_time else step
    until = step + 1
    if scratch.act_start_time and scratch.act_duration is not None:
        end = parse_clock(scratch.act_start_time) + timedelta(seconds=59, minutes=scratch.act_duration)
        until = max(until, setting.step_at_moment(end.replace(second=0, tzinfo=UTC).timestamp()))
    place, way = scratch.act_address or "", _way(setting, scratch, spot)
    what = scratch.act_description or "being idle"
    return Act(
        what=what,
        place=place if place in setting.addresses else "",
        since=began,
        until=until,
        path=write_walk([*[spot] * (step - began + 1), *way]),
        asleep=what.startswith(ASLEEP),
    )


def _way(setting: Setting, scratch: Scratch, spot: Spot) -> Sequence[Spot]:
    """Return the rest of somebody's way; one that does not begin here, or goes where nobody can, is found anew."""
    way = scratch.planned_path
    apart = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise((spot, *way))]
    if max(apart, default=0) <= 1 and all(map(setting.world.walkable, way)):
        return way
    if setting.world.walkable(way[-1]) and setting.world.routes.is_reachable(spot, way[-1]):
        return setting.world.routes.path(spot, way[-1])
    return ()


def _step_of(setting: Setting, clock: str) -> int:
    return setting.step_at_moment(parse_clock(clock).replace(tzinfo=UTC).timestamp())


def _blocks(setting: Setting, scratch: Scratch, here: str) -> tuple[Block, ...]:
    """Return the day's plan; tasks have no places in a save: one is done where its resident is."""
    home = setting.people[scratch.name].home
    blocks: list[Block] = []
    doing = (scratch.act_description or "").partition(" (")[0]
    for what, minutes in _cut(scratch.f_daily_schedule):
        task, inner, _ = what.partition(" (")
        asleep = what.startswith(ASLEEP)
        place = home if asleep else here if task == doing else ""
        start = blocks[-1].end if blocks else 0
        fine = bool(inner) or minutes < 60
        blocks.append(Block(start=start, minutes=minutes, what=what, place=place, asleep=asleep, fine=fine))
    if blocks and (left := DAY_MINUTES - blocks[-1].end) > 0:
        blocks.append(Block(start=blocks[-1].end, minutes=left, what="sleeping", place=home, asleep=True))
    return tuple(blocks)


def _cut(schedule: Schedule) -> Iterator[tuple[str, int]]:
    """Yield a schedule in whole minutes, without what takes none and what is after midnight."""
    left = DAY_MINUTES
    for what, minutes in schedule:
        taken = min(round(minutes), left)
        if taken > 0:
            left -= taken
            yield what, taken
