"""Plan a day in three levels, each when it is needed: broad strokes, hours, tasks of 5 to 15 minutes (Park 2023,
4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.errors import InputError
from mindstream.memory.store.record import Kind, Record
from mindstream_town.events import Block, DayPlanned, TasksPlanned
from mindstream_town.paper.people import (
    descend,
    is_own_act,
    known_tree,
    narrowed,
    path_of,
    rate_memories,
    renew_identity,
    things_in,
)
from mindstream_town.paper.prompts import (
    SHORTEST,
    PlanHours,
    PlanStrokes,
    PlanTasks,
    RestOfDay,
    RewriteDay,
    Stroke,
    Strokes,
)
from mindstream_town.prompts.plans import DayPlan, Item, Memory, say_date
from mindstream_town.residents.converse import Agreement
from mindstream_town.residents.person import Appointment, appointment_of
from mindstream_town.residents.places import is_let_in, words_of
from mindstream_town.residents.plan import (
    at_midnight,
    begin,
    blocks_of,
    day_of,
    is_ahead_today,
    is_right_again,
    leave_it,
    minutes_between,
    plan_note,
    take_up,
    usual_day,
)
from mindstream_town.residents.plan import plan_day as idle_away
from mindstream_town.residents.prompt_context import household, light_on, show, weather_on
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.world.tree import ARENA
from mindstream_town.world.world import DAY_MINUTES, clock, minute_of

AN_HOUR, LONGEST_HOUR = 60, 90
"""Minutes. A block longer than LONGEST_HOUR is split into parts of at least half of AN_HOUR."""
LATELY, GLIMPSES, DONE, RECALLED = 8, 4, 8, 8
SEEN: tuple[Kind, ...] = ("observation",)
THOUGHT: tuple[Kind, ...] = ("thought", "note")


async def next_act(turn: ResidentTurn) -> None:
    """Begin the act that the plan has for now.

    If necessary, first plan the day, and break the current block down into hours and tasks.
    """
    day, minute = turn.day, turn.minute
    if turn.state.day != day:
        await begin_day(turn, day)
    block = _now(turn, minute)
    if is_right_again(turn, block):
        block = leave_it(turn, block, minute)
    if not (block.fine or block.asleep or block.hour) and block.end - minute > LONGEST_HOUR:
        await plan_hours(turn, block, minute)
        block = _now(turn, minute)
    if not (block.fine or block.asleep):
        await plan_tasks(turn, block, minute)
        block = _now(turn, minute)
    begin(turn, block)


def _now(turn: ResidentTurn, minute: int) -> Block:
    block = turn.state.block_at(minute)
    assert block is not None  # a plan has no gaps
    return block


async def begin_day(turn: ResidentTurn, day: int) -> None:
    """Plan the day. If the town's profile has no plans, the resident is idle all day instead.

    On each day except the first, first rate the unrated memories and renew the resident's summary of itself.
    """
    if not turn.profile.plans:
        await idle_away(turn, day)
        return
    if turn.state.day >= 0:
        await rate_memories(turn, at_once=True)
        await renew_identity(turn)
    await plan_strokes(turn, day)


async def plan_strokes(turn: ResidentTurn, day: int) -> None:
    """Plan a day in broad strokes."""
    date = turn.when
    said = say_date(date)
    recalled = [
        *await turn.recall(f"What has {turn.name} planned or agreed on for {said}?", RECALLED),
        *await turn.recall(f"Important recent events in {turn.name}'s life", RECALLED),
    ]
    dated = [record for record, at in await turn.recall_appointments() if at.start.date() <= date.date()]
    every = list({each.id: each for each in (*dated, *(each.record for each in recalled))}.values())
    unsaid = set(turn.beyond_identity(every))
    records = [each for each in every if each.text in unsaid or each in dated]
    rooms, lines = known_tree(turn)
    plan = await turn.ask(
        PlanStrokes(
            who=turn.name,
            identity=turn.identity,
            date=said,
            memories=show(records, [day_of(each.created) for each in records]),
            yesterday=turn.state.broad,
            places=lines,
            usual=usual_day(turn, date, rooms),
            surroundings=surroundings_of(turn, of_day=True),
        )
    )
    broad = tuple(f"{stroke.start} {stroke.what}" for stroke in plan.strokes)
    written = await plan_note(turn, said, broad, records)
    kept = [appointment_of(each.data) for each in records]
    event = DayPlanned(
        step=turn.step,
        day=day,
        currently=plan.currently or turn.state.currently or turn.person.currently,
        broad=broad,
        blocks=_blocks(turn, plan, kept, day),
        records=tuple(each.id for each in written),
    )
    turn.write(event, written)


def _blocks(turn: ResidentTurn, plan: Strokes, kept: Sequence[Appointment | None], day: int) -> tuple[Block, ...]:
    """Return the blocks of a day, without gaps."""
    places = [place_of(turn, stroke) for stroke in plan.strokes]
    # a stroke lasts until the next one begins, and the first begins the day
    items = [
        Item(start=stroke.start, minutes=DAY_MINUTES, what=stroke.what, place=number, keeps=stroke.keeps)
        for number, stroke in enumerate(plan.strokes, 1)
    ]
    wake = minute_of(plan.wake)
    first = min(items, key=lambda item: (minute_of(item.start) - wake) % DAY_MINUTES)
    items[items.index(first)] = first.model_copy(update={"start": plan.wake})
    return blocks_of(turn, DayPlan(wake=plan.wake, bed=plan.bed, items=items), places, kept, day)


def place_of(turn: ResidentTurn, stroke: Stroke) -> str:
    """Return the address of the place of a stroke (a part of the day).

    If the names in the stroke lead to no place, this is the resident's home.
    """
    rooms, _ = known_tree(turn)
    things = [each for each in sorted(turn.state.knows) if any(each.startswith(f"{room}:") for room in rooms)]
    return narrowed(turn, descend([*rooms, *things], stroke.place)) or turn.person.home


async def plan_hours(turn: ResidentTurn, block: Block, minute: int) -> None:
    """Split a broad stroke into hours, from this minute of the day on."""
    rooms, lines = known_tree(turn)
    reply = await turn.ask(
        PlanHours(
            who=turn.name,
            identity=turn.identity,
            what=block.what,
            where=path_of(block.place),
            start=clock(minute),
            end=clock(block.end),
            day=tuple(f"{clock(at)} {each.what}" for at, each in _rest_of_day(turn) if not each.fine),
            done=what_was_done(turn),
            lately=await lately(turn),
            places=lines,
            surroundings=surroundings_of(turn),
        )
    )
    starts, parts = [minute], [reply.hours[0]]
    for hour in (*reply.hours[1:], None):
        start = block.end if hour is None else minute_of(hour.start)
        start += 0 if start >= block.start else 24 * 60  # a time before the start is on the next day
        if hour is not None and not starts[-1] + AN_HOUR // 2 <= start <= block.end - AN_HOUR // 2:
            continue
        while start - starts[-1] > LONGEST_HOUR:  # a missing hour continues the activity of the hour before
            starts.append(starts[-1] + AN_HOUR)
            parts.append(parts[-1])
        if hour is not None:
            starts.append(start)
            parts.append(hour)
    blocks = tuple(
        block.model_copy(
            update={
                "start": start,
                "minutes": end - start,
                "what": part.what,
                "hour": True,
                "place": narrowed(turn, descend(rooms, part.place)) or block.place,
            }
        )
        for part, start, end in zip(parts, starts, [*starts[1:], block.end], strict=True)
    )
    turn.write(TasksPlanned(step=turn.step, blocks=blocks))


async def plan_tasks(turn: ResidentTurn, block: Block, minute: int) -> None:
    """Split a block into tasks of 5 to 15 minutes, from this minute of the day on and at most LONGEST_HOUR minutes
    of it.

    What the tasks do not fill stays one block, which is split when it begins.
    """
    minutes = min(block.end - minute, LONGEST_HOUR)
    if minutes < SHORTEST:
        crumb = block.model_copy(update={"start": minute, "minutes": minutes, "fine": True})
        turn.write(TasksPlanned(step=turn.step, blocks=(crumb,)))
        return
    things, here = things_in(turn, block.place)
    reply = await turn.ask(
        PlanTasks(
            who=turn.name,
            identity=turn.identity,
            what=block.what,
            where=path_of(block.place),
            when=clock(minute),
            minutes=minutes,
            things=tuple(map(path_of, things)),
            here=here,
            walk=_walks(turn, [block.place])[0],
            plan=_hours_around(turn, minute),
            done=what_was_done(turn),
            lately=await lately(turn),
            present=_present(turn, block.place),
            surroundings=surroundings_of(turn),
        )
    )
    blocks, start = [], minute
    used = [place if (place := descend(things, task.thing)) in things else "" for task in reply.tasks]
    places = [place or block.place for place in used]
    wanted = [max(task.minutes, walk + SHORTEST) for task, walk in zip(reply.tasks, _walks(turn, places), strict=True)]
    for task, thing, place, lasts in zip(reply.tasks, used, places, _fitted(wanted, minutes), strict=True):
        if lasts <= 0:
            continue
        blocks.append(
            Block(
                start=start,
                minutes=lasts,
                what=task.what,
                place=place,
                fine=True,
                leaves=task.condition,
                danger=task.danger,
                state=task.state.strip() if thing else "",
            )
        )
        start += lasts
    turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks)))


def _present(turn: ResidentTurn, place: str) -> tuple[str, ...]:
    """Return the people in sight with their activities; empty if the place of the next tasks is in another room."""
    setting, here = turn.setting, turn.setting.world.address_at(turn.spot).upto(ARENA)
    if place in setting.addresses and not setting.addresses[place].upto(ARENA).is_within(here):
        return ()
    return tuple(each.text for each in turn.percepts if each.who)


def _walks(turn: ResidentTurn, places: Sequence[str]) -> list[int]:
    """Return the minutes of the walk to each place from the previous place; 0 if there is no way.

    The walk to the first place begins where the resident is.
    """
    spot, routes, walks = turn.spot, turn.setting.world.routes, list[int]()
    for place in places:
        address = turn.setting.addresses.get(place)
        try:
            path = routes.path(spot, address) if address is not None else ()
        except InputError:
            path = ()
        walks.append(len(path) * turn.profile.step_s // 60)
        spot = path[-1] if path else spot
    return walks


def _fitted(wanted: Sequence[int], minutes: int) -> list[int]:
    """Return the duration of each task in minutes; all tasks together last at most `minutes`.

    Each task gets as many minutes as wanted while minutes are left. The first task that wants more gets the rest, and
    later tasks get 0. If fewer than SHORTEST minutes remain after all tasks, they are added to the last task that is
    not 0.
    """
    left, lasts = minutes, list[int]()
    for each in wanted:
        lasts.append(min(each, left))
        left -= lasts[-1]
    if left < SHORTEST:
        lasts[max(n for n, each in enumerate(lasts) if each > 0)] += left
    return lasts


def _hours_around(turn: ResidentTurn, minute: int) -> tuple[str, ...]:
    """Return the current hour of the plan, and the hours of the plan that start within the next three hours. Hours of
    sleep are left out."""
    return tuple(
        f"{clock(each.start)}-{clock(each.end)} {each.what}"
        for each in turn.state.blocks
        if not (each.fine or each.asleep) and each.end > minute and each.start < minute + 3 * AN_HOUR
    )


def what_was_done(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the resident's last activities of today; equal consecutive ones are combined. If earlier ones are left
    out, a first line says so."""
    done = list[str]()
    start, before = 0, ""
    for each in turn.state.done:
        if each.what == before:
            done.pop()
        else:
            start, before = each.start, each.what
        done.append(f"{clock(start)}-{clock(each.start + each.minutes)} {each.what}")
    return ("(earlier activities are left out)", *done[-DONE:]) if len(done) > DONE else tuple(done)


async def lately(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the newest memories of today with their times: up to LATELY from talks and thoughts, and up to GLIMPSES of
    what the resident saw. Its own acts, its plans, and objects that are only in use are left out."""
    if not turn.profile.recalls:
        return ()
    await turn.resident.written()
    memory = turn.resident.memory
    records = [r for each in (THOUGHT, SEEN) for r in await memory.store.latest(memory.key, each, 32, now=turn.now)]
    midnight = turn.setting.moment(turn.setting.step_at(turn.day, 0))
    since = max(midnight, turn.setting.moment(1))  # excludes memories from before the town began
    of_today = [each for each in records if each.created >= since and not is_own_act(turn, each)]
    of_today = [each for each in of_today if "plan" not in each.keywords and not _is_of_use(each)]
    facts, glimpses = ([each for each in of_today if (each.about is None) is told] for told in (True, False))
    newest = sorted(facts, key=lambda each: each.created)[-LATELY:]
    said = {each.text: each for each in (*newest, *glimpses[-GLIMPSES:])}
    return tuple(f"{_time(turn, each.created)} {each.text}" for each in sorted(said.values(), key=lambda e: e.created))


def _is_of_use(record: Record) -> bool:
    """Return whether a memory only says that an object is in use."""
    return record.kind == "observation" and record.importance == 1.0 and "place" in record.data


def _time(turn: ResidentTurn, moment: float) -> str:
    return clock(turn.setting.minute(turn.setting.step_at_moment(moment)))


def surroundings_of(turn: ResidentTurn, *, of_day: bool = False) -> str:
    """Return the household and the weather in words, and also the light unless `of_day`."""
    house = household(turn.setting, turn.person)
    lives = f"Lives with: {', '.join(house)}." if house else "Lives alone."
    light = "" if of_day else f"; {light_on(turn.setting, turn.step)}"
    return f"{lives} Weather: {weather_on(turn.setting, turn.step)}{light}."


async def rewrite_day(turn: ResidentTurn, kept: Sequence[Agreement]) -> None:
    """Plan the rest of the day again in one call, if there are agreements for the rest of the day.

    The prompt also shows the resident's other appointments for the rest of the day. Agreements that the reply leaves
    out are added.
    """
    agreed = [each for each in kept if is_ahead_today(turn, each.appointment)]
    if not agreed:
        return
    every = list(agreed)
    for record, at in await turn.recall_appointments():
        is_known = any(at.is_same(each.appointment) for each in every)
        if turn.name in at.who and is_ahead_today(turn, at) and not is_known:
            every.append(Agreement(at, record.text))
    minute, bed, rest = turn.minute, _bedtime(turn), _rest_of_day(turn)
    _, lines = known_tree(turn)
    reply = await turn.ask(
        RewriteDay(
            who=turn.name,
            identity=turn.identity,
            when=clock(minute),
            bed=clock(bed),
            agreed=tuple(
                Memory(text=each.text, appointment=each.appointment, where=words_of(each.appointment.place))
                for each in every
            ),
            plan=tuple(f"{clock(at)} {each.what} ({path_of(each.place)})" for at, each in rest),
            places=lines,
        )
    )
    blocks = _parts(turn, reply, [each.appointment for each in every], rest, bed)
    if blocks:
        because = "; ".join(each.text for each in agreed)[:300]
        turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks), because=because))
    is_kept = {stroke.keeps for stroke in reply.strokes}
    for number, (at, because) in enumerate(agreed, 1):
        if number not in is_kept or not minute < at.minute < bed:
            take_up(turn, at, because)


def _bedtime(turn: ResidentTurn) -> int:
    """Return the minute of this day at which the resident next goes to bed. A bedtime past midnight is over 1,440."""
    blocks = turn.state.blocks
    return next((each.start for each in blocks if each.asleep and each.start > turn.minute), blocks[-1].end)


def _rest_of_day(turn: ResidentTurn) -> list[tuple[int, Block]]:
    """Return the blocks of the plan from now until bedtime, each with the minute of the arrival at its place.

    A block begins with the walk to its place. A block that continues past midnight is returned once.
    """
    bed, rest = _bedtime(turn), list[tuple[int, Block]]()
    for each in turn.state.blocks:
        if each.asleep or each.end <= turn.minute or each.start >= bed:
            continue
        at, before = rest[-1] if rest else (-1, each)
        if each.start == DAY_MINUTES and (each.what, each.place) == (before.what, before.place):
            rest[-1] = at, before.model_copy(update={"minutes": before.minutes + each.minutes})
        else:
            rest.append((max(each.start + minutes_between(turn, before.place, each.place), at + 1), each))
    return rest


def _parts(
    turn: ResidentTurn,
    reply: RestOfDay,
    agreed: Sequence[Appointment],
    rest: Sequence[tuple[int, Block]],
    bed: int,
) -> list[Block]:
    """Return the blocks after this minute, with appointments at their times and places. A block that the reply leaves
    unchanged is not broken down into tasks again. Each block begins earlier by the time of the walk to it."""
    as_it_was = {(at, each.what): each for at, each in rest}
    parts, leaves = dict[int, Block](), turn.minute
    for stroke in reply.strokes:
        start, place = minute_of(stroke.start), place_of(turn, stroke)
        if 0 < stroke.keeps <= len(agreed):
            at = agreed[stroke.keeps - 1]
            start = at.minute
            place = at.place if at.place and is_let_in(turn.setting, turn.person, at) else place
        elif start < leaves and start + DAY_MINUTES < bed:
            start += DAY_MINUTES  # the stroke is past midnight
        if leaves < start < bed:  # a block that has begun is not replaced
            new = Block(start=start, minutes=1, what=stroke.what, place=place)
            parts[start] = new if stroke.keeps else as_it_was.get((start, stroke.what), new)
    before, every = turn.state.block_at(leaves), list[Block]()
    for start in sorted(parts):
        part = parts[start]
        leaves = max(start - minutes_between(turn, before.place if before else "", part.place), leaves + 1)
        every.append(part.model_copy(update={"start": leaves}))
        before = part
    ends = [*(each.start for each in every[1:]), bed]
    lasting = [_lasting(each, end - each.start) for each, end in zip(every, ends, strict=False)]
    return [part for each in lasting for part in at_midnight(each)]


def _lasting(block: Block, minutes: int) -> Block:
    """Return a block with another duration. A longer block is marked to be broken down into tasks again."""
    return block.model_copy(update={"minutes": minutes, "fine": block.fine and minutes <= block.minutes})
