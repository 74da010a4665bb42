"""Shared parts of memory tests: a stream, a manual clock, an embedder of words that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream import ManualClock, Memory, SqliteStore, chance
from mindstream.identifiers import StreamName
from mindstream.log.events import Event, Slept
from mindstream.memory.forgetting_curve import Strength
from mindstream.memory.store.record import Record
from mindstream.text.words import terms

LAWS = Strength()


class Words:
    """Unit vectors: each word has its own random direction."""

    name = "words"
    width = 96

    def __init__(self, name: str = "words") -> None:
        self.name = name

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in terms(text):
                row += np.random.default_rng(int(chance.fraction(self.name, word) * 2**32)).standard_normal(self.width)
            row /= max(float(np.linalg.norm(row)), 1e-9)
        return rows


class World:
    """One stream in its own store."""

    def __init__(self, folder: Path, strength: Strength | None = LAWS) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.store = SqliteStore(folder)
        self.stream = Memory(self.store, "ann", Words(), self.clock, strength=strength)

    def another(self, embedder: Words | None = None) -> Memory:
        """Return the same stream as another process sees it; the caller closes its store."""
        own, laws = embedder or Words(), self.stream.strength
        return Memory(SqliteStore(self.folder), "ann", own, self.clock, strength=laws)

    async def now(self, record: Record) -> Record:
        """Return a record after all touches are written."""
        await self.stream.settle()
        return (await self.store.records(StreamName("user", "ann").key, [record.id]))[0]

    async def told(self) -> dict[str, Slept]:
        """Return the steps of the last sleep."""
        steps: dict[str, Slept] = {}
        for logged in await self.store.events(StreamName("user", "ann").key, kinds=["slept"]):
            assert isinstance(logged.event, Slept)
            steps = steps if logged.event.step != "fading" else {}
            steps[logged.event.step] = logged.event
        return steps

    async def events(self, kind: str) -> list[Event]:
        return [logged.event for logged in await self.store.events(StreamName("user", "ann").key, kinds=[kind])]

    async def close(self) -> None:
        await self.stream.close()
        await self.store.close()
