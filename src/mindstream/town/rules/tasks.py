"""Tasks of some minutes without a model: what belongs to a meal, a lesson, a shop, each at the thing for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from mindstream import chance
from mindstream.models.prompt import rule
from mindstream.town.prompts.break_down import BreakDown, Task, Tasks
from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.things import find_thing, without_place
from mindstream.town.rules.where import purposes_of
from mindstream.town.rules.work import find_work, nearest_thing, work_of

Step = tuple[str, int]
LEAST, MOST_TASKS = 5, 60
AGE = re.compile(r", (\d{1,3}) years old")
SERVED = {"eat", "drink"}


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
    _script(MEALS, [("ordering food", 5)], [("eating", 15), ("eating and chatting", 10)]),
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
    _script(
        r"teaching|lecturing",
        [("writing on the blackboard", 10)],
        [("lecturing", 15), ("answering students' questions", 15)],
    ),
    _script(
        r"taking classes$|attending (?:\w+ ){0,3}class",
        [("finding a seat in class", 5)],
        [("listening in class", 15), ("taking notes in class", 15)],
    ),
)
FROM_HOME = _script(MEALS, [("unpacking food from home", 5)], [("eating", 15)])
"""A meal where none is served."""
CLOSING = _script(r"closing", [("cleaning up", 10)], [("counting the money in the till", 10)], [("locking up", 5)])
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
        r"taking a walk|walking|enjoying the fresh air|going for a (?:walk|run)|running in|jogging",
        [],
        [("walking around", 15), ("walking on", 15), ("sitting and looking around", 10)],
    ),
    _script(r"exercis|training|working out|doing sports", [("stretching", 5)], [("exercising", 15)]),
    _script(r"gardening|tending", [], [("watering the plants", 10), ("weeding", 15)]),
    _script(r"cleaning|tidying", [], [("putting things in their place", 15), ("wiping and sweeping", 10)]),
    CLOSING,
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
OF_PLANTS = re.compile(r"\bbed .*\b(?:garden|yard|park|green|orchard)\b")
"""Nobody sleeps in it."""
COUNTER = re.compile(r"\b(?:counter|till|register|bar(?! s(?:eat|tool)))\b")
AT_LARGE = re.compile(r"walk|stroll|jog|running|going for|taking (?:a walk|pictures)|enjoying the fresh|collecting")
"""What is done about a place, at no thing of it."""
SERVING = ("working", "closing", "hosting", "preparing", "teaching", "helping")
SEATED, BREAK = "seated", "taking a short break"
UNLESS: dict[str, tuple[str, str]] = {
    "taking food out of the fridge": (r"fridge|refrigerator|larder|pantry", "getting food ready"),
    "cooking": (r"stove|cook|oven|hob|hearth|kitchen|microwave|range", "preparing something simple"),
    "taking a shower": (r"shower|bath", "washing"),
    "eating at the table": (r"table|counter", "eating"),
}
"""What is done another way where there is no such thing."""


@rule(BreakDown)
def break_down_by_habit(ask: BreakDown) -> Tasks:
    """Do what belongs to it in its order."""
    around = [each.partition(" in the ")[::2] for each in ask.around]
    names = ["" if OF_PLANTS.search(f"{name} {where}") else name.partition(" of ")[0] for name, where in around]
    tasks = [_at_its_thing(ask, what, minutes, names) for what, minutes in _steps(ask, names, ask.minutes)]
    return Tasks(tasks=tasks[:MOST_TASKS] or [Task(minutes=max(1, ask.minutes), what=ask.what)])


def _at_its_thing(ask: BreakDown, what: str, minutes: int, names: Sequence[str]) -> Task:
    """Find the thing for a task: in the room where it is to be done, at home and for what is served there in any."""
    guest = not (ask.is_home or (ask.what.startswith(SERVING) and not ask.what.startswith("working on")))
    if AT_LARGE.match(ask.what) and AT_LARGE.match(what):
        return Task(minutes=minutes, what=what)
    plain = without_place(ask.what, ask.where)
    near = [name if thing.endswith(ask.where) else "" for name, thing in zip(names, ask.around, strict=True)]
    in_room = near if _is_in_room(ask) and any(near) else names
    sought = f"{plain} {what}" if AT_A_COUNTER.cues.match(ask.what) else without_place(what, ask.where)
    number = nearest_thing(work_of(ask.identity, ask.who), in_room) if plain == what == "working" else -1
    number = number if number >= 0 else find_thing(sought, in_room, guest)
    if what in UNLESS and not any(re.search(UNLESS[what][0], name) for name in names):
        what = UNLESS[what][1]
    if what == "cooking" and (age := AGE.search(ask.identity)) and int(age[1]) < 13:
        what = "helping in the kitchen"
    if number < 0:
        number = find_thing(plain, in_room, guest)
    if number < 0 and what in (ask.what, BREAK):
        number = find_thing(SEATED, in_room, guest)
    return Task(minutes=minutes, what=what, place=_one_of_its_kind(ask, number, names) + 1)


def _one_of_its_kind(ask: BreakDown, number: int, names: Sequence[str]) -> int:
    """Let everybody who lives in a house have a bathroom of its own to go to, as far as there are several."""
    if number < 0 or not ask.is_home or ask.around[number].endswith(ask.where):
        return number
    alike = [n for n, name in enumerate(names) if name == names[number]]
    return alike[int(chance.fraction("which", ask.who) * len(alike))]


def _is_in_room(ask: BreakDown) -> bool:
    """Tell whether it is to be done in this very room: outside of home, or where the plan names the room."""
    room = ask.where.partition(" of ")[0]
    return bool(room) and (not ask.is_home or room.rpartition("'s ")[2] in ask.what)


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
    if not ask.is_home and FROM_HOME.cues.match(ask.what) and not SERVED & set(purposes_of(Place(words=ask.where))):
        return FROM_HOME
    has_counter = any(COUNTER.search(name) for name in names)
    for script in (*(AT_HOME if ask.is_home else OUT), *ANYWHERE):
        if script.cues.match(ask.what) and (script is not CLOSING or has_counter):
            return script
    return AT_A_COUNTER if has_counter and not ask.is_home and _serves(ask) else None


def _serves(ask: BreakDown) -> bool:
    """Tell whether somebody works for customers here: the plan says so, or the job does and nothing else is said."""
    if not AT_A_COUNTER.cues.match(ask.what):
        return False
    if COUNTER.search(ask.what):
        return True
    if without_place(ask.what, ask.where) != "working":
        return False
    return bool(find_work(work_of(ask.identity, ask.who), [Place(words=ask.where)])[0])


def _evenly(what: str, minutes: int) -> Iterator[Step]:
    """Yield it in quarters of an hour, with a short break within each hour of what takes longer."""
    done = 0
    while minutes > 0:
        if done >= 45:
            yield BREAK, min(5, minutes)
            minutes -= min(5, minutes)
            done = 0
            continue
        taken = minutes if minutes < 20 else 15
        yield what, taken
        minutes -= taken
        done += taken
