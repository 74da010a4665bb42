"""A process that sleeps and kills itself after its n-th commit: `sleeping.py FOLDER N`; -1: never."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from world import LAWS, Words

from mindstream import ManualClock, SqliteStore
from mindstream.clock import DAY_S
from mindstream.log.events import Logged, Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit


class Mortal(SqliteStore):
    """Call `end` after its n-th commit, or with `before`, before it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.left, self.before = -1, False

    def end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def commit(self, *commits: Commit) -> list[Logged]:
        self.left -= 1
        if self.left == 0 and self.before:
            self.end()
        logged = await super().commit(*commits)
        if self.left == 0:
            self.end()
        return logged


async def live(store: Mortal) -> tuple[Memory, int]:
    """Write records that a sleep changes; return the stream and the log row that caused the sleep."""
    clock = ManualClock()
    stream = Memory(store, "ann", Words(), clock, strength=LAWS, seed=7)
    await stream.retain_all(
        [RecordDraft(text=f"a boat, number {n}", importance=None, data={"life": True}) for n in range(9)]
    )
    clock.advance(LAWS.asleep_s + DAY_S)
    coffee = [
        RecordDraft(text=text, kind="note") for text in ("She drinks coffee at night", "She drinks the coffee at night")
    ]
    await stream.retain_all([*coffee, RecordDraft(text="the shop is closed", valid_until=clock.now() + DAY_S)])
    clock.advance(2 * DAY_S)
    [begun] = await stream.commit(Remembered(count=0, kinds={}))
    return stream, begun.seq


async def main(folder: str, n: int) -> None:
    store = Mortal(Path(folder))
    stream, cause = await live(store)
    store.left = n
    await stream.sleep(n=5, cause=cause)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
