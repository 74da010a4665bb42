"""A day without a model: from the lifestyle, work and habits, what was agreed on, and what there is to do around."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from mindstream import chance
from mindstream.models.prompt import rule
from mindstream.town.prompts.plan_day import DayPlan, Item, PlanDay
from mindstream.town.rules.appointments import Appointment, read_appointments, shun
from mindstream.town.rules.currently import next_currently
from mindstream.town.rules.described import Description, describe, end_of, habits_of, hours_of_sleep
from mindstream.town.rules.habits import (
    KEEPS_HOUSE,
    RESTS,
    Habit,
    is_work,
)  # fmt: skip
from mindstream.town.rules.leisure import fill
from mindstream.town.rules.meals import add_meals
from mindstream.town.rules.pursuits import Pursuit, read_pursuits
from mindstream.town.rules.things import find_thing
from mindstream.town.rules.timeline import DAY, Timeline
from mindstream.town.rules.where import find_meant, find_named, is_open
from mindstream.town.world.hours import clock

OUTGOING = re.compile(
    r"\b(?:outgoing|friendly|sociable|energetic|enthusiastic|curious|cheerful|warm|talkative|open-minded|romantic)\b",
    re.I,
)
RESERVED = re.compile(
    r"\b(?:shy|introverted|reserved|quiet|rude|toxic|aggressive|withdrawn|lonely|grumpy|solitary|reflective|busy)\b",
    re.I,
)
MOST_ITEMS = 24
BRIEF = ("walking", "going for", "running", "taking a walk", "jogging", "exercising", "swimming")
ERRANDS = ("buying", "shopping", "having coffee", "having tea", "having a coffee", "having a tea", "having a snack")


@rule(PlanDay)
def plan_by_habit(ask: PlanDay) -> DayPlan:
    """Put what was agreed on first, then work, meals and habits, then what is pleasant."""
    who = describe(ask)
    who = replace(who, ask=ask.model_copy(update={"places": shun(ask.who, who.day, _told(who), ask.places)}))
    ask, habits = who.ask, habits_of(who)
    wake, bed = hours_of_sleep(who, habits)
    appointments = [each for each in _appointments(who) if _would_go(who, each, habits)]
    line = Timeline(wake, bed)
    line.bed = max(
        [line.bed, *(min(line.at(each.start) + each.end - each.start + 30, wake + 22 * 60) for each in appointments)]
    )
    for n, each in enumerate(appointments):
        if not any(each.place == other.place and each.start < other.end and other.start < each.end
                   for other in appointments[:n]):  # fmt: skip
            _attend(line, each)
    add_meals(who, line, habits)
    for habit in sorted(habits, key=lambda each: (not _is_break(each, habits), not each.duty, each.start is None)):
        _follow(who, line, habit, habits)
    _work_on(who, line, habits)
    fill(line, ask.places, traits=who.traits, age=who.age, pleasures=_pleasures(who), draw=who.draw)
    items = [
        Item(start=clock(slot.start), minutes=max(5, slot.end - slot.start), what=slot.what[:200], place=slot.place)
        for slot in line.slots()
    ][:MOST_ITEMS]
    currently = next_currently(ask.currently, ask.who, who.day, who.told, [each.what for each in appointments])
    return DayPlan(wake=clock(wake), bed=clock(line.bed), items=items, currently=currently)


def _appointments(who: Description) -> list[Appointment]:
    ask = who.ask
    return read_appointments(ask.who, who.day, _told(who), ask.places)


def _told(who: Description) -> list[tuple[date, str]]:
    """Return what is told, by lines: a day and an hour may stand in two sentences of one."""
    return [*((who.day, line) for line in who.all_text.split("\n")), *who.told]


def _would_go(who: Description, each: Appointment, habits: Sequence[Habit]) -> bool:
    """Decide whether to go: a host does, who promised does where work allows it; the others as they are inclined."""
    if each.role == "host":
        return True
    busy = any(
        habit.duty and habit.start is not None and habit.start < each.end and each.start < end_of(habit)
        and habit.place != each.place for habit in habits
    )  # fmt: skip
    if each.role in ("promised", "helper"):
        return not busy or who.draw("goes", each.start, each.place) < 0.3
    p = 0.3 + 0.2 * bool(OUTGOING.search(who.traits)) - 0.25 * bool(RESERVED.search(who.traits))
    p += 0.2 * bool(each.by and f"{each.by} (" in who.ask.identity)
    return who.draw("goes", each.start, each.place) < (p * 0.4 if busy else p)


def _attend(line: Timeline, each: Appointment) -> None:
    start = line.at(each.start)
    end = start + each.end - each.start
    if each.role in ("host", "helper"):
        event = re.sub(r"^(?:an?|my|your|our) ", "the ", each.event)
        ready = (
            f"{'preparing and decorating' if each.role == 'host' else 'helping to prepare and decorate'} for {event}"
        )
        line.add(start, end, each.what, each.place, least=5)
        line.add(start - 75, start, ready, each.place)
    else:
        line.add(start, end, each.what, each.place, least=5)


def _follow(who: Description, line: Timeline, habit: Habit, habits: Sequence[Habit]) -> None:
    """Put a habit into the day: at its hours, or for an hour or two within the part of the day that is told."""
    place = max(habit.place, 0)
    if habit.start is None:
        if not habit.minutes:
            if not habit.what.startswith("eating ") or " and " in habit.what:  # a meal has its time
                _drop_in(who, line, habit, place)
            return
        left = habit.minutes
        for start, end in line.gaps(line.wake + 60, line.bed - 30, least=45):
            taken = min(left, end - start)
            line.add(start, start + taken, habit.what, place)
            left -= taken
            if left <= 0:
                return
        return
    start = line.at(habit.start)
    if (
        habit.place > 0
        and not habit.duty
        and not is_open(who.ask.places[habit.place - 1], start % DAY, start % DAY + 30)
    ):
        return
    end = start + end_of(habit) - habit.start
    if not habit.duty and habit.what.startswith(BRIEF):
        end = min(end, max(start, line.wake + 45) + 75)
    elif habit.end is None and (habit.what.startswith(ERRANDS) or _is_break(habit, habits)):
        end = min(end, start + 45)
    line.add(max(start, line.wake + 60) if not habit.duty else start, end, habit.what, place)


def _is_break(habit: Habit, habits: Sequence[Habit]) -> bool:
    """Tell whether something is told for an hour at which one works: it is done then, and work goes on after."""
    if habit.start is None or habit.end is not None or habit.duty or habit.place < 0:
        return False
    meal = habit.what.startswith("eating ")
    return any(
        0 < (habit.start - each.start) % DAY < end_of(each) - each.start
        for each in habits if each.start is not None and is_work(each) and (meal or each.place != habit.place)
    )  # fmt: skip


def _drop_in(who: Description, line: Timeline, habit: Habit, place: int) -> None:
    """Do what has no hour in one of the gaps of the day, most days."""
    if habit.what in ("going home", "returning home", "visiting home") or who.draw("habit", habit.what) > 0.75:
        return
    gaps = [(start, end) for start, end in line.gaps(line.wake + 90, line.bed - 60, least=45)
            if place == 0 or is_open(who.ask.places[place - 1], start % DAY, start % DAY + 45)]  # fmt: skip
    if gaps:
        start, end = chance.pick(gaps, who.ask.who, who.day.isoformat(), habit.what)
        length = min(end - start, 60 + 15 * int(who.draw("length", habit.what) * 5))
        offset = 15 * int(who.draw("offset", habit.what) * ((end - start - length) // 15 + 1))
        line.add(start + offset, start + offset + length, habit.what, place)


def _work_on(who: Description, line: Timeline, habits: Sequence[Habit]) -> None:
    """Work on what one is at these days, in the hours that others work in; who rests or keeps house does that."""
    if any(habit.duty and habit.minutes == 0 and end_of(habit) - (habit.start or 0) >= 5 * 60 for habit in habits):
        return
    pursuits, _ = read_pursuits(who.text)
    places = who.ask.places
    if KEEPS_HOUSE.search(who.text):
        _keep_house(who, line)
        pursuits = pursuits[:1]
    elif RESTS.search(who.text) or who.age >= 67:
        pursuits = pursuits[:2]
    elif not pursuits and (0 < who.age < 16 or who.day.weekday() >= 5):
        return
    elif not pursuits and not any(is_work(habit) for habit in habits):
        pursuits = [Pursuit("working")]
    if who.day.weekday() >= 5:
        pursuits = pursuits[:1]
    named = next(
        (
            habit.place
            for habit in habits
            if habit.what.startswith(("studying", "writing", "working"))
            and habit.place > 0
            and not places[habit.place - 1].home
        ),
        0,
    )
    begin = max(line.wake + 90, 9 * 60 if line.wake < 9 * 60 else 0)
    first = int(who.draw("pursuit") * len(pursuits)) if pursuits else 0
    for n, (start, length) in enumerate([(begin, 180), (begin + 240, 210)]):
        if pursuits:
            pursuit = pursuits[(first + n) % len(pursuits)]
            what = pursuit.what
            is_told = what != "working"
            place = is_told and (find_named(what, places, who.ask.who) or find_meant(what, places, ("craft", "train")))
            if not place and find_thing(what, ("desk",)) == 0:
                place = named
            if not place and who.draw("away", n) < 0.35:
                place = find_meant(what, places, ("study",))
            if not pursuit.suits(start % DAY, start % DAY + length):
                continue
            if place and not is_open(places[place - 1], start % DAY, start % DAY + 60):
                place = 0
            line.add(start, start + length, what, place, least=30)


def _keep_house(who: Description, line: Timeline) -> None:
    """Do a morning's housework, in another order every day."""
    shop = find_meant("shopping groceries", who.ask.places, ("shop",))
    chores = [("cleaning the house", 0), ("doing the laundry", 0), ("shopping for groceries", shop)]
    first = int(who.draw("chores") * len(chores))
    for n, (what, place) in enumerate(chores[first:] + chores[:first]):
        start = max(line.wake + 90, 9 * 60) + 60 * n
        line.add(start, start + 60, what, place, least=30)


def _pleasures(who: Description) -> list[tuple[Pursuit, int]]:
    """Return what somebody likes to do, with its place."""
    pursuits, likes = read_pursuits(who.text)
    return [(each, find_named(each.what, who.ask.places, who.ask.who)) for each in (*likes, *pursuits)]
