"""Convert between minutes of a day and the form `HH:MM`."""

from __future__ import annotations

DAY_MINUTES = 24 * 60


def minute_of(clock: str) -> int:
    """Return the minute of the day of a text `HH:MM`; `24:00` is the end of the day."""
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), DAY_MINUTES)


def clock(minute: int) -> str:
    """Return a minute of the day as `HH:MM`: 1440 is 24:00, later minutes are of the next day (1441 is 00:01)."""
    minute = minute if minute <= DAY_MINUTES else minute - DAY_MINUTES
    return f"{minute // 60:02d}:{minute % 60:02d}"
