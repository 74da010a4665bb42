"""Format events of a town as lines of text and as JSON rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mindstream.cli.shell.output import short
from mindstream.log.events import Event, Reflected, Remembered
from mindstream_town.events import Acted, DayPlanned, ObjectChanged, StoodIn, Talked, TownEvent
from mindstream_town.residents.places import words_of
from mindstream_town.setting import Setting

OPENINGS = 2
"""Maximum lines of a conversation to show."""


def describe(mind: str, event: Event, texts: Sequence[str] = ()) -> str | None:
    """Return an event as one line; None for routine events, which are not shown.

    Args:
        texts: texts of the event's records.
    """
    match event:
        case Talked() if event.lines and event.lines[0].by == mind:
            said = " / ".join(f"{line.by.split()[0]}: {short(line.text, 90)}" for line in event.lines[:OPENINGS])
            more = f" (and {len(event.lines) - OPENINGS} more)" if len(event.lines) > OPENINGS else ""
            return f"{mind} talks with {event.partner}: {said}{more}"
        case Acted() if event.act.why in ("react", "wait"):
            because = f", because of: {short(event.because, 90)}" if event.because else ""
            return f"{mind}: {event.act.what}{because}"
        case Acted() if event.act.why == "plan":
            return f"{mind}: {event.act.what}"
        case DayPlanned():
            return f"{mind} plans the day: {short('; '.join(event.broad), 140)}"
        case Reflected():
            return f"{mind} reflects: {short('; '.join(texts), 140)}"
        case ObjectChanged():
            by = f", by {event.by}" if event.by else ""
            return f"{words_of(event.place)} is {event.condition or 'in order again'}{by}"
        case Remembered() if mind:
            return None
        case StoodIn():
            return (
                f"{mind} goes on as planned, since a reply to {event.prompt} was unreadable: {short(event.reason, 90)}"
            )
    return None


def event_row(setting: Setting, mind: str, event: Event, line: str) -> dict[str, Any]:
    """Return an event as a JSON row."""
    step = event.step if isinstance(event, TownEvent) else None
    time = setting.when(step).isoformat() if step is not None else None
    return {"event": event.kind, "resident": mind, "step": step, "time": time, "line": line}
