"""The minutes of a day, and how a minute is written: `HH:MM`."""

from __future__ import annotations

DAY_MINUTES = 24 * 60


def minute_of(clock: str) -> int:
    """Return the minute of the day that `HH:MM` says; `24:00` is its end."""
    hours, _, minutes = clock.partition(":")
    return min(int(hours) * 60 + int(minutes), DAY_MINUTES)


def clock(minute: int) -> str:
    """Write a minute of the day as HH:MM; past midnight it is counted from there."""
    minute = minute if minute <= DAY_MINUTES else minute - DAY_MINUTES
    return f"{minute // 60:02d}:{minute % 60:02d}"
