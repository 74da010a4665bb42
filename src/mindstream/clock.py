"""Time. Only this module reads the machine's clock, so that towns, tests and replays can pass their own."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Protocol, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mindstream.errors import InputError

if TYPE_CHECKING:
    import asyncio

Moment = float
"""Seconds since 1970-01-01 UTC."""
Time: TypeAlias = Moment | str | date
"""A time that a caller passes: seconds since 1970, ISO 8601 text, a datetime or a date. The default zone is UTC."""

EARLIEST, LATEST = -62_135_510_400.0, 253_402_214_400.0
"""The first and the last moment that Python's calendar can express in every time zone."""
MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0


_EPOCH = re.compile(r"-?\d{9,}(?:\.\d*)?")
"""Seconds since 1970 as text. A number with fewer than nine digits could be a year or a date (20261120)."""


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> Moment:
        """Return the current time, in seconds since 1970-01-01 UTC."""

    def elapsed(self) -> float:
        """Return monotonic seconds, for measuring durations."""

    async def sleep(self, seconds: float) -> None:
        """Wait this many seconds of this clock."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> Moment:
        return time.time()

    def elapsed(self) -> float:
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        from asyncio import sleep  # imported late: `mindstream --help` does not need it

        await sleep(seconds)


class SharedClock:
    """The clock for a server that several machines use: this machine's clock, corrected by the server's time.

    Leases and limits are therefore valid although the clocks of the machines differ.
    """

    TOLERATED_S = 0.05
    """A difference between the clocks is ignored up to this number of seconds."""

    def __init__(self, own: Clock | None = None) -> None:
        self._own: Clock = own or SystemClock()
        self._ahead_s = 0.0

    def learn(self, told: Moment, asked: Moment, came: Moment) -> None:
        """Correct the clock by the server's time, if they differ by more than TOLERATED_S seconds.

        Args:
            told: the server's time.
            asked, came: when it was requested and received, by this machine's clock.
        """
        least, most = told - came, told - asked
        if not least - self.TOLERATED_S <= self._ahead_s <= most + self.TOLERATED_S:
            self._ahead_s = (least + most) / 2

    @property
    def own(self) -> Clock:
        """This machine's clock, without correction."""
        return self._own

    def now(self) -> Moment:
        return self._own.now() + self._ahead_s

    def elapsed(self) -> float:
        return self._own.elapsed()

    async def sleep(self, seconds: float) -> None:
        await self._own.sleep(seconds)


class ManualClock:
    """A clock that moves only by `advance`; for tests, simulations and replays.

    clock = ManualClock()
    async with Memory("data", "ann", clock=clock) as memory:
        clock.advance(7 * 86_400)  # a week
    """

    def __init__(self, now: Moment = 1_700_000_000.0) -> None:
        self._now = now
        self._moved: asyncio.Event | None = None  # None if no task sleeps

    def now(self) -> Moment:
        return self._now

    def elapsed(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds` (not negative) and wake tasks that sleep until then."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back: expected at least 0 seconds, found advance({seconds})")
        self._now += seconds
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    async def sleep(self, seconds: float) -> None:
        from asyncio import Event

        until = self._now + seconds
        while self._now < until:
            self._moved = self._moved or Event()
            await self._moved.wait()


class MachineZone(tzinfo):
    """The time zone of this machine, with daylight saving time."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return at.replace(tzinfo=None).astimezone().utcoffset() if at else None

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002 (unused: utcoffset includes it)
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return at.replace(tzinfo=None).astimezone().tzname() if at else None

    def fromutc(self, at: datetime) -> datetime:
        local = at.replace(tzinfo=UTC).astimezone()
        here = local.replace(tzinfo=self)
        return here if here.utcoffset() == local.utcoffset() else here.replace(fold=1)


def read_zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as `Europe/Berlin`.

    Raises:
        InputError: there is no such zone.
    """
    try:
        return ZoneInfo(name.strip())
    except (ValueError, OSError, ZoneInfoNotFoundError):
        import difflib
        from zoneinfo import available_timezones

        zones = {each.casefold(): each for each in available_timezones()}
        near = difflib.get_close_matches(name.strip().casefold(), zones, 1, 0.88)
        meant = f"did you mean {zones[near[0]]}? Otherwise " if near else ""
        raise InputError(
            f"there is no time zone {name[:60]!r}: {meant}use a name such as Europe/Berlin, America/New_York, or UTC"
        ) from None


def moment(when: Time, what: str = "a time", *, whole_day: bool = False) -> Moment:
    """Convert a time to seconds since 1970. All functions with times as arguments use this function.

    - A datetime or a text without a time zone is in UTC.
    - A date without a time means the first moment of the day.

    Args:
        what: the name of the argument, for the error message.
        whole_day: a date without a time means the last moment of the day instead, as for the end of a span.

    Raises:
        InputError: `when` is not a time, or is out of range.
    """
    at: float | None = None
    try:
        if isinstance(when, str):
            if _EPOCH.fullmatch(when.strip()):
                at = float(when)
            else:
                return parse_iso(when, whole_day=whole_day)
        elif isinstance(when, datetime):
            return _timestamp(when)
        elif isinstance(when, date):
            return parse_iso(when.isoformat(), whole_day=whole_day)
        elif isinstance(when, int | float) and not isinstance(when, bool) and math.isfinite(when):
            at = float(when)
    except (ValueError, OverflowError):
        pass
    if at is not None and EARLIEST <= at <= LATEST:
        return at
    if at is not None:
        raise InputError(f"{what}: {out_of_range(at)}")
    raise InputError(
        f"{what}: seconds since 1970, a datetime or a text such as 2026-11-20 or 2026-11-20T21:30+01:00 is expected,"
        f" not {when!r:.99}"
    )


def out_of_range(at: object, first_year: int = 1) -> str:
    """Return the error message for a number that is no valid time. If it looks like milliseconds, microseconds or
    nanoseconds, the message says so."""
    told = f"seconds since 1970 are expected, from the year {first_year} to 9999, not {at!r:.40}"
    if isinstance(at, float | int):
        for unit, in_a_second in (("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9)):
            if abs(at) >= 1e11 and abs(at) / in_a_second < 1e10:
                return f"{told}: that looks like {unit}, so divide it by {in_a_second:,.0f}"
    return told


def moment_or_none(when: Time | None, what: str = "a time", *, whole_day: bool = False) -> Moment | None:
    """Convert a time to seconds since 1970 (see `moment`); None stays None."""
    return None if when is None else moment(when, what, whole_day=whole_day)


def period(since: Time | None, until: Time | None) -> tuple[Moment | None, Moment | None]:
    """Convert the bounds of a time span, both included; None: no bound. A date alone as `until` is a whole day.

    Raises:
        InputError: a bound is not a time, or the span ends before it begins.
    """
    first, last = moment_or_none(since, "since"), moment_or_none(until, "until", whole_day=True)
    if first is not None and last is not None and first > last:
        raise InputError(
            f"the time span ends before it begins: since={format_iso(first)} is after until={format_iso(last)}"
        )
    return first, last


def format_spoken(at: Moment, zone: tzinfo | None = None) -> str:
    """Format a moment for people, as in: Friday 20 November 2026, 22:15. `zone`: None: the time zone of the machine."""
    return datetime.fromtimestamp(at, zone or MachineZone()).strftime("%A %d %B %Y, %H:%M")


def format_iso(at: Moment) -> str:
    """Format a moment as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_ZONE_NAME = re.compile(r"(?<!\s)\s*+(?:\[(?P<zone>[\w/+-]++)\]|(?:UTC|GMT|z))$")
"""The name of a time zone after the offset or instead of it (RFC 9557: `2026-11-20T21:30+01:00[Europe/Berlin]`)."""
_SLASHES = re.compile(r"(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(?=$|[ T])")
_TYPED = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-") | dict.fromkeys("\ufeff\u200b\u200e\u200f"))
"""Replaces by "-" the hyphens, dashes and minus signs that models and word processors write, and removes invisible
marks."""
_OVER = re.compile(r"(?<=[T ])(?:24:00(?::00(?:\.0+)?)?(?=$|[Z+-])|(\d\d:\d\d):60)")
"""Matches times that Python 3.11 cannot read: 24:00 (midnight as the end of a day), and a leap second (second 60)."""


def parse_iso(text: str, *, whole_day: bool = False) -> Moment:
    """Parse an ISO 8601 date or time; in UTC unless it names a zone.

    Other programs write the years 1 and 9999 for "always" and "never". If such a time is before EARLIEST or after
    LATEST, the result is EARLIEST or LATEST.

    Args:
        whole_day: a date without a time means the end of that day.

    Raises:
        ValueError: the text is neither a date nor a time.
    """
    text = (text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_TYPED))).strip()
    text = _SLASHES.sub(lambda found: f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}", text)
    only_date, added = len(text) <= len("2026-11-20"), 0.0
    zone: tzinfo = UTC
    if named := _ZONE_NAME.search(text):
        text = text[: named.start()]
        zone = _zone(named["zone"]) if named["zone"] else UTC
    if over := _OVER.search(text):
        text, added = f"{text[: over.start()]}{over[1] or '00:00'}{text[over.end() :]}", 60.0 if over[1] else DAY_S
    return _timestamp(datetime.fromisoformat(text), zone, added or (DAY_S - 1e-3 if whole_day and only_date else 0.0))


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (OSError, ZoneInfoNotFoundError):
        raise ValueError(f"there is no time zone {name!r}") from None


def _timestamp(when: datetime, zone: tzinfo = UTC, added: float = 0.0) -> Moment:
    """Return a datetime plus `added` seconds as a moment, limited to those that are valid in every time zone. `zone`:
    the time zone of a datetime that names none."""
    if when.year in (MINYEAR, MAXYEAR):  # in another zone, it could be outside the calendar
        when = when.replace(tzinfo=UTC)
    at = (when if when.tzinfo else when.replace(tzinfo=zone)).timestamp() + added
    return min(max(at, EARLIEST), LATEST)


STARTED = SystemClock().now()
"""Approximate start time of this process."""
