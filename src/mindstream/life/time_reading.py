"""What tokens of time say, one after the other: how often, which days, which times of the day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import time

from mindstream.errors import InputError
from mindstream.life.time_words import DAY_PARTS, UNITS, Token


class NotUnderstoodError(ValueError):
    """The tokens mean no time together."""


@dataclass
class TimeReading:
    """What tokens have said so far, each thing once."""

    tokens: Sequence[Token]
    at: int = 0
    recurs: bool = False
    every: int = 1
    unit: str = ""
    fraction: float = 0.0
    weekdays: set[int] = field(default_factory=set)
    days_before_times: bool = False
    ordinals: list[int] = field(default_factory=list)
    date: tuple[int, ...] = ()
    day: int | None = None
    weeks: int = 0
    next_unit: str = ""
    lengths: list[tuple[float, str]] = field(default_factory=list)
    is_ahead: bool = False
    clocks: list[tuple[time | None, int | None]] = field(default_factory=list)
    prefix: int | None = None

    def read(self) -> TimeReading:
        """Take all tokens.

        Raises:
            NotUnderstoodError: one has no place.
            InputError: one names a time that there is not.
        """
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            step = _STEPS.get(token.kind)
            if step is None:
                raise NotUnderstoodError(token.kind)
            step(self, token)
        return self

    def peek(self, *kinds: str) -> Token | None:
        """Take the next token where it is of one of these kinds."""
        if self.at < len(self.tokens) and self.tokens[self.at].kind in kinds:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def take_fraction(self) -> float:
        """Take "half" or "and a half", as a number; 0 where there is none."""
        self.at += [token.kind for token in self.tokens[self.at : self.at + 2]] == ["and", "fraction"]
        found = self.peek("fraction")
        return found.values[0] / 60 if found else 0.0

    def set_unit(self, every: int, unit: int) -> None:
        """Say how often."""
        if self.unit:
            raise NotUnderstoodError("two units")
        self.every, self.unit, self.recurs = every, UNITS[unit], True

    def times(self) -> tuple[time, ...]:
        """Return the times of the day, earliest first; none where none is said."""
        return tuple(sorted({_time_of(clock, part) for clock, part in self.clocks}))


# One step a kind of token.


def _every(reading: TimeReading, token: Token) -> None:
    if reading.recurs:
        raise NotUnderstoodError("every twice")
    reading.recurs = True
    before = reading.at
    number = reading.peek("number", "ordinal") if token.values == (1,) else None
    count = number.values[0] if number else token.values[0]
    fraction = reading.take_fraction()
    if unit := reading.peek("unit"):
        reading.set_unit(0 if fraction and not number else count, unit.values[0])
        reading.fraction = fraction or reading.take_fraction()
    elif count == 2 and not number:  # every other Monday
        reading.every = 2
    else:
        reading.at = before


def _adverb(reading: TimeReading, token: Token) -> None:
    reading.set_unit(1, token.values[0])


def _unit(reading: TimeReading, token: Token) -> None:
    """Read the unit that stands behind `next`, or that an ordinal is of: on the 1st of the month."""
    unit = UNITS[token.values[0]]
    if unit != "month" or not reading.ordinals or reading.unit:
        raise NotUnderstoodError("a unit alone")
    reading.unit = unit


def _weekday(reading: TimeReading, token: Token) -> None:
    if reading.weekdays and reading.clocks and reading.days_before_times:
        raise NotUnderstoodError("other days at other times")
    reading.days_before_times = not reading.clocks
    reading.recurs = reading.recurs or token.kind == "weekdays"
    first = token.values
    if reading.peek("range"):
        if not (last := reading.peek("weekday", "weekdays")):
            raise NotUnderstoodError("a range without an end")
        days = range(first[0], last.values[0] + (7 if last.values[0] < first[0] else 0) + 1)
        first = tuple(day % 7 for day in days)
    reading.weekdays.update(first)


def _ordinal(reading: TimeReading, token: Token) -> None:
    reading.ordinals += token.values


def _date(reading: TimeReading, token: Token) -> None:
    if reading.date:
        raise NotUnderstoodError("two dates")
    reading.date = token.values


def _day(reading: TimeReading, token: Token) -> None:
    if reading.day is not None:
        raise NotUnderstoodError("two days")
    reading.day = token.values[0]


def _next(reading: TimeReading, token: Token) -> None:
    if unit := reading.peek("unit"):
        reading.next_unit = UNITS[unit.values[0]]
    elif not reading.tokens[reading.at : reading.at + 1]:
        raise NotUnderstoodError("next what")
    else:
        reading.weeks = token.values[0] + 1  # 1: the coming one, not today; 2: of the next week; 3: of the one after


def _ahead(reading: TimeReading, _: Token) -> None:
    reading.is_ahead = True


def _number(reading: TimeReading, token: Token) -> None:
    """Read a length of time, or one more hour of a list: at 9 and 18."""
    fraction = reading.take_fraction()
    if unit := reading.peek("unit"):
        fraction = fraction or reading.take_fraction()
        reading.lengths.append((token.values[0] + fraction, UNITS[unit.values[0]]))
    elif reading.at > 1 and reading.tokens[reading.at - 2].kind in ("and", "comma") and reading.clocks:
        _clock(reading, token)
    else:
        raise NotUnderstoodError("a number alone")


def _fraction(reading: TimeReading, token: Token) -> None:
    if not (unit := reading.peek("unit")):
        raise NotUnderstoodError("half of what")
    reading.lengths.append((token.values[0] / 60, UNITS[unit.values[0]]))


def _clock(reading: TimeReading, token: Token) -> None:
    hour, minute = (*token.values, 0)[:2]
    if hour > 24 or minute > 59 or (hour == 24 and minute):
        raise InputError(f"there is no {hour}:{minute:02} in a day")
    if reading.prefix is not None and reading.clocks[-1] == (None, reading.prefix):
        reading.clocks.pop()
    reading.clocks.append((time(hour % 24, minute), reading.prefix))


def _part(reading: TimeReading, token: Token) -> None:
    """Read a part of the day: it is of the times in front that have none, else of those that follow."""
    part = token.values[0]
    if any(own is None for _, own in reading.clocks):
        reading.clocks = [(clock, part if own is None else own) for clock, own in reading.clocks]
        reading.prefix = None
    else:
        reading.clocks.append((None, part))
        reading.prefix = part


def _pass(_: TimeReading, __: Token) -> None: ...


_STEPS: dict[str, Callable[[TimeReading, Token], None]] = {
    "every": _every, "adverb": _adverb, "unit": _unit, "weekday": _weekday, "weekdays": _weekday, "ordinal": _ordinal,
    "date": _date, "day": _day, "next": _next, "ahead": _ahead, "number": _number, "fraction": _fraction,
    "clock": _clock, "part": _part, "once": _pass, "and": _pass, "comma": _pass, "glue": _pass,
}  # fmt: skip
KINDS = frozenset({*_STEPS, "range", "bound"})


def _time_of(clock: time | None, part: int | None) -> time:
    """Return the hour that a part of the day means: 8 in the evening is 20:00, 1 at night is 1:00."""
    if part is None:
        return clock or time()
    named = DAY_PARTS[part]
    if clock is None:
        return time(named.hour)
    for hour in (clock.hour, clock.hour % 12, clock.hour + 12, clock.hour + 24) if clock.hour <= 12 else (clock.hour,):
        if named.since <= hour < named.until:
            return clock.replace(hour=hour % 24)
    raise InputError(f"{clock:%H:%M} does not lie in that part of the day")
