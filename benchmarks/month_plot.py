"""The month as an SVG, written by hand: each record's levels by day, forgetting observed and predicted, the laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Protocol

from mindstream.memory.fading import Strength, curve

GROUPS = ("growing", "regular", "told once", "observations", "thoughts", "dreams")
NAMES = {
    "growing": "asked about at growing intervals", "regular": "asked about every third day", "told once": "told once",
    "observations": "seen", "thoughts": "thoughts", "dreams": "dreams",
}  # fmt: skip
RAMP = ("#d3e3f3", "#a9cfe5", "#75b3d8", "#3f8fc4", "#1764ab", "#08306b")
INK, FAINT, ACCENT = "#222", "#999", "#c0392b"
WIDTH, LEFT, MAP = 1100, 60, 620


class Lived(Protocol):
    """What is drawn of a record."""

    group: str
    born: int
    levels: list[int]
    risks: list[float]


def plot(lives: Sequence[Lived], laws: Strength, days: int) -> str:
    """Return the picture."""
    shown = [life for group in GROUPS for life in sorted((x for x in lives if x.group == group), key=lambda x: x.born)]
    row = max(1.0, min(4.0, 640 / max(1, len(shown))))
    height = int(max(680, 90 + row * len(shown) + 20 * len(GROUPS) + 70))
    body = [
        _text(LEFT, 26, "A month of one mind: what is rehearsed is kept", 17, weight="bold"),
        _text(
            LEFT,
            46,
            "each line is a record; the darker, the higher its level; it ends where it is forgotten",
            12,
            FAINT,
        ),
        *_map(shown, days, row),
        *_observed(lives, days, 760, 80),
        *_laws(laws, 760, 400),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="white"/>'
        + "".join(body)
        + "</svg>"
    )


def _map(shown: Sequence[Lived], days: int, row: float) -> list[str]:
    parts, y, step = [], 70.0, MAP / days
    for group in GROUPS:
        ours = [life for life in shown if life.group == group]
        if not ours:
            continue
        kept = sum(life.levels[-1] != -1 for life in ours)
        parts.append(_text(LEFT, y + 9, f"{NAMES[group]}: {kept} of {len(ours)} kept", 11, INK, "bold"))
        y += 14
        for life in ours:
            for day, level in enumerate(life.levels, life.born):
                if level < 0:
                    parts.append(_rect(LEFT + day * step, y, 2, row, ACCENT))
                    break
                parts.append(_rect(LEFT + day * step, y, step + 0.3, row * 0.92, RAMP[min(level, len(RAMP) - 1)]))
            y += row
        y += 6
    for day in range(0, days + 1, 5):
        parts.append(_text(LEFT + day * step, y + 14, f"day {day}" if day == 0 else str(day), 11, FAINT))
    for level, colour in enumerate(RAMP):
        parts.append(_rect(LEFT + 200 + 56 * level, y + 24, 52, 10, colour))
        name = "lasting" if level == len(RAMP) - 1 else f"level {level}"
        parts.append(_text(LEFT + 200 + 56 * level, y + 46, name, 10, FAINT))
    return parts


def _observed(lives: Sequence[Lived], days: int, left: float, top: float) -> list[str]:
    """Draw how many are forgotten by each day, observed over predicted, with two standard deviations."""
    width, height = 300.0, 200.0
    seen: list[int] = []
    mean: list[float] = []
    spread: list[float] = []
    variance = 0.0
    for day in range(days):
        there = [(life, day - life.born) for life in lives if day >= life.born]
        risks = [life.risks[at] for life, at in there]
        variance += sum(risk * (1 - risk) for risk in risks)
        seen.append(sum(life.levels[at] == -1 for life, at in there))
        mean.append(sum(risks) + (mean[-1] if mean else 0.0))
        spread.append(2 * math.sqrt(variance))
    most = max(1.0, *(m + s for m, s in zip(mean, spread, strict=True)), *seen)

    def at(day: int, value: float) -> str:
        return f"{left + width * day / max(1, days - 1):.1f},{top + height * (1 - max(0.0, value) / most):.1f}"

    band = [at(d, mean[d] + spread[d]) for d in range(days)] + [
        at(d, mean[d] - spread[d]) for d in reversed(range(days))
    ]
    return [
        _text(left, top - 14, "forgotten so far", 13, weight="bold"),
        f'<polygon points="{" ".join(band)}" fill="#eee"/>',
        _line([at(d, mean[d]) for d in range(days)], FAINT, "5,4"),
        _line([at(d, float(seen[d])) for d in range(days)], ACCENT),
        *_frame(left, top, width, height, f"{most:.0f}", f"day {days}"),
        _text(left + 12, top + 20, "observed", 12, ACCENT),
        _text(left + 12, top + 36, "predicted by the laws, ± 2 sd", 12, FAINT),
    ]


def _laws(laws: Strength, left: float, top: float) -> list[str]:
    """Draw the forgetting curves: the share that is held so long after the last return, by level."""
    width, height, days = 300.0, 200.0, 90
    parts = [_text(left, top - 14, "held after the last return, by level", 13, weight="bold")]
    for level in range(laws.lasting_level + 1):
        points = [
            f"{left + width * point.day / days:.1f},{top + height * (1 - point.kept):.1f}"
            for point in curve(laws, level, days=days)
        ]
        parts.append(_line(points, RAMP[min(level, len(RAMP) - 1)] if level else "#a9c9e4"))
        middle = next((p for p in curve(laws, level, days=days) if p.kept < 0.5), None)
        if middle:
            parts.append(_text(left + width * middle.day / days + 2, top + height * 0.5, str(level), 11))
    parts.append(_text(left, top + height + 34, "the laws, where a night draws one record in ten", 11, FAINT))
    return parts + _frame(left, top, width, height, "100 %", f"day {days}")


def _frame(left: float, top: float, width: float, height: float, most: str, last: str) -> list[str]:
    corner = [f"{left},{top}", f"{left},{top + height}", f"{left + width},{top + height}"]
    return [
        _line(corner, INK, width=1),
        _text(left - 6, top + 8, most, 11, FAINT, anchor="end"),
        _text(left - 6, top + height, "0", 11, FAINT, anchor="end"),
        _text(left + width, top + height + 16, last, 11, FAINT, anchor="end"),
    ]


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.2f}" width="{width:.1f}" height="{height:.2f}" fill="{fill}"/>'


def _line(points: Sequence[str], colour: str, dashes: str = "", width: float = 2) -> str:
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _text(
    x: float, y: float, text: str, size: int, colour: str = INK, weight: str = "normal", anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" font-weight="{weight}"'
        f' text-anchor="{anchor}">{escape(text)}</text>'
    )
