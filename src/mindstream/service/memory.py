"""Read parts of a user's memory for several interfaces: current beliefs and plans, kinds of records, new rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from typing import get_args

import numpy as np

from mindstream.clock import Clock, Moment
from mindstream.errors import InputError
from mindstream.identifiers import StreamKey
from mindstream.json_values import JsonObject
from mindstream.log.events import Logged
from mindstream.memory.forgetting_curve import Point, Strength, curve
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import FADING, KINDS, Kind, Record
from mindstream.memory.store.store import Store, read_log
from mindstream.settings import Settings

POLL_S = 0.2
"""Poll interval in seconds of a log that is followed."""


async def read_slots(store: Store, key: StreamKey, now: Moment) -> list[Record]:
    """Return the latest version of each belief and plan, sorted by slot."""
    records = await store.latest(key, ["belief", "plan"], 1000, now=now)
    latest = {record.slot: record for record in records if record.slot}  # oldest first, so the newest stays
    return sorted(latest.values(), key=lambda record: record.slot or "")


def policy_given(settings: Settings) -> JsonObject:
    """Return the memory policy in the settings, which overrides the policy that is stored with a memory."""
    return {**settings.memory, **({"reranker": settings.reranker} if settings.reranker else {})}


async def following(store: Store, clock: Clock, user: StreamKey | None, after: int = 0) -> AsyncIterator[Logged]:
    """Yield the rows of the log after a row number, and then new rows as any process writes them.

    Args:
        user: the user whose rows are returned; None: all users.
    """
    while True:
        seen = await store.version()
        async for logged in read_log(store, user, after):
            after = logged.seq
            yield logged
        while await store.version() == seen:
            await clock.sleep(POLL_S)


def parse_kinds(names: Sequence[str]) -> list[Kind]:
    """Return the kinds of records with these names; all kinds if none is named.

    Raises:
        InputError: a kind does not exist.
    """
    known: tuple[Kind, ...] = get_args(Kind)
    for name in names:
        if name not in known:
            raise InputError(f"there is no kind of record {name!r}; the kinds are {', '.join(known)}")
    return [kind for kind in KINDS if kind in names or not names]


def plain(record: Record) -> JsonObject:
    """Return a record as plain data, without its vector, embedder, stream and row of the log."""
    values: JsonObject = {}
    for each in fields(Record):
        value = getattr(record, each.name)
        if each.name in ("vector", "embedder", "seq", "stream"):
            continue
        if each.name == "data":
            values["data"] = dict(value)
        else:
            values[each.name] = list(value) if isinstance(value, tuple) else value
    return values


@dataclass(frozen=True, slots=True)
class Forgetting:
    """The predicted decay of the records at one level of strength, if no recall returns them any more.

    Attributes:
        lasting: records at this level never decay.
        records: current number of this memory's records at this level.
        points: for each day, the probability that a record of this level is not archived yet.
    """

    level: int
    lasting: bool
    records: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Habit:
    """The assumptions for predicting decay.

    Attributes:
        days: number of days to predict.
        sleeps: sleeps per day.
        n: number of records that each sleep selects at random.
        passed_over: recalls per day that find a record but do not return it.
    """

    days: int = 90
    sleeps: float = 1.0
    n: int = 20
    passed_over: float = 0.0


async def predict_forgetting(opened: Memory, habit: Habit) -> tuple[float, list[Forgetting]]:
    """Return the probability that a sleep selects a record, and the predicted decay of the records at each level."""
    laws = opened.strength or Strength()
    columns = await opened.columns()
    there = columns.holding(FADING, opened.clock.now())
    levels = np.minimum(columns.level.values[there], laws.lasting_level)
    levels[columns.lasting.values[there]] = laws.lasting_level
    drawn = min(1.0, habit.n / max(1, int(np.count_nonzero(there))))
    return drawn, [
        Forgetting(
            level,
            level >= laws.lasting_level,
            int(np.count_nonzero(levels == level)),
            curve(
                laws,
                level,
                days=habit.days,
                sleeps_per_day=habit.sleeps,
                drawn=drawn,
                passed_over_per_day=habit.passed_over,
            ),
        )
        for level in range(laws.lasting_level + 1)
    ]
