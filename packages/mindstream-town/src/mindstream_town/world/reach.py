"""How many steps residents are apart: the time before one could perceive another, or change what the other perceives.

Residents perceive people and objects of their own arena, at most `vision` tiles away, and walk one tile a step. So a
resident in another room must first walk there. It can also change an object next to it, which others see from farther.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Ints
from mindstream_town.scheduler import Apart
from mindstream_town.world.graph import PlaceWorld, spread
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import OBJECT, Spot
from mindstream_town.world.world import World

NEVER = 2**15 - 1
"""The number of steps that stands for an arena that cannot be reached."""


def reach_of(world: World, vision: int, aside: int) -> Apart:
    """Return the function that computes how many steps residents of a world are apart.

    Args:
        vision: how far residents see, in spots.
        aside: how far residents may stand from the objects that they use, in spots.
    """
    radii = _radii(world, vision, aside)
    return TileReach(world, vision, radii) if isinstance(world, TileWorld) else RoadReach(world, vision, radii)


def _radii(world: World, vision: int, aside: int) -> dict[int, int]:
    """Return, for each arena with objects, the largest distance at which residents can affect each other there.

    At most this far from another resident, a resident that uses an object can change what the other resident sees.
    """
    found: dict[int, int] = {}
    for address in world.places:
        if address.level == OBJECT and (spots := world.spots(address)):
            wide = max(world.distance(spots[0], each) for each in spots)
            arena = world.arena_of(spots[0])
            found[arena] = max(found.get(arena, 0), vision + aside + 2 * wide)
    return found


class TileReach:
    """Lower bound of the steps before one resident can affect another (see the module), in a world of tiles."""

    def __init__(self, world: TileWorld, vision: int, radii: Mapping[int, int]) -> None:
        self._world, self._vision, self._radii = world, vision, radii
        shape = world.height, world.width
        self._arenas = np.array(world.arenas).reshape(shape)
        self._free = np.frombuffer(world.walls, np.uint8).reshape(shape) == 0
        self._walks: dict[int, NDArray[np.int16]] = {}

    def __call__(self, spot: Spot, across: Ints, down: Ints) -> Ints:
        arena = self._world.arena_of(spot)
        if (walks := self._walks.get(arena)) is None:
            walks = self._walks[arena] = self._walk(arena)
        straight = np.maximum(np.abs(across - spot[0]), np.abs(down - spot[1]))
        found: Ints = np.maximum(walks[down, across], straight - self._radii.get(arena, self._vision))
        return found

    def _walk(self, arena: int) -> NDArray[np.int16]:
        """Return for each tile the number of steps to the nearest tile of an arena."""
        walks = np.where(self._arenas == arena, 0, NEVER).astype(np.int16)
        wave, steps = walks == 0, 0
        while wave.any():
            steps += 1
            near = np.zeros_like(wave)
            near[1:] |= wave[:-1]
            near[:-1] |= wave[1:]
            near[:, 1:] |= wave[:, :-1]
            near[:, :-1] |= wave[:, 1:]
            near &= walks == NEVER
            walks[near] = steps
            wave = near & self._free
        return walks


class RoadReach:
    """Lower bound of the steps before one resident can affect another, in a world of places and roads."""

    def __init__(self, world: PlaceWorld, vision: int, radii: Mapping[int, int]) -> None:
        self._world, self._vision, self._radii = world, vision, radii
        self._walks: dict[int, dict[Spot, int]] = {}
        self._known: dict[tuple[Spot, Spot], int] = {}

    def __call__(self, spot: Spot, across: Ints, down: Ints) -> Ints:
        others = zip(across.tolist(), down.tolist(), strict=True)
        return np.array([self._apart(spot, other) for other in others], dtype=np.int64)

    def _apart(self, spot: Spot, other: Spot) -> int:
        known = self._known.get((spot, other))
        if known is None:
            world, arena = self._world, self._world.arena_of(spot)
            if (walks := self._walks.get(arena)) is None:
                inside = [each for each in world.neighbours if world.arena_of(each) == arena]
                walks = self._walks[arena] = spread(world.neighbours, inside)
            straight = world.distance(other, spot) - self._radii.get(arena, self._vision) if other in walks else NEVER
            known = self._known[spot, other] = max(walks.get(other, NEVER), straight)
        return known
