"""Curves, as characters for a terminal and as an SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

ROWS, COLUMNS = 12, 66
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 60, 50, 170, 50
COLOURS = ("#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")


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


def svg(curves: Mapping[str, Sequence[float]], axes: Axes, title: str) -> str:
    """Draw curves of shares by name, as the text of an SVG."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = [_text(LEFT, 28, title, 15)]
    for quarter in range(5):
        y = TOP + high * (1 - quarter / 4)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{wide}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{quarter * 25 * axes.top:g} %", anchor="end"))
        at = axes.first + (axes.last - axes.first) * quarter / 4
        label = f"{at:.0f}" if axes.last > 9 else f"{at:g}"
        parts.append(_text(LEFT + wide * quarter / 4, TOP + high + 20, label, anchor="middle"))
    parts.append(_text(LEFT + wide / 2, HEIGHT - 10, axes.below, anchor="middle"))
    for number, (name, shares) in enumerate(curves.items()):
        colour = COLOURS[round((number + 1) / len(curves) * (len(COLOURS) - 1))]
        points = " ".join(
            f"{LEFT + wide * at / max(1, len(shares) - 1):.1f},{TOP + high * (1 - share / axes.top):.1f}"
            for at, share in enumerate(shares)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(WIDTH - RIGHT + 16, TOP + 8 + 20 * number, name, colour=colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = ' font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="white"/>'
    return head + style + "".join(parts) + "</svg>\n"


def stacked(pictures: Sequence[str]) -> str:
    """Put pictures one below the other, in one."""
    inner = "".join(each.replace("<svg ", f'<svg y="{HEIGHT * n}" ', 1) for n, each in enumerate(pictures))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT * len(pictures)}" width="{WIDTH}" height="{HEIGHT * len(pictures)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{inner}</svg>\n'


def _text(x: float, y: float, words: str, size: int = 12, *, anchor: str = "start", colour: str = "#222") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
