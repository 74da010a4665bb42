"""Isolation of streams: no read, write, archiving or erasure of one user affects another."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from keys import key_of
from world import Words

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.errors import LeaseLost, MindstreamError
from mindstream.log.events import Failed, Remembered
from mindstream.log.work import Work
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Commit, Entry, NewWork, Revision, WorkDone, WorkReleased

SECRET = "Bob hides the violin under the stairs"
DAY = 86_400


class Two:
    """Ann, who attacks, and Bob, who has secrets, in one data folder and one process."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.store = SqliteStore(folder)
        self.ann, self.bob = (Memory(self.store, user, Words(), self.clock) for user in ("ann", "bob"))
        self.secret: Record

    async def begin(self) -> Two:
        self.secret = await self.bob.retain(SECRET, "note", by="bob", episode="tonight")
        await self.ann.retain("Ann likes the violin", "note", by="ann", episode="tonight")
        return self

    async def bobs(self) -> list[Record]:
        """Return all of Bob's records as stored in the file."""
        return (await self.store.changes(key_of("bob"), 0)).records


@pytest.fixture
async def two(folder: Path) -> AsyncIterator[Two]:
    two = Two(folder)
    yield await two.begin()
    await two.ann.close()
    await two.bob.close()
    await two.store.close()


READS: dict[str, Callable[[Two], Awaitable[object]]] = {
    "recall of the very words": lambda two: two.ann.recall(SECRET, k=50),
    "recall by his name": lambda two: two.ann.recall("violin", where={"by": "bob"}),
    "recall of his session": lambda two: two.ann.recall("violin stairs", where={"episode": "tonight"}, k=50),
    "recall as of a moment": lambda two: two.ann.recall(SECRET, as_of=two.clock.now()),
    "the newest": lambda two: two.ann.latest("note", 50, episode="tonight"),
    "by id": lambda two: two.store.records(key_of("ann"), [two.secret.id]),
    "by what is known": lambda two: two.ann.find_same("note", [SECRET]),
    "the log": lambda two: two.store.events(key_of("ann")),
    "what changed": lambda two: two.store.changes(key_of("ann"), 0),
    "the archive": lambda two: two.ann.archive(),
    "the audit": lambda two: two.ann.audit(),
    "a dream": lambda two: two.ann.sleep(),
}


@pytest.mark.parametrize("name", READS)
async def test_no_read_returns_another_users_data(name: str, two: Two) -> None:
    told = str(await READS[name](two))
    assert "stairs" not in told and two.secret.id not in told


async def test_evidence_of_another_user_is_not_followed(two: Two) -> None:
    (record,) = await two.ann.retain_all([RecordDraft(text="I know it", kind="thought", evidence=(two.secret.id,))])
    assert "stairs" not in str(await two.ann.evidence_of(record.id))
    with pytest.raises(MindstreamError):
        await two.ann.evidence_of(two.secret.id)


async def put(two: Two, record: Record) -> None:
    await two.ann.commit(Entry(Remembered(count=1, kinds={}), "ann", (record,)))


async def bobs_work(two: Two) -> Work:
    """Return work that "bobs process" holds."""
    heard, (record,) = (
        Remembered(count=1, kinds={}),
        await two.bob.build_records([RecordDraft(text="noise", kind="chat")]),
    )
    await two.bob.commit(Entry(heard, "bob", (record,)), wake=NewWork(("sleep",), "bobs process", 9e9))
    return (await two.store.claim(key_of("bob"), "sleep", "bobs process", two.clock.now(), 9e9))[0]


async def finish(two: Two) -> None:
    work = await bobs_work(two)
    with pytest.raises(LeaseLost):
        await two.ann.commit(Remembered(count=0, kinds={}), finish=WorkDone((work.id,), work.owner))


async def put_back(two: Two) -> None:
    work = await bobs_work(two)
    await two.ann.commit(Remembered(count=0, kinds={}), put_back=WorkReleased((work.id,), work.owner, "a fault"))


WRITES: dict[str, Callable[[Two], Awaitable[object]]] = {
    "supersede": lambda two: two.ann.supersede(two.secret.id, "Bob has no violin"),
    "a record in his name": lambda two: put(two, replace(two.secret, id="0abcdefgh1", text="Ann was here")),
    "a record of his id": lambda two: put(two, replace(two.secret, stream=key_of("ann"), text="Ann was here")),
    "forget": lambda two: two.ann.commit(revisions=[Revision(id=two.secret.id, forgotten=two.clock.now())]),
    "end": lambda two: two.ann.commit(revisions=[Revision(id=two.secret.id, valid_until=1.0)]),
    "erase by id": lambda two: two.store.erase(key_of("ann"), [two.secret.id]),
    "erase all of mine": lambda two: two.store.erase(key_of("ann")),
    "purge": lambda two: two.ann.purge(),
    "reembed": lambda two: Memory(two.store, "ann", Words("others"), two.clock).reembed(),
    "the same words": lambda two: two.ann.retain(SECRET, "note"),
    "a night": lambda two: two.ann.sleep(n=1_000),
    "his work ended": finish,
    "his work put back": put_back,
}


@pytest.mark.parametrize("name", WRITES)
async def test_no_write_changes_another_user(name: str, two: Two) -> None:
    two.clock.advance(400 * DAY)
    with contextlib.suppress(MindstreamError):
        await WRITES[name](two)
    held = [record for record in await two.bobs() if record.id == two.secret.id]
    assert [(each.text, each.forgotten, each.valid_until, each.level, each.embedder) for each in held] == [
        (SECRET, None, None, two.secret.level, "words")
    ]
    assert all("Ann was here" not in record.text for record in await two.bobs())
    if "work" in name:
        (left,) = await two.store.open_work(key_of("bob"))
        assert (left.running, left.failures) == (True, 0)


LOOK_ALIKES = [
    "BOB",
    "bo_",
    "bob/",
    "０bob",
    "bоb",
    unicodedata.normalize("NFD", "bób"),
    unicodedata.normalize("NFC", "bób"),
]


@pytest.mark.parametrize("user", LOOK_ALIKES)
async def test_a_lookalike_name_is_refused_or_isolated(user: str, two: Two) -> None:
    with contextlib.suppress(MindstreamError):
        other = Memory(two.store, user, Words(), two.clock)
        assert await other.recall(SECRET) == [] and await two.store.events(other.key) == []
        await other.retain(SECRET, "note")
        await two.store.erase(other.key)
        await other.close()
    assert [record.text for record in await two.bobs()] == [SECRET]


async def test_a_commit_of_several_minds_is_atomic(folder: Path) -> None:
    store = SqliteStore(folder)
    hellos = {name: Entry(Failed(text=f"{name}: hello", where="x"), name) for name in "ab"}
    said = [Commit(mind=key_of(name), at=1.0, entries=(hello,)) for name, hello in hellos.items()]
    logged = await store.commit(*said)
    assert [(row.mind, row.seq) for row in logged] == [("a", 1), ("b", 2)]
    lost = replace(said[1], finish=WorkDone((77,), "nobody"))
    with pytest.raises(LeaseLost):
        await store.commit(said[0], lost)
    assert [row.mind for row in await store.events()] == ["a", "b"], "the first of the two was not written either"
    await store.close()
