"""The contract of a store; every store must pass it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindstream.errors import Conflict, LeaseLost, StorageError
from mindstream.log.database import APPLICATION_ID
from mindstream.log.events import Heard, Remembered, Thought
from mindstream.memory.record import Kind, Record, Triple, new_id
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Commit, Entry, Finish, PutBack, Revision, Store, Wake
from mindstream.memory.strength import Held
from mindstream.memory.tables import MIGRATIONS

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


async def test_a_record_comes_back_as_it_was(store: Store) -> None:
    record = a_record("tea, 茶 and “quotes”")
    logged = await store.commit(writing(record))
    found = store.records("ann", [record.id])[0]
    assert found == replace(record, seq=logged[0].seq)
    assert found.vector is not None and record.vector is not None
    assert found.vector.tolist() == record.vector.tolist()


async def test_another_stream_never_sees_it(store: Store) -> None:
    record = a_record("mine")
    await store.commit(writing(record))
    assert store.records("bob", [record.id]) == []
    assert store.latest("bob", n=10) == []
    assert store.changes("bob", 0).records == []
    assert store.events("bob") == []
    await store.commit(Commit(mind="bob", at=1e9, revisions=(Revision(id=record.id, forgotten=1e9),)))
    assert store.records("ann", [record.id])[0].forgotten is None
    assert await store.erase("bob", [record.id]) == 0


async def test_changes_tell_what_is_new_revised_and_gone(store: Store) -> None:
    one, two = a_record("one"), a_record("two")
    await store.commit(writing(one, two))
    first = store.changes("ann", 0)
    assert [record.text for record in first.records] == ["one", "two"]
    await store.commit(Commit(mind="ann", at=2e9, revisions=(Revision(id=one.id, level=3, accessed=2e9),)))
    second = store.changes("ann", first.upto)
    assert [(record.text, record.level) for record in second.records] == [("one", 3)]
    await store.erase("ann", [two.id])
    assert store.changes("ann", second.upto).gone == [two.id]


async def test_a_commit_is_all_or_nothing(store: Store) -> None:
    plan = replace(a_record("first", "plan"), slot="plan", version=1)
    await store.commit(writing(plan))
    again = replace(a_record("second", "plan"), slot="plan", version=1)
    other = a_record("with it")
    with pytest.raises(Conflict):
        await store.commit(writing(other, again))
    assert store.records("ann", [other.id, again.id]) == []
    assert len(store.events("ann")) == 1


async def test_a_new_version_of_a_slot_supersedes_the_one_before(store: Store) -> None:
    first, second = (replace(a_record(f"plan {n}", "plan"), slot="plan", version=n) for n in (1, 2))
    await store.commit(writing(first))
    await store.commit(writing(second, at=2e9))
    assert [record.text for record in store.latest("ann", ["plan"], n=9)] == ["plan 2"]
    assert store.records("ann", [first.id])[0].superseded_by == second.id


async def test_one_bad_write_does_not_spoil_its_neighbours(store: Store) -> None:
    plan = replace(a_record("first", "plan"), slot="plan", version=1)
    await store.commit(writing(plan))
    bad = writing(replace(a_record("again", "plan"), slot="plan", version=1))
    results = await asyncio.gather(
        *(store.commit(bad if n == 5 else writing(a_record(f"note {n}"))) for n in range(10)), return_exceptions=True
    )
    assert [type(result) for result in results] == [list] * 5 + [Conflict] + [list] * 4
    assert len(store.latest("ann", ["note"], n=20)) == 9


async def test_latest_leaves_out_what_is_superseded_or_forgotten(store: Store) -> None:
    records = [a_record(f"note {n}") for n in range(4)]
    await store.commit(writing(*records))
    revisions = (
        Revision(id=records[3].id, valid_until=2e9, superseded_by=records[2].id),
        Revision(id=records[1].id, forgotten=2e9),
    )
    await store.commit(Commit(mind="ann", at=2e9, revisions=revisions))
    assert [record.text for record in store.latest("ann", ["note"], n=9)] == ["note 0", "note 2"]


async def test_what_says_the_same_is_known_while_it_holds(store: Store) -> None:
    tea, other = a_record("Ann likes  TEA."), a_record("ann likes tea", "thought")
    await store.commit(writing(tea, other, a_record("ann likes coffee")))
    assert [record.id for record in store.known("ann", "note", ["ann likes tea!", "nobody knows"]).values()] == [tea.id]
    assert store.known("bob", "note", ["ann likes tea"]) == {}
    await store.commit(Commit(mind="ann", at=2e9, revisions=(Revision(id=tea.id, forgotten=2e9),)))
    assert store.known("ann", "note", ["ann likes tea"]) == {}


async def test_distinct_holds_against_a_writer_at_the_same_moment(store: Store) -> None:
    def once(text: str, kind: Kind = "note") -> Commit:
        return Commit(mind="ann", at=1e9, entries=(Entry(EVENT, "ann", (a_record(text, kind),), distinct=True),))

    results = await asyncio.gather(*(store.commit(once("tea")) for _ in range(5)), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Conflict"] * 4 + ["list"]
    await store.commit(once("tea", "chat"))
    await store.commit(once("tea", "chat"))
    [old] = store.latest("ann", ["note"])
    ending = Revision(id=old.id, valid_until=2e9, superseded_by="x")
    entry = Entry(EVENT, "ann", (a_record("Tea."),), distinct=True)
    await store.commit(Commit(mind="ann", at=2e9, entries=(entry,), revisions=(ending,)))


async def test_a_guarded_revision_is_refused_where_somebody_was_first(store: Store) -> None:
    record = a_record("tea")
    await store.commit(writing(record))
    was = Held(0, False, 1e9)
    first = Revision(id=record.id, level=1, accessed=2e9, was=was)
    await store.commit(Commit(mind="ann", at=2e9, revisions=(first,)))
    with pytest.raises(Conflict):
        await store.commit(Commit(mind="ann", at=2e9, revisions=(first,)))
    end = Revision(id=record.id, valid_until=3e9, holds=True)
    await store.commit(Commit(mind="ann", at=3e9, revisions=(end,)))
    with pytest.raises(Conflict):
        await store.commit(Commit(mind="ann", at=3e9, revisions=(end,)))
    assert store.records("ann", [record.id])[0].level == 1


async def test_the_last_event_of_a_kind_is_found(store: Store) -> None:
    assert store.last("ann", "remembered") is None
    for n in range(3):
        await store.commit(writing(a_record(str(n))))
    found = store.last("ann", "remembered")
    assert found is not None
    assert found.seq == store.events()[-1].seq
    assert store.last("ann", "said") is None
    assert store.last("bob", "remembered") is None


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
    assert list(store.known("ann", "note", ["tea"])) == ["tea"]
    await store.close()


async def test_seqs_grow_and_events_can_be_read_from_any_point(store: Store) -> None:
    for n in range(5):
        await store.commit(writing(a_record(str(n))))
    seqs = [logged.seq for logged in store.events()]
    assert seqs == sorted(set(seqs))
    assert [logged.seq for logged in store.events(after=seqs[2])] == seqs[3:]
    assert store.events(kinds=["said"]) == []


async def heard(store: Store, owner: str, lease: float) -> int:
    event = Heard(text="hello", session="s", record="r")
    wake = Wake(("belief",), owner, lease)
    return (await store.commit(Commit(mind="ann", at=1e9, entries=(Entry(event, "ann"),), wake=wake)))[0].seq


def finishing(work: list[int], owner: str) -> Commit:
    thought = Thought(slot="belief", about=(1,), text="", model="rules")
    return Commit(mind="ann", at=1e9, entries=(Entry(thought, "belief"),), finish=Finish(tuple(work), owner))


async def test_work_belongs_to_who_heard_until_its_lease_runs_out(store: Store) -> None:
    seq = await heard(store, "me", 100.0)
    assert await store.claim("ann", "belief", "other", 50.0, 200.0) == []
    taken = await store.claim("ann", "belief", "other", 101.0, 200.0)
    assert [work.cause for work in taken] == [seq]


async def test_only_one_run_of_a_slot_goes_on(store: Store) -> None:
    await heard(store, "me", 100.0)
    assert await store.claim("ann", "belief", "me", 50.0, 150.0)
    await heard(store, "other", 100.0)
    assert await store.claim("ann", "belief", "other", 60.0, 150.0) == []


async def test_a_lease_of_a_clock_that_ran_ahead_holds_up_nobody(store: Store) -> None:
    await heard(store, "ahead", 1e9)
    assert len(await store.claim("ann", "belief", "me", 50.0, 150.0)) == 1


async def test_what_piled_up_is_claimed_at_once(store: Store) -> None:
    seqs = [await heard(store, "me", 100.0) for _ in range(3)]
    assert [work.cause for work in await store.claim("ann", "belief", "me", 50.0, 200.0)] == seqs


async def test_a_run_that_lost_its_lease_cannot_commit(store: Store) -> None:
    await heard(store, "me", 100.0)
    mine = [work.id for work in await store.claim("ann", "belief", "me", 50.0, 60.0)]
    theirs = [work.id for work in await store.claim("ann", "belief", "other", 61.0, 200.0)]
    assert mine == theirs
    with pytest.raises(LeaseLost):
        await store.commit(finishing(mine, "me"))
    await store.commit(finishing(theirs, "other"))
    assert store.open_work("ann") == []
    with pytest.raises(LeaseLost):
        await store.commit(finishing(theirs, "other"))


async def test_released_work_is_taken_up_with_what_comes_next(store: Store) -> None:
    first = await heard(store, "me", 100.0)
    work = await store.claim("ann", "belief", "me", 50.0, 100.0)
    put_back = PutBack(tuple(each.id for each in work), "me", "no answer")
    await store.commit(Commit(mind="ann", at=51.0, put_back=put_back))
    (open_,) = store.open_work("ann")
    assert (open_.error, open_.failures, open_.running) == ("no answer", 1, False)
    second = await heard(store, "me", 100.0)
    assert [each.cause for each in await store.claim("ann", "belief", "me", 60.0, 100.0)] == [first, second]


async def test_erasing_a_stream_leaves_nothing_of_it(store: Store) -> None:
    record = a_record("secret")
    await store.commit(writing(record))
    await store.commit(writing(a_record("other", stream="bob")))
    assert await store.erase("ann") == 1
    assert store.events("ann") == []
    assert store.streams() == ["bob"]
    assert store.changes("ann", 0).gone == [record.id]


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
    before = two.version()
    await one.commit(writing(a_record("from one")))
    assert two.version() != before
    assert [record.text for record in two.changes("ann", 0).records] == ["from one"]
    await one.close()
    await two.close()
