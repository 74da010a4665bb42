"""Reads from a slow file, many at once, and cancelled reads."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from keys import key_of

from mindstream import SqliteStore
from mindstream.errors import StorageError
from mindstream.log import database
from mindstream.log.database import READERS
from mindstream.log.events import Remembered
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Commit, Entry, Erasure

Look = Callable[[sqlite3.Connection], object]
LONGEST_S = 60.0
LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT count(*) FROM n"
NOTES = 5


class Gate:
    """Block SQLite in all threads except the one that made it, as a slow disk does."""

    def __init__(self) -> None:
        self.closed, self.reached, self.opened = False, threading.Event(), threading.Event()
        self.own = threading.get_ident()

    def pass_through(self) -> int:
        if self.closed:
            assert threading.get_ident() != self.own, "the event loop is blocked by the file"
            self.reached.set()
            assert self.opened.wait(LONGEST_S)
        return 0


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made, connect = Gate(), database.connect

    def slow(*how: object, **more: object) -> sqlite3.Connection:
        connection = connect(*how, **more)  # type: ignore[arg-type]
        connection.set_progress_handler(made.pass_through, 1)
        return connection

    monkeypatch.setattr(database, "connect", slow)
    monkeypatch.setattr(database, "STEPS_AT_ONCE", 1)  # a read on the event loop's thread is interrupted
    monkeypatch.setattr(database.Database, "_is_long", lambda _: made.closed)
    yield made
    made.opened.set()


def note(text: str) -> Record:
    return Record(id=text.replace(" ", "-"), stream=key_of("ann"), kind="note", text=text, created=1.0, accessed=1.0)


async def filled(folder: Path) -> SqliteStore:
    store = SqliteStore(folder)
    entry = Entry(Remembered(count=NOTES, kinds={}), "ann", tuple(note(f"note {n}") for n in range(NOTES)))
    await store.commit(Commit(mind=key_of("ann"), at=1.0, entries=(entry,)))
    return store


async def walk(store: SqliteStore) -> list[Record]:
    async with store.walk(key_of("ann")) as (_, records):
        return [record async for record in records]


READS: dict[str, Callable[[SqliteStore], Awaitable[object]]] = {
    "version": lambda store: store.version(),
    "changes": lambda store: store.changes(key_of("ann"), 0),
    "a portion": lambda store: store.changes(key_of("ann"), 0, most=2),
    "walk": walk,
    "owners": lambda store: store.owners(["note-1"]),
    "records": lambda store: store.records(key_of("ann"), ["note-1"]),
    "latest": lambda store: store.latest(key_of("ann"), n=9, now=2.0),
    "find_same": lambda store: store.find_same(key_of("ann"), "note", ["note 1"], now=2.0),
    "events": lambda store: store.events(key_of("ann")),
    "last": lambda store: store.last(key_of("ann"), "remembered"),
    "count": lambda store: store.count(key_of("ann"), "remembered"),
    "checkpoint": lambda store: store.checkpoint(key_of("ann"), "head"),
    "streams": lambda store: store.streams(),
    "open_work": lambda store: store.open_work(key_of("ann")),
    "erase": lambda store: store.erase(key_of("ann"), Erasure(ids=("note-1",))),
}


@pytest.mark.parametrize("name", READS)
async def test_a_slow_file_does_not_block_the_event_loop(folder: Path, gate: Gate, name: str) -> None:
    store = await filled(folder)
    gate.closed = True
    reading = asyncio.ensure_future(READS[name](store))
    assert await asyncio.to_thread(gate.reached.wait, LONGEST_S)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not reading.done()
    gate.closed = False
    gate.opened.set()
    await reading
    await store.close()


@contextmanager
def long_reads(
    store: SqliteStore, count: int, begun: threading.Semaphore | None = None
) -> Iterator[list[asyncio.Task[str]]]:
    """Run reads that take until the block ends."""
    end = threading.Event()

    def look(connection: sqlite3.Connection) -> str:
        connection.execute(LONG).fetchone()  # so this goes on in a thread
        (before,) = connection.execute("SELECT count(*) FROM records").fetchone()
        if begun:
            begun.release()
        assert end.wait(LONGEST_S)
        return f"{before} before, {connection.execute('SELECT count(*) FROM records').fetchone()[0]} after"

    try:
        yield [asyncio.ensure_future(store._database.read(look)) for _ in range(count)]
    finally:
        end.set()


async def test_long_reads_block_nothing_and_read_one_snapshot(folder: Path) -> None:
    store = await filled(folder)
    begun = threading.Semaphore(0)
    with long_reads(store, READERS - 1, begun) as reading:
        for _ in reading:
            assert await asyncio.to_thread(begun.acquire, timeout=LONGEST_S)
        async with asyncio.timeout(LONGEST_S):
            assert await store.streams() == ["ann"]
            entry = Entry(Remembered(count=1, kinds={}), "ann", (note("meanwhile"),))
            await store.commit(Commit(mind=key_of("ann"), at=1.0, entries=(entry,)))
            assert len(await store.latest(key_of("ann"), n=99, now=2.0)) == NOTES + 1
        assert not any(task.done() for task in reading)
    assert await asyncio.gather(*reading) == [f"{NOTES} before, {NOTES} after"] * (READERS - 1)
    await store.close()


async def test_short_reads_use_no_thread_and_long_reads_one_connection(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SLOW_S", LONGEST_S)  # on a busy machine any read may take long
    store = await filled(folder)
    for _ in range(50):
        await store.streams()
        await store.events(key_of("ann"))
    assert len(store._database._readers._threads._threads) == 0
    for _ in range(5):
        assert await store._database.read(lambda connection: connection.execute(LONG).fetchone()) == (20_000,)
    assert len(store._database._readers._idle) == 1
    await store.close()


async def test_a_cancelled_read_leaves_the_readers_usable(folder: Path) -> None:
    store = await filled(folder)
    with long_reads(store, 9) as reading:
        await asyncio.sleep(0)
        for task in reading:
            task.cancel()
        assert {type(each) for each in await asyncio.gather(*reading, return_exceptions=True)} == {
            asyncio.CancelledError
        }
    assert await asyncio.gather(*(store.streams() for _ in range(9))) == [["ann"]] * 9
    await store.close()


async def test_a_cancelled_walk_closes_its_connection(folder: Path, gate: Gate) -> None:
    store = await filled(folder)
    gate.closed = True
    walking = asyncio.ensure_future(walk(store))
    assert await asyncio.to_thread(gate.reached.wait, LONGEST_S)
    walking.cancel()
    gate.closed = False
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await walking
    await store.close()
    assert await asyncio.to_thread(os.listdir, folder) == ["mindstream.db"], (
        "the last connection removes the write-ahead log"
    )


async def test_closing_waits_for_running_reads_and_refuses_new_ones(folder: Path) -> None:
    store = await filled(folder)
    with long_reads(store, READERS + 2) as reading:
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        with pytest.raises(StorageError, match="is closed"):
            await store.streams()
        assert not closing.done()
    await closing
    assert len(await asyncio.gather(*reading)) == READERS + 2


async def test_an_error_of_one_read_affects_no_other(folder: Path) -> None:
    store = await filled(folder)

    def fails(_: sqlite3.Connection) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await store._database.read(fails)
    with pytest.raises(StorageError, match="no such table"):
        await store._database.read(lambda connection: connection.execute("SELECT 1 FROM nowhere").fetchall())
    assert await store.streams() == ["ann"]
    await store.close()
