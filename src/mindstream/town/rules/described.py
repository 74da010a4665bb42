"""Somebody and a day as a prompt describes them: when it sleeps, and what its days are bound to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from mindstream import chance
from mindstream.town.prompts.plan_day import Place, PlanDay
from mindstream.town.rules.appointments import read_memory
from mindstream.town.rules.currently import still_holds, without_news
from mindstream.town.rules.habits import (
    HOME,
    LEARNS,
    NOWHERE,
    RESTS,
    Habit,
    is_own_habit,
    is_work,
    read_habits,
    working_days,
)  # fmt: skip
from mindstream.town.rules.sleep import AT_NIGHT, DAWN, SLEEPS, WAKES, read_sleep
from mindstream.town.rules.timeline import DAY
from mindstream.town.rules.times import read_stretches
from mindstream.town.rules.where import find_named, purposes_of, read_opening
from mindstream.town.rules.work import Work, find_work, read_work

LINES = 12
SCHOOLING = (Work("pupil of a school class", is_job=True),)
NO_PLACE = Place(words="")
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
    """What is told of the person, in lines, without name, traits, whom it knows and what is new."""
    all_text: str
    """The same with what is new: somebody may have been invited."""
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
    told = [still_holds(line, day) for line in told]
    memories = tuple(read_memory(memory, day) for memory in ask.memories)
    return Description(
        ask, day, int(age[1]) if age else 0, traits, "\n".join(map(without_news, told)), "\n".join(told), memories
    )


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
    habits = [each for each in habits if each.what != "going to school"]  # it has its hours
    at_work, work = _place_of_work(who)
    habits = [replace(habit, place=at_work) if habit.duty and habit.place == NOWHERE else habit for habit in habits]
    if not any(habit.duty or (is_work(habit) and habit.place > 0) for habit in habits) and not RESTS.search(who.text):
        habits += _usual_duty(who, at_work, work)
    elif RESTS.search(who.text) and work is not None and not work.is_job:
        habits.append(Habit(work.activity, place=at_work))
    return [habit for habit in habits if weekday in working_days(habit, ask.places)]


def _place_of_work(who: Description) -> tuple[int, Work | None]:
    """Return where somebody works, and as what, by the words for it; 0: nobody says."""
    works = read_work(who.text, who.ask.who)
    for told in SITS.finditer(who.text):
        if not read_stretches(told[0]) and (place := find_named(told["where"], who.ask.places, who.ask.who)):
            return place, works[0] if works else None
    return find_work(works, who.ask.places)


def _usual_duty(who: Description, place: int, work: Work | None) -> list[Habit]:
    """Return a job's or a school's hours where they are not told: those of its place, else the usual ones."""
    places = who.ask.places
    wake, _ = read_sleep(who.text, who.age)
    begin = wake + 75 if wake < 13 * 60 else 0
    if 5 < who.age < 18 or (LEARNS.search(who.text) and who.age < 30):
        school, _ = find_work(SCHOOLING, [each if "study" in purposes_of(each) else NO_PLACE for each in places])
        start, length = max(9 * 60, begin), 360 if who.age < 18 else 240
        return [Habit("taking classes", start, start + length, school, duty=True)] if school else []
    if 0 < who.age < 16 or work is None or (not place and work.is_job):
        return []
    what = work.activity
    if not place:
        return [Habit(what, 9 * 60, 12 * 60, HOME), Habit(what, 13 * 60, 17 * 60, HOME)]
    here = places[place - 1]
    if AT_NIGHT.search(who.text):
        return [Habit(what, 22 * 60, 6 * 60, place, duty=True)]
    purposes = purposes_of(here)
    usual = (17 * 60, 23 * 60) if "drink" in purposes else (8 * 60, 18 * 60) if "eat" in purposes else (9 * 60, 17 * 60)
    if DAWN.search(who.text):
        usual = (begin, begin + 8 * 60)
    opens, closes = read_opening(here.hours) or usual
    start = max(opens, begin)
    hours = (start, min(max(closes, start + 360), start + 10 * 60))
    return [Habit(what, *hours, place, duty=True)]


def end_of(habit: Habit) -> int:
    assert habit.start is not None
    if habit.end is not None:
        return habit.end if habit.end > habit.start else habit.end + DAY
    return (
        max(habit.start + 3 * 60, min(17 * 60, habit.start + 9 * 60))
        if habit.duty and habit.what.startswith("working")
        else habit.start + (habit.minutes or 2 * 60)
    )
