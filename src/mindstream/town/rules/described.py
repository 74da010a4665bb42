"""Somebody and a day as a prompt describes them: when it sleeps, and what its days are bound to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from mindstream import chance
from mindstream.town.prompts.plan_day import PlanDay
from mindstream.town.rules.appointments import read_memory
from mindstream.town.rules.habits import (
    JOB,
    LEARNS,
    NOWHERE,
    RESTS,
    Habit,
    is_own_habit,
    is_work,
    read_habits,
    working_days,
)  # fmt: skip
from mindstream.town.rules.sleep import AT_NIGHT, SLEEPS, WAKES, read_sleep
from mindstream.town.rules.timeline import DAY
from mindstream.town.rules.times import read_stretches
from mindstream.town.rules.where import find_meant, find_named, purposes_of

LINES = 12
SITS = re.compile(r"\b(?:sits|stands|works|serves) (?:at|in|behind) (?P<where>[^.;\n]{3,80})")
AGE = re.compile(r", (\d{1,3}) years old")


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


def hours_of_sleep(who: Description, habits: Sequence[Habit]) -> tuple[int, int]:
    """Return when to get up and go to bed; where nobody says, work decides."""
    wake, bed = read_sleep(who.text, who.age)
    if (SLEEPS.search(who.text) or WAKES.search(who.text)) and read_stretches(who.text):
        return wake, bed
    for habit in habits:
        if not (habit.duty or (is_work(habit) and habit.place > 0)) or habit.start is None or habit.end is None:
            continue
        if habit.end <= habit.start or habit.start >= 23 * 60:  # through the night
            return (habit.end + 9 * 60) % DAY, (habit.end + 60) % DAY
        if 2 * 60 <= habit.start < wake + 45:
            return habit.start - 60, (habit.start - 60 + 16 * 60) % DAY or DAY
        if habit.end > bed - 45:
            return (habit.end + 9 * 60) % DAY, (habit.end + 60) % DAY or DAY
    return wake, bed


def habits_of(who: Description) -> list[Habit]:
    """Return what is done on such days: hours that are told first; a job without hours has the usual ones."""
    ask, weekday = who.ask, who.day.weekday()
    own = [text for _, text in who.told if is_own_habit(text, ask.who)]
    habits = read_habits([*who.text.split("\n"), *own], ask.who, ask.places)
    at_work = _place_of_work(who)
    habits = [replace(habit, place=at_work) if habit.duty and habit.place == NOWHERE else habit for habit in habits]
    if not any(habit.duty or (is_work(habit) and habit.place > 0) for habit in habits) and not RESTS.search(who.text):
        habits += _usual_duty(who, at_work)
    return [habit for habit in habits if weekday in working_days(habit, ask.places)]


def _place_of_work(who: Description) -> int:
    """Return where somebody has its job, by the words of it; 0: at home, or nobody says."""
    found = JOB.search(who.text)
    if found is None:
        return 0
    for told in SITS.finditer(who.text):
        if not read_stretches(told[0]) and (place := find_named(told["where"], who.ask.places, who.ask.who)):
            return place
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
    late = AT_NIGHT.search(who.text) is not None
    hours = (22 * 60, 6 * 60) if late else (max(hours[0], begin), max(hours[1], begin + 360))
    return [Habit("teaching" if "study" in purposes else "working", *hours, place, duty=True)]


def end_of(habit: Habit) -> int:
    assert habit.start is not None
    if habit.end is not None:
        return habit.end if habit.end > habit.start else habit.end + DAY
    return (
        max(habit.start + 3 * 60, min(17 * 60, habit.start + 9 * 60))
        if habit.duty and habit.what.startswith("working")
        else habit.start + (habit.minutes or 2 * 60)
    )
