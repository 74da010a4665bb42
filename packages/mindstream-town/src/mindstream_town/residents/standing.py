"""Where one stands at a place that is anybody's: not all on one spot."""

from __future__ import annotations

from mindstream_town.residents.places import is_home
from mindstream_town.residents.sight import is_in_sight
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.world.tree import ARENA, OBJECT, Address
from mindstream_town.world.world import Spot

ASIDE = 3
"""So many spots from a thing one still is at it."""


def stand_at(turn: ResidentTurn, address: Address, nearest: Spot) -> Spot:
    """Return where somebody goes to stand: at the nearest spot of a place, or beside it.

    Who sees that spot goes there if it is free, else to a free one near; who comes from elsewhere cannot know, and
    half of those go beside it. At home, on roads, and as published (`compat`), it is the nearest.

    Args:
        nearest: of the spots of the place, the one to which the way is shortest.
    """
    world = turn.setting.world
    if turn.profile.compat or is_home(turn.person, str(address)):
        return nearest
    taken = {each.spot for each in turn.percepts if each.who}
    sees = is_in_sight(turn.setting, turn.state.spot(turn.step), nearest)
    if sees and nearest not in taken:
        return nearest
    around = [
        spot
        for spot in world.visible(nearest, ASIDE)
        if world.walkable(spot) and spot not in taken and ARENA <= world.address_at(spot).level < OBJECT
    ]
    drawn = turn.setting.draw("stand", turn.step, turn.name)
    if not around or (not sees and drawn < 0.5):
        return nearest
    return around[int(drawn * len(around)) if sees else int((2 * drawn - 1) * len(around))]
