"""What is done about a thing that is not as it should be, without a model: danger, damage, what is missing or taken."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.models.prompt import rule
from mindstream.text.words import terms
from mindstream.town.prompts.break_down import Task
from mindstream.town.prompts.see_to import Remedy, SeeTo
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.rules.conditions import kind_of
from mindstream.town.rules.things import find_thing

LONGEST = 300
SAID = re.compile(r"^(?:the )?(?P<thing>.{1,60}?) (?:is|has) (?P<how>[^()]{1,200})")
PART = re.compile(r"^(?:an?|two|several|some) (?P<part>[\w-]{3,20}(?: [\w-]{3,20})?)$", re.IGNORECASE)
OUT_OF = re.compile(
    r"\b(?:out of|no more|low on|missing|no) (?P<what>(?!order)[a-z]{3,20}(?: [a-z]{3,20})?)", re.IGNORECASE
)
MEAL = re.compile(r"\b(?:eat\w*|food|cook\w*|meal|breakfast|brunch|lunch|dinner|supper|snack)\b", re.IGNORECASE)
HOLDS_FOOD = frozenset(terms("fridge refrigerator larder pantry cupboard freezer breadbox"))
SWITCHED = frozenset(terms("stove oven cooker hob grill toaster heater lamp computer television kettle machine boiler"))
"""What can be turned off."""
FIXED = "repaired"
PATIENCE = 15
"""So many minutes somebody waits for what is taken."""


@rule(ShouldAct)
def likely_to_act(ask: ShouldAct) -> dict[str, float]:
    """What is wrong with a thing that one needs or looks after is seen to, by one of those there; else mostly."""
    kind = kind_of(_read(ask.sees)[1])
    if kind == "fire":
        p = 1.0
    elif kind == "fine" or (not ask.uses_it and (kind == "taken" or ask.others)):
        p = 0.0
    else:
        p = 1.0 if ask.uses_it or ask.in_charge else 0.6
    return {"yes": p, "no": 1 - p}


@rule(SeeTo)
def see_to(ask: SeeTo) -> Remedy:
    """Do what is usual about such a condition."""
    thing, how = _read(ask.sees)
    names = [name.partition(" in the ")[0].partition(" of ")[0] for name in ask.around]
    match kind_of(how):
        case "fire":
            off = f"turning off the {thing} and " if SWITCHED & {*terms(thing)} else ""
            return _done(
                (f"{off}putting out the fire", 3, ask.at, FIXED),
                (f"airing the room and cleaning up around the {thing}", 10, ask.at, ""),
            )
        case "taken":
            return _wait(ask, thing, f"waiting until the {thing} is free")
        case _ if ask.others:
            return _wait(ask, thing, f"waiting until the {thing} is in order")
        case _ if not ask.in_charge:
            return _done((f"telling those who look after it that {ask.sees[:120]}", 5, 0, ""), waits=True)
        case "missing":
            return _supply(ask, thing, how, names)
        case "dirty":
            return _done((f"cleaning the {thing}", 15, ask.at, FIXED))
        case "flowing":
            return _done((f"stopping the {thing} and mopping up around it", 10, ask.at, FIXED))
        case "on":
            return _done((f"seeing to the {thing}", 5, ask.at, FIXED))
        case _:
            return _repair(ask, thing, how, names)


def _read(sees: str) -> tuple[str, str]:
    """Return the thing that was seen, and how it is."""
    found = SAID.match(sees[:LONGEST])
    return (found["thing"].removeprefix("behind the "), found["how"].strip()) if found else ("thing", sees[:LONGEST])


def _done(*tasks: tuple[str, int, int, str], waits: bool = False, resumes: bool = True) -> Remedy:
    return Remedy(
        tasks=[Task(minutes=minutes, what=what, place=at, leaves=leaves) for what, minutes, at, leaves in tasks],
        waits=waits, resumes=resumes,
    )  # fmt: skip


def _wait(ask: SeeTo, thing: str, what: str) -> Remedy:
    """Wait in another room near by, where there is one; at last do without."""
    room, house = _room(ask.around[ask.at - 1]), _house(ask.around[ask.at - 1])
    if ask.waited >= PATIENCE:
        return _done((f"doing without the {thing} for now", 5, 0, ""), waits=True, resumes=False)
    near = (n for n, name in enumerate(ask.around, 1) if _room(name) != room and _house(name) == house)
    return _done((what, 5, next(near, 0), ""), waits=True)


def _room(name: str) -> str:
    return name.rpartition(" in the ")[2]


def _house(name: str) -> str:
    return name.rpartition(" of ")[2]


def _supply(ask: SeeTo, thing: str, how: str, names: Sequence[str]) -> Remedy:
    """Buy what is missing; where nothing is sold, eat out, ask who is there, or put it on a list."""
    is_food = bool(HOLDS_FOOD & {*terms(thing)})
    goods = OUT_OF.search(how)
    wanted = goods["what"] if goods else "food" if is_food else f"what belongs into the {thing}"
    if ask.sells:
        shelf = find_thing(f"buying {'groceries ' if is_food else ''}{wanted}", [names[n - 1] for n in ask.sells], True)
        shop = ask.sells[max(shelf, 0)]
        return _done((f"buying {wanted}", 20, shop, ""), (f"refilling the {thing}", 10, ask.at, FIXED))
    if ask.serves and is_food and MEAL.search(ask.doing):
        seat = find_thing("eating", [names[n - 1] for n in ask.serves], True)
        return _done(("eating out", 35, ask.serves[max(seat, 0)], ""), waits=True, resumes=False)
    if ask.present:
        return _done((f"asking {ask.present[0]} for {wanted}", 10, 0, ""), waits=True, resumes=False)
    return _done((f"writing a list of what is missing in the {thing}", 10, ask.at, ""), waits=True, resumes=False)


def _repair(ask: SeeTo, thing: str, how: str, names: Sequence[str]) -> Remedy:
    """Fetch tools from where they may be, and repair it, or the part of it that is said."""
    house = _house(ask.around[ask.at - 1])
    others = [name if n != ask.at and _house(ask.around[n - 1]) == house else "" for n, name in enumerate(names, 1)]
    tools = find_thing("fetching tools", others, guest=True) + 1
    part = PART.match(how)
    what = f"{part['part']} of the {thing}" if part and thing not in part["part"] else thing
    return _done((f"fetching tools to repair the {what}", 5, tools, ""), (f"repairing the {what}", 20, ask.at, FIXED))
