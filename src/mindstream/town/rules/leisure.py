"""Free time without a model: out where others are, at noon and in the evening most of all, or at home."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.pursuits import Pursuit
from mindstream.town.rules.things import find_thing
from mindstream.town.rules.timeline import DAY, Timeline
from mindstream.town.rules.where import find_for, is_open

Draw = Callable[..., float]
OUT = {
    "outdoors": ("taking a walk", "enjoying the fresh air"),
    "eat": ("having coffee", "having a snack and watching people"),
    "drink": ("having a drink and chatting", "spending the evening with neighbors"),
    "shop": ("shopping for groceries", "running errands"),
    "study": ("reading", "browsing books"),
    "shows": ("looking at what is on show", "enjoying a visit"),
    "train": ("exercising", "doing sports"),
}
WEIGHT = {"outdoors": 3.0, "eat": 3.0, "drink": 3.0, "shop": 1.0, "study": 0.7, "shows": 1.5, "train": 1.0}
AT_HOME = ("relaxing at home", "reading a book", "tidying up", "listening to music", "writing a letter")
AT_HOME_YOUNG = ("playing", "doing homework", "drawing", "reading a book")
LOUD = ("tidying up", "playing", "doing homework")
GROCERIES = re.compile(r"grocer|market|food|bakery", re.IGNORECASE)
BOOKS = re.compile(r"librar|book", re.IGNORECASE)
MEALS = re.compile(r"having (?:breakfast|lunch|dinner|a meal)")
GROWN = 18
A_BREAK = 40
"""Nobody goes home and comes back in less, in minutes."""
LENGTHS = (45, 60, 75, 90)


class Choice(NamedTuple):
    """Something to do, and how much it is liked."""

    what: str
    place: int
    weight: float


def fill(
    line: Timeline, places: Sequence[Place], *, traits: str, age: int, pleasures: Sequence[tuple[Pursuit, int]],
    draw: Draw,
) -> None:  # fmt: skip
    """Fill what is free of a day, piece by piece; the same thing is seldom done twice."""
    done: Counter[str | int] = Counter(slot.what for slot in line.slots())
    last = 0
    sociable = 1.5 if any(each in traits for each in ("outgoing", "friendly", "energetic", "sociable")) else 1.0
    for start, end in line.gaps():
        before = next((slot for slot in line.slots() if slot.end == start), None)
        after = next((slot for slot in line.slots() if slot.start == end), None)
        if end - start < A_BREAK and before is not None and before.place:
            stays = after is not None and after.place
            what, place = ("taking a break", before.place) if stays else ("resting at home", 0)
            line.add(start, end, what, place, least=1)
            continue
        at = start
        while at < end:
            length = LENGTHS[int(draw("length", at) * len(LENGTHS))]
            until = end if end - at < length + 40 else at + length
            options = _choices(places, at, until, line, age, pleasures, sociable)
            fresh = [
                each.weight / (1 + 3 * done[each.what]) / (1 + done[each.place] + 4 * (last == each.place > 0))
                for each in options
            ]
            choice = _drawn([each._replace(weight=w) for each, w in zip(options, fresh, strict=True)], draw("do", at))
            done[choice.what] += 1
            done[choice.place] += bool(choice.place)
            last = choice.place
            line.add(at, until, choice.what, choice.place, least=1)
            at = until


def _choices(
    places: Sequence[Place],
    start: int,
    end: int,
    line: Timeline,
    age: int,
    pleasures: Sequence[tuple[Pursuit, int]],
    sociable: float,
) -> list[Choice]:
    """Return what can be done from one minute to another."""
    minute = start % DAY
    at_home = AT_HOME_YOUNG if 0 < age < 14 else AT_HOME
    is_late = minute >= 21 * 60 + 30 or minute < 6 * 60
    found = [Choice(what, 0, 1.0) for what in at_home if not (is_late and what in LOUD)]
    until = minute + end - start
    found += [Choice(pursuit.what, place, 2.5 if pursuit.part is None else 6.0) for pursuit, place in pleasures[:4]
              if pursuit.suits(minute, until) and (not place or is_open(places[place - 1], minute, until))]  # fmt: skip
    if any("garden" in place.words for place in places if place.home) and 7 * 60 <= minute < 20 * 60:
        number = next(n for n, place in enumerate(places, 1) if place.home and "garden" in place.words)
        found.append(Choice("gardening", number, 1.0))
    common = next((n for n, place in enumerate(places, 1) if place.home and "common" in place.words), 0)
    if common:
        found.append(Choice("spending time in the common room", common, 1.5))
    if end - start < 40 or start < line.wake + 60 or end > line.bed - 45 or (0 < age < 10 and minute >= 18 * 60):
        return found
    after_meal = any(MEALS.match(slot.what) and -60 < start - slot.end < 120 for slot in line.slots())
    busy = 2.0 if 17 * 60 <= minute < 21 * 60 else 1.5 if 11 * 60 <= minute < 14 * 60 else 1.0
    for purpose, (usual, other) in OUT.items():
        if purpose == "drink" and (0 < age < GROWN or minute < 17 * 60):
            continue
        if purpose == "shop" and 0 < age < 14:
            continue
        for number in find_for(purpose, places):
            place = places[number - 1]
            if purpose == "shop" and place.things and find_thing(usual, place.things, guest=True) < 0:
                continue
            if purpose == "study" and not BOOKS.search(place.words):
                continue
            if is_open(place, minute, minute + end - start):
                what = usual if (start // 15) % 3 or (purpose == "eat" and after_meal) else other
                if purpose == "eat" and 0 < age < GROWN:
                    what = "having a snack"
                if purpose == "shop":
                    what = usual if GROCERIES.search(place.words) else other
                found.append(Choice(what, number, WEIGHT[purpose] * busy * sociable))
    return found


def _drawn(choices: Sequence[Choice], fraction: float) -> Choice:
    left = fraction * sum(choice.weight for choice in choices)
    for choice in choices:
        left -= choice.weight
        if left < 0:
            return choice
    return choices[-1]
