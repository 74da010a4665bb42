"""When somebody gets up and goes to bed, as its habits, its work and its age say."""

from __future__ import annotations

import re

from mindstream.town.rules.times import DAY, JOINS, LONGEST, MIDNIGHT, NOON, UP_TO, Stretch, read_mentions

WAKE, BED = 7 * 60, 23 * 60
CLAUSES = re.compile(r"[;,\n]|\.(?:\s|$)|\b(?:and|then|but)\b")
WAKES = re.compile(
    r"\b(?:awakes?|wakes?|waking|rises?|rising|alarm|(?:gets?|getting|is|am|are|be)(?: already| usually)? up)\b",
    re.IGNORECASE,
)
SLEEPS = re.compile(
    r"\b(?:(?:to|in|into) bed|bed ?time|sleep|sleeps|sleeping|asleep|stays? up|turns? in|retires|lights out"
    r"|nods off)\b",
    re.IGNORECASE,
)
OWL = re.compile(r"\b(?:night[- ]owl|late riser|sleeps (?:in|late)|(?:up|stays up) (?:very )?late)\b", re.IGNORECASE)
LARK = re.compile(
    r"\b(?:early (?:bird|riser)|morning person|up (?:very )?early|with the (?:sun|chickens))\b", re.IGNORECASE
)
DAWN = re.compile(r"\b(?:before|at|by) (?:dawn|daybreak|sunrise)\b", re.IGNORECASE)
AT_NIGHT = re.compile(
    r"\b(?:night[- ]shifts?|works? (?:at )?nights?|(?:through|all) (?:the )?night"
    r"|night[- ]?(?:watch\w{0,4}|nurse|porter|guard|clerk|worker|duty"
    r"|baker))\b",
    re.IGNORECASE,
)


def read_sleep(text: str, age: int = 0) -> tuple[int, int]:
    """Return the minutes at which somebody gets up and goes to bed, from what is told of its habits."""
    wake: int | None = None
    bed: int | None = None
    for clause in CLAUSES.split(text[:LONGEST]):
        wakes, sleeps = WAKES.search(clause), SLEEPS.search(clause)
        if not (wakes or sleeps):
            continue
        for stretch in read_hours_of_sleep(clause):
            if sleeps and stretch.start is not None and stretch.end is not None:
                bed, wake = bed or stretch.start, wake or stretch.end
            elif sleeps and clause[sleeps.start() :].lower().startswith("sleep") and stretch.end is not None:
                wake = wake or stretch.end % 720 + 720 * (stretch.end == NOON)
            elif (minute := stretch.start if stretch.start is not None else stretch.end) is not None:
                if wakes and not (sleeps and sleeps.start() > wakes.start()):
                    wake = wake or _upright(minute, clause)
                else:
                    bed = bed or _abed(minute, clause)
    return _whole(wake, bed, text, age)


def read_hours_of_sleep(clause: str) -> list[Stretch]:
    """Read a clause about sleep; a bare hour is left as it stands."""
    mentions = read_mentions(clause)
    if len(mentions) >= 2 and JOINS.fullmatch(clause[mentions[0].end : mentions[1].at]):
        first, last = mentions[:2]
        start = first.minute if first.half else first.minute % 720 + 720 * (first.minute % 720 >= 6 * 60)
        return [Stretch(start % DAY, last.minute % DAY, first.at)]
    up_to = [bool(UP_TO.search(clause[: each.at][-30:])) for each in mentions]
    return [Stretch(None, each.minute, each.at) if late else Stretch(each.minute, None, each.at)
            for each, late in zip(mentions, up_to, strict=True)]  # fmt: skip


def _upright(minute: int, clause: str) -> int:
    return minute % DAY if minute != MIDNIGHT or "midnight" in clause else NOON


def _abed(minute: int, clause: str) -> int:
    """Return when somebody goes to bed: a bare hour from six to eleven is in the evening."""
    bare = re.search(rf"\b{minute // 60 if minute <= NOON else 0}\b(?!.{{0,4}}[ap]\.?m|:)", clause) or not re.search(
        r"\d", clause
    )
    if bare and 6 * 60 <= minute < NOON and "morning" not in clause:
        return minute + 720
    return minute % DAY or DAY


def _whole(wake: int | None, bed: int | None, text: str, age: int) -> tuple[int, int]:
    """Return both hours: what is not told follows from the other, from the kind of person, from the age."""
    if wake is None and bed is None:
        kinds = [
            (AT_NIGHT, (16 * 60, 8 * 60 + 30)),
            (DAWN, (4 * 60, 20 * 60)),
            (OWL, (10 * 60, 2 * 60)),
            (LARK, (5 * 60 + 30, 21 * 60 + 30)),
        ]
        for kind, hours in kinds:
            if kind.search(text[:LONGEST]):
                return hours
        child = 0 < age <= 12
        return (WAKE, 20 * 60 + 30) if child else (6 * 60 + 30, 22 * 60) if age >= 70 else (WAKE, BED)
    if wake is None:
        assert bed is not None
        wake = (bed + 8 * 60) % DAY
    if bed is None:
        bed = (wake + (13 * 60 + 30 if 0 < age <= 12 else 16 * 60)) % DAY or DAY
    awake = (bed - wake) % DAY
    return (wake, bed % DAY or DAY) if 8 * 60 <= awake <= 21 * 60 else (wake, (wake + 16 * 60) % DAY or DAY)
