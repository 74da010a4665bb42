"""At which thing something is done: by the words that both share, and by what things of everyday life are for."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream import caches
from mindstream.text.words import terms

USES = (
    ("sleep asleep sleeping nap bed lying", "bed cot mattress"),
    ("toilet", "toilet lavatory"),
    ("tooth teeth shave shaving face hands makeup", "mirror washbasin basin bathroom sink"),
    ("shower bath bathe bathing", "shower bathtub bath tub"),
    ("dress dressed clothes changing pack night-clothes wardrobe", "closet wardrobe dresser"),
    ("cook cooking fry boil bake baking", "stove cooking area cooker oven hob hearth range microwave"),
    ("seated", "table desk workstation seating"),
    ("watch guard guarding monitor patrol", "console monitor screen gate desk window"),
    ("fish fishing sail sailing row rowing", "boat net pier dock"),
    ("toast", "toaster"),
    ("fridge refrigerator ingredients milk leftovers", "refrigerator fridge larder pantry"),
    ("dish dishes", "kitchen sink dishwasher"),
    (
        "eat eating breakfast lunch dinner supper meal snack coffee tea ordering food",
        "dining table customer seating chair bench counter",
    ),
    ("drink drinking beer wine evening bar", "bar customer seating stool table chair"),
    (
        "relax relaxing rest watch watching chat chatting talk talking sit sitting spend time",
        "sofa couch armchair seating chair bench table",
    ),
    ("listen listening music", "stereo radio sofa couch armchair bed chair seating table"),
    ("read reading book books browsing", "sofa armchair bookshelf library desk table chair bench seating"),
    (
        "study studying write writing draft drafting homework work working project plan planning research novel "
        "paper course report essay essays letter thesis account notes looking poem poems article",
        "desk workstation table computer library seating bench stool",
    ),
    ("class classes", "student seating classroom desk bench"),
    ("teach teaching lecturing lecture lesson students", "podium blackboard lectern board"),
    ("paint painting draw drawing sketch watercolor canvas picture", "easel canvas drawing studio desk table"),
    (
        "guitar piano harp compose composing practice sing song rehearse perform",
        "guitar piano harp violin microphone instrument stage organ choir pew",
    ),
    ("game games gaming stream streaming twitch", "game console computer television"),
    (
        "computer code coding program software app animation online web edit email digital photo photography",
        "computer laptop desk",
    ),
    (
        "exercise exercising race lift lifting train training workout stretch stretching",
        "lifting weight treadmill mat gym garden",
    ),
    (
        "garden gardening sow seeds plant plants weed weeding flower watering tend tending",
        "garden flowerbed greenhouse plant",
    ),
    ("walk walking stroll run running jog air fresh", "path fountain lawn"),
    (
        "serve serving customer customers sell welcome welcoming offering pour counter till",
        "behind counter register till bar desk",
    ),
    (
        "shop shopping buy buying groceries errand errands restock restocking needed browse pay paying",
        "shelf store product counter rack aisle stall",
    ),
    ("pool billiards", "pool table"),
    (
        "party guest guests attending hosting decorate decorating decorations putting",
        "customer seating table sofa garden stage counter",
    ),
    ("clean cleaning tidy tidying dust sweep wipe", "shelf table broom closet"),
    ("laundry wash washing iron", "washing machine basin sink"),
    ("fetch fetching", "toolbox shelf closet workbench cupboard supply"),
    ("call phone telephone", "phone telephone desk"),
    ("pray praying mass", "pew choir stall kneeler altar shrine"),
    ("patient patients examine", "bed desk examination couch"),
)
_USES = tuple(
    (frozenset(terms(does)), {word: n for n, word in reversed(list(enumerate(terms(things))))}) for does, things in USES
)
STAFF = frozenset(terms("behind cooking stove oven cooker refrigerator fridge toaster kitchen podium blackboard"))
"""What is not for guests."""
SERVES = frozenset(
    terms("working serving teaching lecturing hosting preparing restocking opening closing cleaning welcoming offering")
)
BENCH = frozenset(terms("bench"))
FOR_ONE = frozenset(terms("toilet lavatory shower bath bathtub tub"))
"""What one uses alone."""
ENOUGH = 0.5


def without_place(what: str, where: str) -> str:
    """Leave out the place: whoever collects leaves in the park does not do so at the park bench for its name's sake."""
    room, _, house = where.partition(" of ")
    for name in (house, room):
        for word in (" in ", " at ", " of ", " in the ", " at the ") if name else ():
            what = what.replace(f"{word}{name}", "")
    return what


def thing_for(what: str, things: Sequence[str], guest: bool = False) -> str:
    """Return the thing (an address) that fits best what is done; "" where none fits."""
    number = find_thing(what, [thing.rpartition(":")[2] for thing in things], guest)
    return things[number] if number >= 0 else ""


def find_thing(what: str, names: Sequence[str], guest: bool = False) -> int:
    """Return the position of the thing that fits best what is done, of several the first; -1 where none fits.

    Args:
        guest: it is neither one's home nor one's work: nobody goes behind a counter or cooks there.
    """
    best, chosen = ENOUGH, -1
    for number, name in enumerate(names):
        fit = _fit(what, name, guest)
        if fit > best + 1e-9:
            best, chosen = fit, number
    return chosen


def is_for_one(name: str) -> bool:
    """Tell whether a thing of this name is one that people use alone."""
    words = terms(name)
    return bool(words) and words[-1] in FOR_ONE


@caches.remember(1 << 15)
def _fit(what: str, name: str, guest: bool) -> float:
    """Return how well a thing fits: shared words count most, then what such things are for."""
    words, parts = _words(what), frozenset(terms(name))
    if "bench" in parts:
        parts = BENCH  # whatever it is called after
    if "pool" in parts and "pool" not in words:
        return 0.0
    if guest and parts & STAFF and not words & SERVES:
        return 0.0
    explained = words & parts
    score = 1.5 * len(explained)
    for does, things in _USES:
        if words & does:
            ranks = [things[part] for part in parts if part in things]
            if ranks:
                explained |= parts & things.keys()
                score += (1.0 + 0.25 * len(words & does)) * (1.0 - 0.08 * min(ranks)) + 0.05 * len(ranks)
    if score:
        score -= 0.1 * len(parts - explained)  # a kitchen sink is less of a basin than a sink
    if "behind" in parts:
        score += 0.6 if words & SERVES else -2.0
    return score


@caches.remember(4_096)
def _words(what: str) -> frozenset[str]:
    return frozenset(terms(what))
