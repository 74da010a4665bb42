"""Places as residents speak of them, and where something is done: chosen from what a resident knows, never from afar."""

from __future__ import annotations

from functools import cache

from mindstream.town.turn import Turn
from mindstream.town.world.address import OBJECT


@cache
def words_of(place: str) -> str:
    """Say a place in words: `stove in the kitchen of the Lin family's house`."""
    _, *names = place.split(":")
    if not names:
        return place
    said = names[-1].strip()
    for name in reversed(names[:-1]):
        said += f" {'in the' if name is names[-2] and len(names) == 3 else 'of'} {name.strip()}"
    return said


def things_around(turn: Turn, place: str) -> tuple[str, ...]:
    """Name the objects that a resident knows in the sector of a place, those of the place's own arena first."""
    address = turn.setting.addresses.get(place)
    if address is None:
        return ()
    sector, arena = str(address.upto(2)), str(address.upto(3))
    known = [each for each in turn.setting.objects_in(sector) if each in turn.state.knows]
    return tuple(sorted(known, key=lambda each: not each.startswith(arena + ":")))


def find_place(turn: Turn, what: str, place: str) -> str:
    """Return the object at which something is done in a place; the place itself where none comes to mind."""
    address = turn.setting.addresses.get(place)
    if address is None or address.level == OBJECT:
        return place
    from mindstream.town.rules.things import thing_for

    known = [each for each in turn.setting.objects_in(place) if each in turn.state.knows]
    return thing_for(what, known) or place
