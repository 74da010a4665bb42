"""Where residents stand at a place, so that they do not all share one spot."""

from __future__ import annotations

from mindstream_town.residents.places import is_home
from mindstream_town.residents.sight import is_in_sight
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.world.tree import ARENA, OBJECT, Address, Spot

ASIDE = 3
"""Maximum spots between a resident and the thing that it uses."""


def stand_at(turn: ResidentTurn, address: Address, nearest: Spot) -> Spot:
    """Return where the resident stands at a place: at its nearest spot, or next to it.

    If the spot is in sight, the resident takes it if it is free, else a free one next to it. From elsewhere it cannot
    know, and half of the residents stand next to it. At home and on roads it is always the nearest spot.

    Args:
        nearest: the spot of the place with the shortest way.
    """
    world = turn.setting.world
    if is_home(turn.person, str(address)):
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
