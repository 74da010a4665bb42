"""What holds at places: when they are open, how many they take, whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mindstream.errors import InputError
from mindstream_town.world.hours import DAY_MINUTES
from mindstream_town.world.tree import Address

SPAN = re.compile(r"\s?([012]?\d):([0-5]\d)\s?-\s?([012]?\d):([0-5]\d)\s?")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_HOURS = 200


@dataclass(frozen=True, slots=True)
class Hours:
    """From one minute of the day to another; past midnight where the end is not after the start."""

    start: int
    end: int

    def hold(self, minute: int) -> bool:
        """Tell whether a minute of the day lies in them; the end does not."""
        return self.start <= minute < self.end if self.start < self.end else minute >= self.start or minute < self.end


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """What holds at a place and in everything in it that has no rule of its own; None says nothing about it.

    Attributes:
        hours: when it is open; empty: always.
        days: on which days of the week (0 is Monday) those hours begin; None: on all.
        capacity: how many residents it takes at once.
        owners: whose it is, by name; others come by leave. Empty: anybody's.
        public: anybody may come, whoever owns it or lives there; False: nobody but those.
        purpose: what it is for: "eat", "shop" where one can eat out or buy something; other words are for models.
    """

    hours: tuple[Hours, ...] | None = None
    days: frozenset[int] | None = None
    capacity: int | None = None
    owners: frozenset[str] | None = None
    public: bool | None = None
    purpose: tuple[str, ...] | None = None


class PlaceRules:
    """The rules of a world; the narrowest place that says something about a question decides it."""

    def __init__(self, rules: Mapping[Address, PlaceRule] | None = None) -> None:
        self._rules = dict(rules or {})
        self._around_of: dict[Address, tuple[PlaceRule, ...]] = {}

    def __iter__(self) -> Iterator[tuple[Address, PlaceRule]]:
        return iter(self._rules.items())

    def is_open(self, address: Address, at: datetime) -> bool:
        """Tell whether a place is open at a moment of the game."""
        rule = self.hours(address)
        return rule is None or not rule.hours or any(_is_open(hours, rule.days, at) for hours in rule.hours)

    def capacity(self, address: Address) -> int | None:
        """Return how many residents a place takes at once; None: as many as come."""
        return next((rule.capacity for rule in self._around(address) if rule.capacity is not None), None)

    def counted_at(self, address: Address) -> Address:
        """Return the place whose residents count against `capacity`: the one that has the rule."""
        around: Address | None = address
        while around is not None:
            if (rule := self._rules.get(around)) and rule.capacity is not None:
                return around
            around = around.parent
        return address

    def owners(self, address: Address) -> frozenset[str]:
        """Return whose a place is; empty: anybody's."""
        return next((rule.owners for rule in self._around(address) if rule.owners is not None), frozenset())

    def lets_in(self, resident: str, address: Address) -> bool | None:
        """Tell whether a place is open to a resident by whose it is; None: nobody says."""
        for rule in self._around(address):
            if rule.public is not None or rule.owners is not None:
                return bool(rule.public) or resident in (rule.owners or ()) or (rule.public is None and not rule.owners)
        return None

    def purposes(self, address: Address) -> tuple[str, ...]:
        """Return what a place is for."""
        return next((rule.purpose for rule in self._around(address) if rule.purpose is not None), ())

    def may_enter(self, resident: str, address: Address, at: datetime) -> bool:
        """Tell whether a resident may go in uninvited: it is theirs, or it is nobody's (or public) and open."""
        if self.lets_in(resident, address) is False:
            return False
        return resident in self.owners(address) or self.is_open(address, at)

    def hours(self, address: Address) -> PlaceRule | None:
        """Return the rule that sets a place's opening hours; None: no rule does."""
        return next((rule for rule in self._around(address) if rule.hours is not None), None)

    def _around(self, address: Address) -> tuple[PlaceRule, ...]:
        """Return the rules of a place and of the places around it, the narrowest first."""
        known = self._around_of.get(address)
        if known is None:
            levels = (address.upto(level) for level in range(address.level, 0, -1))
            known = tuple(rule for place in levels if (rule := self._rules.get(place)) is not None)
            self._around_of[address] = known
        return known


def parse_hours(text: str) -> tuple[Hours, ...]:
    """Read "08:00-20:00", several with commas between, past midnight too ("18:00-02:00"); "always" is empty.

    Raises:
        InputError: it is nothing of that.
    """
    if text.strip() == "always":
        return ()
    spans = []
    for part in text[:LONGEST_HOURS].split(","):
        found = SPAN.fullmatch(part)
        start, end = (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])) if found else (-1, -1)
        if not 0 <= start < DAY_MINUTES or not 0 <= end <= DAY_MINUTES:
            raise InputError(
                f"{text!r:.99} are no opening hours: wanted is 08:00-20:00, or several with commas, or always"
            )
        spans.append(Hours(start, end))
    return tuple(spans)


def parse_days(names: list[str]) -> frozenset[int]:
    """Read names of weekdays.

    Raises:
        InputError: one is none.
    """
    for name in names:
        if name.casefold() not in WEEKDAYS:
            raise InputError(f"{name!r:.40} is no day of the week: wanted are {', '.join(WEEKDAYS)}")
    return frozenset(WEEKDAYS.index(name.casefold()) for name in names)


def _is_open(hours: Hours, days: frozenset[int] | None, at: datetime) -> bool:
    minute = at.hour * 60 + at.minute
    began_yesterday = hours.start >= hours.end and minute < hours.end
    day = (at.weekday() - began_yesterday) % 7
    return hours.hold(minute) and (days is None or day in days)
