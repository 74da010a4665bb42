"""Curves over a town's days, as CSV and as an SVG."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import MappingProxyType

import leather

from mindstream.town.inspect.history import History

COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 900, 420


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
    history: History,
    steps: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    title: str,
    *,
    said: Mapping[str, str] = MappingProxyType({}),
    mark: Mark | None = None,
) -> str:
    """Draw shares (0 to 1) over the days as stairs; `said`: what the last of a curve stands for, as `12 of 25`."""
    chart = leather.Chart(title)
    shown = {
        f"{name}: {said.get(name, f'{values[-1]:.0%}')}": list(zip(steps, values, strict=True))
        for name, values in curves.items()
    }
    if mark is not None and mark.start <= steps[-1]:
        shown[mark.text] = [(steps[0], 0.0), (mark.start, 1.0), (min(mark.end, steps[-1]), 0.0), (steps[-1], 0.0)]
    for (name, points), colour in zip(shown.items(), cycle(COLOURS), strict=False):
        before = [points[0][1], *(share for _, share in points)]
        stairs = [(step, share) for (step, new), old in zip(points, before, strict=False) for share in (old, new)]
        days = [(history.setting.when(step).replace(tzinfo=None), 100 * share) for step, share in stairs]
        chart.add_line(days, name=name, stroke_color=colour)
    chart.add_y_scale(0, 100)
    chart.add_y_axis(name="%")
    return str(chart.to_svg(width=WIDTH, height=HEIGHT))
