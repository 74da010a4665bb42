"""Another process on the same pool: reads {"query": ..., "reader": ...}, a line of JSON, and answers with the ids."""

from __future__ import annotations

import asyncio
import json
import sys

from mindstream.sharing.pool import Pool


async def serve(folder: str) -> None:
    async with Pool.open(folder, "cities") as pool:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            wish = json.loads(line)
            found = await pool.recall(wish["query"], 64, reader=wish["reader"])
            print(json.dumps([each.id for each in found]), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
