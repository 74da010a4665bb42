"""A waking day that fills up: what is put in first stands, what comes later takes what is left."""

from __future__ import annotations

from typing import NamedTuple

DAY = 24 * 60


class Slot(NamedTuple):
    """A part of a day, in minutes; past midnight is counted on. `place` as in DayPlan: 0 is at home."""

    start: int
    end: int
    what: str
    place: int


class Timeline:
    """A waking day, from getting up to going to bed.

    Args:
        wake, bed: minutes of the day; going to bed before getting up is meant as after midnight.
    """

    def __init__(self, wake: int, bed: int) -> None:
        self.wake = wake
        self.bed = bed if bed > wake else bed + DAY
        self._slots: list[Slot] = []

    def at(self, minute: int) -> int:
        """Return a minute of the day as this day counts it: what lies before getting up is after midnight."""
        return minute if minute >= self.wake or minute + DAY > self.bed else minute + DAY

    def add(self, start: int, end: int, what: str, place: int, least: int = 15) -> None:
        """Put something in, wherever nothing stands yet; pieces shorter than `least` are left out."""
        for begin, until in self.gaps(max(start, self.wake), min(end, self.bed)):
            if until - begin >= least:
                self._slots.append(Slot(begin, until, what, place))

    def gaps(self, start: int = 0, end: int = 0, least: int = 1) -> list[tuple[int, int]]:
        """Return what is free between two minutes, the whole day where none are given."""
        at, end = start or self.wake, end or self.bed
        found = []
        for slot in sorted(self._slots):
            if slot.end > at and slot.start < end:
                if slot.start - at >= least:
                    found.append((at, slot.start))
                at = max(at, slot.end)
        if end - at >= least:
            found.append((at, end))
        return found

    def is_free(self, start: int, end: int) -> bool:
        """Tell whether nothing stands between two minutes of the day."""
        return self.wake <= start and end <= self.bed and self.gaps(start, end) == [(start, end)]

    def slots(self) -> list[Slot]:
        """Return the day in order; neighbours that say the same are one."""
        merged: list[Slot] = []
        for slot in sorted(self._slots):
            if (
                merged
                and merged[-1].what == slot.what
                and merged[-1].place == slot.place
                and merged[-1].end >= slot.start
            ):
                merged[-1] = merged[-1]._replace(end=slot.end)
            else:
                merged.append(slot)
        return merged
