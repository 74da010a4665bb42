"""Another process on the same pool: reads a line of JSON, does it, answers with a line of JSON.

{"do": "recall", "query": ..., "reader": ...}                 ->  the ids
{"do": "offer", "pairs": [[query, answer], ...], "writer": ...}  ->  ids and verdicts
"""

from __future__ import annotations

import asyncio
import json
import sys

from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.pool import Pool


async def serve(folder: str) -> None:
    async with Pool.open(folder, "cities") as pool:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            wish = json.loads(line)
            if wish["do"] == "recall":
                found = await pool.recall(wish["query"], 64, reader=wish["reader"])
                print(json.dumps([each.id for each in found]), flush=True)
            else:
                judged = [await offer(pool, Pair(q, a), wish["writer"], Rules()) for q, a in wish["pairs"]]
                print(json.dumps([[each.id, each.verdict] for each in judged]), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
