"""Replay logged recalls and sleeps with other constants of the decay rules (memory/forgetting_curve).

The replay is off-policy and therefore biased: the real recalls could not return records that were archived, so the
replay never shows what weaker decay would have gained. It is deterministic: the random numbers of a replayed sleep are
keyed by the time of its log row. The real sleep used the time at which it drew, which is earlier, so it may have drawn
other records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from mindstream import chance
from mindstream.clock import DAY_S, HOUR_S, Moment
from mindstream.errors import InputError
from mindstream.log.events import RecallMade, Slept
from mindstream.memory.forgetting_curve import Strength, StrengthState, after_passing_over, after_return, after_sleep
from mindstream.memory.store.record import FADING
from mindstream.memory.stream import Stream

BASES = (1.5, 2.0, 3.0, 4.0)
CAPS_S = (12 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S)
PASSED_OVER_S = (7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 60 * DAY_S, 90 * DAY_S)
ASLEEP_S = (7 * DAY_S, 14 * DAY_S, 30 * DAY_S, 60 * DAY_S)
OCCASION_S = HOUR_S
"""Minimum seconds between two requests for a record. A recall that returns a record counts as a new request only if
this time has passed since the record was written, and since a recall last returned the record."""
MIN_ASKED, MIN_DAYS = 20, 14
"""MIN_ASKED: minimum number of new requests for records (see OCCASION_S) for a meaningful result. MIN_DAYS: minimum
number of days in the log for a meaningful result."""


class RecordSpan(NamedTuple):
    """The time from the creation of a record to the end of its validity, and the log row that wrote the record."""

    id: str
    since: Moment
    until: Moment
    seq: int = 0


class Happened(NamedTuple):
    """A recall or a sleep.

    Attributes:
        returned: for a recall, ids of the returned records.
        passed_over: for a recall, ids of the records that were found but not returned.
        drawn: for a sleep, number of drawn records.
    """

    at: Moment
    seq: int = 0
    returned: Sequence[str] = ()
    passed_over: Sequence[str] = ()
    drawn: int = 0


@dataclass(frozen=True)
class RecallLog:
    """How a memory was used, according to its log.

    Attributes:
        name: the name of the stream. Name and time of a sleep determine which records the sleep draws.
        lives: the records that can decay, in the order of the log.
        happened: the recalls and sleeps, in the order of the log.
        asked: (moment of the recall, id of the record) for each new request for a record (see OCCASION_S).
        forgotten: ids of records that were really archived.
    """

    name: str
    lives: Sequence[RecordSpan]
    happened: Sequence[Happened]
    asked: frozenset[tuple[Moment, str]]
    forgotten: frozenset[str]

    @property
    def days(self) -> float:
        """Number of days between the earliest and the latest event, with fractions; 0 without events.

        Events are in the order of the log, where a recall may follow an event that happened after it.
        """
        times = [each.at for each in self.happened] or [0.0]
        return (max(times) - min(times)) / DAY_S

    @property
    def is_thin(self) -> bool:
        """Whether there is too little data for a meaningful result."""
        return len(self.asked) < MIN_ASKED or self.days < MIN_DAYS


@dataclass
class Replayed:
    """The result of a replay with one set of constants.

    Attributes:
        asked: number of new requests.
        lost: number of new requests for records that would have been archived by then.
        held: number of valid records that would not be archived at the end.
        idle: number of records counted in `held` that were never requested again.
        forgotten: ids of the records that would have been archived.
        by_day: for each day, the share of all records written so far that would not be archived.
    """

    laws: Strength
    asked: int = 0
    lost: int = 0
    held: int = 0
    idle: int = 0
    forgotten: set[str] = field(default_factory=set)
    by_day: list[float] = field(default_factory=list)


async def read_recalls(stream: Stream) -> RecallLog:
    """Read a memory's recalls and sleeps from its log."""
    await stream.settle()
    written = sorted((await stream.store.changes(stream.key, 0)).records, key=lambda each: each.seq)
    records = [each for each in written if each.kind in FADING]
    lives = [RecordSpan(each.id, each.created, each.valid_until or float("inf"), each.seq) for each in records]
    happened, asked, last = list[Happened](), set[tuple[Moment, str]](), {each.id: each.since for each in lives}
    async for row in stream.log(kinds=["recalled", "slept"]):
        match row.event:
            case RecallMade() as made:
                happened.append(Happened(made.moment, row.seq, made.returned, made.passed_over))
                for id_ in made.returned:
                    if id_ in last and made.moment - last[id_] >= OCCASION_S:
                        asked.add((made.moment, id_))
                    last[id_] = made.moment
            case Slept(step="fading", looked_at=drawn):
                happened.append(Happened(row.at, row.seq, drawn=drawn))
    gone = frozenset(each.id for each in records if each.forgotten is not None)
    return RecallLog(stream.name, lives, happened, frozenset(asked), gone)


def grid(today: Strength) -> Iterator[Strength]:
    """Yield the current constants, then other combinations of `base`, `cap_s`, `passed_over_s` and `asleep_s`. T(0),
    the time at level 0, does not change."""
    yield today
    for base, cap, passed_over, asleep in product(BASES, CAPS_S, PASSED_OVER_S, ASLEEP_S):
        try:
            laws = replace(today, base=base, cap_s=cap, passed_over_s=passed_over, asleep_s=asleep)
        except InputError:
            continue
        if laws != today:
            yield laws


def replay(log: RecallLog, laws: Strength, *, by_day: bool = False) -> Replayed:
    """Return what would have happened to the records with these constants of the forgetting curve; `by_day`: also fill
    `Replayed.by_day`."""
    found, held, next_life = Replayed(laws, len(log.asked)), dict[str, StrengthState](), 0
    wanted = {id_ for _, id_ in log.asked}
    day = log.happened[0].at if log.happened else 0.0
    lives = log.lives
    for event in log.happened:
        while next_life < len(lives) and lives[next_life].seq <= event.seq:
            held[lives[next_life].id] = StrengthState(0, False, lives[next_life].since)
            next_life += 1
        while by_day and day <= event.at:
            found.by_day.append(1 - len(found.forgotten) / max(1, next_life))
            day += DAY_S
        _apply(event, log, laws, held, found)
    ended = log.happened[-1].at if log.happened else 0.0
    there = [each.id for each in lives if each.id in held and each.until > ended]
    found.held, found.idle = len(there), sum(id_ not in wanted for id_ in there)
    return found


def _apply(event: Happened, log: RecallLog, laws: Strength, held: dict[str, StrengthState], found: Replayed) -> None:
    """Apply one recall or sleep to the replayed strengths (`held`), by the rules `laws`.

    Add the records that the event archives to `found.forgotten`. Count in `found.lost` the new requests for records
    that an earlier event of the replay has archived.
    """
    for id_ in event.returned:
        if id_ in held:
            held[id_] = after_return(held[id_], event.at, laws)
        elif id_ in found.forgotten and (event.at, id_) in log.asked:
            found.lost += 1
    drawn: Sequence[str] = ()
    if event.drawn:
        there = [each.id for each in log.lives if each.id in held and each.until >= event.at]
        drawn = chance.sample(there, event.drawn, log.name, "sleep", event.at)
    for ids, law in ((event.passed_over, after_passing_over), (drawn, after_sleep)):
        for id_ in ids:
            if id_ in held:
                state = law(held[id_], event.at, laws)
                if state.faded:
                    del held[id_]
                    found.forgotten.add(id_)
                else:
                    held[id_] = state


def rank(outcomes: Sequence[Replayed], today: Strength) -> list[Replayed]:
    """Sort results by these numbers, the smallest first:

    - requests for archived records (`lost`),
    - kept records that were never requested again (`idle`),
    - constants that differ from the current ones.
    """
    return sorted(outcomes, key=lambda each: (each.lost, each.idle, _changes(each.laws, today)))


def _changes(laws: Strength, today: Strength) -> int:
    """Return the number of constants that differ from the current ones."""
    names = ("base", "cap_s", "passed_over_s", "asleep_s")
    return sum(getattr(laws, name) != getattr(today, name) for name in names)
