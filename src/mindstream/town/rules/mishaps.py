"""What is done about something that has just happened: fire, damage, what is missing, taken or dirty."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.town.prompts.break_down import BreakDown, Task
from mindstream.town.rules.things import find_thing

LONGEST = 300
HAPPENED = re.compile(r"^(?:the )?(?P<thing>.{1,60}?) (?:is|are|has|was|got|seems|looks|keeps) (?P<how>[^()]{1,160})")
IN_PLACE = re.compile(r"\((?P<place>[^()]{1,200})\)\s*$")
FIRE = re.compile(
    r"\b(?:on fire|fire|burning|burns|flames?|aflame|ablaze|smok(?:e|es|ing|y)|smoulder\w{0,4})\b", re.IGNORECASE
)
TAKEN = re.compile(r"\b(?:occupied|taken|in use|busy|locked|reserved|being used|engaged)\b", re.IGNORECASE)
MISSING = re.compile(
    r"\b(?:empty|out of (?!order|use)|run(?:s|ning)? (?:out|low)|used up|nothing (?:left|in)|bare|missing|no more"
    r"|almost gone|sold out)\b",
    re.IGNORECASE,
)
OUT_OF = re.compile(
    r"\b(?:out of|no more|low on|missing|no) (?P<what>(?!order)[a-z]{3,20}(?: [a-z]{3,20})?)", re.IGNORECASE
)
DIRTY = re.compile(
    r"\b(?:dirty|messy|filthy|dusty|stained|spilled|spilt|sticky|covered|greasy|muddy|untidy|mess|smell\w{0,4}|stinks?|mouldy|moldy)\b",
    re.IGNORECASE,
)
OFF = re.compile(
    r"\b(?:(?:left )?(?:on|open|unlocked|running|boiling over|overflowing|beeping|ringing|whistling))$", re.IGNORECASE
)
FIXED = "repaired"


def see_to(ask: BreakDown, names: Sequence[str]) -> list[Task]:
    """Return the first tasks after something has happened, as long as there are minutes for them."""
    text = ask.because[:LONGEST]
    found = HAPPENED.match(text)
    thing, how = (found["thing"], found["how"].strip()) if found else (text.partition(" (")[0], text)
    at = _number(text, thing, ask.around, names)
    tasks: list[Task] = []
    for what, minutes, place, leaves in _remedy(thing.removeprefix("the "), how, at, ask, names):
        taken = min(minutes, ask.minutes - sum(task.minutes for task in tasks))
        if taken > 0:
            tasks.append(Task(minutes=taken, what=what[:200], place=place, leaves=leaves))
    return tasks


def _remedy(thing: str, how: str, at: int, ask: BreakDown, names: Sequence[str]) -> list[tuple[str, int, int, str]]:
    """Return what is to be done, for how long, at which thing, and how it leaves that thing."""
    if FIRE.search(how):
        return [
            (f"putting out the fire at the {thing}", 10, at, FIXED),
            (f"cleaning up around the {thing}", 10, at, ""),
        ]
    if TAKEN.search(how):
        other = next((n for n, name in enumerate(names, 1) if name == names[at - 1] and n != at), 0) if at else 0
        return (
            [(f"using the other {thing}", 10, other, "")]
            if other
            else [(f"waiting until the {thing} is free", 10, 0, "")]
        )
    if MISSING.search(how):
        goods = OUT_OF.search(how)
        wanted = (
            goods["what"]
            if goods
            else "food"
            if re.search(r"fridge|refrigerator|larder|pantry|cupboard", thing)
            else f"what belongs into the {thing}"
        )
        shop = _shop(ask.around, names, at)
        if not shop:
            return [(f"writing a list of what is missing in the {thing}", 10, at, "")]
        return [(f"buying {wanted}", 25, shop, ""), (f"refilling the {thing}", 15, at, FIXED)]
    if DIRTY.search(how):
        return [(f"cleaning the {thing}", 15, at, FIXED)]
    if OFF.search(how):
        return [(f"seeing to the {thing}", 5, at, FIXED)]
    tools = find_thing("fetching tools", [name if n != at else "" for n, name in enumerate(names, 1)], guest=True) + 1
    return [(f"fetching tools to repair the {thing}", 5, tools, ""), (f"repairing the {thing}", 20, at, FIXED)]


def _number(text: str, thing: str, around: Sequence[str], names: Sequence[str]) -> int:
    """Return the number of the thing that it happened to."""
    place = IN_PLACE.search(text)
    if place is not None and place["place"] in around:
        return list(around).index(place["place"]) + 1
    bare = thing.lower().removeprefix("the ").strip()
    return next((n for n, name in enumerate(names, 1) if name.lower() == bare), 0) or find_thing(bare, names) + 1


def _shop(around: Sequence[str], names: Sequence[str], at: int) -> int:
    """Return the number of a shelf where one can buy; of groceries first. It lies elsewhere than the thing itself."""
    house = around[at - 1].rpartition(" of ")[2] if at else ""
    shelves = [
        n for n, (thing, name) in enumerate(zip(around, names, strict=True), 1)
        if re.search(r"\b(?:shelf|shelves|counter|aisle|rack)\b", name)
        and "behind" not in name
        and thing.rpartition(" of ")[2] != house
    ]  # fmt: skip
    return next((n for n in shelves if re.search(r"grocer|food|market", names[n - 1])), shelves[0] if shelves else 0)
