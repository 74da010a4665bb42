"""A data folder written by an earlier version opens, and its whole content is readable (folders/make.py)."""

from __future__ import annotations

import contextlib
import sqlite3
import tarfile
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, Memory, Mind, SqliteStore, SystemClock
from mindstream.log.events import Said, Unknown
from mindstream.memory.store.queries import UNREADABLE
from mindstream.memory.store.record import checked_record
from mindstream.models.embedders.embedder import WordLlama
from mindstream.service.doctor.repair import faults, looking_into, mend
from mindstream.service.privacy.erase import erase, find_user_data
from mindstream.service.transfer import Header, export, read_export

FOLDERS = sorted((Path(__file__).parent / "folders").glob("*.tar.gz"))
USERS = ["ann", "bob", "carol"]


@pytest.fixture(params=FOLDERS, ids=lambda path: path.name.removesuffix(".tar.gz"))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a folder written by an earlier version."""
    folder = tmp_path / "data"
    with tarfile.open(request.param) as tar:
        tar.extractall(folder, filter="data")
    return folder


def counts(folder: Path) -> dict[str, int]:
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as connection:
        tables = ("records", "log", "work")
        return {table: int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables}


def test_there_is_a_folder_of_an_earlier_version() -> None:
    assert FOLDERS


async def test_every_record_and_event_can_be_read(written: Path) -> None:
    before = counts(written)
    store = SqliteStore(written)
    records = [record for user in await store.streams() for record in (await store.changes(user, 0)).records]
    assert await store.streams() == USERS
    assert len(records) == before["records"]
    assert all(checked_record(record) is record for record in records)
    assert all(record.text != UNREADABLE and record.vector is not None for record in records)
    events = await store.events(limit=10_000)
    assert len(events) == before["log"]
    assert not [each for each in events if isinstance(each.event, Unknown)]
    assert len(await store.open_work(key_of("carol"))) == 2
    await store.close()


async def test_a_mind_of_an_earlier_version_can_be_continued(written: Path) -> None:
    async with Mind.open(written, user="ann", session="later", responder=Coach.using()) as mind:
        assert Coach.of(mind).belief.version > 1 and Coach.of(mind).plan.steps
        assert [found.record.stream for found in await mind.memory.recall("what wakes me at night?", k=3)] == [
            "ann"
        ] * 3
        version = Coach.of(mind).belief.version
        said = [each.event async for each in mind.hear("My bedroom is too hot, and I nap in the afternoon.")]
        assert isinstance(said[-1], Said) and said[-1].text
        await mind.settled()
        assert Coach.of(mind).belief.version > version
    async with Mind.open(written, user="carol", responder=Coach.using()) as mind:  # work started by the dead process
        await mind.settled()
        left = await mind.memory.store.open_work(key_of("carol"))
        assert {work.slot for work in left} <= {"facts"}, "facts wait for a reasoner that this mind lacks"


async def test_a_memory_of_an_earlier_version_can_sleep_be_exported_and_erased(written: Path) -> None:
    store = SqliteStore(written)
    async with Memory(store, "carol", WordLlama(), SystemClock()) as stream:
        assert [record.text for record in await stream.archive()]
        await stream.sleep()
        for record in (await store.changes(key_of("carol"), 0)).records:
            assert (await stream.evidence_of(record.id)).record == record
    memory = Memory(store, "carol", WordLlama(), SystemClock())
    lines = [line.encode() async for line in export(memory)]
    with read_export(lines, "the export", Header) as read:
        assert len(read) == len(lines) - 1
    await erase(memory, written, await find_user_data(memory, written))
    assert await store.streams() == ["ann", "bob"]
    await store.close()


async def test_the_doctor_finds_no_damage_and_adds_checksums_to_old_rows(written: Path) -> None:
    before = counts(written)
    await SqliteStore(written).close()  # migrated to the current version
    with looking_into(written / "mindstream.db") as connection:
        found = list(faults(connection))
    assert [fault for fault in found if not fault.harmless] == []
    done = mend(written)
    assert done.kept == before and not done.aside and not done.lost
    with looking_into(written / "mindstream.db") as connection:
        assert list(faults(connection)) == []
