"""A day without a model: from the lifestyle, work and habits, what was agreed on, and what there is to do around."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from mindstream import chance
from mindstream.models.prompt import rule
from mindstream.town.prompts.plan_day import DayPlan, Item, PlanDay
from mindstream.town.rules.appointments import Appointment, read_appointments, read_memory
from mindstream.town.rules.currently import next_currently
from mindstream.town.rules.habits import (
    JOB,
    KEEPS_HOUSE,
    LEARNS,
    NOWHERE,
    RESTS,
    Habit,
    is_own_habit,
    read_habits,
    read_pursuits,
    working_days,
)  # fmt: skip
from mindstream.town.rules.leisure import fill
from mindstream.town.rules.timeline import DAY, Timeline
from mindstream.town.rules.times import AT_NIGHT, SLEEPS, WAKES, clock, read_sleep, read_stretches
from mindstream.town.rules.where import find_for, find_meant, find_named, is_open, purposes_of

LINES = 12
AGE = re.compile(r", (\d{1,3}) years old")
EVENING_MEAL = re.compile(r"\b(?:dinner|supper)\b[^.;,]{0,30}")
OUTGOING = re.compile(
    r"\b(?:outgoing|friendly|sociable|energetic|enthusiastic|curious|cheerful|warm|talkative|open-minded|romantic)\b",
    re.I,
)
RESERVED = re.compile(
    r"\b(?:shy|introverted|reserved|quiet|rude|toxic|aggressive|withdrawn|lonely|grumpy|solitary|reflective|busy)\b",
    re.I,
)
MOST_ITEMS = 24


@dataclass(frozen=True)
class Description:
    """Somebody and a day, as the prompt describes them."""

    ask: PlanDay
    day: date
    age: int
    traits: str
    text: str
    """What is told of the person, in lines, without name, traits and whom it knows."""
    told: tuple[tuple[date, str], ...]

    def draw(self, *key: object) -> float:
        """Draw for this person and day."""
        return chance.fraction("day", self.ask.who, self.day.isoformat(), *key)


def describe(ask: PlanDay) -> Description:
    """Read the prompt."""
    head, *lines = ask.identity.split("\n")[:LINES]
    age = AGE.search(head)
    traits = next((line for line in lines if line.startswith("Traits: ")), "")
    told = [line for line in lines if not line.startswith(("Traits: ", "Knows: "))]
    try:
        day = datetime.strptime(ask.date, "%A %B %d, %Y").date()
    except ValueError:
        day = date(2000, 1, 1)
    memories = tuple(read_memory(memory, day) for memory in ask.memories)
    return Description(ask, day, int(age[1]) if age else 0, traits, "\n".join(told), memories)


@rule(PlanDay)
def plan_by_habit(ask: PlanDay) -> DayPlan:
    """Put what was agreed on first, then work, meals and habits, then what is pleasant."""
    who = describe(ask)
    habits = _habits(who)
    wake, bed = _sleep(who, habits)
    appointments = [each for each in _appointments(who) if _would_go(who, each, habits)]
    line = Timeline(wake, bed)
    line.bed = max(
        [line.bed, *(min(line.at(each.start) + each.end - each.start + 30, wake + 22 * 60) for each in appointments)]
    )
    for each in appointments:
        _attend(line, each)
    _mornings_and_meals(who, line, habits)
    for habit in sorted(habits, key=lambda each: (not each.duty, each.start is None)):
        _follow(who, line, habit)
    _work_on(who, line, habits)
    fill(line, ask.places, traits=who.traits, age=who.age, pleasures=_pleasures(who), draw=who.draw)
    items = [
        Item(start=clock(slot.start), minutes=max(5, slot.end - slot.start), what=slot.what[:200], place=slot.place)
        for slot in line.slots()
    ][:MOST_ITEMS]
    currently = next_currently(ask.currently, ask.who, who.day, who.told, [each.what for each in appointments])
    return DayPlan(wake=clock(wake), bed=clock(line.bed), items=items, currently=currently)


# When.


def _sleep(who: Description, habits: Sequence[Habit]) -> tuple[int, int]:
    """Return when to get up and go to bed; where nobody says, work decides."""
    wake, bed = read_sleep(who.text, who.age)
    if (SLEEPS.search(who.text) or WAKES.search(who.text)) and read_stretches(who.text):
        return wake, bed
    for habit in habits:
        if not habit.duty or habit.start is None or habit.end is None:
            continue
        if habit.end <= habit.start or habit.start >= 23 * 60:  # through the night
            return (habit.end + 9 * 60) % DAY, (habit.end + 60) % DAY
        if 2 * 60 <= habit.start < wake + 45:
            return habit.start - 60, (habit.start - 60 + 16 * 60) % DAY or DAY
        if habit.end > bed - 45:
            return (habit.end + 9 * 60) % DAY, (habit.end + 60) % DAY or DAY
    return wake, bed


def _habits(who: Description) -> list[Habit]:
    """Return what is done on such days: hours that are told first; a job without hours has the usual ones."""
    ask, weekday = who.ask, who.day.weekday()
    own = [text for _, text in who.told if is_own_habit(text, ask.who)]
    habits = read_habits([*who.text.split("\n"), *own], ask.who, ask.places)
    at_work = _place_of_work(who)
    habits = [replace(habit, place=at_work) if habit.duty and habit.place == NOWHERE else habit for habit in habits]
    if not any(habit.duty for habit in habits) and not RESTS.search(who.text):
        habits += _usual_duty(who, at_work)
    return [habit for habit in habits if weekday in working_days(habit, ask.places)]


def _place_of_work(who: Description) -> int:
    """Return where somebody has its job, by the words of it; 0: at home, or nobody says."""
    found = JOB.search(who.text)
    if found is None:
        return 0
    job = re.split(r" (?:who|and) ", found["job"], maxsplit=1)[0]
    return find_named(found["job"], who.ask.places, who.ask.who) or find_meant(job, who.ask.places)


def _usual_duty(who: Description, place: int) -> list[Habit]:
    """Return a job's or a school's hours, where its place is known and its hours are not told."""
    places = who.ask.places
    wake, _ = read_sleep(who.text, who.age)
    begin = wake + 75 if wake < 13 * 60 else 0
    is_pupil = 5 < who.age < 18 or (LEARNS.search(who.text) and who.age < 30)
    if is_pupil:
        school = find_named(who.text, [each for each in places if "study" in purposes_of(each)]) and find_meant(
            "student class", places, ("study",)
        )
        school = school or find_meant("student class", places, ("study",))
        start = max(9 * 60, begin)
        return (
            [Habit("taking classes", start, start + (360 if who.age < 18 else 240), school, duty=True)]
            if school
            else []
        )
    if not place or 0 < who.age < 16:
        return []
    purposes = purposes_of(places[place - 1])
    hours = (17 * 60, 23 * 60) if "drink" in purposes else (8 * 60, 18 * 60) if "eat" in purposes else (9 * 60, 17 * 60)
    if AT_NIGHT.search(who.text):
        hours = (22 * 60, 6 * 60)
    else:
        hours = max(hours[0], begin), max(hours[1], begin + 360)
    return [Habit("teaching" if "study" in purposes else "working", *hours, place, duty=True)]


# What was agreed on.


def _appointments(who: Description) -> list[Appointment]:
    ask = who.ask
    told = [*((who.day, line) for line in _sentences_in_whole(who.text)), *who.told]
    return read_appointments(ask.who, who.day, told, ask.places)


def _sentences_in_whole(text: str) -> list[str]:
    """Return the lines of a text: a day and an hour may stand in two sentences of one."""
    return text.split("\n")


def _would_go(who: Description, each: Appointment, habits: Sequence[Habit]) -> bool:
    """Decide whether to go: a host does, who promised does where work allows it; the others as they are inclined."""
    if each.role == "host":
        return True
    busy = any(
        habit.duty and habit.start is not None and habit.start < each.end and each.start < _end_of(habit)
        and habit.place != each.place for habit in habits
    )  # fmt: skip
    if each.role in ("promised", "helper"):
        return not busy or who.draw("goes", each.start, each.place) < 0.5
    p = 0.45 + 0.2 * bool(OUTGOING.search(who.traits)) - 0.25 * bool(RESERVED.search(who.traits))
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


# Meals, work, habits.


def _end_of(habit: Habit) -> int:
    assert habit.start is not None
    if habit.end is not None:
        return habit.end if habit.end > habit.start else habit.end + DAY
    return (
        max(habit.start + 3 * 60, min(17 * 60, habit.start + 9 * 60))
        if habit.duty and habit.what.startswith("working")
        else habit.start + (habit.minutes or 2 * 60)
    )


def _mornings_and_meals(who: Description, line: Timeline, habits: Sequence[Habit]) -> None:
    """Get up, eat three times, get ready for bed."""
    wake, bed, draw = line.wake, line.bed, who.draw
    first = min((line.at(habit.start) for habit in habits if habit.duty and habit.start is not None), default=bed)
    hurry = first - wake < 90
    ready = 25 if hurry else 40 + 5 * int(draw("ready") * 4)
    line.add(wake, wake + ready, "waking up and completing the morning routine", 0, least=10)
    line.add(bed - 30, bed, "getting ready for bed", 0)
    line.add(wake + ready, wake + ready + (20 if hurry else 30), "having breakfast", 0)
    lunch = (12 * 60 if 2 * 60 <= wake < 11 * 60 else wake + 5 * 60) + 15 * int(draw("lunch") * 5)
    line.add(lunch, lunch + 45, "having lunch", _table(who, line, habits, lunch, out=0.65))
    dinner = min(line.at(_dinner(who, wake)), bed - 90)
    at_work = [habit for habit in habits if habit.duty and habit.start is not None
               and line.at(habit.start) <= dinner < line.at(habit.start) + _end_of(habit) - habit.start]  # fmt: skip
    if at_work:
        over = line.at(at_work[0].start or 0) + _end_of(at_work[0]) - (at_work[0].start or 0)
        over += 20 * any(habit.what.startswith("closing") and habit.start == at_work[0].end for habit in habits)
        if over + 90 <= bed and over - dinner <= 150:
            dinner = over
    line.add(dinner, dinner + 60, "having dinner", _table(who, line, habits, dinner, out=0.2), least=30)


def _dinner(who: Description, wake: int) -> int:
    for told in EVENING_MEAL.finditer(who.text):
        for stretch in read_stretches(told[0]):
            if stretch.start is not None:
                return stretch.start
    return (18 * 60 if 2 * 60 <= wake < 12 * 60 else wake + 10 * 60) + 15 * int(who.draw("dinner") * 4)


def _table(who: Description, line: Timeline, habits: Sequence[Habit], minute: int, out: float) -> int:
    """Return where to eat: where one works if that is a place to eat, else out or at home."""
    places, indoors = who.ask.places, 0
    for habit in habits:
        if (
            habit.start is None
            or not line.at(habit.start) <= minute < line.at(habit.start) + _end_of(habit) - habit.start
        ):
            continue
        if habit.place > 0 and {"eat", "drink"} & set(purposes_of(places[habit.place - 1])):
            return habit.place
        indoors = habit.place if habit.duty else indoors
    open_now = [each for each in find_for("eat", places) if is_open(places[each - 1], minute % DAY, minute % DAY + 45)]
    said = [habit.place for habit in habits if habit.place in open_now and re.search(r"\beat|lunch|dinner", habit.what)]
    if said and minute < 17 * 60:
        return said[0]
    return (
        chance.pick(open_now, who.ask.who, who.day.isoformat(), minute)
        if open_now and who.draw("out", minute) < out
        else indoors
    )


def _follow(who: Description, line: Timeline, habit: Habit) -> None:
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
    end = start + _end_of(habit) - habit.start
    if not habit.duty and habit.what.startswith(
        ("walking", "going for", "running", "taking a walk", "jogging", "exercising", "swimming")
    ):
        end = min(end, max(start, line.wake + 45) + 75)
    line.add(max(start, line.wake + 60) if not habit.duty else start, end, habit.what, place)


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
    if any(habit.duty and habit.minutes == 0 and _end_of(habit) - (habit.start or 0) >= 5 * 60 for habit in habits):
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
    elif not pursuits:
        pursuits = ["working"]
    if who.day.weekday() >= 5:
        pursuits = pursuits[:1]
    named = next(
        (
            habit.place
            for habit in habits
            if habit.what.startswith(("studying", "writing", "working")) and habit.place > 0
        ),
        0,
    )
    begin = max(line.wake + 90, 9 * 60 if line.wake < 9 * 60 else 0)
    first = int(who.draw("pursuit") * len(pursuits)) if pursuits else 0
    for n, (start, length) in enumerate([(begin, 180), (begin + 240, 210)]):
        if pursuits:
            what = pursuits[(first + n) % len(pursuits)]
            place = find_named(what, places, who.ask.who) or named
            if not place and who.draw("away", n) < 0.35:
                place = find_meant(what, places, ("study", "craft", "train"))
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


def _pleasures(who: Description) -> list[tuple[str, int]]:
    """Return what somebody likes to do, with its place."""
    pursuits, likes = read_pursuits(who.text)
    return [(each, find_named(each, who.ask.places, who.ask.who)) for each in (*likes, *pursuits)]
