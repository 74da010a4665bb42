"""The SQLite store beyond what every store promises (tests/contracts): its files, older ones and those of others."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from mindstream.errors import StorageError
from mindstream.log.database import APPLICATION_ID
from mindstream.log.events import Heard, Remembered
from mindstream.memory.record import Kind, Record, Triple, new_id
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Commit, Entry, NewWork, Revision, Store
from mindstream.memory.tables import MIGRATIONS

NOW = 3e9
EVENT = Remembered(count=1, kinds={"note": 1})


@pytest.fixture(params=["sqlite"])
async def store(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Store]:
    made = SqliteStore(folder)
    yield made
    await made.close()


def a_record(text: str, kind: Kind = "note", stream: str = "ann", at: float = 1e9) -> Record:
    return Record(
        id=new_id(at), stream=stream, kind=kind, text=text, created=at, accessed=at, importance=5.0, by="ann",
        about=Triple("ann", "drinks", "tea"), keywords=("tea",), evidence=("x",), data={"a": [1, "二"]}, embedder="e",
        vector=np.arange(4, dtype=np.float16),
    )  # fmt: skip


def writing(*records: Record, at: float = 1e9) -> Commit:
    return Commit(mind=records[0].stream, at=at, entries=(Entry(EVENT, "ann", records),))


async def test_what_says_the_same_is_known_while_it_holds(store: Store) -> None:
    tea, other = a_record("Ann likes  TEA."), a_record("ann likes tea", "thought")
    await store.commit(writing(tea, other, a_record("ann likes coffee")))
    known = await store.find_same("ann", "note", ["ann likes tea!", "nobody knows"], now=NOW)
    assert [record.id for record in known.values()] == [tea.id]
    assert await store.find_same("bob", "note", ["ann likes tea"], now=NOW) == {}
    await store.commit(Commit(mind="ann", at=2e9, revisions=(Revision(id=tea.id, forgotten=2e9),)))
    assert await store.find_same("ann", "note", ["ann likes tea"], now=NOW) == {}


async def test_the_last_event_of_a_kind_is_found(store: Store) -> None:
    assert await store.last("ann", "remembered") is None
    for n in range(3):
        await store.commit(writing(a_record(str(n))))
    found = await store.last("ann", "remembered")
    assert found is not None
    assert found.seq == (await store.events())[-1].seq
    assert await store.last("ann", "said") is None
    assert await store.last("bob", "remembered") is None


async def test_nothing_erased_is_left_in_the_files(folder: Path) -> None:
    store = SqliteStore(folder)
    secret, kept_ = a_record("the password is swordfish"), a_record("the weather is fine")
    await store.commit(writing(secret, kept_))
    await store.erase("ann", [secret.id])
    await store.compact()
    left = bytes_of(folder)
    assert b"swordfish" not in left
    assert b"weather" in left
    await store.close()


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def an_older_file(folder: Path) -> None:
    folder.mkdir()
    with sqlite3.connect(folder / "mindstream.db") as connection:
        MIGRATIONS[0](connection)
        connection.execute(
            "INSERT INTO records (id, stream, kind, text, created, accessed, by, episode, level, lasting, depth, seq,"
            " embedder, changed) VALUES ('a', 'ann', 'note', 'Tea!', 0, 0, '', '', 0, 0, 0, 1, '', 1)"
        )
        connection.execute("PRAGMA user_version = 1")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()


async def test_an_older_file_learns_what_says_the_same(folder: Path) -> None:
    an_older_file(folder)
    store = SqliteStore(folder)
    assert list(await store.find_same("ann", "note", ["tea"], now=NOW)) == ["tea"]
    await store.close()


async def heard(store: Store, owner: str, lease: float) -> int:
    event = Heard(text="hello", session="s", record="r")
    wake = NewWork(("belief",), owner, lease)
    return (await store.commit(Commit(mind="ann", at=1e9, entries=(Entry(event, "ann"),), wake=wake)))[0].seq


async def test_a_lease_of_a_clock_that_ran_ahead_holds_up_nobody(store: Store) -> None:
    await heard(store, "ahead", 1e9)
    assert len(await store.claim("ann", "belief", "me", 50.0, 150.0)) == 1


def test_a_file_that_is_no_database_is_refused_in_words(folder: Path) -> None:
    folder.mkdir()
    (folder / "mindstream.db").write_bytes(b"this is not a database at all, " * 50)
    with pytest.raises(StorageError, match="damaged or is no database"):
        SqliteStore(folder)


async def test_a_newer_file_is_refused_in_words(folder: Path) -> None:
    await SqliteStore(folder).close()
    with sqlite3.connect(folder / "mindstream.db") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StorageError, match="newer mindstream"):
        SqliteStore(folder)


async def test_two_processes_see_each_other(folder: Path) -> None:
    one, two = SqliteStore(folder), SqliteStore(folder)
    before = await two.version()
    await one.commit(writing(a_record("from one")))
    assert await two.version() != before
    assert [record.text for record in (await two.changes("ann", 0)).records] == ["from one"]
    await one.close()
    await two.close()
