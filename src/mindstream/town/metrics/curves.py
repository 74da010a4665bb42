"""Curves over a town's days, as CSV and as an SVG that reads on light and on dark."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from mindstream.town.history import History

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 380, 60, 50, 210, 50
STYLE = """
:root { --ground: #ffffff; --ink: #222222; --line: #e4e4e4; --c0: #1764ab; --c1: #c0392b; --c2: #2e8b57;
  --c3: #8e44ad; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --ink: #e6e6e6; --line: #2a2f37; --c0: #83c5e8;
  --c1: #ff7b6b; --c2: #7ccf9b; --c3: #c99be0; } }
"""


def hours(history: History) -> list[int]:
    """Return the steps at which an hour begins, the beginning and the last step among them."""
    an_hour = 60 * history.setting.profile.a_minute
    return sorted({*range(0, history.step + 1, an_hour), history.step})


def curves_csv(history: History, steps: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """Write curves as a table: a line for each step."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["step", "time", *curves])
    for n, step in enumerate(steps):
        table.writerow([step, history.clock(step), *(f"{values[n]:g}" for values in curves.values())])
    return out.getvalue()


def draw_curves(history: History, steps: Sequence[int], curves: Mapping[str, Sequence[float]], title: str) -> str:
    """Draw shares (0 to 1) over the days as stairs."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    last = max(1, steps[-1])
    parts = [_text(LEFT, 28, title, size=15)]
    for quarter in range(5):
        y = TOP + high * (1 - quarter / 4)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{wide}" stroke="var(--line)"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{quarter * 25} %", anchor="end"))
    for step in range(0, last + 1, max(1, history.setting.profile.a_day // 2)):
        x = LEFT + wide * step / last
        parts.append(_text(x, TOP + high + 20, f"{history.setting.when(step):%a %H:%M}", anchor="middle"))
    for number, (name, values) in enumerate(curves.items()):
        colour, path = f"var(--c{number % 4})", ""
        for step, value in zip(steps, values, strict=True):
            x, y = LEFT + wide * step / last, TOP + high * (1 - value)
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(WIDTH - RIGHT + 14, TOP + 8 + 20 * number, f"{name}: {values[-1]:.0%}", colour=colour))
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">'
    ground = '<rect width="100%" height="100%" fill="var(--ground)"/>'
    return f"{head}<style>{STYLE}</style>{ground}{''.join(parts)}</svg>\n"


def _text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start", colour: str = "var(--ink)") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
