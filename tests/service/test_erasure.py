"""An erasure interrupted at any moment is finished by the next opener of the folder."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import postgres_server
import pytest
from keys import key_of

from mindstream import Coach, ManualClock, Memory, Mind, SqliteStore
from mindstream.errors import InputError, StorageError
from mindstream.log import erasure
from mindstream.log.database import FILE
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.calling import open_user_memory
from mindstream.service.privacy import erase as erasing
from mindstream.settings import Settings

SECRET = "the parrot of number"


def intents(folder: Path) -> list[Path]:
    return list(folder.glob("erasing-*"))


def left(folder: Path) -> list[str]:
    """Return the files that hold text or the name of the erased user."""
    return [path.name for path in folder.rglob("*") if path.is_file() and holds(path.read_bytes())]


def said(folder: Path) -> bool:
    return any(SECRET.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def holds(content: bytes) -> bool:
    return SECRET.encode() in content or b"zorro" in content


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")

    async def write() -> None:
        store = SqliteStore(folder)
        for user, count, said in (("zorro", 1500, SECRET), ("bob", 100, "the river")):
            async with Memory(store, user, WordLlama(), ManualClock()) as stream:
                await stream.retain_all([RecordDraft(text=f"{said} {n}", kind="note") for n in range(count)])
        await store.close()

    asyncio.run(write())
    (folder / "history").mkdir()
    (folder / "history" / "zorro.txt").write_text(f"+{SECRET} 7\n")
    (folder / "gate-sleep.npz").write_bytes(b"learned from both")
    return folder


@pytest.fixture
def both(talked: Path, folder: Path) -> Path:
    shutil.copytree(talked, folder)
    return folder


@contextlib.asynccontextmanager
async def opened(folder: Path, user: str) -> AsyncIterator[Memory]:
    async with open_user_memory(Settings(data=folder, user=user)) as found:
        yield found


async def all_of(memory: Memory) -> list[Record]:
    return (await memory.store.changes(memory.key, 0)).records


async def test_asked_for_again_it_is_finished(both: Path) -> None:
    async with opened(both, "zorro") as zorro:
        with contextlib.suppress(KeyboardInterrupt), erasure.declare_intent(both, key_of("zorro")):
            await zorro.store.erase(key_of("zorro"))
            raise KeyboardInterrupt  # as if the process died: rows are deleted, bytes and files remain
        assert left(both)
        await erasing.erase(zorro, both, await erasing.find_user_data(zorro, both))
        assert left(both) == []
        with pytest.raises(InputError, match="there is no user"):
            await erasing.find_user_data(zorro, both)


async def test_records_written_after_the_erasure_are_kept(both: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), erasure.declare_intent(both, key_of("zorro")):
        raise KeyboardInterrupt
    async with Memory(store := SqliteStore(both), "zorro", WordLlama(), ManualClock()) as stream:
        await stream.retain("a new beginning", "note")
    await store.close()
    async with opened(both, "zorro") as zorro:
        assert [record.text for record in await all_of(zorro)] == ["a new beginning"]
    assert not said(both)


async def test_during_an_erasure_only_that_user_is_locked(both: Path) -> None:
    with erasure.declare_intent(both, key_of("zorro")):
        async with opened(both, "bob") as bobs:
            assert len(await all_of(bobs)) == 100
        with pytest.raises(StorageError, match="another process is erasing this user's data"):
            async with opened(both, "zorro"):
                pass
        async with Memory(store := SqliteStore(both), "zorro", WordLlama(), ManualClock()) as stream:
            assert await stream.latest("note")  # looking deleted nothing
        await store.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"user": "zorro"}',
        b"\xff",
        b'{"user": "zorro", "upto": 1e400}',
        b'{"user": "zorro", "upto": -1}',
    ],
)
async def test_an_incomplete_intent_file_deletes_nothing(content: bytes, both: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), erasure.declare_intent(both, key_of("zorro")):
        raise KeyboardInterrupt
    (place,) = intents(both)
    place.write_bytes(content)
    assert not erasure.pending(both, key_of("zorro"))
    async with opened(both, "zorro") as zorro:
        assert len(await all_of(zorro)) == 1500
    assert not place.exists()


def test_an_intent_file_holds_no_text_and_is_private(both: Path) -> None:
    with erasure.declare_intent(both, key_of("zorro")):
        (place,) = intents(both)
        assert SECRET.encode() not in place.read_bytes() and "zorro" not in place.name
        assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="links are made as on POSIX")
def test_an_intent_file_is_not_written_through_a_symlink(both: Path, tmp_path: Path) -> None:
    with erasure.declare_intent(both, key_of("zorro")):
        (place,) = intents(both)
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="then repeat the erasure"), erasure.declare_intent(both, key_of("zorro")):
        pass
    assert not (tmp_path / "elsewhere").exists()
    with contextlib.closing(sqlite3.connect(both / FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM records WHERE stream = 'zorro'").fetchone() == (1500,)


async def test_copies_made_by_mending_are_erased_too(both: Path) -> None:
    (both / "mended-20261122T032126Z").mkdir()
    shutil.copyfile(both / FILE, both / "mended-20261122T032126Z" / FILE)
    with contextlib.suppress(KeyboardInterrupt), erasure.declare_intent(both, key_of("zorro")):
        raise KeyboardInterrupt
    async with opened(both, "bob"):
        assert left(both) == []


async def test_a_mind_under_erasure_cannot_be_opened(both: Path) -> None:
    with erasure.declare_intent(both, key_of("zorro")):
        with pytest.raises(StorageError, match="another process is erasing this user's data"):
            async with Mind.open(both, user="zorro", responder=Coach.using()):
                pass
        async with Mind.open(both, user="bob", responder=Coach.using()):
            pass
    assert said(both)


ANEW = {"checkpoints": "(stream, name, version, data, sum, seq) VALUES (OLD.stream, 'tower', 1, x'00', 0, 1 << 40)",
        "uniques": "(stream, name, seq) VALUES (OLD.stream, 'began', 1 << 40)"}  # fmt: skip


@pytest.mark.parametrize("table", ANEW)
async def test_a_row_left_in_any_table_is_reported(both: Path, table: str) -> None:
    async with opened(both, "zorro") as zorro:
        with contextlib.closing(sqlite3.connect(both / FILE)) as another:  # writes while zorro is erased
            another.execute(
                f"CREATE TRIGGER anew AFTER DELETE ON erased BEGIN INSERT OR IGNORE INTO {table} {ANEW[table]}; END"
            )
        with pytest.raises(StorageError, match=f"1 row in {table}"):
            await erasing.erase(zorro, both, await erasing.find_user_data(zorro, both))


async def test_erasure_in_a_database_is_atomic(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the last statement fails, nothing is deleted, and the erasure can be repeated."""
    url = postgres_server.fresh_url()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with open_store(url) as store, Memory(store, "zorro", WordLlama(), ManualClock()) as memory:
        first, _ = await memory.retain_all([RecordDraft(text=f"{SECRET} {n}", kind="note") for n in range(2)])
        await store.erase(memory.key, [first.id])
        refuse = "CREATE RULE refuse AS ON DELETE TO erased DO ALSO SELECT 1 / 0"
        await store.write(lambda rows: rows.execute(refuse))
        found = Memory(store, "zorro", WordLlama(), ManualClock())
        kept = await erasing.find_user_data(found, url)
        with pytest.raises(StorageError, match="division"):
            await erasing.erase(found, url, kept)
        assert (await erasing.find_user_data(found, url)).rows == kept.rows
        await store.write(lambda rows: rows.execute("DROP RULE refuse ON erased"))
        await erasing.erase(found, url, kept)
        with pytest.raises(InputError, match="there is no user"):
            await erasing.find_user_data(found, url)
