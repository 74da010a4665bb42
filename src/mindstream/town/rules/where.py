"""Which of the places that somebody knows a text means: by name, and by what such places are for."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream import caches
from mindstream.text.words import terms
from mindstream.town.prompts.plan_day import Place

PURPOSES: dict[str, tuple[str, str]] = {
    "eat": (
        "eat eats eating lunch dinner breakfast brunch coffee tea meal cook chef waiter waitress barista",
        "cafe café restaurant diner bistro bakery canteen cafeteria tearoom teahouse pizzeria coffee eatery inn",
    ),
    "drink": (
        "drink drinks beer wine cocktail bartender barkeeper",
        "pub bar tavern saloon taproom nightclub",
    ),
    "outdoors": (
        "walk walks stroll run runs jog jogs hike picnic outdoors tree trees bird birds nature gardener",
        "park square beach forest wood lake river meadow plaza promenade harbour harbor playground riverside",
    ),
    "shop": (
        "shopping buy buys groceries errands purchase shopkeeper grocer cashier merchant",
        "market store shop supermarket grocery mall pharmacy",
    ),
    "study": (
        "study studies studying read reads reading research class classes course courses lecture exam "
        "homework thesis student pupil teach teaches teaching teacher professor lecturer librarian school",
        "school college university classroom library academy kindergarten campus lab laboratory",
    ),
    "heal": (
        "patient patients nurse doctor physician surgeon midwife medic",
        "clinic hospital infirmary surgery practice",
    ),
    "craft": (
        "paint paints sculpt pottery weld carpenter mechanic repair",
        "studio atelier workshop garage smithy forge",
    ),
    "train": (
        "exercise exercises gym sport sports swim train trains yoga athlete coach race marathon tournament",
        "gym pool stadium court pitch dojo fitness sports",
    ),
    "desk": (
        "office clerk lawyer accountant engineer programmer developer manager secretary journalist mayor",
        "office bureau coworking headquarters newsroom town-hall hall",
    ),
    "farm": (
        "farm farmer crops harvest cows milking shepherd",
        "farm barn field stable orchard vineyard greenhouse",
    ),
    "faith": (
        "pray prayer mass worship priest pastor imam rabbi nun",
        "church chapel temple mosque synagogue shrine",
    ),
    "shows": (
        "film movie concert play exhibition show actor musician curator",
        "cinema theatre theater museum gallery stage concert",
    ),
    "travel": (
        "train bus ferry passengers conductor stationmaster",
        "station harbour harbor airport depot",
    ),
    "lodge": (
        "porter innkeeper hotelier receptionist guest guests",
        "hotel hostel guesthouse inn gatehouse",
    ),
    "guard": (
        "patrol police policeman officer firefighter warden guard",
        "police station barracks firehouse gatehouse",
    ),
}
"""What people do, and where it is done: the general sense of English words, no town's."""
PUBLIC = ("eat", "drink", "outdoors", "shop", "study", "train", "faith", "shows")
OPEN = {
    "eat": (7 * 60, 21 * 60),
    "drink": (16 * 60, 25 * 60),
    "shop": (8 * 60, 20 * 60),
    "outdoors": (6 * 60, 21 * 60),
    "study": (8 * 60, 20 * 60),
}
"""When such places are open, where nobody says."""
SERVICE = frozenset(
    terms(
        "bathroom washroom restroom toilet lavatory shower storeroom storage cellar corridor hallway lobby "
        "kitchen dressing"
    )
)
"""Rooms where nobody spends time."""
NOT_NAMES = frozenset(terms("room main common house home empty of at the and for place floor first second"))
WHOLE = 24 * 60


@caches.remember(4_096)
def purposes_of(place: Place) -> tuple[str, ...]:
    """Return what a place is for, by its words; where they say nothing, by a thing in it: a bar."""
    words = set(terms(place.words))
    if SERVICE & set(terms(place.words.partition(" of ")[0])):
        return ()
    said = tuple(purpose for purpose in _FOR if words & _FOR[purpose][1])
    return said or tuple(purpose for purpose in _FOR if set(place.things) & _FOR[purpose][1])


_FOR = {purpose: (frozenset(terms(does)), frozenset(terms(where))) for purpose, (does, where) in PURPOSES.items()}


@caches.remember(4_096)
def _names(place: Place) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the words of the inner place, of the one around it, and of the things in it."""
    inner, _, outer = place.words.partition(" of ")
    things = frozenset(terms(" ".join(place.things)))
    return frozenset(terms(inner)) - NOT_NAMES, frozenset(terms(outer)) - NOT_NAMES, things


def find_named(text: str, places: Sequence[Place], without: str = "") -> int:
    """Return the number (from 1) of the place whose name a text tells; 0 where it tells none.

    Args:
        without: a name whose words are not counted, the person's own.
    """
    words = set(terms(text[:1_000])) - set(terms(without))
    best, chosen = 0.0, 0
    for number, place in enumerate(places, 1):
        inner, outer, things = _names(place)
        whole = outer or inner
        named = len(words & whole) / len(whole) if whole else 0.0
        within = len(words & inner) / len(inner) if inner else 0.0
        if place.home and " " in (room := place.words.partition(" of ")[0]) and room in text:
            within = 1.0
        if place.home and within < 1.0:  # home as such is no number
            continue
        if named < 0.5 and not (within == 1.0 and (place.home or inner - outer)):
            continue
        score = 2.0 * named + within + min(0.8, 0.2 * len(words & things)) + 0.05 * len(words & whole)
        if score > best + 1e-9:
            best, chosen = score, number
    return chosen


def find_meant(text: str, places: Sequence[Place], allowed: Sequence[str] = ()) -> int:
    """Return the number of the place where what a text tells is done mostly; 0: none is known.

    Args:
        allowed: purposes that count; all where it is empty.
    """
    words = set(terms(text[:1_000]))
    best, chosen = 0.0, 0
    for number, place in enumerate(places, 1):
        if place.home or (allowed and not set(purposes_of(place)) & set(allowed)):
            continue
        score: float = sum(
            len(words & does) for purpose, (does, _) in _FOR.items()
            if purpose in purposes_of(place) and (not allowed or purpose in allowed)
        )  # fmt: skip
        score += 0.5 * _alike(words, place) + (0.1 * len(words & _names(place)[2]) if score else 0)
        if score > best:
            best, chosen = score, number
    return chosen


def _alike(words: set[str], place: Place) -> int:
    """Count the words of a place's name that begin as a word of the text does: a baker, a bakery."""
    inner, outer, _ = _names(place)
    return sum(
        any(len(word) >= 4 and len(name) >= 4 and name[:4] == word[:4] and word != name for word in words)
        for name in inner | outer
    )


def serves(place: Place, words: frozenset[str]) -> bool:
    """Tell whether a place is for one of the things that words tell of."""
    return any(words & _FOR[purpose][0] for purpose in purposes_of(place))


def find_for(purpose: str, places: Sequence[Place]) -> list[int]:
    """Return the numbers of all public places that serve a purpose, those inside a larger place once."""
    return [number for number, place in enumerate(places, 1) if not place.home and purpose in purposes_of(place)]


def is_open(place: Place, start: int, end: int) -> bool:
    """Tell whether one can be at a place from one minute to another (past midnight counted on)."""
    days = (0, WHOLE)  # past midnight it is still the evening before
    return place.home or any(
        opens <= start + day and end + day <= closes for opens, closes in _opening(place) for day in days
    )


def hours_without(place: Place, start: int, end: int) -> str:
    """Return a place's hours without those from one minute to another."""
    parts = [
        part for opens, closes in _opening(place) for part in ((opens, min(closes, start)), (max(opens, end), closes))
    ]
    left = [f"{_clock(opens)}-{_clock(closes)}" for opens, closes in parts if opens < closes]
    return ", ".join(left) or "closed"


def _clock(minute: int) -> str:
    return f"{minute // 60 % 24:02d}:{minute % 60:02d}"


def _opening(place: Place) -> list[tuple[int, int]]:
    """Return from when to when a place is open, as said, else as usual."""
    spans = _spans(place.hours)
    if spans is not None:
        return spans
    return [OPEN[purpose] for purpose in purposes_of(place) if purpose in OPEN] or [(0, 2 * WHOLE)]


def read_opening(hours: str) -> tuple[int, int] | None:
    """Return from when to when a place is open in all, past midnight counted on; None: nobody says, or never."""
    spans = _spans(hours)
    return (min(opens for opens, _ in spans), max(closes for _, closes in spans)) if spans else None


@caches.remember(256)
def _spans(hours: str) -> list[tuple[int, int]] | None:
    """Read "08:00-20:00, 21:00-02:00"; None: nobody says."""
    if not hours:
        return None
    spans = []
    for span in hours.split(","):
        start, dash, end = span.strip().partition("-")
        if dash and ":" in start and ":" in end:
            opens, closes = (int(each[:-3]) * 60 + int(each[-2:]) for each in (start, end))
            spans.append((opens, closes if closes > opens else closes + WHOLE))
    return spans
