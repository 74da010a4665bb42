"""Standing orders in words, split into what and when; moments in words; the hours in which a mind is awake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo

from mindstream.clock import Moment
from mindstream.errors import InputError
from mindstream.life.recurrence import Recurrence, local_moment
from mindstream.life.time_grammar import moment_of, recurrence_of
from mindstream.life.time_reading import KINDS, NotUnderstoodError
from mindstream.life.time_words import Token, tokens_of
from mindstream.text.language import language_of

LONGEST = 2_000
"""A longer text is no standing order."""
MOST_EDGES = 4
RECURS = frozenset({"every", "adverb", "weekdays"})
LOOSE = frozenset({"glue", "and", "comma", "range", "ahead", "next"})
"""What at the end of the words of a time belongs to the words behind it: every Monday *to* …"""
ASKS = ("?", "？", "吗？", "吗?", "吗")
"""What stands behind the time in a question about it: what do I do every day?"""
EDGES = " \t\r\n,.:;，。：；、-–—"


@dataclass(frozen=True, slots=True)
class Order:
    """Something to do again and again; its `text` is all there is to keep, for it always reads the same.

    Attributes:
        what: what is to be done; "" where only times were said.
        when: when.
        text: the order as it was given.
    """

    what: str
    when: Recurrence
    text: str

    def next_after(self, moment: Moment, zone: tzinfo) -> Moment:
        """Return when it is due first after `moment`; a time of day is one of the local clock."""
        return self.when.next_after(moment, zone)


def read_order(text: str) -> Order | None:
    """Read a standing order, English or Chinese: "every day at 8: ask me how I slept"; None: it is not understood.

    A day without a time means nine in the morning; nothing is guessed where words of time remain unread.

    Raises:
        InputError: it is understood and cannot be kept: every 0 hours, every day at 25:00.
    """
    tokens = tokens_of(text) if len(text) <= LONGEST else []
    runs = list(_runs(tokens))
    for run in runs:
        if not any(tokens[at].kind in RECURS for at in run):
            continue
        if text[tokens[run[-1]].end :].strip() in ASKS:
            return None
        for part in _parts(tokens, run):
            if when := _recurrence(tokens, part):
                if (more := _time_elsewhere(tokens, runs, part)) and (timed := _recurrence(tokens, [*part, *more])):
                    part, when = [*part, *more], timed
                return Order(_without(text, tokens, part), when, text)
        return None
    return None


def read_moment(words: str, now: Moment, zone: tzinfo) -> Moment | None:
    """Return the next moment that words name: "at 18:00", "in 20 minutes", "tomorrow at 9", "三天后".

    None where they name none; all of them must be about the time.

    Raises:
        InputError: the moment has passed, or there is none such.
    """
    if len(words) > LONGEST:
        return None
    tokens = tokens_of(words.strip(EDGES))
    try:
        return moment_of(tokens, now, zone) if tokens else None
    except NotUnderstoodError:
        return None


def _recurrence(tokens: Sequence[Token], part: Sequence[int]) -> Recurrence | None:
    try:
        return recurrence_of([tokens[at] for at in part])
    except NotUnderstoodError:
        return None


def _runs(tokens: Sequence[Token]) -> Iterator[range]:
    """Give where words of time stand side by side."""
    since = 0
    for at, token in enumerate((*tokens, Token("other", (), 0, 0))):
        if token.kind not in KINDS:
            if at > since:
                yield range(since, at)
            since = at + 1


def _parts(tokens: Sequence[Token], run: range) -> Iterator[list[int]]:
    """Give what of a run may be the time, the longest first: a comma may end it, or a number that counts else."""
    edges = [at for at in run if tokens[at].kind == "comma" or _counts_other_things(tokens, at)]
    starts = [run.start, *(at + 1 for at in edges[:MOST_EDGES])]
    ends = [run.stop, *edges[-MOST_EDGES:]]
    for since, until in sorted(((s, e) for s in starts for e in ends if s < e), key=lambda part: part[0] - part[1]):
        part = list(range(since, until))
        while part and tokens[part[-1]].kind in LOOSE:
            part.pop()
        while part and tokens[part[0]].kind in LOOSE - {"glue"}:
            del part[0]
        yield part


def _counts_other_things(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at].kind == "number" and (at + 1 == len(tokens) or tokens[at + 1].kind not in ("unit", "fraction"))


def _time_elsewhere(tokens: Sequence[Token], runs: Sequence[range], part: Sequence[int]) -> list[int]:
    """Return the time of day that stands apart: every day, remind me *at 9* to …; what a colon parts stays parted."""
    timed = {"clock", "part"}
    if timed & {tokens[at].kind for at in part} or _is_closed(tokens, part[-1] + 1):
        return []
    for run in runs:
        if part[0] not in run and (found := [at for at in run if tokens[at].kind in timed]):
            since = next((at for at in range(found[0], run.start, -1) if tokens[at - 1].kind != "glue"), run.start)
            return list(range(since, found[-1] + 1))
    return []


def _is_closed(tokens: Sequence[Token], after: int) -> bool:
    return after < len(tokens) and tokens[after].kind == "other" and tokens[after].values == (1,)


def _without(text: str, tokens: Sequence[Token], part: Sequence[int]) -> str:
    """Return a text without some of its tokens."""
    kept, at = [], 0
    for number in part:
        kept.append(text[at : tokens[number].start].strip(EDGES if number - 1 in part else " "))
        at = tokens[number].end
    return ("" if language_of(text) == "zh" else " ").join(
        filter(None, (each.strip(EDGES) for each in (*kept, text[at:])))
    )


@dataclass(frozen=True)
class ActiveHours:
    """The hours of the day in which a mind may act, by a zone's clock: "08:00-22:00", "22:00-06:00" over midnight.

    The end is no longer part of them; where both are alike, all hours are.

    Raises:
        InputError: the words name no two times of a day.
    """

    hours: str
    zone: tzinfo = UTC
    since: time = field(init=False)
    until: time = field(init=False)

    def __post_init__(self) -> None:
        found = _HOURS.fullmatch(self.hours.strip())
        if not found or int(found[3]) * 60 + int(found[4] or 0) > 1_440:
            raise InputError(f"active hours {self.hours!r}: wanted are two times of a day, like 08:00-22:00")
        object.__setattr__(self, "since", time(int(found[1]), int(found[2] or 0)))
        object.__setattr__(self, "until", time(int(found[3]) % 24, int(found[4] or 0)))

    def is_active(self, moment: Moment) -> bool:
        """Tell whether a moment lies in them."""
        at = datetime.fromtimestamp(moment, self.zone).time()
        if self.since < self.until:
            return self.since <= at < self.until
        return at >= self.since or at < self.until

    def next_active(self, moment: Moment) -> Moment:
        """Return the moment itself where it lies in them, else when they begin next."""
        if self.is_active(moment):
            return moment
        today = datetime.fromtimestamp(moment, self.zone).date()
        days = [today + timedelta(days=ahead) for ahead in (0, 1, 2)]
        begins = [local_moment(day, self.since, self.zone, fold) for day in days for fold in (0, 1)]
        return min(at for at in begins if at >= moment and self.is_active(at))


_HOURS = re.compile(r"([01]?\d|2[0-3])(?::([0-5]\d))?\s*[-–—]\s*([01]?\d|2[0-4])(?::([0-5]\d))?")
