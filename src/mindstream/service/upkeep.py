"""Care of a memory from outside a conversation: another embedder, the archive, what forgetting will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import DAY_S
from mindstream.errors import InputError
from mindstream.memory.columns import KIND_CODES, OPEN
from mindstream.memory.record import FADING, Record
from mindstream.memory.stream import Stream
from mindstream.memory.strength import Point, Strength, curve
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder, width_of
from mindstream.service.memory import Memory


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What the laws predict of the records at a level, if none of them is returned any more.

    Attributes:
        records: how many of this memory's are at that level now.
        lasting: records at that level never fade.
    """

    level: int
    lasting: bool
    records: int
    points: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Habit:
    """How a mind is taken to live: sleeps a day, records drawn by each, times a day passed over by a recall."""

    days: int = 90
    sleeps: float = 1.0
    n: int = 20
    passed_over: float = 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """The forgetting curve of a memory; `drawn`: the chance that a sleep draws a record."""

    drawn: float
    levels: Sequence[Forgetting]


async def predict_forgetting(memory: Memory, habit: Habit) -> Prediction:
    """Predict how the records of each level are forgotten.

    Raises:
        InputError: nothing is remembered of that user.
    """
    stream = (await memory.require_known()).stream
    laws = stream.strength or Strength()
    columns = await stream.columns()
    there = np.isin(columns.kind.values, [KIND_CODES[kind] for kind in FADING])
    there &= (columns.forgotten.values == OPEN) & (columns.valid_until.values > memory.clock.now())
    levels = np.minimum(columns.level.values[there], laws.lasting_level)
    levels[columns.lasting.values[there]] = laws.lasting_level
    drawn = min(1.0, habit.n / max(1, int(np.count_nonzero(there))))
    return Prediction(
        drawn,
        [
            Forgetting(
                level, level >= laws.lasting_level, int(np.count_nonzero(levels == level)),
                curve(
                    laws, level, days=habit.days, sleeps_per_day=habit.sleeps, drawn=drawn,
                    passed_over_per_day=habit.passed_over,
                ),
            )
            for level in range(laws.lasting_level + 1)
        ],
    )  # fmt: skip


async def list_forgotten(memory: Memory, older_than_days: float | None = None) -> list[Record]:
    """Return what a purge would delete, in the order of writing."""
    before = _before(memory, older_than_days)
    return [
        record
        for record in await (await memory.require_known()).stream.archive()
        if before is None or (record.forgotten or 0) < before
    ]


async def purge(memory: Memory, older_than_days: float | None = None) -> int:
    """Delete for good what is forgotten (for longer than so many days); return how many."""
    return await (await memory.require_known()).stream.purge(_before(memory, older_than_days))


async def reembed(memory: Memory, progress: Callable[[int, int | None], None]) -> int:
    """Give each record a vector of the memory's embedder; may be broken off and gone on with. Return how many.

    `progress` is told how many are done, and of how many.

    Raises:
        InputError: nothing is remembered of that user.
        ModelError: the embedder does not answer; what is done is kept.
    """
    await memory.require_known()
    inner = embedder(memory.embedder_name)
    await width_of(inner)
    total = (await Stream(memory.store, memory.user, inner, memory.clock).columns()).foreign
    counted = Counted(inner, lambda done: progress(done, total))
    return await Stream(memory.store, memory.user, counted, memory.clock).reembed()


class Counted:
    """An embedder that tells how many texts it has done."""

    def __init__(self, inner: Embedder, progress: Callable[[int], None]) -> None:
        self.inner = inner
        self.name = inner.name
        self._progress, self._done = progress, 0

    @property
    def width(self) -> int:
        return self.inner.width

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = await self.inner.embed(texts)
        self._done += len(texts)
        self._progress(self._done)
        return vectors


def _before(memory: Memory, older_than_days: float | None) -> float | None:
    if older_than_days is not None and older_than_days < 0:
        raise InputError(f"--older takes a number of days, at least 0, not {older_than_days}")
    return None if older_than_days is None else memory.clock.now() - older_than_days * DAY_S
