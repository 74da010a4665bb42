"""Curves, as characters for a terminal and as an SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

ROWS, COLUMNS = 12, 66
COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 720, 400
"""Of a chart in a picture, in pixels."""


@dataclass(frozen=True)
class Axes:
    """What stands at a plot's sides: from 0, or `first`, to `last` below, from 0 to `top` (a share) on the left."""

    last: int
    below: str = "days since it was last returned"
    unit: str = " days"
    first: int = 0
    top: float = 1.0


def fitting_top(shares: Iterable[float]) -> float:
    """Return a share that ends an axis well: a quarter, a half, or all."""
    highest = max(shares, default=1.0)
    return next((top for top in (0.25, 0.5) if highest <= top), 1.0)


def plot(curves: Mapping[str, Sequence[float]], axes: Axes) -> list[str]:
    """Draw curves of shares, each by a mark of one character; a later one lies over an earlier."""
    rows = [[" "] * COLUMNS for _ in range(ROWS + 1)]
    for mark, shares in curves.items():
        before = ROWS - round(shares[0] / axes.top * ROWS)
        for column in range(COLUMNS):
            share = shares[round(column / (COLUMNS - 1) * (len(shares) - 1))]
            at = ROWS - round(share / axes.top * ROWS)
            for down in range(min(at, before + 1), max(at, before - 1) + 1):  # a steep way leaves no gap
                rows[down][column] = mark
            before = at
    lines = []
    for at, row in enumerate(rows):
        percent = f"{100 * axes.top * (ROWS - at) / ROWS:3.0f} %" if at % (ROWS // 4) == 0 else " " * 5
        lines.append(f"{percent} |{''.join(row)}".rstrip())
    first, last = str(axes.first), str(axes.last)
    middle = str((axes.first + axes.last) // 2).center(COLUMNS - len(first) - len(last))
    return [*lines, f"{'':5} +{'-' * COLUMNS}", f"{'':6} {first}{middle}{last}{axes.unit}"]


def picture(charts: Mapping[str, tuple[Mapping[str, Sequence[float]], Axes]]) -> str:
    """Draw charts of curves of shares by name, each under its title, as the text of one SVG."""
    import leather  # here, so that commands that draw nothing start without it

    grid = leather.Grid()
    for title, (curves, axes) in charts.items():
        chart = leather.Chart(title)
        for (name, shares), colour in zip(curves.items(), cycle(COLOURS), strict=False):
            step = (axes.last - axes.first) / max(1, len(shares) - 1)
            points = [(axes.first + at * step, 100 * share) for at, share in enumerate(shares)]
            chart.add_line(points, name=name, stroke_color=colour)
        chart.add_x_axis(name=axes.below)
        chart.add_y_scale(0, 100 * axes.top)
        chart.add_y_axis(name="%")
        grid.add_one(chart)
    return str(grid.to_svg(width=WIDTH * len(charts), height=HEIGHT))
