"""What a resident will do: the day in broad strokes, its parts minute by minute as they come near, and the next act.

Source: Park 2023, 4.3; what was meant there, where its code does another thing (docs/town.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.errors import InputError
from mindstream.memory.record import New
from mindstream.town.compat import act_end, renews_daily_goals
from mindstream.town.events import Act, Acted, Block, DayPlanned, TasksPlanned
from mindstream.town.places import find_place, things_around, words_of
from mindstream.town.prompts.break_down import BreakDown, Task
from mindstream.town.prompts.plan_day import DayPlan, PlanDay
from mindstream.town.state import DAY_MINUTES
from mindstream.town.turn import Turn
from mindstream.town.walk import write_walk

AHEAD = 60
"""So many minutes of a plan are broken down at once, at least."""
SLEEPING = "sleeping"
PLAN_IMPORTANCE = 5.0


async def next_act(turn: Turn) -> None:
    """Begin what the plan says for now; plan the day first where that is not done."""
    day, minute = turn.setting.day(turn.step), turn.setting.minute(turn.step)
    if turn.state.day != day:
        await plan_day(turn, day)
    block = turn.state.block_at(minute)
    assert block is not None  # a plan has no gaps
    if not (block.fine or block.asleep):
        await break_down(turn, block, minute)
        block = turn.state.block_at(minute)
        assert block is not None
    begin(turn, block, why="plan")


async def plan_day(turn: Turn, day: int) -> None:
    """Plan a day: when to wake and sleep, and what lies between, with what the days before have taught."""
    if not turn.profile.plans:
        turn.write(DayPlanned(step=turn.step, day=day, currently=turn.state.currently, broad=(), blocks=_idle(turn)))
        return
    date = turn.setting.when(turn.step)
    said = f"{date:%A %B} {date.day}, {date.year}"
    recalled = [
        *await turn.recall(f"What has {turn.name} planned or agreed on for {said}?"),
        *await turn.recall(f"Important recent events in {turn.name}'s life"),
    ]
    places = sorted(turn.state.knows)
    plan = await turn.ask(
        PlanDay(
            who=turn.name, identity=turn.person.identity(turn.state.currently), date=said,
            memories=tuple(dict.fromkeys(each.record.text for each in recalled)), yesterday=turn.state.broad,
            places=tuple(words_of(place) for place in places), home=words_of(turn.person.home),
        )
    )  # fmt: skip
    broad = tuple(f"{item.start} {item.what}" for item in plan.items)
    text = f"{turn.name}'s plan for {said}: {'; '.join(broad)}."
    evidence = tuple(dict.fromkeys(each.record.id for each in recalled))
    records = await turn.build(
        New(text=text, kind="note", by=turn.name, importance=PLAN_IMPORTANCE, evidence=evidence, keywords=("plan",))
    )
    goals = broad if renews_daily_goals(turn.profile) or not turn.state.broad else turn.state.broad
    event = DayPlanned(
        step=turn.step, day=day, currently=plan.currently or turn.state.currently or turn.person.currently,
        broad=goals, blocks=_blocks(turn, plan, places), records=tuple(record.id for record in records),
    )  # fmt: skip
    turn.write(event, records)


def _idle(turn: Turn) -> tuple[Block, ...]:
    return (Block(start=0, minutes=DAY_MINUTES, what="being at home", place=turn.person.home, fine=True),)


def _blocks(turn: Turn, plan: DayPlan, places: Sequence[str]) -> tuple[Block, ...]:
    """Return a day without gaps: sleep at home before and after, each item until the next one begins."""
    wake, bed = minute_of(plan.wake), minute_of(plan.bed)
    if bed <= wake:  # after midnight
        bed = DAY_MINUTES
    items = sorted(((minute_of(item.start), item) for item in plan.items), key=lambda each: each[0])
    items = [(start, item) for start, item in items if wake < start < bed or start == wake] or [(wake, plan.items[0])]
    starts = [wake, *(start for start, _ in items[1:]), bed]
    bed_place = find_place(turn, SLEEPING, turn.person.home)
    blocks = [Block(start=0, minutes=wake, what=SLEEPING, place=bed_place, asleep=True)]
    for (_, item), start, end in zip(items, starts, starts[1:], strict=False):
        place = places[item.place - 1] if 0 < item.place <= len(places) else turn.person.home
        blocks.append(Block(start=start, minutes=end - start, what=item.what, place=place))
    blocks.append(Block(start=bed, minutes=DAY_MINUTES - bed, what=SLEEPING, place=bed_place, asleep=True))
    return tuple(block for block in blocks if block.minutes > 0)


def minute_of(clock: str) -> int:
    """Return the minute of the day that `HH:MM` says."""
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), DAY_MINUTES)


async def break_down(turn: Turn, block: Block, minute: int, because: str = "", memories: Sequence[str] = ()) -> None:
    """Turn a stretch of the plan into tasks, from this minute on; `because`: something that has just happened."""
    minutes = min(block.end - minute, max(AHEAD, turn.profile.a_minute))
    if block.end - minute - minutes < AHEAD // 2:  # no crumbs
        minutes = block.end - minute
    things = things_around(turn, block.place)
    reply = await turn.ask(
        BreakDown(
            who=turn.name, identity=turn.person.identity(turn.state.currently), what=block.what,
            when=f"{minute // 60:02d}:{minute % 60:02d}", minutes=minutes, around=tuple(map(words_of, things)),
            day=turn.state.broad, because=because, memories=tuple(memories),
        )
    )  # fmt: skip
    tasks = _fitted(reply.tasks, minutes)
    blocks, start = [], minute
    for task in tasks:
        place = things[task.place - 1] if 0 < task.place <= len(things) else block.place
        what = task.what if because or task.what == block.what else f"{block.what} ({task.what})"
        blocks.append(Block(start=start, minutes=task.minutes, what=what, place=place, fine=True, leaves=task.leaves))
        start += task.minutes
    turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks), because=because))


def _fitted(tasks: Sequence[Task], minutes: int) -> list[Task]:
    """Return tasks that fill these minutes exactly: the last one is stretched, what is too much goes."""
    fitted, left = [], minutes
    for task in tasks:
        taken = min(task.minutes, left)
        if taken > 0:
            fitted.append(task.model_copy(update={"minutes": taken}))
            left -= taken
    if left:
        fitted[-1] = fitted[-1].model_copy(update={"minutes": fitted[-1].minutes + left})
    return fitted


def begin(turn: Turn, block: Block, *, why: str, because: str = "") -> None:
    """Let the resident begin what a block says, at its place, until the block ends."""
    until = act_end(turn.setting, turn.setting.day(turn.step), block.end)
    spot = turn.state.spot(turn.step)
    place = find_place(turn, block.what, block.place)
    path = walk_to(turn, place)
    act = Act(
        what=block.what, place=place if path is not None else "", since=turn.step, until=max(until, turn.step + 1),
        path=path or write_walk([spot]), asleep=block.asleep, why=why, leaves=block.leaves,
    )  # fmt: skip
    turn.write(Acted(step=turn.step, act=act, because=because))


def walk_to(turn: Turn, place: str) -> str | None:
    """Return the way to a place from where the resident is; None: there is none, or no such place."""
    address = turn.setting.addresses.get(place)
    if address is None:
        return None
    spot = turn.state.spot(turn.step)
    try:
        return write_walk([spot, *turn.setting.world.routes.path(spot, address)])
    except InputError:
        return None
