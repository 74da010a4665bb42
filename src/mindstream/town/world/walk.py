"""A walk over tiles, written short: where it begins, then runs of steps, `12,7:R3D12`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise

from mindstream.town.world.world import Spot

_STEPS: dict[str, Spot] = {"R": (1, 0), "L": (-1, 0), "D": (0, 1), "U": (0, -1), "S": (0, 0)}
_LETTERS = {step: letter for letter, step in _STEPS.items()}
_RUN = re.compile(r"([RLDUS])(\d{1,6})|;(-?\d{1,9}),(-?\d{1,9})")


def write_walk(tiles: Sequence[Spot]) -> str:
    """Write a walk (at least one tile); where a step is none to a neighbour, the tile itself stands."""
    (x, y), *_ = tiles
    moves = [_LETTERS.get((bx - ax, by - ay), f";{bx},{by}") for (ax, ay), (bx, by) in pairwise(tiles)]
    runs = "".join(f"{move}{len(list(run))}" if move in _STEPS else "".join(run) for move, run in groupby(moves))
    return f"{x},{y}:{runs}"


@lru_cache(maxsize=8_192)
def read_walk(text: str) -> tuple[Spot, ...]:
    """Read what `write_walk` wrote.

    Raises:
        ValueError: it is none.
    """
    head, _, runs = text.partition(":")
    x, y = map(int, head.split(","))
    tiles, read = [(x, y)], 0
    for run in _RUN.finditer(runs):
        if run.start() != read:
            raise ValueError(f"no walk: {text[:80]!r}")
        read = run.end()
        letter, count, to_x, to_y = run.groups()
        if letter is None:
            tiles.append((int(to_x), int(to_y)))
            continue
        dx, dy = _STEPS[letter]
        for _ in range(int(count)):
            tiles.append((tiles[-1][0] + dx, tiles[-1][1] + dy))
    if read != len(runs):
        raise ValueError(f"no walk: {text[:80]!r}")
    return tuple(tiles)
