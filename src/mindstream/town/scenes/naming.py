"""Places by the names that a prompt lists: what a reply names is found again, or it is nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.town.residents.places import words_of
from mindstream.town.setting import Setting


def find_place(said: str, places: Mapping[str, str]) -> str:
    """Return the address of a place that a reply names; "" where it is none of them, or could be two.

    Args:
        places: addresses by the names that were listed.
    """
    name = said.split(" (")[0].split(": ")[0].strip().casefold()
    if not name:
        return ""
    by_name = {each.casefold(): address for each, address in places.items()}
    if name in by_name:
        return by_name[name]
    near = {address for each, address in by_name.items() if name in each or each in name}
    return near.pop() if len(near) == 1 else ""


def find_thing(setting: Setting, place: str, said: str) -> str:
    """Return the address of a thing in a place; the place itself where no such thing is there."""
    name = said.strip().casefold()
    things = {each.rpartition(":")[2].casefold(): each for each in setting.objects_in(place)}
    return things.get(name, place)


def by_words(addresses: Sequence[str]) -> dict[str, str]:
    """Return addresses by their names in words."""
    return {words_of(each): each for each in addresses}
