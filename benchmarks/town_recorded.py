"""A recorded day of a town, with its residents' memories in mindstream streams; and the results of a check on it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from mindstream_town.formats.saves import Move, PersonaSave, Save
from mindstream_town.profile import Profile
from mindstream_town.saves.importing import RECORDED_EMBEDDER, import_memory, setting_of_save
from mindstream_town.setting import Setting
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import Spot
from numpy.typing import NDArray

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import Record
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import read_all

T = TypeVar("T")

PUBLISHED = Profile(retention=8, recency=0.5, importance=2.0, relevance=3.0, recalled=30, talk_lines=16)
"""The constants of the published code."""


@dataclass(frozen=True)
class Figure:
    """The result of an anchor.

    Attributes:
        cases: number of compared cases.
        differ: the first twenty that differ.
        wrong: number of cases that differ.
        counts: additional counts.
        why: the reason, if there was nothing to compare.
    """

    cases: int
    wrong: int = 0
    differ: tuple[str, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


def figure(cases: int, differ: Sequence[str], **counts: float) -> Figure:
    return Figure(cases, len(differ), tuple(differ[:20]), counts)


def nothing(why: str) -> Figure:
    return Figure(0, why=why)


class RecordedVectors:
    """An embedder with the vectors of a save, by their texts; zeros for any other text."""

    in_process = True
    name = RECORDED_EMBEDDER

    def __init__(self, persona: PersonaSave) -> None:
        self._vectors = persona.memory.embeddings.by_key()
        self.width = persona.memory.embeddings.vectors.shape[1] or 1

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        none = np.zeros(self.width)
        return np.array([self._vectors.get(text, none) for text in texts], np.float32).reshape(-1, self.width)


@dataclass(frozen=True)
class Mind:
    """A resident's memory as a mindstream stream.

    Attributes:
        records: by the id of their node; a chat has several.
    """

    columns: Columns
    records: Mapping[str, Sequence[Record]]


@asynccontextmanager
async def stream_of(persona: PersonaSave, now: float) -> AsyncIterator[Memory]:
    """Yield a stream with a resident's memory."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(folder)
        try:
            vectors = RecordedVectors(persona)
            async with Memory(store, persona.name, vectors, ManualClock(now), strength=None, seed=1) as stream:
                await import_memory(stream, persona.memory)
                yield stream
        finally:
            await store.close()


async def _read_mind(persona: PersonaSave, now: float) -> Mind:
    found: dict[str, list[Record]] = {}
    async with stream_of(persona, now) as stream:
        async for records in read_all(stream.store, stream.key):
            for record in records:
                found.setdefault(str(record.data["node"]), []).append(record)
        return Mind(await stream.columns(), found)


def wait(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine and return its result, even if an event loop is already running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@dataclass(frozen=True)
class Recorded:
    """A saved simulation and its map."""

    folder: Path
    save: Save
    """The clock derived from its timestamps, where the meta file disagrees with them."""
    world: TileWorld

    @property
    def step(self) -> timedelta:
        """How long a step is."""
        return timedelta(seconds=self.save.meta.sec_per_step)

    @cached_property
    def setting(self) -> Setting:
        """The town, as the published code represents it."""
        return setting_of_save(self.save, self.world, profile=PUBLISHED)

    @cached_property
    def moves(self) -> Mapping[int, Mapping[str, Move]]:
        """Positions of all residents after each recorded step."""
        return {step: self.save.recording.movement(step).persona for step in self.save.recording.movements}

    @cached_property
    def standing(self) -> Mapping[int, Mapping[str, Spot]]:
        """Positions of all residents when a step begins: as recorded, otherwise where the previous step took them."""
        went = {step + 1: {name: each.movement for name, each in moves.items()} for step, moves in self.moves.items()}
        recording = self.save.recording
        stood = {
            step: {name: position.spot for name, position in recording.environment(step).items()}
            for step in recording.environments
        }
        return went | stood

    @cached_property
    def now(self) -> float:
        """The moment of the save."""
        return self.setting.moment(self.save.meta.step)

    @cached_property
    def minds(self) -> Mapping[str, Mind]:
        """Its residents' memories."""
        return {name: wait(_read_mind(persona, self.now)) for name, persona in self.save.personas.items()}


Measure = Callable[[Recorded], Figure]
