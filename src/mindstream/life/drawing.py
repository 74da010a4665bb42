"""A life's memories through the days, as an SVG that reads on light and on dark, a lane each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, LEFT, TOP, ROW = 1_080, 470, 74, 15
LONGEST = 80
STYLE = """
:root { --ground: #ffffff; --ink: #222222; --faint: #767676; --line: #e4e4e4; --gone: #c0392b; --dream: #8e44ad;
  --l0: #d3e3f3; --l1: #a9cfe5; --l2: #75b3d8; --l3: #3f8fc4; --l4: #1764ab; --l5: #08306b; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171c; --ink: #e6e6e6; --faint: #9aa0a8; --line: #2a2f37;
  --gone: #ff7b6b; --dream: #c99be0; --l0: #22384c; --l1: #2b5673; --l2: #37799f; --l3: #4f9fcb;
  --l4: #83c5e8; --l5: #d2eefc; } }
"""


@dataclass(frozen=True, slots=True)
class Lane:
    """A memory: its words, its kind, the day on which it came, how it was held at the end of each day since."""

    text: str
    kind: str
    born: int
    levels: tuple[int, ...]
    lasting: bool = False

    @property
    def label(self) -> str:
        """Its words on a line."""
        words = " ".join(self.text.split())
        return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def draw_month(lanes: Sequence[Lane], days: int, title: str) -> str:
    """Return the picture: what was returned again, what was told once, the dreams."""
    notes = [lane for lane in lanes if lane.kind != "dream"]
    groups = (
        ("recalled again", [lane for lane in notes if max(lane.levels) > 0]),
        ("told once", [lane for lane in notes if max(lane.levels) <= 0]),
        ("dreams", [lane for lane in lanes if lane.kind == "dream"]),
    )
    step, body, y = (WIDTH - LEFT - 30) / days, list[str](), float(TOP)
    for name, group in groups:
        if not group:
            continue
        kept = sum(lane.levels[-1] >= 0 for lane in group)
        body.append(_text(LEFT - 10, y + 10, f"{name}: {kept} of {len(group)} are there", "end", bold=True))
        y += ROW + 2
        for lane in sorted(group, key=lambda lane: lane.born):
            body += _lane(lane, y, step)
            y += ROW
        y += 8
    return _whole(title, [*_grid(days, step, y), *body, *_legend(y + 26)], y + 60)


def _lane(lane: Lane, y: float, step: float) -> list[str]:
    parts = [_text(LEFT - 10, y + 11, lane.label, "end", faint=lane.levels[-1] < 0)]
    for day, level in enumerate(lane.levels, lane.born - 1):
        x = LEFT + day * step
        if level < 0:
            parts.append(_cross(x + 3, y + ROW / 2 - 1))
            break
        parts.append(_rect(x, y + 2, step + 0.4, ROW - 5, f"var(--l{min(level, 5)})"))
    if lane.kind == "dream":
        parts.append(_moon(LEFT + (lane.born - 1) * step + 4, y + ROW / 2))
    return parts


def _grid(days: int, step: float, bottom: float) -> list[str]:
    parts = []
    for day in [1, *range(5, days + 1, 5)]:
        x = LEFT + (day - 1) * step
        parts.append(f'<path d="M{x:.1f} {TOP - 4}V{bottom:.1f}" stroke="var(--line)"/>')
        parts.append(_text(x, TOP - 10, f"day {day}" if day == 1 else str(day), faint=True))
    return parts


def _legend(y: float) -> list[str]:
    parts = []
    for level in range(6):
        x = LEFT + 78 * level
        parts.append(_rect(x, y - 9, 16, 10, f"var(--l{level})"))
        parts.append(_text(x + 21, y, "lasting" if level == 5 else f"level {level}", faint=True))
    gone, dreamt = LEFT - 230, LEFT - 110
    parts += [_cross(gone, y - 4), _text(gone + 9, y, "forgotten", faint=True)]
    return [*parts, _moon(dreamt, y - 4), _text(dreamt + 9, y, "dreamt", faint=True)]


def _whole(title: str, body: Sequence[str], height: float) -> str:
    size = f'viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}"'
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="11"'
    ground = '<rect width="100%" height="100%" fill="var(--ground)"/>'
    words = f'<text x="24" y="30" font-size="17" font-weight="bold" fill="var(--ink)">{escape(title)}</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}><style>{STYLE}</style>{ground}'
    return f"{head}{words}{''.join(body)}</svg>\n"


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}"/>'


def _cross(x: float, y: float) -> str:
    return f'<path d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6" stroke="var(--gone)" stroke-width="1.8"/>'


def _moon(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--dream)"/>'


def _text(x: float, y: float, words: str, anchor: str = "start", *, faint: bool = False, bold: bool = False) -> str:
    fill, weight = "var(--faint)" if faint else "var(--ink)", ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{weight}>{escape(words)}</text>'
