"""A process that writes to a stream and recalls from it for some seconds, and records results with times.

    python soaking.py FOLDER NAME SECONDS

Prints one JSON object: `acked`: id -> when the write was acknowledged; `seen`: id of another's record -> when the first
look that saw it ended, and when the last look that did not see it began; `took`: the seconds of each write. Times are
the machine's own monotonic clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from mindstream import Memory, SqliteStore, SystemClock
from mindstream.memory.store.record import Kind
from mindstream.models.embedders.embedder import WordLlama

KINDS: tuple[Kind, ...] = ("note", "observation", "chat", "thought")
WORDS = ("coffee", "noise", "boat", "garden", "music", "winter", "letter", "bridge", "bread", "sleep")


class Soaking:
    """One writer and one reader, in parallel."""

    def __init__(self, stream: Memory, name: str, seconds: float) -> None:
        self.stream, self.name = stream, name
        self.end = time.monotonic() + seconds
        self.n = 0
        self.acked: dict[str, float] = {}
        self.seen: dict[str, tuple[float, float]] = {}
        self.took: list[float] = []

    async def write(self) -> None:
        while time.monotonic() < self.end:
            n, self.n = self.n, self.n + 1
            text = f"{self.name} wrote number {n} about {WORDS[n % 10]} and {WORDS[n // 10 % 10]}"
            began = time.monotonic()
            record = await self.stream.retain(text, KINDS[n % 4], by=self.name, importance=5)
            self.acked[record.id] = time.monotonic()
            self.took.append(self.acked[record.id] - began)
            await asyncio.sleep(0.05)

    async def look(self) -> None:
        upto, missed = 0, 0.0
        while time.monotonic() < self.end:
            began = time.monotonic()
            await self.stream.recall(f"what about {WORDS[self.n % 10]}?", k=5)
            new = list((await self.stream.columns()).ids)[upto:]
            ended = time.monotonic()
            self.seen.update(dict.fromkeys(new, (ended, missed)))
            upto, missed = upto + len(new), began
            await asyncio.sleep(0.02)


async def soak(folder: str, name: str, seconds: float) -> dict[str, object]:
    store = SqliteStore(folder)
    async with Memory(store, "ann", WordLlama(), SystemClock()) as stream:
        await stream.embedder.embed(["warm"])
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        soaking = Soaking(stream, name, seconds)
        async with asyncio.TaskGroup() as group:
            group.create_task(soaking.write())
            group.create_task(soaking.look())
    await store.close()
    return {"acked": soaking.acked, "seen": soaking.seen, "took": soaking.took, "stopped": soaking.end}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(soak(sys.argv[1], sys.argv[2], float(sys.argv[3])))), flush=True)
