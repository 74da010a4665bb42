"""Rules of places: opening hours, capacity, owners, purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from mindstream.errors import InputError
from mindstream_town.world.tree import Address
from mindstream_town.world.world import DAY_MINUTES

SPAN = re.compile(r"\s?([012]?\d):([0-5]\d)\s?-\s?([012]?\d):([0-5]\d)\s?")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LONGEST_HOURS = 200


@dataclass(frozen=True, slots=True)
class Hours:
    """Opening hours in minutes of the day; they last past midnight if the end is not after the start."""

    start: int
    end: int

    def hold(self, minute: int) -> bool:
        """Return whether a minute of the day is within the hours; the end is excluded."""
        return self.start <= minute < self.end if self.start < self.end else minute >= self.start or minute < self.end


@dataclass(frozen=True, slots=True)
class PlaceRule:
    """The rule of a place, for the place itself and everything in it.

    For a field with None, the rule of the surrounding place holds. Two pairs of fields are always taken from one rule:

    - `hours` and `days`: from the narrowest rule with `hours`.
    - `owners` and `public`, where they decide who is let in: from the narrowest rule with `owners` or `public`.

    Attributes:
        hours: opening hours; empty: always open.
        days: weekdays (0 is Monday) on which the hours begin; None: all days.
        capacity: maximum residents at the same time.
        owners: names of the owners; others need permission. Empty: public property.
        public: True: open to all, regardless of owners and inhabitants; False: open only to owners and to residents
            whose usual day includes the place.
        purpose: "eat" or "shop" if one can eat out or buy something there; other words are only read by models.
    """

    hours: tuple[Hours, ...] | None = None
    days: frozenset[int] | None = None
    capacity: int | None = None
    owners: frozenset[str] | None = None
    public: bool | None = None
    purpose: tuple[str, ...] | None = None


class PlaceRules:
    """The rules of a world. For each question the narrowest place whose rule has a value decides."""

    def __init__(self, rules: Mapping[Address, PlaceRule] | None = None) -> None:
        self._rules = dict(rules or {})
        self._around_of: dict[Address, tuple[PlaceRule, ...]] = {}

    def __iter__(self) -> Iterator[tuple[Address, PlaceRule]]:
        return iter(self._rules.items())

    def is_open(self, address: Address, at: datetime) -> bool:
        rule = self.hours(address)
        return rule is None or not rule.hours or any(_is_open(hours, rule.days, at) for hours in rule.hours)

    def capacity(self, address: Address) -> int | None:
        """Return the maximum number of residents in a place at the same time; None: no limit."""
        return next((rule.capacity for rule in self._around(address) if rule.capacity is not None), None)

    def counted_at(self, address: Address) -> Address:
        """Return the place in which residents are counted: the narrowest place at or around the address that has a
        capacity rule. If no such place has a rule, return the address itself."""
        around: Address | None = address
        while around is not None:
            if (rule := self._rules.get(around)) and rule.capacity is not None:
                return around
            around = around.parent
        return address

    def owners(self, address: Address) -> frozenset[str]:
        """Return the owners' names; empty: no owners."""
        return next((rule.owners for rule in self._around(address) if rule.owners is not None), frozenset())

    def lets_in(self, resident: str, address: Address) -> bool | None:
        """Return whether the settings `owners` and `public` let a resident enter; None: no rule of the place has either
        setting."""
        for rule in self._around(address):
            if rule.public is not None or rule.owners is not None:
                return bool(rule.public) or resident in (rule.owners or ()) or (rule.public is None and not rule.owners)
        return None

    def purposes(self, address: Address) -> tuple[str, ...]:
        return next((rule.purpose for rule in self._around(address) if rule.purpose is not None), ())

    def may_enter(self, resident: str, address: Address, at: datetime) -> bool:
        """Return whether a resident may enter a place without an invitation.

        The place must be open to the resident (see `lets_in`). Owners may enter at any hour, other residents only
        during the opening hours.
        """
        if self.lets_in(resident, address) is False:
            return False
        return resident in self.owners(address) or self.is_open(address, at)

    def hours(self, address: Address) -> PlaceRule | None:
        """Return the rule with the opening hours of a place; None: there is none."""
        return next((rule for rule in self._around(address) if rule.hours is not None), None)

    def _around(self, address: Address) -> tuple[PlaceRule, ...]:
        """Return the rules of a place and of the places that contain it, the narrowest first."""
        known = self._around_of.get(address)
        if known is None:
            levels = (address.upto(level) for level in range(address.level, 0, -1))
            known = tuple(rule for place in levels if (rule := self._rules.get(place)) is not None)
            self._around_of[address] = known
        return known


def parse_hours(text: str) -> tuple[Hours, ...]:
    """Parse opening hours, such as "08:00-20:00", "18:00-02:00" (past midnight), or several, separated by commas.

    "always" gives ().

    Raises:
        InputError: the text is not of this form.
    """
    if text.strip() == "always":
        return ()
    spans = []
    for part in text[:LONGEST_HOURS].split(","):
        found = SPAN.fullmatch(part)
        start, end = (int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])) if found else (-1, -1)
        if not 0 <= start < DAY_MINUTES or not 0 <= end <= DAY_MINUTES:
            raise InputError(
                "expected opening hours such as 08:00-20:00, several separated by commas, or always;"
                f" found {text!r:.99}"
            )
        spans.append(Hours(start, end))
    return tuple(spans)


def parse_days(names: list[str]) -> frozenset[int]:
    """Parse names of weekdays in English; return their numbers (0 is Monday).

    Raises:
        InputError: a name is unknown.
    """
    for name in names:
        if name.casefold() not in WEEKDAYS:
            raise InputError(f"unknown weekday {name!r:.40}: expected one of {', '.join(WEEKDAYS)}")
    return frozenset(WEEKDAYS.index(name.casefold()) for name in names)


def _is_open(hours: Hours, days: frozenset[int] | None, at: datetime) -> bool:
    minute = at.hour * 60 + at.minute
    began_yesterday = hours.start >= hours.end and minute < hours.end
    day = (at.weekday() - began_yesterday) % 7
    return hours.hold(minute) and (days is None or day in days)
