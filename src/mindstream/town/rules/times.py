"""Times as people write them: hours of the day, stretches, parts of a day, days."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import NamedTuple

from mindstream import caches
from mindstream.text.dates import HOLIDAYS, MONTHS, NUMBERS, WEEKDAYS

LONGEST = 4_000
"""So many characters of a text are read for times."""
DAY = 24 * 60
NOON, MIDNIGHT = 12 * 60, 24 * 60
HOURS = "|".join(NUMBERS[1:])
CLOCK = re.compile(
    rf"\b(?:(?P<part>half past|half|quarter past|quarter to) )?(?P<hour>[012]?\d|{HOURS})(?!\d)"
    r"(?:[:.h](?P<minute>[0-5]\d))?(?: ?(?P<half>[ap])\.?m| ?(?P<clock>o'?clock))?"
    r"(?! ?(?:(?:st|nd|rd|th|hours?|minutes?|years?|months?|weeks?|days?|people)\b|%|\d))(?P<said>[^.,;\n]{0,24})"
    r"|\b(?P<noon>noon|midday)|\b(?P<midnight>midnight)",
    re.IGNORECASE,
)
CUE = re.compile(
    r"(?:\b(?:at|around|about|by|until|till|from|to|between|after|before|starting|starts|past|and|since|sleeps)|[-–])\s?$",
    re.IGNORECASE,
)
UP_TO = re.compile(r"(?:\b(?:until|till|by|before|to|closes? \w{0,12} ?at)(?: around| about)?)\s?$", re.IGNORECASE)
JOINS = re.compile(r"\s?(?:-|–|to|until|till|and|through)\s?(?:around |about |at )?", re.IGNORECASE)
SAID_MORNING = re.compile(r" ?in the (?:early )?morning", re.IGNORECASE)
SAID_LATE = re.compile(
    r" ?(?:in the (?:afternoon|evening|late)|at night|tonight|this (?:evening|afternoon))", re.IGNORECASE
)
COUNTED = re.compile(r" (?!this|always|on |in |at )[a-z]{3,14}s\b", re.IGNORECASE)
"""What is counted is no time: `to two friends`."""
LENGTH = re.compile(rf"\b(?P<n>\d{{1,2}}|{HOURS}|an?|half an) (?P<unit>hour|minute)s?\b", re.IGNORECASE)
PARTS = {
    "morning": (6 * 60, 12 * 60), "forenoon": (8 * 60, 12 * 60), "noon": (12 * 60, 13 * 60),
    "lunch": (12 * 60, 13 * 60), "afternoon": (13 * 60, 17 * 60), "evening": (18 * 60, 21 * 60),
    "tonight": (19 * 60, 21 * 60), "night": (20 * 60, 23 * 60), "late": (20 * 60, 23 * 60),
    "day": (9 * 60, 17 * 60), "days": (9 * 60, 17 * 60), "daytime": (9 * 60, 17 * 60),
}  # fmt: skip
PART = re.compile(
    r"\b(?:(?:in|during|of|through|by|at|it's|this|every|each|early|all|spends?|most of|whole) (?:the |her |his "
    r"|their |your |my )?)?"
    r"(?P<part>mornings?|forenoon|noon|lunch|afternoons?|evenings?|tonight|nights?|late|daytime|days?)\b",
    re.IGNORECASE,
)
BARE = re.compile(
    r"\b(?:every|each|a|per|all|one|two|some|other|next|these|last|to|valentine's|good|of the) ?days?$", re.I
)
MONTH_DAY = re.compile(
    rf"\b(?P<month>{'|'.join(MONTHS)})[a-z]{{0,6}}\.? (?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
    rf"|\b(?P<day2>[0-3]?\d)(?:st|nd|rd|th)?(?: of)? (?P<month2>{'|'.join(MONTHS)})[a-z]{{0,6}}\b"
    r"|\b(?P<year>20\d\d)-(?P<month3>[01]\d)-(?P<day3>[0-3]\d)\b",
    re.IGNORECASE,
)
RELATIVE = re.compile(
    rf"\b(?P<today>today|tonight|this (?:morning|afternoon|evening))\b|\b(?P<tomorrow>tomorrow)\b"
    rf"|\b(?P<every>every|each)? ?(?P<weekday>{'|'.join(WEEKDAYS)})(?P<many>s)?\b",
    re.IGNORECASE,
)
WEEKDAY_RANGE = re.compile(
    rf"\b(?:{'|'.join(WEEKDAYS)})s? (?:to|through|until|till|-|–) (?:{'|'.join(WEEKDAYS)})s?\b", re.IGNORECASE
)
SAYS_WHEN = re.compile(
    r"\b\d{1,2}(?::\d\d)?\s?[ap]\.?m\b|\b(?:at|from|until|till|by) (?:noon|midnight|\d{1,2}(?::\d\d)?)\b"
    r"|\b(?:to|this|next|every) ?(?:morrow|night|morning|afternoon|evening|weekend|week)\b"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december) \d",
    re.IGNORECASE,
)
DAILY = re.compile(
    r"\b(?:every ?day|daily|each day|days a week|week(?:days and )?ends? too|seven days)\b", re.IGNORECASE
)


class Stretch(NamedTuple):
    """A stretch of a day that a text names, in minutes from midnight; None: it does not say."""

    start: int | None
    end: int | None
    at: int = 0
    """Where in the text."""

    @property
    def length(self) -> int:
        """How many minutes it has, 0 where it has no end: what ends before it begins goes on past midnight."""
        return 0 if self.start is None or self.end is None else (self.end - self.start) % DAY


class Mention(NamedTuple):
    """A time as it stands in a text: `half` is a, p, - (of 24 hours), or "" where nobody says."""

    minute: int
    half: str
    at: int
    end: int


def read_stretches(text: str) -> list[Stretch]:
    """Read the times of a text: `from 5pm to 7pm`, `9-5`, `at half past five`, `until 20:00`, `noon`."""
    text = text[:LONGEST]
    mentions = read_mentions(text)
    found: list[Stretch] = []
    left = list(mentions)
    while left:
        first = left.pop(0)
        if left and JOINS.fullmatch(text[first.end : left[0].at]):
            found.append(_between(first, left.pop(0)))
        elif UP_TO.search(text[max(0, first.at - 30) : first.at]):
            found.append(Stretch(None, _likely(first, late=True), first.at))
        else:
            found.append(Stretch(_likely(first), None, first.at))
    return found


def read_mentions(text: str) -> list[Mention]:
    """Read what looks like a time of the day, in order."""
    found = []
    at = 0
    while match := CLOCK.search(text, at):
        at = match.start("said") if match["hour"] else match.end()
        if match["noon"] or match["midnight"]:
            found.append(Mention(NOON if match["noon"] else MIDNIGHT, "-", match.start(), at))
            continue
        said = match["said"]
        if match["part"] is None and not (match["minute"] or match["half"] or match["clock"]):
            sounds_so = CUE.search(text[max(0, match.start() - 12) : match.start()])
            if not (sounds_so or JOINS.match(said)) or COUNTED.match(said):
                continue
        mention = _mention(match, said)
        if mention is not None:
            found.append(mention)
    return found


def _mention(match: re.Match[str], said: str) -> Mention | None:
    word = match["hour"].lower()
    hour = int(word) if word.isdigit() else NUMBERS.index(word)
    if hour > 24:
        return None
    half = (match["half"] or "").lower() or ("-" if hour > 12 or hour == 0 or word.startswith("0") else "")
    if not half:
        half = "a" if SAID_MORNING.match(said) else "p" if SAID_LATE.match(said) else ""
    if half in ("a", "p") and hour <= 12:
        hour = hour % 12 + 12 * (half == "p")
    minute = hour * 60 + int(match["minute"] or 0)
    part = (match["part"] or "").lower()
    minute += -15 if part.endswith("to") else 15 if part.startswith("quarter") else 30 if part else 0
    end = match.start("said") + next((len(f[0]) for by in (SAID_MORNING, SAID_LATE) if (f := by.match(said))), 0)
    return Mention(minute % (DAY + 1), half, match.start(), end)


def _between(first: Mention, last: Mention) -> Stretch:
    start, end = first.minute, last.minute
    if not first.half and last.half in ("a", "p"):
        start = start % 720 + 720 * (last.half == "p")
        if start >= end:
            start = (start + 720) % DAY
    elif not first.half and not (last.half == "-" and last.minute > NOON and start < NOON):  # 6 to 14
        start = _likely(first)
    if not last.half:
        end = next((each for each in (end % 720, end % 720 + 720) if each > start), end)
    return Stretch(start, end, first.at)


def _likely(mention: Mention, late: bool = False) -> int:
    """Return the minute; what says neither morning nor evening is by day."""
    if mention.half:
        return mention.minute
    before = 9 * 60 if late else 7 * 60
    return mention.minute + 720 if mention.minute < before else mention.minute


@caches.remember(4_096)
def names_time(text: str) -> bool:
    """Tell whether a text says when something is."""
    return SAYS_WHEN.search(text[:2_000]) is not None


def read_minutes(text: str) -> int:
    """Read how long something takes: `for two hours`; 0: it does not say."""
    found = LENGTH.search(text[:LONGEST])
    if found is None:
        return 0
    word = found["n"].lower()
    n = (
        0.5
        if word.startswith("half")
        else int(word)
        if word.isdigit()
        else max(1, NUMBERS.index(word) if word in NUMBERS else 1)
    )
    return int(n * (60 if found["unit"].lower() == "hour" else 1))


def read_part(text: str) -> Stretch | None:
    """Read a part of the day: `in the morning`, `at night`, `spends her days`."""
    for found in PART.finditer(text[:LONGEST]):
        if not BARE.search(text[max(0, found.start() - 12) : found.end()]) and found[0].lower() not in (
            "late",
            "day",
            "days",
        ):
            word = found["part"].lower()
            start, end = PARTS[word if word in PARTS else word.rstrip("s")]
            if text[: found.start()].lower().endswith("after "):
                return Stretch(end, end + 90, found.start())
            return Stretch(start, end, found.start())
    return None


def read_days(text: str, told: date, near: date | None = None) -> list[date]:
    """Return the days that a text names, counted from the day it was told."""
    found: list[tuple[int, date]] = []
    for match in MONTH_DAY.finditer(text[:LONGEST]):
        month = match["month"] or match["month2"]
        number = MONTHS.index(month.lower()) + 1 if month else int(match["month3"])
        day = int(match["day"] or match["day2"] or match["day3"])
        year = int(match["year"]) if match["year"] else (near or told).year
        try:
            found.append((match.start(), date(year, number, day)))
        except ValueError:  # 31 February
            continue
    for match in RELATIVE.finditer(WEEKDAY_RANGE.sub(" ", text[:LONGEST])):
        if match["today"] or match["tomorrow"]:
            found.append((match.start(), told + timedelta(days=bool(match["tomorrow"]))))
        elif not (match["every"] or match["many"]):
            ahead = (WEEKDAYS.index(match["weekday"].lower()) - told.weekday()) % 7
            found.append((match.start(), told + timedelta(days=ahead)))
    if not found:
        low = text[:LONGEST].lower()
        year = (near or told).year
        found = [(0, date(year, month, day)) for name, (month, day, _) in HOLIDAYS.items() if name in low]
    return [day for _, day in sorted(found)]


def read_weekdays(text: str) -> frozenset[int] | None:
    """Return on which days of the week (0 is Monday) something is done, where a text says so."""
    low = text[:LONGEST].lower()
    if DAILY.search(low):
        return frozenset(range(7))
    also = frozenset(range(5) if "weekday" in low else ()) | frozenset((5, 6) if "weekend" in low else ())
    named = [WEEKDAYS.index(found["weekday"]) for found in RELATIVE.finditer(low) if found["weekday"]]
    if len(named) == 2 and re.search(
        rf"\b{WEEKDAYS[named[0]]}s? (?:to|through|until|till|-) {WEEKDAYS[named[1]]}", low
    ):
        return frozenset((named[0] + step) % 7 for step in range((named[1] - named[0]) % 7 + 1))
    return also | frozenset(named) or None


def clock(minute: int) -> str:
    """Write a minute of the day as HH:MM; past midnight it is counted from there."""
    minute = minute if minute <= DAY else minute - DAY
    return f"{minute // 60:02d}:{minute % 60:02d}"
