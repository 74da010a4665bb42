"""The frame of a day: getting up, three meals, getting ready for bed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream import chance
from mindstream.town.rules.described import Description, end_of
from mindstream.town.rules.habits import (
    Habit,
)  # fmt: skip
from mindstream.town.rules.timeline import DAY, Timeline
from mindstream.town.rules.times import read_stretches
from mindstream.town.rules.where import find_for, find_named, is_open, purposes_of

A_MEAL = 150
"""Who eats within so many minutes needs no meal."""
EVENING_MEAL = re.compile(r"\b(?:dinner|supper)\b[^.;,]{0,60}")
NOON_MEAL = re.compile(r"\b(?:lunch)\b[^.;,]{0,60}")


def add_meals(who: Description, line: Timeline, habits: Sequence[Habit]) -> None:
    """Get up, eat three times, get ready for bed."""
    wake, bed, draw = line.wake, line.bed, who.draw
    first = min((line.at(habit.start) for habit in habits if habit.duty and habit.start is not None), default=bed)
    hurry = first - wake < 90
    ready = 25 if hurry else 40 + 5 * int(draw("ready") * 4)
    line.add(wake, wake + ready, "waking up and completing the morning routine", 0, least=10)
    line.add(bed - 30, bed, "getting ready for bed", 0)
    line.add(wake + ready, wake + ready + (20 if hurry else 30), "having breakfast", 0)
    lunch = (12 * 60 if 2 * 60 <= wake < 11 * 60 else wake + 5 * 60) + 15 * int(draw("lunch") * 5)
    told, where = _told(who, NOON_MEAL)
    lunch = line.at(told) if told is not None else _beside_what_is_told(line, habits, lunch)
    eats = [line.at(habit.start) for habit in habits if habit.start is not None and habit.what.startswith("eating ")]
    if not any(abs(lunch - each) < A_MEAL for each in eats):
        line.add(lunch, lunch + 45, _called(lunch, "lunch"), where or _table(who, line, habits, lunch, out=0.65))
    told, where = _told(who, EVENING_MEAL)
    usual = line.at(_usual_dinner(who, wake))
    if any(abs(usual - each) < A_MEAL for each in eats):
        return
    dinner = min(usual if told is None else line.at(told), bed - 90)
    if told is None:
        dinner = min(_beside_what_is_told(line, habits, dinner), bed - 90)
    at_work = [habit for habit in habits if habit.duty and habit.start is not None
               and line.at(habit.start) <= dinner < line.at(habit.start) + end_of(habit) - habit.start]  # fmt: skip
    if at_work:
        over = line.at(at_work[0].start or 0) + end_of(at_work[0]) - (at_work[0].start or 0)
        over += 20 * any(habit.what.startswith("closing") and habit.start == at_work[0].end for habit in habits)
        if over + 90 <= bed and over - dinner <= 150:
            dinner = over
    line.add(
        dinner,
        dinner + 60,
        "having dinner" if told is not None else _called(dinner, "dinner"),
        where or _table(who, line, habits, dinner, out=0.2),
        least=30,
    )


def _told(who: Description, meal: re.Pattern[str]) -> tuple[int | None, int]:
    """Return when and where a meal is eaten, as far as it is told and one can be there then; 0: nobody says where."""
    minute, place = None, 0
    for told in meal.finditer(who.text):
        starts = [stretch.start for stretch in read_stretches(told[0]) if stretch.start is not None]
        minute = starts[0] if starts and minute is None else minute
        place = place or find_named(told[0], who.ask.places, who.ask.who)
    if place and minute is not None and not is_open(who.ask.places[place - 1], minute, minute + 45):
        place = 0
    return minute, place


def _called(minute: int, meal: str) -> str:
    """Name a meal by the hour: who gets up in the afternoon has no lunch at eight."""
    hour = minute % DAY // 60
    return f"having {meal if 10 <= hour < 17 else 'dinner' if 17 <= hour < 23 else 'a meal'}"


def _beside_what_is_told(line: Timeline, habits: Sequence[Habit], meal: int) -> int:
    """Put a meal after a duty that ends soon, and after what is told for its hour: nobody leaves for it for good."""
    for habit in habits:
        if habit.start is not None:
            start = line.at(habit.start)
            end = start + end_of(habit) - habit.start
            if start <= meal < end <= meal + (90 if habit.duty else 150):
                return end
    return meal


def _usual_dinner(who: Description, wake: int) -> int:
    return (18 * 60 if 2 * 60 <= wake < 12 * 60 else wake + 10 * 60) + 15 * int(who.draw("dinner") * 4)


def _table(who: Description, line: Timeline, habits: Sequence[Habit], minute: int, out: float) -> int:
    """Return where to eat: where one works if that is a place to eat, else out or at home."""
    places, indoors = who.ask.places, 0
    for habit in habits:
        if (
            habit.start is None
            or not line.at(habit.start) <= minute < line.at(habit.start) + end_of(habit) - habit.start
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
