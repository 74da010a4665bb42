"""Measure how long `forget` and a correction of one record take, and whether any byte of the forgotten text remains.

    python benchmarks/forget.py --json [--sizes 1000,10000,100000] [--store sqlite,postgres] [--rounds 9]

A memory contains messages of a user and an agent, and notes derived from them. In each round one message is forgotten
by its id, together with the note derived from it, and one message is corrected; a recall before each round loads the
index into memory.
`forget_p50_ms`, `correct_p50_ms`: medians. `cpu_forget_ms`: CPU time of this process. `bytes_written`: bytes that this
process wrote for one `forget`. `recall_after_ms`: the first recall after a `forget`.
`bytes_left`: occurrences of forgotten texts in all files of the data folder and of the cache, except PostgreSQL's
write-ahead log. `control`: occurrences before; the benchmark fails if it finds none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from babble import Babble
from own_postgres import OwnPostgres

from mindstream.log.events import Heard, Said
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry

BATCH, NOTED = 500, 10
SESSION_LENGTH = 20


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures of one store at one size."""

    store: str
    records: int
    forget_p50_ms: float
    forget_max_ms: float
    cpu_forget_ms: float
    correct_p50_ms: float
    recall_after_ms: float
    bytes_written: int
    bytes_left: int
    control: int


def marked(number: int) -> str:
    """Return a word that occurs in one message only."""
    return f"quince{number:07d}zyx"


async def fill(memory: Memory, size: int) -> list[Record]:
    """Write messages and notes; return the messages of the user."""
    sentences = iter(Babble(42).sentences(size + BATCH))
    heard: list[Record] = []
    written = 0
    while written < size:
        count = min(BATCH, size - written)
        turns, notes = (count - count // NOTED) // 2, count // NOTED
        drafts = [
            RecordDraft(
                text=f"{next(sentences)[:-1]} {marked(len(heard) + at)}", kind="chat", by="ann",
                episode=f"s{(len(heard) + at) // SESSION_LENGTH}", data={"by_user": True},
            )
            for at in range(turns)
        ]  # fmt: skip
        asked = await memory.build_records(drafts)
        rows = await memory.commit(
            *(Entry(Heard(text=each.text, session=each.episode, record=each.id), "ann", (each,)) for each in asked)
        )
        answers = await memory.build_records(
            [RecordDraft(text=next(sentences), kind="chat", by="agent", episode=each.episode, data={"by_user": False})
             for each in asked]
        )  # fmt: skip
        await memory.commit(*(
            Entry(
                Said(text=each.text, answers=row.seq, belief_version=0, model="rules", record=each.id),
                "agent", (each,),
            )
            for row, each in zip(rows, answers, strict=True)
        ))  # fmt: skip
        await memory.retain_all([
            RecordDraft(text=f"Ann says: {each.text}", kind="note", evidence=(each.id,)) for each in asked[:notes]
        ])  # fmt: skip
        heard += asked
        written += 2 * turns + notes
    return heard


Folders = Callable[[], Sequence[Path]]


def occurrences(roots: Folders, words: Sequence[str]) -> int:
    """Count occurrences of words in the bytes of all files below some folders."""
    found = 0
    for path in (path for root in roots() for path in root.rglob("*") if path.is_file() and "pg_wal" not in path.parts):
        with contextlib.suppress(OSError):
            data = path.read_bytes()
            found += sum(data.count(word.encode()) for word in words)
    return found


def written_bytes() -> int:
    """Return the number of bytes that this process has written."""
    io = Path("/proc/self/io")
    if not io.exists():
        return 0
    return next(int(line.split()[1]) for line in io.read_text().splitlines() if line.startswith("wchar"))


async def measure(store: str, data: str, roots: Folders, size: int, rounds: int) -> Measured:
    """Fill a memory, forget and correct messages, and search the files."""
    forgets, cpu, corrects, wrote, recalls = [], [], [], [], []
    async with Memory.open(data, "ann") as memory:
        heard = await fill(memory, size)
        await memory.recall("what did I say about the harbour?")
        await memory.columns()
        await memory._recaller.shelf.settled()
        chosen = np.random.default_rng(7).choice(len(heard) // NOTED, 2 * rounds, replace=False) * NOTED
        numbers = [min(int(at), len(heard) - 1) for at in chosen]
        words = [marked(number) for number in numbers[:rounds]]
        control = occurrences(roots, words)
        if control < rounds:
            raise SystemExit(f"the control found {control} of {rounds} texts in the files before they were forgotten")
        gc.collect()
        for to_forget, to_correct in zip(numbers[:rounds], numbers[rounds:], strict=True):
            bytes_before, cpu_before, start = written_bytes(), time.process_time(), time.perf_counter()
            done = await memory.forget(heard[to_forget].id)
            forgets.append((time.perf_counter() - start) * 1000)
            cpu.append((time.process_time() - cpu_before) * 1000)
            wrote.append(written_bytes() - bytes_before)
            assert done.records, done
            assert not getattr(done, "pending", ""), "bytes of the text are left"
            start = time.perf_counter()
            await memory.recall("what did I say about the harbour?")
            recalls.append((time.perf_counter() - start) * 1000)
            start = time.perf_counter()
            await memory.correct(heard[to_correct].id, f"What I meant is something else, {to_correct}.")
            corrects.append((time.perf_counter() - start) * 1000)
        left = occurrences(roots, words)
    left = max(left, occurrences(roots, words))  # again after the store is closed
    return Measured(
        store, size, _rounded(np.median(forgets)), _rounded(max(forgets)), _rounded(np.median(cpu)),
        _rounded(np.median(corrects)), _rounded(np.median(recalls)), int(np.median(wrote)), left, control,
    )  # fmt: skip


def _rounded(figure: float | np.floating) -> float:
    return round(float(figure), 2)


@contextlib.contextmanager
def place(store: str) -> Iterator[tuple[str, Folders]]:
    """Yield a data folder or a database, and the folders to search."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        if store == "sqlite":
            yield folder, lambda: [Path(folder), Path(cache)]
            return
        server = OwnPostgres()
        try:
            yield server.url, lambda: [server.flush(), Path(cache)]
        finally:
            server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of records")
    parser.add_argument("--store", default="sqlite", help="sqlite, postgres, or both")
    parser.add_argument("--rounds", type=int, default=9, help="records that are forgotten at each size")
    asked = parser.parse_args()
    measured = []
    for store in asked.store.split(","):
        for size in map(int, asked.sizes.split(",")):
            with place(store) as (data, roots):
                measured.append(asyncio.run(measure(store, data, roots, size, asked.rounds)))
            if not asked.json:
                print(measured[-1], file=sys.stderr)
    print(json.dumps([asdict(each) for each in measured], indent=1))


if __name__ == "__main__":
    main()
