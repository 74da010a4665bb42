"""A day without a model: from the lifestyle, the routine, and what was agreed on."""

from __future__ import annotations

import re

from mindstream.models.prompt import rule
from mindstream.town.prompts.plan_day import DayPlan, Item, PlanDay

WAKE, BED = 7 * 60, 23 * 60


@rule(PlanDay)
def plan_by_habit(ask: PlanDay) -> DayPlan:
    """Plan meals, the routine and leisure around the hours of the lifestyle."""
    wake, bed = _hours(ask.identity)
    items = [
        Item(start=_clock(wake), minutes=60, what="getting up and ready"),
        Item(start=_clock(wake + 60), minutes=max(12 * 60 - wake - 60, 30), what="working"),
        Item(start="12:00", minutes=60, what="having lunch"),
        Item(start="13:00", minutes=240, what="working"),
        Item(start="17:00", minutes=60, what="taking a walk"),
        Item(start="18:00", minutes=60, what="having dinner"),
        Item(start="19:00", minutes=max(bed - 19 * 60, 30), what="relaxing"),
    ]
    return DayPlan(wake=_clock(wake), bed=_clock(bed), items=items)


def _hours(text: str) -> tuple[int, int]:
    bed = re.search(r"bed\w* (?:at |around |about )*(\d{1,2})\s?(am|pm)", text[:4_000])
    wake = re.search(r"(?:wakes?|awakes?|gets?)(?: up)? (?:at |around |about )*(\d{1,2})\s?(am|pm)", text[:4_000])
    return _minute(wake, WAKE), _minute(bed, BED)


def _minute(found: re.Match[str] | None, default: int) -> int:
    if found is None:
        return default
    return (int(found[1]) % 12 + 12 * (found[2] == "pm")) * 60


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"
