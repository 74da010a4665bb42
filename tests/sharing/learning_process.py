"""Another process on a learning pool: `python learning_process.py FOLDER WRITER COUNT`.

Offer a number of pairs, with a recall before each; print each admitted id.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.pool import Pool

THINGS = ("tea", "rain", "snow", "moss", "salt", "wool", "iron", "clay", "corn", "milk")


async def write(folder: Path, writer: str, count: int) -> None:
    async with Pool.open(folder, "cities") as pool:
        await pool.recall("Write a toast to sand", 1, reader=writer)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for at in range(count):
            query = f"Write a {THINGS[at % 10]} song of {writer}, number {at}"
            await pool.recall(query, 3, reader=writer)
            answer = f"There was {THINGS[at % 10]} at {writer}'s, and {THINGS[at // 10 % 10]}, {at} times."
            judged = await offer(pool, Pair(query, answer), writer, Rules())
            if judged.verdict == "admitted":
                print(judged.id, flush=True)
        if isinstance(pool.retriever, PoolLearner):
            await pool.retriever.settle()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
