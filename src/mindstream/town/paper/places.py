"""The tree of places that a resident knows, as prompts show it, and the way down it by names (Park 2023, 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.town.prompts.plan_day import Place
from mindstream.town.residents.places import known_places, things_around
from mindstream.town.residents.turn import ResidentTurn


def path_of(address: str) -> str:
    """Write a place by its names, from the widest to the narrowest: `Oak Cafe > cafe > counter`."""
    return " > ".join(address.split(":")[1:])


def known_tree(turn: ResidentTurn) -> tuple[list[str], tuple[str, ...]]:
    """Return the rooms that a resident knows and may go to, and the line of each: names, hours, what is in it."""
    known = known_places(turn.setting, turn.person, turn.state.knows, turn.setting.when(turn.step))
    return [address for address, _ in known], tuple(_line(address, place) for address, place in known)


def _line(address: str, place: Place) -> str:
    """Write a branch: `Oak Cafe > cafe (open 08:00-20:00): counter, piano`."""
    return path_of(address) + place.line.removeprefix(place.words)


def things_in(turn: ResidentTurn, place: str) -> tuple[tuple[str, ...], int]:
    """Return the things that can be used around a place, and how many of them, the first ones, are at it itself."""
    things = things_around(turn, place)
    at_it = [each for each in things if f"{each}:".startswith(f"{place}:")]
    return tuple(dict.fromkeys((*at_it, *things))), len(at_it)


def descend(places: Sequence[str], said: Sequence[str]) -> str:
    """Return the place that names lead to, down from the widest; "" where they lead nowhere.

    A name may stand at any level where only one place there has it. A number alone is that of one of the places.

    Args:
        places: the addresses that were shown, in their order.
    """
    names = [part.strip() for each in said for part in each.replace(">", ":").split(":") if part.strip()]
    if len(names) == 1 and names[0].isdecimal():
        number = int(names[0])
        return places[number - 1] if 0 < number <= len(places) else ""
    found = ""
    for name in names:
        below = [each for each in _levels(places) if not found or each.startswith(f"{found}:")]
        fits = [each for each in below if each.rpartition(":")[2].casefold() == name.casefold()]
        highest = min((each.count(":") for each in fits), default=0)
        fits = [each for each in fits if each.count(":") == highest]
        if len(fits) != 1:
            continue  # no such name down there, or more than one: the rest may still lead on
        found = fits[0]
    return found


def _levels(places: Sequence[str]) -> list[str]:
    """Return all places on the way down to these, each once; not the world itself."""
    parts = (each.split(":") for each in places)
    return list(dict.fromkeys(":".join(names[: n + 1]) for names in parts for n in range(1, len(names))))


def narrowed(turn: ResidentTurn, place: str) -> str:
    """Return a room of a house that was meant as a whole: the first that is known."""
    if place.count(":") != 1:
        return place
    rooms, _ = known_tree(turn)
    return next((each for each in rooms if each.startswith(f"{place}:")), place)
