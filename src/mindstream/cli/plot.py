"""Curves, as characters for a terminal and as an SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

ROWS, COLUMNS = 12, 66
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 400, 60, 50, 170, 50
COLOURS = ("#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")


def plot(curves: Mapping[str, Sequence[float]], last: int) -> list[str]:
    """Draw curves of shares (0 to 1), falling, each by a mark of one character; a later one lies over an earlier."""
    rows = [[" "] * COLUMNS for _ in range(ROWS + 1)]
    for mark, shares in curves.items():
        before = ROWS - round(shares[0] * ROWS)
        for column in range(COLUMNS):
            share = shares[round(column / (COLUMNS - 1) * (len(shares) - 1))]
            at = ROWS - round(share * ROWS)
            for down in range(min(at, before + 1), at + 1):  # a steep fall leaves no gap
                rows[down][column] = mark
            before = at
    lines = []
    for at, row in enumerate(rows):
        percent = f"{100 * (ROWS - at) // ROWS:3d} %" if at % (ROWS // 4) == 0 else " " * 5
        lines.append(f"{percent} |{''.join(row)}".rstrip())
    middle = str(last // 2).center(COLUMNS - 1 - len(str(last)))
    return [*lines, f"{'':5} +{'-' * COLUMNS}", f"{'':6} 0{middle}{last} days"]


def svg(curves: Mapping[str, Sequence[float]], last: int, title: str) -> str:
    """Draw curves of shares by name, as the text of an SVG."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = [_text(LEFT, 28, title, 15)]
    for quarter in range(5):
        y = TOP + high * (1 - quarter / 4)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{wide}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{quarter * 25} %", anchor="end"))
        parts.append(_text(LEFT + wide * quarter / 4, TOP + high + 20, f"{last * quarter / 4:g}", anchor="middle"))
    parts.append(_text(LEFT + wide / 2, HEIGHT - 10, "days since it was last returned", anchor="middle"))
    for number, (name, shares) in enumerate(curves.items()):
        colour = COLOURS[min(number + 1, len(COLOURS) - 1)]
        points = " ".join(
            f"{LEFT + wide * at / max(1, len(shares) - 1):.1f},{TOP + high * (1 - share):.1f}"
            for at, share in enumerate(shares)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(WIDTH - RIGHT + 16, TOP + 8 + 20 * number, name, colour=colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = ' font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="white"/>'
    return head + style + "".join(parts) + "</svg>\n"


def _text(x: float, y: float, words: str, size: int = 12, *, anchor: str = "start", colour: str = "#222") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
