"""Curves over a town's days, as CSV and as an SVG that reads on light and on dark."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from xml.sax.saxutils import escape

from mindstream.town.history import History

WIDTH, HIGH, LEFT, TOP, RIGHT, ROW = 760, 280, 60, 62, 30, 20
LEGEND = 60
"""So far below the axis the first curve is named; each on a row of its own, so that none is cut."""
DAYS = 10
"""In longer lives not every day is named."""
STYLE = """
:root { --ground: #ffffff; --ink: #222222; --line: #e4e4e4; --c0: #1764ab; --c1: #c0392b; --c2: #2e8b57;
  --c3: #8e44ad; --c4: #b8860b; --c5: #00838f; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --ink: #e6e6e6; --line: #2a2f37; --c0: #83c5e8;
  --c1: #ff7b6b; --c2: #7ccf9b; --c3: #c99be0; --c4: #e6c35c;
  --c5: #5fd0d8; } }
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


@dataclass(frozen=True)
class Mark:
    """A stretch of time that is marked."""

    start: int
    end: int
    text: str


def draw_curves(
    history: History, steps: Sequence[int], curves: Mapping[str, Sequence[float]], title: str,
    *, said: Mapping[str, str] = MappingProxyType({}), mark: Mark | None = None,
) -> str:  # fmt: skip
    """Draw shares (0 to 1) over the days as stairs; `said`: what the last of a curve stands for, as `12 of 25`."""
    wide, last = WIDTH - LEFT - RIGHT, max(1, steps[-1])
    parts = [_text(LEFT, 28, title, size=15), *_axes(history, last)]
    if mark is not None and mark.start <= last:
        x, end = LEFT + wide * mark.start / last, LEFT + wide * min(mark.end, last) / last
        box = f'x="{x:.1f}" y="{TOP}" width="{max(2.0, end - x):.1f}" height="{HIGH}"'
        parts.append(f'<rect {box} fill="var(--ink)" fill-opacity="0.12"/>')
        anchor = "start" if x < WIDTH / 2 else "end"
        parts.append(_text(x if anchor == "start" else end, TOP - 6, mark.text, anchor=anchor))
    for number, (name, values) in enumerate(curves.items()):
        colour, path = f"var(--c{number % 6})", ""
        for step, value in zip(steps, values, strict=True):
            x, y = LEFT + wide * step / last, TOP + HIGH * (1 - value)
            path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
        dashes = ' stroke-dasharray="6 3"' if number % 12 > 5 else ""
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        y = TOP + HIGH + LEGEND + ROW * number
        parts.append(f'<path d="M{LEFT} {y - 4}h22" stroke="{colour}" stroke-width="3"{dashes}/>')
        parts.append(_text(LEFT + 30, y, f"{name}: {said.get(name, f'{values[-1]:.0%}')}"))
    height = TOP + HIGH + LEGEND + ROW * len(curves)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="Helvetica, Arial, sans-serif">'
    ground = '<rect width="100%" height="100%" fill="var(--ground)"/>'
    return f"{head}<style>{STYLE}</style>{ground}{''.join(parts)}</svg>\n"


def _axes(history: History, last: int) -> Iterator[str]:
    """Yield lines for the quarters, and for the days their dates, with noon between them where there is room."""
    wide, a_day = WIDTH - LEFT - RIGHT, history.setting.profile.a_day
    for quarter in range(5):
        y = TOP + HIGH * (1 - quarter / 4)
        yield f'<path d="M{LEFT} {y:.1f}h{wide}" stroke="var(--line)"/>'
        yield _text(LEFT - 8, y + 4, f"{quarter * 25} %", anchor="end")
    days = -(-last // a_day)
    every = a_day * max(1, -(-days // DAYS)) if days > DAYS // 2 else a_day // 2
    for step in range(0, last + 1, every):
        x, when = LEFT + wide * step / last, history.setting.when(step)
        yield f'<path d="M{x:.1f} {TOP + HIGH}v5" stroke="var(--ink)"/>'
        yield _text(x, TOP + HIGH + 18, f"{when:%H:%M}" if every < a_day else f"{when:%a}", anchor="middle")
        if (when.hour, when.minute) == (0, 0) or step == 0:
            yield _text(x, TOP + HIGH + 33, f"{when:%b} {when.day}", anchor="middle")


def _text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start", colour: str = "var(--ink)") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(words)}</text>"
