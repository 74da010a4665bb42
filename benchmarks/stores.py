"""Compare mindstream on SQLite and PostgreSQL, LangGraph's PostgresStore, and mem0 with pgvector, on one server.

    python benchmarks/stores.py [--json] [--sizes 1000,20000] [--url URL]

Other libraries are measured if installed (`pip install langgraph-checkpoint-postgres mem0ai pgvector`, in a separate
environment with `mindstream[test-postgres]`); all use the embedder bundled with mindstream, and no model is called
(mem0: `infer=False`). One writer, one reader; each in an empty database.

`single_per_s`, `batch_per_s`: durable writes, one by one and in batches of 500, embedding included. `p50_ms`, `p99_ms`:
a search for ten, by size. `found_after_delete`: whether a deleted text can still be read in the files, the server's
tables (not its write-ahead log) or the library's own files, after the deletion, and after VACUUM (ours: `compact`).
`seen`: rows of another tenant that a statement without a filter returns.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import importlib.metadata
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psycopg
from babble import Babble
from postgres_place import empty_database, serving

from mindstream.clock import SystemClock
from mindstream.memory.memory import Memory
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import WordLlama, vectors

SINGLES, BATCH, ASKED, K = 200, 500, 200, 10
SECRET = "the quince is buried under the ninth step of the lighthouse"


class Contender(Protocol):
    """A memory library that is measured."""

    async def write(self, texts: Sequence[str]) -> None:
        """Write texts durably, in one batch."""

    async def search(self, question: str) -> int:
        """Search for ten; return how many were found."""

    async def delete(self, text: str) -> None:
        """Write a text, and delete it as the library documents."""

    async def clean(self) -> None:
        """Reclaim the space, as the library or the server documents."""

    def seen(self) -> int | None:
        """Return the number of rows that a statement of another tenant returns; None: not applicable."""


class Ours:
    """A mindstream memory."""

    def __init__(self, data: str, url: str) -> None:
        self._url = url
        self.store = open_store(data)
        self._memory = Memory(self.store, "benchmark", WordLlama(), SystemClock())

    async def write(self, texts: Sequence[str]) -> None:
        await self._memory.retain_all([RecordDraft(text=text, kind="chat", by="Ann", episode="e") for text in texts])

    async def search(self, question: str) -> int:
        return len(await self._memory.recall(question, K))

    async def delete(self, text: str) -> None:
        record = await self._memory.retain(text, "note")
        await self._memory.settle()
        await self.store.erase(self._memory.key, [record.id])

    async def clean(self) -> None:
        await self.store.compact()

    def seen(self) -> int | None:
        if not self._url:
            return None
        with psycopg.connect(self._url) as connection:
            connection.execute("SELECT set_config('mindstream.tenant', 'another', false)")
            return int((connection.execute("SELECT count(*) FROM records").fetchone() or (0,))[0])

    async def close(self) -> None:
        await self._memory.close()
        await self.store.close()


class LangGraph:
    """LangGraph's PostgresStore, with its vector index."""

    def __init__(self, store: Any, url: str) -> None:
        self._store, self._url, self._count = store, url, 0
        self._put = importlib.import_module("langgraph.store.base").PutOp

    async def write(self, texts: Sequence[str]) -> None:
        puts = [self._put(("ann",), str(self._count + at), {"text": text}) for at, text in enumerate(texts)]
        self._count += len(texts)
        self._store.batch(puts)

    async def search(self, question: str) -> int:
        return len(self._store.search(("ann",), query=question, limit=K))

    async def delete(self, text: str) -> None:
        self._store.put(("ann",), "secret", {"text": text})
        self._store.delete(("ann",), "secret")

    async def clean(self) -> None:
        vacuum(self._url)

    def seen(self) -> int | None:
        return count(self._url, "store")


class Mem0:
    """mem0 with pgvector, without a model."""

    def __init__(self, memory: Any, url: str) -> None:
        self._memory, self._url = memory, url

    async def write(self, texts: Sequence[str]) -> None:
        said = [{"role": "user", "content": text} for text in texts]
        self._memory.add(said, user_id="ann", infer=False)

    async def search(self, question: str) -> int:
        return len(self._memory.search(question, filters={"user_id": "ann"}, top_k=K)["results"])

    async def delete(self, text: str) -> None:
        added = self._memory.add([{"role": "user", "content": text}], user_id="ann", infer=False)
        self._memory.delete(added["results"][0]["id"])

    async def clean(self) -> None:
        vacuum(self._url)

    def seen(self) -> int | None:
        return count(self._url, "mem0")


def vacuum(url: str) -> None:
    """Vacuum a database, as autovacuum would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM")


def count(url: str, table: str) -> int:
    """Count a table's rows over the library's own connection."""
    with psycopg.connect(url) as connection:
        return int((connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() or (0,))[0])


@contextlib.asynccontextmanager
async def sqlite(_: str, folder: str) -> AsyncIterator[Contender]:
    """Open mindstream's store in a file."""
    ours = Ours(folder, "")
    yield ours
    await ours.close()


@contextlib.asynccontextmanager
async def postgres(url: str, _: str) -> AsyncIterator[Contender]:
    """Open mindstream's store in a database."""
    ours = Ours(url, url)
    yield ours
    await ours.close()


@contextlib.asynccontextmanager
async def langgraph(url: str, _: str) -> AsyncIterator[Contender]:
    """Open LangGraph's store."""
    made = importlib.import_module("langgraph.store.postgres").PostgresStore
    index = {"dims": WordLlama.width, "embed": lambda texts: vectors(texts).tolist(), "fields": ["text"]}
    with made.from_conn_string(url, index=index) as store:
        store.setup()
        yield LangGraph(store, url)


@contextlib.asynccontextmanager
async def mem0(url: str, folder: str) -> AsyncIterator[Contender]:
    """Open mem0; the given embedder replaces the one it would load."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "none"}
    store = {"connection_string": url, "embedding_model_dims": WordLlama.width}
    settings = {
        "vector_store": {"provider": "pgvector", "config": store}, "history_db_path": f"{folder}/history.db",
    }  # fmt: skip
    memory = importlib.import_module("mem0").Memory.from_config(settings)

    class Embedding:
        def embed(self, text: str, *_: object) -> list[float]:
            return vectors([text])[0].tolist()  # type: ignore[no-any-return]

        def embed_batch(self, texts: Sequence[str], *_: object) -> list[list[float]]:
            return vectors(texts).tolist()  # type: ignore[no-any-return]

    memory.embedding_model = Embedding()
    yield Mem0(memory, url)
    memory.vector_store.connection_pool.close()


Opening = Callable[[str, str], AbstractAsyncContextManager[Contender]]
CONTENDERS: dict[str, tuple[str, Opening]] = {
    "mindstream, SQLite": ("mindstream", sqlite),
    "mindstream, PostgreSQL": ("mindstream", postgres),
    "LangGraph PostgresStore": ("langgraph-checkpoint-postgres", langgraph),
    "mem0, pgvector": ("mem0ai", mem0),
}


async def measure(contender: Contender, sizes: Sequence[int], files: Callable[[], list[bytes]]) -> dict[str, Any]:
    """Fill a memory to each of the sizes and measure it."""
    texts, questions = Babble(1).sentences(sizes[-1]), Babble(2).sentences(ASKED, 4, 9)
    begun = time.perf_counter()
    for text in texts[:SINGLES]:
        await contender.write([text])
    result: dict[str, Any] = {"single_per_s": round(SINGLES / (time.perf_counter() - begun))}
    written, took_s = SINGLES, 0.0
    for size in sizes:
        while written < size:
            some = texts[written : min(size, written + BATCH)]
            begun = time.perf_counter()
            await contender.write(some)
            took_s, written = took_s + time.perf_counter() - begun, written + len(some)
        result[str(size)] = await asked(contender, questions)
    result["batch_per_s"] = round((written - SINGLES) / took_s)
    await contender.delete(SECRET)
    found = [any(SECRET.encode() in each for each in files())]
    await contender.clean()
    found.append(any(SECRET.encode() in each for each in files()))
    return result | {"found_after_delete": found, "seen": contender.seen()}


async def asked(contender: Contender, questions: Sequence[str]) -> dict[str, float]:
    """Ask all questions, one after the other."""
    took, found = [], await contender.search(questions[0])
    for question in questions:
        begun = time.perf_counter()
        found = min(found, await contender.search(question))
        took.append((time.perf_counter() - begun) * 1000)
    p50, p99 = np.percentile(took, [50, 99])
    return {"p50_ms": round(float(p50), 2), "p99_ms": round(float(p99), 2), "least_found": found}


def files_of(admin: str, folder: str) -> list[bytes]:
    """Return the stored bytes: the server's tables after a checkpoint, and a folder."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        home = (connection.execute("SHOW data_directory").fetchone() or ("",))[0]
    places = [*Path(home, "base").rglob("*"), *Path(folder).rglob("*")]
    return [path.read_bytes() for path in places if path.is_file()]


async def run(admin: str, sizes: Sequence[int]) -> dict[str, Any]:
    """Measure all installed libraries."""
    result: dict[str, Any] = {}
    for name, (package, opening) in CONTENDERS.items():
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            result[name] = "not installed"
            continue
        with tempfile.TemporaryDirectory() as folder:
            async with opening(empty_database(admin), folder) as contender:
                figures = await measure(contender, sizes, lambda: files_of(admin, folder))
        result[name] = {"version": version} | figures
    return result


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,20000")
    parser.add_argument("--url", default="", help="URL of an existing server to use, with a superuser role")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with serving(asked.url) as admin:
        result = asyncio.run(run(admin, [int(size) for size in asked.sizes.split(",")]))
    if asked.json:
        print(json.dumps(result, indent=1))
        return
    for name, figures in result.items():
        print(f"{name:26} {figures}")


if __name__ == "__main__":
    main()
