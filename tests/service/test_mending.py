"""The doctor finds damage, names its owner, and repairs it without losing text."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, ManualClock, Memory, Mind, SqliteStore
from mindstream.errors import StorageError
from mindstream.memory.forgetting_curve import Strength
from mindstream.memory.store.record import RecordDraft
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.doctor.repair import ASIDE, Damage, faults, looking_into, mend

FILE = "mindstream.db"
HELD = "SELECT id, stream, kind, text, slot, version FROM records ORDER BY number"


async def talk(folder: Path, user: str, words: str) -> None:
    async with Mind.open(folder, user=user, responder=Coach.using(gate="belief")) as mind:
        async for _ in mind.hear(words):
            pass
        await mind.settled()


async def fill(folder: Path) -> None:
    """A folder of two users with versions of beliefs and plans, notes, superseded and forgotten records."""
    for words in ("The noise wakes me. I want to sleep through the night.", "Coffee at night. Is there a plan?"):
        await talk(folder, "ann", words)
    store, clock = SqliteStore(folder), ManualClock()
    async with Memory(store, "ann", WordLlama(), clock) as stream:
        await stream.retain("Ann has a dog.", "note")
    async with Memory(store, "bob", WordLlama(), clock, strength=Strength()) as stream:
        note = await stream.retain("Bob sleeps well.", "note")
        await stream.supersede(note.id, "Bob sleeps badly.")
        await stream.retain_all([RecordDraft(text=f"Bob heard a tram, {n}.", importance=3) for n in range(5)])
        clock.advance(40 * 86_400)
        await stream.sleep()
    await store.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An intact folder, to be copied."""
    folder = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(fill(folder))
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def found(folder: Path) -> list[Damage]:
    with looking_into(folder / FILE) as connection:
        return [fault for fault in faults(connection) if not fault.harmless]


def change(folder: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(folder / FILE, isolation_level=None)) as connection:
        connection.executescript(sql)


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        return connection.execute(sql).fetchall()


def test_mending_an_intact_folder_changes_nothing(copy: Path) -> None:
    before = rows(copy, HELD), rows(copy, "SELECT * FROM log"), rows(copy, "SELECT * FROM work")
    assert found(copy) == []
    done = mend(copy)
    assert (done.aside, done.lost) == ({}, 0)
    assert (rows(copy, HELD), rows(copy, "SELECT * FROM log"), rows(copy, "SELECT * FROM work")) == before
    assert found(copy) == []


LAST = "(SELECT max(number) FROM records WHERE stream = 'ann' AND kind = 'note')"
DAMAGE = {
    "kind": "UPDATE records SET kind = 'telepathy' WHERE number = {LAST}",
    "created": "UPDATE records SET created = 1e15 WHERE number = {LAST}",
    "accessed": "UPDATE records SET accessed = 'yesterday' WHERE number = {LAST}",
    "level": "UPDATE records SET level = 1000000000 WHERE number = {LAST}",
    "importance": "UPDATE records SET importance = 99 WHERE number = {LAST}",
    "data": "UPDATE records SET data = '{broken' WHERE number = {LAST}",
    "keywords": "UPDATE records SET keywords = 'x' WHERE number = {LAST}",
    "evidence": "UPDATE records SET evidence = '[7]' WHERE number = {LAST}",
    "vector": "UPDATE records SET vector = X'010203' WHERE number = {LAST}",
    "vector of NaN": "UPDATE records SET vector = CAST(X'007E007E' AS BLOB) WHERE number = {LAST}",
    "text": "UPDATE records SET text = CAST(X'416E6EFF' AS TEXT) WHERE number = {LAST}",
    "another user's log": "UPDATE records SET stream = 'bob' WHERE number = {LAST}",
    "of nobody": "UPDATE records SET stream = X'FF' WHERE number = {LAST}",
    "version": "UPDATE records SET version = 9223372036854775807 WHERE slot = 'sleep' AND valid_until IS NULL",
    "slot": "UPDATE records SET slot = 'sleep.plan', version = 77 WHERE number = {LAST}",
    "cannot read": "UPDATE log SET payload = '{}' WHERE kind = 'said'",
    "sound time or name": "UPDATE log SET at = 'x', by = X'FF' WHERE seq = 3",
    "points nowhere": "INSERT INTO work (mind, slot, cause, owner, lease) VALUES ('ann', 'sleep', 99999, 'x', 0)",
    "counters": "DELETE FROM counters",
    "counters that run over": "UPDATE counters SET value = 9223372036854775807",
    "when they changed": "UPDATE records SET changed = 'x' WHERE number = {LAST}",
    "a last number": "INSERT INTO log (seq, mind, at, by, kind, payload, sum)"
    " SELECT 9223372036854775807, mind, at, by, kind, payload, sum FROM log LIMIT 1",
    "triggers": "CREATE TRIGGER t AFTER INSERT ON records BEGIN UPDATE records SET text = 'owned'; END",
    "index": "DROP INDEX records_same",
    "marks": "PRAGMA application_id = 7",
    "marks of version": "PRAGMA user_version = 0",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_found_and_mended_without_losing_text(copy: Path, what: str) -> None:
    texts = Counter(rows(copy, "SELECT text FROM records"))
    change(copy, DAMAGE[what].replace("{LAST}", LAST))
    assert found(copy)
    done = mend(copy)
    assert found(copy) == []
    held = Counter(rows(copy, "SELECT text FROM records"))
    beside = (done.copy / ASIDE).read_text() if done.aside else ""
    lost = [str(text) for (text,) in (texts - held).elements()]
    assert what == "text" or all(json.dumps(text)[1:-1] in beside for text in lost)
    asyncio.run(talk(copy, "ann", "Noise wakes me, too."))
    assert found(copy) == []
    belief = rows(copy, "SELECT count(*) FROM records WHERE slot = 'sleep' AND valid_until IS NULL")
    assert belief == [(1,)]


def test_erased_text_is_not_reported_as_damage(copy: Path) -> None:
    change(copy, "UPDATE records SET text = 'erased' WHERE kind = 'chat'; UPDATE log SET by = 'x' WHERE seq = 1")
    assert found(copy) == []


def test_copies_and_set_aside_rows_are_private(copy: Path) -> None:
    change(copy, "UPDATE records SET stream = X'FF' WHERE kind = 'note'")
    before = (copy / FILE).read_bytes()
    done = mend(copy)
    assert (done.copy / FILE).read_bytes() == before
    assert stat.S_IMODE(done.copy.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in done.copy.iterdir()} == {0o600}
    assert mend(copy).copy != done.copy


def test_mending_an_open_folder_is_refused(copy: Path) -> None:
    store = SqliteStore(copy)
    with pytest.raises(StorageError, match="in use"):
        mend(copy)
    asyncio.run(store.close())
    assert not list(copy.glob("mended-*"))


@pytest.mark.parametrize("content", [b"", b"no database " * 1000])
def test_mending_an_unreadable_file_writes_nothing(copy: Path, content: bytes) -> None:
    (copy / FILE).write_bytes(content)
    with contextlib.suppress(StorageError):
        mend(copy)
    assert not content or (copy / FILE).read_bytes() == content


def damaged(whole: Path, into: Path, copies: int) -> Iterator[Path]:
    """Yield copies with 1 to 64 random bytes changed."""
    chance = random.Random(7)
    size = (whole / FILE).stat().st_size
    for n in range(copies):
        folder = into / str(n)
        shutil.copytree(whole, folder)
        content = bytearray((folder / FILE).read_bytes())
        for _ in range(chance.choice((1, 4, 16, 64))):
            content[chance.randrange(size)] = chance.randrange(256)
        (folder / FILE).write_bytes(content)
        yield folder


MAY_CHANGE = ("accessed", "importance", "level", "lasting", "valid_until", "superseded_by", "forgotten")
"""How a record is held: no sum is kept of what changes with every recall."""


def dump(folder: Path) -> list[list[tuple[object, ...]]]:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        connection.text_factory = bytes
        tables = ("log", "records", "work", "erased", "counters")
        columns = {
            table: [row[1].decode() for row in connection.execute(f"PRAGMA table_info({table})")] for table in tables
        }
        kept = {table: ", ".join(name for name in columns[table] if name not in MAY_CHANGE) for table in tables}
        return [connection.execute(f"SELECT {kept[table]} FROM {table}").fetchall() for table in tables]


def test_any_damage_that_changes_data_is_found(whole: Path, tmp_path: Path) -> None:
    before, mended = dump(whole), 0
    for folder in damaged(whole, tmp_path, 12):
        try:
            wrong = bool(found(folder))
        except sqlite3.Error:
            continue
        if not wrong:
            assert dump(folder) == before
            continue
        with contextlib.suppress(StorageError):  # unreadable
            mend(folder)
            mended += 1
            assert found(folder) == []
    assert mended > 6


async def test_reading_damaged_data_ends_in_a_readable_error(whole: Path, tmp_path: Path) -> None:
    for folder in damaged(whole, tmp_path, 8):
        with contextlib.suppress(StorageError):
            store = SqliteStore(folder)
            try:
                for user in ("ann", "bob"):
                    async with Memory(store, user, WordLlama(), ManualClock()) as stream:
                        await stream.recall("trams at night", k=3)
                        await store.events(key_of(user))
                        await stream.retain("One more thing.")
            finally:
                await store.close()


@pytest.mark.parametrize("what", ["counters that run over", "a last number"])
async def test_an_exhausted_counter_is_reported_and_mended(copy: Path, what: str) -> None:
    change(copy, DAMAGE[what])
    with pytest.raises(StorageError, match="doctor --mend"):
        await talk(copy, "ann", "Noise keeps me awake.")
    mend(copy)
    await talk(copy, "ann", "Noise keeps me awake.")
    assert found(copy) == []
