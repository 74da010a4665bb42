"""Tasks of some minutes without a model: what belongs to a meal, a lesson, a shop, each at the thing for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from mindstream.models.prompt import rule
from mindstream.town.prompts.break_down import BreakDown, Task, Tasks
from mindstream.town.rules.things import find_thing

Step = tuple[str, int]
LEAST, MOST_TASKS = 5, 60


class Script(NamedTuple):
    """How something is done: once at the beginning, over and over, once at the end; minutes for each."""

    cues: re.Pattern[str]
    opening: tuple[Step, ...]
    main: tuple[Step, ...]
    closing: tuple[Step, ...] = ()


def _script(cues: str, opening: Sequence[Step], main: Sequence[Step], closing: Sequence[Step] = ()) -> Script:
    return Script(re.compile(rf"\b(?:{cues})", re.IGNORECASE), tuple(opening), tuple(main), tuple(closing))


MEALS = r"having (?:\w+ )?(?:breakfast|brunch|lunch|dinner|supper|a meal)|eating(?! and)"
AT_HOME: tuple[Script, ...] = (
    _script(
        r"waking up|morning routine|getting up",
        [
            ("getting out of bed", 5),
            ("using the toilet", 5),
            ("brushing teeth", 5),
            ("taking a shower", 15),
            ("getting dressed", 10),
        ],
        [("getting ready for the day", 10)],
    ),
    _script(
        r"getting ready for bed|evening routine|going to bed",
        [("brushing teeth", 5), ("using the toilet", 5), ("changing into night clothes", 5)],
        [("lying in bed, reading", 15)],
    ),
    _script(
        MEALS,
        [("taking food out of the fridge", 5), ("cooking", 15)],
        [("eating at the table", 15)],
        [("washing the dishes", 5)],
    ),
    _script(r"cooking", [("taking food out of the fridge", 5)], [("cooking", 15)], [("washing the dishes", 5)]),
)
OUT: tuple[Script, ...] = (
    _script(MEALS, [("ordering food", 5)], [("eating", 15), ("chatting at the table", 10)]),
    _script(
        r"having (?:a )?(?:coffee|tea|drink|beer|snack)|drinking|spending the evening",
        [("ordering something to drink", 5)],
        [("drinking and chatting", 15), ("watching people", 10)],
    ),
    _script(
        r"shopping|running errands|buying",
        [],
        [("looking for what is needed on the shelf", 15)],
        [("paying at the counter", 5)],
    ),
)
ANYWHERE: tuple[Script, ...] = (
    _script(
        r"(?:helping to )?prepar\w+ and decorat|decorating",
        [("gathering decorations", 10)],
        [("putting up decorations", 15), ("preparing food and drinks for the guests", 15)],
    ),
    _script(
        r"hosting",
        [],
        [("welcoming guests", 15), ("offering food and drinks to the guests", 10), ("chatting with the guests", 15)],
    ),
    _script(
        r"attending (?:the|a|an|her|his|their) ",
        [("saying hello to everybody", 5)],
        [("chatting with other guests", 15), ("enjoying food and drinks", 10)],
    ),
    _script(
        r"teaching|lecturing",
        [("writing on the blackboard", 10)],
        [("lecturing", 15), ("answering students' questions", 15)],
    ),
    _script(
        r"taking classes$|attending (?:\w+ ){0,3}class",
        [("finding a seat in class", 5)],
        [("listening to the lecture in class", 15), ("taking notes in class", 15)],
    ),
    _script(
        r"taking a walk|walking|enjoying the fresh air|going for a (?:walk|run)|running in|jogging",
        [],
        [("walking around", 15), ("walking on", 15), ("sitting and looking around", 10)],
    ),
    _script(r"exercis|training|working out|doing sports", [("stretching", 5)], [("exercising", 15)]),
    _script(r"gardening|tending", [], [("watering the plants", 10), ("weeding", 15)]),
    _script(r"cleaning|tidying", [], [("tidying up the shelf", 15), ("wiping the table", 10)]),
    _script(r"closing", [("cleaning up", 10)], [("counting the money in the till", 10)], [("locking up", 5)]),
)
AT_A_COUNTER = _script(
    r"working",
    [],
    [
        ("serving customers", 15),
        ("serving customers", 15),
        ("restocking", 10),
        ("serving customers", 15),
        ("counting the till", 10),
    ],
)
COUNTER = re.compile(r"\b(?:counter|till|register)\b")


@rule(BreakDown)
def break_down_by_habit(ask: BreakDown) -> Tasks:
    """Do what belongs to it in its order."""
    names = [thing.partition(" in the ")[0].partition(" of ")[0] for thing in ask.around]
    tasks = [_at_its_thing(ask, what, minutes, names) for what, minutes in _steps(ask, names, ask.minutes)]
    return Tasks(tasks=tasks[:MOST_TASKS] or [Task(minutes=max(1, ask.minutes), what=ask.what)])


def _at_its_thing(ask: BreakDown, what: str, minutes: int, names: Sequence[str]) -> Task:
    guest = not (
        ask.is_home or ask.what.startswith(("working", "closing", "hosting", "preparing", "teaching", "helping"))
    )
    number = find_thing(f"{ask.what} {what}" if AT_A_COUNTER.cues.match(ask.what) else what, names, guest)
    if number < 0 and what == "cooking":
        what = "preparing something simple"
    if number < 0:
        number = find_thing(ask.what, names, guest)
    return Task(minutes=minutes, what=what, place=number + 1)


def _steps(ask: BreakDown, names: Sequence[str], minutes: int) -> Iterator[Step]:
    """Yield what is done for some minutes, the same thing no longer than a quarter of an hour."""
    if minutes <= 0:
        return
    script = _script_for(ask, names)
    if script is None:
        yield from _evenly(ask.what, minutes)
        return
    opening = [*script.opening] if ask.already < LEAST else []
    closing = [*script.closing] if minutes <= 60 else []
    steps = [*opening, *script.main[:1], *closing]
    if sum(usual for _, usual in steps) > minutes:
        yield from _shortened(steps, minutes)
        return
    yield from opening
    minutes -= sum(each for _, each in opening) + sum(each for _, each in closing)
    for what, usual in cycle(script.main):
        if minutes <= 0:
            break
        taken = minutes if minutes < usual + LEAST else usual
        yield what, taken
        minutes -= taken
    yield from closing


def _shortened(steps: Sequence[Step], minutes: int) -> Iterator[Step]:
    """Yield all of it, each as long as it goes."""
    wanted = sum(usual for _, usual in steps)
    for number, (what, usual) in enumerate(steps, 1):
        taken = minutes if number == len(steps) else min(max(1, usual * minutes // wanted), minutes)
        if taken > 0:
            yield what, taken
        minutes -= taken
        wanted -= usual


def _script_for(ask: BreakDown, names: Sequence[str]) -> Script | None:
    for script in (*(AT_HOME if ask.is_home else OUT), *ANYWHERE):
        if script.cues.match(ask.what):
            return script
    at_counter = not ask.is_home and AT_A_COUNTER.cues.match(ask.what) and any(COUNTER.search(name) for name in names)
    return AT_A_COUNTER if at_counter else None


def _evenly(what: str, minutes: int) -> Iterator[Step]:
    """Yield it in quarters of an hour, with a short break within each hour of what takes longer."""
    done = 0
    while minutes > 0:
        if done >= 45:
            yield "taking a short break", min(5, minutes)
            minutes -= min(5, minutes)
            done = 0
            continue
        taken = minutes if minutes < 20 else 15
        yield what, taken
        minutes -= taken
        done += taken
