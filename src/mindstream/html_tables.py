"""HTML tables for notebooks, returned by `_repr_html_` of beliefs, plans, solutions, recalls and timelines.

All text is escaped. Colours are derived from those of the page, so that the tables fit light and dark themes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from mindstream.errors import clipped

MAX_TEXT = 400
"""Maximum number of characters of a text in a cell."""
MAX_ROWS = 50
"""Maximum number of rows of a table; the number of further rows is shown below it."""
STYLE = """
.mindstream{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:60em;margin:.3em 0;overflow-x:auto}
.mindstream table{border-collapse:collapse;width:100%;color:inherit;background:none;margin:0}
.mindstream caption{caption-side:top;text-align:left;font-weight:600;padding:0 0 .3em;color:inherit}
.mindstream caption small{font-weight:400;opacity:.7}
.mindstream th,.mindstream td{text-align:left;vertical-align:top;padding:.25em .7em .25em 0;background:none;
 color:inherit;border:0;border-top:1px solid color-mix(in srgb,currentColor 18%,transparent);overflow-wrap:break-word;
 white-space:pre-line}
.mindstream th{font-weight:400;opacity:.7;border-top:0}
.mindstream td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.mindstream .bar{display:inline-block;width:4em;height:.5em;margin-left:.5em;border-radius:.25em;
 background:linear-gradient(90deg,currentColor var(--share),color-mix(in srgb,currentColor 15%,transparent) 0)}
.mindstream .failed{color:light-dark(#b3261e,#ff8a80)}
.mindstream p{margin:.3em 0;color:inherit}
"""


@dataclass(frozen=True, slots=True)
class Share:
    """A number from 0 to 1, shown with a bar."""

    value: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A text that describes a failure, shown in red."""

    text: str


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], note: str = "", foot: str = "") -> str:
    """Return a table as HTML.

    Args:
        note: a small text after the caption.
        foot: a text below the table.
    """
    rows = list(rows)
    more = f"<p>… and {len(rows) - MAX_ROWS} more</p>" if len(rows) > MAX_ROWS else ""
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MAX_ROWS])
    small = f" <small>{escape(note)}</small>" if note else ""
    below = f"<p>{_text(foot)}</p>" if foot else ""
    return (
        f'<div class="mindstream"><style>{STYLE}</style><table><caption>{escape(caption)}{small}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{more}{below}</div>"
    )


def _cell(value: object) -> str:
    match value:
        case Share(value=share):
            percent = 100 * min(max(share, 0.0), 1.0)
            return f'<td class="n">{share:.2f}<span class="bar" style="--share:{percent:.0f}%"></span></td>'
        case Failure(text=text):
            return f'<td class="failed">{_text(text)}</td>'
        case int() | float():
            return f'<td class="n">{value:g}</td>'
        case _:
            return f"<td>{_text(str(value))}</td>"


def content_source(text: str) -> str:
    """Return the Content-Security-Policy source of a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    return escape(clipped(text, MAX_TEXT))
