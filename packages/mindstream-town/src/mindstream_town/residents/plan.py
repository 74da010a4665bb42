"""Plan a day in broad strokes, break it down into tasks when needed, and begin the next act (Park 2023, 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from mindstream.errors import InputError
from mindstream.memory.store.record import Record, RecordDraft
from mindstream_town.events import Act, Acted, Block, DayPlanned, TasksPlanned
from mindstream_town.prompts.plans import AT_HOME, GAP, BreakDown, DayPlan, PlanDay, PlanRest, Task, Usual, say_date
from mindstream_town.residents.person import Appointment, appointment_of
from mindstream_town.residents.places import (
    bed_of,
    hosts_of,
    is_home,
    is_let_in,
    known_places,
    shunned_houses,
    things_around,
    words_of,
)
from mindstream_town.residents.prompt_context import repeats, show
from mindstream_town.residents.sight import is_in_sight, nearest_spot
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.world.routes import path_around, read_walk, write_walk
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, Address, Spot, sector_of
from mindstream_town.world.world import DAY_MINUTES, World, clock, minute_of

ASIDE = 3
"""Maximum distance in spots between a resident and the object that it uses."""


def stand_at(turn: ResidentTurn, address: Address, nearest: Spot) -> Spot:
    """Return the spot where the resident stands at a place: the nearest spot, or one at most ASIDE away from it.

    - At home, on roads, or if no spot around the nearest spot is free: the nearest spot.
    - Otherwise, if the nearest spot is in sight: this spot if it is free, else a free spot around it.
    - Otherwise: the nearest spot, or a spot around it, with equal chances.

    Args:
        nearest: the spot of the place that has the shortest path.
    """
    world = turn.setting.world
    if is_home(turn.person, str(address)):
        return nearest
    taken = {each.spot for each in turn.percepts if each.who}
    sees = is_in_sight(turn.setting, turn.spot, nearest)
    if sees and nearest not in taken:
        return nearest
    around = [
        spot
        for spot in world.visible(nearest, ASIDE)
        if world.walkable(spot) and spot not in taken and ARENA <= world.address_at(spot).level < OBJECT
    ]
    drawn = turn.setting.draw("stand", turn.step, turn.name)
    if not around or (not sees and drawn < 0.5):
        return nearest
    return around[int(drawn * len(around)) if sees else int((2 * drawn - 1) * len(around))]


AHEAD = 60
"""Minutes of a block that are broken down into tasks in one call. If fewer than AHEAD / 2 minutes of the block would
remain, the call includes these minutes."""
SLEEPING = "sleeping"
PLAN_IMPORTANCE = 5.0
MOST_AHEAD = 45
"""Maximum walking time that plans assume, in minutes, and so the most by which a resident leaves early."""
SHORT_GAP = 10
"""Minimum minutes of a gap in a plan; a shorter gap is added to the item before it."""
FREE = "having some time to oneself"


class Stretch(NamedTuple):
    """A part of a day, in minutes after midnight; `free`: nothing is planned for it."""

    start: int
    end: int
    what: str
    place: str
    free: bool = False


async def next_act(turn: ResidentTurn) -> None:
    """Begin the act that the plan has for now; plan the day first if necessary."""
    day, minute = turn.day, turn.minute
    if turn.state.day != day:
        await plan_day(turn, day)
    block = turn.state.block_at(minute)
    assert block is not None  # a plan has no gaps
    if is_right_again(turn, block):
        block = leave_it(turn, block, minute)
    if not (block.fine or block.asleep):
        await break_down(turn, block, minute)
        block = turn.state.block_at(minute)
        assert block is not None
    begin(turn, block)


def is_right_again(turn: ResidentTurn, block: Block) -> bool:
    """Return whether the resident sees that the object it was going to repair is in order again.

    Return False also if the resident perceives as much as its attention allows: it may have missed the object.
    """
    if not block.leaves or not block.sees_to or len(turn.percepts) >= turn.profile.attention:
        return False
    spot = turn.spot
    near = nearest_spot(turn.setting, block.sees_to, spot)
    return is_in_sight(turn.setting, spot, near) and all(each.place != block.sees_to for each in turn.percepts)


def leave_it(turn: ResidentTurn, block: Block, minute: int) -> Block:
    """Replace the current reaction by the next part of the plan, starting now; return this part.

    If the plan has no later part, the reaction continues and is returned.
    """
    later = next((each for each in turn.state.blocks if each.start >= block.end and each.why == "plan"), None)
    if later is None:
        return block
    now = later.model_copy(update={"start": minute, "minutes": later.end - minute})
    turn.write(TasksPlanned(step=turn.step, blocks=(now,)))
    return now


async def plan_day(turn: ResidentTurn, day: int) -> None:
    """Plan a day from the usual day, appointments and memories.

    If the town's profile has no plans, the resident is idle all day instead.
    """
    if not turn.profile.plans:
        turn.write(DayPlanned(step=turn.step, day=day, currently=turn.state.currently, broad=(), blocks=_idle(turn)))
        return
    date = turn.when
    said = say_date(date)
    recalled = [
        *await turn.recall(f"What has {turn.name} planned or agreed on for {said}?"),
        *await turn.recall(f"Important recent events in {turn.name}'s life"),
        *await turn.recall(f"Where {turn.name} usually goes, and what {turn.name} often does"),
    ]
    dated = [record for record, at in await turn.recall_appointments() if at.start.date() <= date.date()]
    records = list({each.id: each for each in (*dated, *(each.record for each in recalled))}.values())
    known = known_places(turn.setting, turn.person, turn.state.knows, date)
    plan = await turn.ask(
        PlanDay(
            who=turn.name,
            identity=turn.person.identity(turn.state.currently),
            date=said,
            memories=show(records, [day_of(each.created) for each in records]),
            yesterday=turn.state.broad,
            places=tuple(place for _, place in known),
            usual=usual_day(turn, date, [address for address, _ in known]),
        )
    )
    broad = tuple(f"{item.start} {item.what}" for item in plan.items)
    written = await plan_note(turn, said, broad, records)
    kept = [appointment_of(each.data) for each in records]
    blocks = blocks_of(turn, plan, [address for address, _ in known], kept, day)
    event = DayPlanned(
        step=turn.step,
        day=day,
        currently=plan.currently or turn.state.currently or turn.person.currently,
        broad=broad,
        blocks=blocks,
        records=tuple(each.id for each in written),
    )
    turn.write(event, written)


async def plan_note(
    turn: ResidentTurn, date: str, broad: Sequence[str], records: Sequence[Record]
) -> tuple[Record, ...]:
    """Build the memory of a day's plan. `broad`: the plan's activities in words; `records`: the memories on which it is
    based."""
    return await turn.build(
        RecordDraft(
            text=f"{turn.name}'s plan for {date}: {'; '.join(broad)}.",
            kind="note",
            by=turn.name,
            importance=PLAN_IMPORTANCE,
            evidence=tuple(each.id for each in records),
            keywords=("plan",),
        )
    )


def usual_day(turn: ResidentTurn, date: datetime, places: Sequence[str]) -> tuple[Usual, ...]:
    """Return the resident's usual activities on a date, for the prompt.

    `places`: addresses in the order of their numbers (1, 2, …) in the prompt.
    """
    numbers = {address: number for number, address in enumerate(places, 1)}
    today = [each for each in turn.person.day if each.is_on(date)]
    usual: list[Usual] = []
    for each in today:
        start = today[0].start + (each.start - today[0].start) % DAY_MINUTES
        end = start + (each.end - start - 1) % DAY_MINUTES + 1
        usual.append(Usual(start=start, end=end, what=each.what, place=numbers.get(each.place, 0), duty=each.duty))
    return tuple(usual)


def day_of(moment: float) -> str:
    """Return the date of a memory in the form that prompts show."""
    return f"{datetime.fromtimestamp(moment, UTC):%A %Y-%m-%d}"


def _idle(turn: ResidentTurn) -> tuple[Block, ...]:
    return (Block(start=0, minutes=DAY_MINUTES, what="being at home", place=turn.person.home, fine=True),)


def blocks_of(
    turn: ResidentTurn, plan: DayPlan, places: Sequence[str], kept: Sequence[Appointment | None], day: int
) -> tuple[Block, ...]:
    """Return the blocks of a day, without gaps: sleep, the planned items (`fill` closes the gaps between them), sleep.

    If the resident goes to bed after midnight, the last blocks start after 24:00; the plan of the next day begins with
    them.

    Args:
        kept: appointments in the order of their numbers in the prompt. An item that refers to an appointment takes the
            time and place of the appointment.
    """
    wake, bed = minute_of(plan.wake), minute_of(plan.bed)
    until = bed if bed > wake else bed + DAY_MINUTES
    items = list[Stretch]()
    for item in plan.items:
        start = minute_of(item.start)
        start = start if start >= wake or start + DAY_MINUTES >= until else start + DAY_MINUTES
        if wake <= start < until:
            place = places[item.place - 1] if 0 < item.place <= len(places) else turn.person.home
            at = kept[item.keeps - 1] if 0 < item.keeps <= len(kept) else None
            stretch = Stretch(start, start + item.minutes, item.what, place)
            items.append(_kept(turn, at, stretch) if at else stretch)
    waking = fill(turn, items, wake, until)
    late = _of_last_night(turn, waking, day)
    slept_from = min(late[-1].end, wake) if late else 0
    asleep = {"what": SLEEPING, "place": bed_of(turn.setting, turn.person), "asleep": True}
    blocks = [
        *(block.model_copy(update={"minutes": min(block.end, wake) - block.start}) for block in late),
        Block(start=slept_from, minutes=wake - slept_from, **asleep),
        *(part for block in waking for part in at_midnight(block)),
        Block(start=until, minutes=DAY_MINUTES - until, **asleep),
    ]
    return tuple(block for block in blocks if block.minutes > 0)


def _kept(turn: ResidentTurn, at: Appointment, item: Stretch) -> Stretch:
    """Return an item with the time and place of its appointment.

    The item keeps its own time if the appointment begins on another day. It keeps its own place if the appointment has
    no place, or one where the resident is not let in.
    """
    begins, _ = _minutes_of(turn, at)
    later = begins - item.start if 0 <= begins < DAY_MINUTES else 0
    place = at.place if at.place and is_let_in(turn.setting, turn.person, at) else item.place
    return item._replace(start=item.start + later, end=item.end + later, place=place)


def fill(turn: ResidentTurn, items: Iterable[Stretch], first: int, last: int) -> list[Block]:
    """Return the blocks between two minutes of a day, without gaps.

    - An item lasts until its own end, or until another item begins.
    - A longer item continues after a shorter item that interrupts it.
    - In a gap the resident is at home, or, if the gap is short, stays at the same place. Gaps are not broken down.
    - A gap that is shorter than SHORT_GAP without the walk to the next item is added to the item before the gap.
    """
    ordered = sorted(items, key=lambda each: each.start)
    times = sorted({first, last, *(t for each in ordered for t in each[:2] if first < t < last)})
    parts, doing = list[Stretch](), None
    for start, end in pairwise(times):
        running = [each for each in ordered if each.start <= start < each.end]
        before, doing = doing, running[-1] if running else Stretch(start, end, FREE, "", free=True)
        is_crumb = doing.start < start and end - start < SHORT_GAP
        if parts and (doing is before or is_crumb):
            parts[-1] = parts[-1]._replace(end=end)
        else:
            parts.append(doing._replace(start=start, end=end))
    parts = _without_crumbs(turn, parts)
    starts = [first, *_on_time(turn, parts), last]
    return [
        Block(start=start, minutes=end - start, what=part.what, place=part.place, fine=part.free)
        for part, start, end in zip(parts, starts, starts[1:], strict=False)
    ]


def _without_crumbs(turn: ResidentTurn, parts: Sequence[Stretch]) -> list[Stretch]:
    """Return the parts with short gaps removed and with activities in the long gaps."""
    home, kept = turn.person.home, list[Stretch]()
    for number, part in enumerate(parts):
        if not part.free:
            kept.append(part)
            continue
        before = kept[-1] if kept else None
        after = parts[number + 1] if number + 1 < len(parts) else None
        there = before.place if before else home
        way = minutes_between(turn, there, after.place) if after and after.place != home else 0
        long = part.end - part.start - way
        if long >= SHORT_GAP or not (before or after):
            is_short = before is not None and long < GAP
            kept.append(part._replace(what=FREE if is_short else AT_HOME, place=there if is_short else home))
        elif before:
            kept[-1] = before._replace(end=part.end)
    return kept


def _on_time(turn: ResidentTurn, items: Sequence[Stretch]) -> list[int]:
    """Return the minute at which to leave for each item except the first.

    The resident leaves early enough to arrive when the item starts, but stays at least ten minutes at the previous
    item. After an item of at most ten minutes, and for the way home, the resident leaves when the next item starts.
    """
    starts: list[int] = []
    for before, each in pairwise(items):
        ahead = 0 if each.place == turn.person.home else minutes_between(turn, before.place, each.place)
        is_long = each.start - before.start > 10
        starts.append(max(each.start - ahead, before.start + 10, *starts[-1:]) if is_long else each.start)
    return starts


def minutes_between(turn: ResidentTurn, start: str, goal: str) -> int:
    """Return the approximate walking time between two places, in minutes, at most MOST_AHEAD.

    It is 0 within a house, or if one of the places is not in the town.
    """
    world, addresses = turn.setting.world, turn.setting.addresses
    if sector_of(start) == sector_of(goal) or not {start, goal} <= addresses.keys():
        return 0
    spots = world.spots(addresses[start])[0], world.spots(addresses[goal])[0]
    return min(MOST_AHEAD, world.distance(*spots) * turn.profile.step_s // 60 + 2)


def _of_last_night(turn: ResidentTurn, waking: Sequence[Block], day: int) -> list[Block]:
    """Return the blocks of last evening's plan that reach into this day.

    If there is no plan of last evening, return the blocks of this evening's plan that reach past midnight. In a town
    that runs in scenes, return no blocks instead.
    """
    this_evening = () if turn.lives_in_scenes else waking
    before = turn.state.blocks if turn.state.day == day - 1 and day > 0 else this_evening
    parts = (part for block in before for part in at_midnight(block))
    return [part.model_copy(update={"start": part.start - DAY_MINUTES}) for part in parts if part.start >= DAY_MINUTES]


def at_midnight(block: Block) -> list[Block]:
    """Split a block that crosses midnight into two. Any other block is returned alone, unchanged."""
    if block.start >= DAY_MINUTES or block.end <= DAY_MINUTES:
        return [block]
    first = DAY_MINUTES - block.start
    return [
        block.model_copy(update={"minutes": first}),
        block.model_copy(update={"start": DAY_MINUTES, "minutes": block.minutes - first}),
    ]


def is_ahead_today(turn: ResidentTurn, agreed: Appointment) -> bool:
    """Return whether an appointment begins today and ends in more than ten minutes, and today is planned already."""
    start, end = _minutes_of(turn, agreed)
    minute, day = turn.minute, turn.day
    return 0 <= start < DAY_MINUTES and end > minute + 10 and turn.state.day == day


def take_up(turn: ResidentTurn, agreed: Appointment, because: str) -> bool:
    """Add an agreed appointment to today's plan; return whether the plan changed.

    The plan does not change if the appointment is not ahead today, is in the plan already, or is at a place that the
    resident may not enter. If the town runs in scenes, four more rules hold:

    - Something that the resident will do alone does not replace appointments with others. It takes the time before,
      between or after these appointments, and is left out if too little time remains.
    - The participants of an appointment that is planned at the same time and place are added to the new appointment.
    - An errand that is planned at the same time is done in addition if it is at the same place. Otherwise the errand
      moves to the next free time.
    - For something that the resident will do alone, the result is an open question.
    """
    minute, (start, end) = turn.minute, _minutes_of(turn, agreed)
    if not is_ahead_today(turn, agreed):
        return False
    before = turn.state.block_at(start)
    if before is None or not is_let_in(turn.setting, turn.person, agreed):
        return False
    fine = turn.lives_in_scenes
    joins = fine and before.place == agreed.place != "" and {*agreed.who} - {turn.name}
    company = {*before.agreed} if joins else set[str]()
    is_known = not joins or {*agreed.who} <= company
    is_planned = f"; {before.what}".endswith(f"; {agreed.what}")  # alone, or in addition to an errand
    if before.place == agreed.place != "" and is_planned and before.end >= end and is_known:
        return False
    start = max(minute + 1, start - minutes_between(turn, before.place or turn.person.home, agreed.place))
    who = tuple(dict.fromkeys((*agreed.who, *sorted(company)))) if fine else ()
    if fine and not {*who} - {turn.name}:
        start, end = _beside_appointments(turn, start, end)
        if end - start < MIN_REST // 2:
            return False
    whom = tuple(sorted({*agreed.whom} - {turn.name}))
    is_alone = fine and not whom and not {*who} - {turn.name}
    block = Block(
        start=start,
        minutes=end - start,
        what=agreed.what,
        place=agreed.place,
        fine=fine,
        agreed=who,
        whom=whom,
        weight=PROMISED if fine and whom else 0,
        open=agreed.what if is_alone else "",
    )
    errands = [each for each in turn.state.blocks if fine and _is_errand(turn, each)]
    blocks = _awake(turn, _with_errands(block, errands, minute))
    if fine:
        blocks = _without_slivers(turn, blocks[0])
    turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks), because=because[:300]))
    for each in errands:
        if not any(each.what in (kept.what, *kept.what.split("; ")) for kept in turn.state.blocks):
            _move_to_free_time(turn, each, blocks[-1].end, because)
    return True


ERRAND, PROMISED = 4, 5
"""ERRAND: minimum weight (1 to 10) of an errand that has people to ask or tell, but no open question. PROMISED: weight
of an agreement for which the resident has to ask, tell or meet others."""


def _is_errand(turn: ResidentTurn, block: Block) -> bool:
    """Return whether a part of the plan is an errand that is not over yet.

    An errand asks, tells or finds out something, and is no appointment with others.
    """
    matters = block.open or (block.whom and block.weight >= ERRAND)
    return bool(matters) and block.why == "plan" and block.end > turn.minute and not _is_with_others(turn, block)


def _with_errands(block: Block, errands: Iterable[Block], minute: int) -> Block:
    """Return a block with the errands that were planned during the block and at the place of the block.

    A block that the resident does alone is also extended to the time of these errands.
    """
    for each in errands:
        is_there = block.place != "" and f"{each.place}:".startswith(f"{block.place}:") and not each.secret
        if is_there and each.start < block.end and each.end > block.start and each.what != block.what:
            start, end = block.start, block.end
            if len(block.agreed) < 2:
                start, end = min(start, max(each.start, minute + 1)), max(end, each.end)
            same = repeats(block.what, [each.what])
            both: dict[str, object] = {"start": start, "minutes": end - start}
            both |= {"what": each.what if same else f"{each.what}; {block.what}"}
            both |= {"whom": tuple(sorted({*each.whom, *block.whom})), "open": each.open}
            both |= {"weight": max(each.weight, block.weight)}
            block = block.model_copy(update=both)
    return block


def _move_to_free_time(turn: ResidentTurn, errand: Block, earliest: int, because: str) -> None:
    """Plan an errand in the next free time that begins at the minute `earliest` or later.

    The free time must be as long as the errand, or have at least MIN_REST minutes. An errand that is longer than the
    free time is shortened. The place of the errand must be open when the free time begins. If there is no such time
    today, the errand is dropped.
    """
    setting, midnight = turn.setting, turn.setting.step_at(turn.day, 0)
    address = setting.addresses.get(errand.place)
    for each in sorted(turn.state.blocks, key=lambda each: each.start):
        is_free = each.what in (FREE, AT_HOME) and each.why == "plan" and each.start >= earliest
        when = setting.when(midnight + each.start * turn.profile.a_minute)
        is_open = address is None or setting.rules.may_enter(turn.name, address, when)
        if is_free and is_open and each.minutes >= min(errand.minutes, MIN_REST):
            moved = {"start": each.start, "minutes": min(errand.minutes, each.minutes)}
            turn.write(TasksPlanned(step=turn.step, blocks=(errand.model_copy(update=moved),), because=because[:300]))
            return


def _beside_appointments(turn: ResidentTurn, start: int, end: int) -> tuple[int, int]:
    """Return the first part of a time span (in minutes of the day) in which the resident has no appointment with
    others. If there is no such part, the returned end is not after the start."""
    for each in sorted(turn.state.blocks, key=lambda each: each.start):
        if _is_with_others(turn, each) and each.start < end and each.end > start:
            if each.start > start:
                return start, each.start
            start = each.end
    return start, end


def _is_with_others(turn: ResidentTurn, block: Block) -> bool:
    return bool({*block.agreed} - {turn.name})


MIN_REST = 20
"""Minimum minutes left of an interrupted act for the resident to continue it after an appointment."""


def _without_slivers(turn: ResidentTurn, block: Block) -> list[Block]:
    """Return the blocks of an appointment, which also takes the time of parts of the plan that would become too short.

    - The appointment begins earlier if less than SHORT_GAP of a planned act that has not begun would be left before it.
    - The appointment ends later if less than MIN_REST of an interrupted act would be left after it.
    - Acts that are agreed with others lose no time to this.
    - A longer rest of an interrupted act becomes time at home if the appointment begins at the same time as this act,
      is in the same house, and is longer than the rest.
    """
    minute = turn.minute
    before, after = turn.state.block_at(block.start), turn.state.block_at(block.end)
    start, end = block.start, block.end
    is_late = before is not None and before.why == "plan" and not before.asleep and before.start > minute
    if before and is_late and start - before.start < SHORT_GAP and not _is_with_others(turn, before):
        start = before.start
    rest = after.end - end if after and after.why == "plan" and not after.asleep and after.start < end else 0
    if after and 0 < rest < MIN_REST and not _is_with_others(turn, after):
        end, rest = end + rest, 0
    kept = [block.model_copy(update={"start": start, "minutes": end - start})]
    if rest and after and after == before:
        is_done = start == before.start and sector_of(after.place) == sector_of(block.place) and rest < block.minutes
        if is_done:
            kept.append(Block(start=end, minutes=rest, what=AT_HOME, place=turn.person.home, fine=True))
    return kept


def _minutes_of(turn: ResidentTurn, at: Appointment) -> tuple[int, int]:
    """Return the start and end of an appointment, in minutes after the midnight at which today began."""
    midnight = turn.setting.moment(turn.setting.step_at(turn.day, 0))
    return int(at.start.timestamp() - midnight) // 60, int(at.end.timestamp() - midnight) // 60


def _awake(turn: ResidentTurn, block: Block) -> list[Block]:
    """Return a block, cut off at midnight or one hour after bedtime, at the earlier of the two."""
    asleep = next((each.start for each in turn.state.blocks if each.asleep and each.start > block.start), DAY_MINUTES)
    end = min(block.end, asleep + 60, DAY_MINUTES)
    return [block.model_copy(update={"minutes": end - block.start})]


async def break_down(turn: ResidentTurn, block: Block, minute: int) -> None:
    """Split the next part of a block into tasks: about AHEAD minutes, from this minute of the day on."""
    minutes = min(block.end - minute, max(AHEAD, turn.profile.a_minute))
    if block.end - minute - minutes < AHEAD // 2:  # if only a little of the block would be left, include it
        minutes = block.end - minute
    things = things_around(turn, block.place)
    reply = await turn.ask(
        BreakDown(
            who=turn.name,
            identity=turn.person.identity(turn.state.currently),
            what=block.what,
            where=words_of(block.place) if block.place else "",
            is_home=is_home(turn.person, block.place),
            when=clock(minute),
            minutes=minutes,
            around=tuple(map(words_of, things)),
            already=_minutes_done(turn, block, minute),
            here=_here(things, block.place),
            day=turn.state.broad,
        )
    )
    tasks = _fitted(reply.tasks, minutes)
    blocks, start = [], minute
    for task in tasks:
        place = things[task.place - 1] if 0 < task.place <= len(things) else block.place
        what = task.what if task.what == block.what else f"{block.what} ({task.what})"
        blocks.append(
            Block(
                start=start,
                minutes=task.minutes,
                what=what,
                place=place,
                fine=True,
                leaves=task.condition,
                danger=task.danger,
            )
        )
        start += task.minutes
    turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks)))


def _here(things: Sequence[str], place: str) -> tuple[int, ...]:
    """Return the numbers (from 1) of the objects in `things` that are at a place; the place may itself be an object."""
    return tuple(number for number, each in enumerate(things, 1) if f"{each}:".startswith(f"{place}:"))


def _minutes_done(turn: ResidentTurn, block: Block, minute: int) -> int:
    """Return for how many minutes the activity of a block has lasted, if it began in an earlier block; otherwise 0."""
    since = start = min(block.start, minute)
    for before in reversed([each for each in turn.state.blocks if each.end <= start]):
        if before.end < since or not before.what.startswith(block.what):
            break
        since = before.start
    return minute - since if since < start else 0


def _fitted(tasks: Sequence[Task], minutes: int) -> list[Task]:
    """Return tasks that fill these minutes exactly.

    If the tasks are too short, the last task is extended. If they are too long, the task that exceeds the minutes is
    shortened, and later tasks are dropped.
    """
    fitted, left = [], minutes
    for task in tasks:
        taken = min(task.minutes, left)
        if taken > 0:
            fitted.append(task.model_copy(update={"minutes": taken}))
            left -= taken
    if left:
        fitted[-1] = fitted[-1].model_copy(update={"minutes": fitted[-1].minutes + left})
    return fitted


OF_BLOCK = (Act.model_fields.keys() & Block.model_fields.keys()) - {"what", "place"}
"""The fields that an act takes over from its block."""
KNOCK = 5
"""Minutes for which a visitor waits at a home in which it sees none of the inhabitants."""


def begin(turn: ResidentTurn, block: Block, because: str = "") -> None:
    """Begin the act of a block at its place; the act lasts until the block ends.

    A visit ends earlier if the resident sees none of the hosts when the act begins: KNOCK minutes after the arrival.
    This holds only if the town runs in scenes.
    """
    until = turn.setting.step_at(turn.day, block.end)
    spot = turn.spot
    place, path = block.place, walk_to(turn, block.place, gathers=bool(block.agreed))
    if is_unanswered_visit(turn, block):
        arrives = turn.step + len(read_walk(path)) - 1 if path else turn.step
        until = min(until, arrives + KNOCK * turn.profile.a_minute)
    act = Act(
        what=block.what,
        place=place if path is not None else "",
        since=turn.step,
        until=max(until, turn.step + 1),
        path=path or write_walk([spot]),
        **{name: getattr(block, name) for name in OF_BLOCK},
    )
    turn.write(Acted(step=turn.step, act=act, because=because))


def is_unanswered_visit(turn: ResidentTurn, block: Block) -> bool:
    """Return whether a block is a visit to a home where the resident sees none of its inhabitants.

    False if the town does not run in scenes.
    """
    if not turn.lives_in_scenes or block.asleep:
        return False
    hosts = hosts_of(turn.setting, turn.person, block.place)
    return bool(hosts) and not any(each.who in hosts for each in turn.percepts)


MOST_DETOUR = 3
"""Maximum length of a way around the houses of people that a resident avoids, as a multiple of the shortest way."""


def _around(turn: ResidentTurn, path: list[Spot]) -> list[Spot]:
    """Return a walk around the homes and workplaces of people that the resident avoids.

    Return the given walk if there is no way around, or none of at most MOST_DETOUR times the length. A house in which
    the walk begins or ends is no obstacle.
    """
    world = turn.setting.world
    if not turn.lives_in_scenes or not isinstance(world, TileWorld) or not (shunned := shunned_houses(turn)):
        return path
    ends = {str(world.address_at(each).upto(SECTOR)) for each in (path[0], path[-1])}
    addresses = [turn.setting.addresses[each] for each in shunned - ends if each in turn.setting.addresses]
    obstacles = {spot for address in addresses for spot in world.spots(address)}
    if not obstacles.intersection(path):
        return path
    other = path_around(world, path[0], path[-1], obstacles, MOST_DETOUR * len(path))
    return [path[0], *other] if other else path


def walk_to(turn: ResidentTurn, place: str, *, gathers: bool = False) -> str | None:
    """Return the encoded walk from the resident's position to a place; None if the place cannot be reached.

    The walk ends at the part of the place that is nearest. To an appointment in a room or outdoors (`gathers`), it ends
    in the middle of the place if the town runs in scenes, so that the partners see each other in a large place.

    If the town runs in scenes on a map of tiles, the walk goes around the homes and workplaces of people that the
    resident avoids. It does not if the way around is more than MOST_DETOUR times as long.
    """
    address = turn.setting.addresses.get(place)
    if address is None:
        return None
    spot, routes = turn.spot, turn.setting.world.routes
    try:
        path = [spot, *routes.path(spot, address)]
        if gathers and turn.lives_in_scenes and address.level == ARENA:
            with suppress(InputError):  # the middle cannot be reached: the partners meet where they come in
                path = [spot, *routes.path(spot, _middle_of(turn.setting.world, address))]
        path += routes.path(path[-1], stand_at(turn, address, path[-1]))
    except InputError:
        return None
    return write_walk(_around(turn, path))


def _middle_of(world: World, address: Address) -> Spot:
    """Return the spot of a place that is nearest to the middle of all its spots."""
    spots = world.spots(address)
    across, down = (sum(each) // len(spots) for each in zip(*spots, strict=True))
    return min(spots, key=lambda each: (abs(each[0] - across) + abs(each[1] - down), each))


DONE = 12
"""Maximum number of recent observations in the prompt."""


async def plan_rest(turn: ResidentTurn) -> None:
    """Plan the rest of the day again; the plan stays if no model is set or the model changes nothing."""
    minute, state = turn.minute, turn.state
    ahead = [each for each in state.blocks if each.end > minute]
    known = known_places(turn.setting, turn.person, state.knows, turn.when)
    await turn.resident.written()
    newest = await turn.resident.memory.latest("observation", DONE)
    reply = await turn.ask(
        PlanRest(
            who=turn.name,
            identity=turn.identity,
            when=turn.date_and_time,
            done=tuple(each.text for each in newest),
            planned=tuple(map(_line, ahead)),
            places=tuple(place for _, place in known),
        )
    )
    asleep = next((each.start for each in ahead if each.asleep and each.start > minute), DAY_MINUTES)
    items = list[Stretch]()
    for item in reply.items:
        start = minute_of(item.start)
        place = known[item.place - 1][0] if 0 < item.place <= len(known) else turn.person.home
        if minute < start + item.minutes and start < asleep:
            items.append(Stretch(start, start + item.minutes, item.what, place))
    if items:
        blocks = [each for each in fill(turn, items, minute, asleep) if each.minutes > 0]
        turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks)))


def _line(block: Block) -> str:
    where = f" ({words_of(block.place)})" if block.place else ""
    return f"{clock(block.start % DAY_MINUTES)} {block.what}{where}"
