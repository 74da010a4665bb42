"""The shipped world: it opens without a model or a key, is complete, and can be continued."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest
from mindstream_town.events import Acted, DayPlanned, Talked
from mindstream_town.inspect.history import read_history
from mindstream_town.saves.importing import pack, unpack, unpack_world
from mindstream_town.town import Town

from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.models.rules import Rules


async def test_the_recorded_day_contains_plans_acts_and_conversations(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    history = await read_history(tmp_path)
    assert len(history.names) == 6
    for name in history.names:
        assert any(event.day == 0 and len(event.blocks) >= 6 for _, event in history.events(name, DayPlanned))
        assert len(list(history.events(name, Acted))) >= 8
    talks = [event for name in history.names for _, event in history.events(name, Talked)]
    assert len(talks) >= 12, "six conversations, each in the streams of two residents"


async def test_the_recorded_world_can_be_continued(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    async with Town.open(tmp_path, model=Rules.name) as town:
        before = town.step
        await town.run(until=before + 60)
        assert town.step == before + 60


def test_unpacking_does_not_overwrite_a_folder(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    with pytest.raises(InputError, match="already"):
        unpack_world("recorded", tmp_path)
    with pytest.raises(InputError, match="recorded"):
        unpack_world("atlantis", tmp_path / "other")


def stored_vectors(folder: Path) -> dict[str, bytes]:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        return dict(connection.execute("SELECT id, vector FROM records WHERE vector IS NOT NULL"))


async def test_a_packed_world_is_restored_exactly(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path / "one")
    async with Town.open(tmp_path / "one", model=Rules.name) as town:
        digest = await town.digest()
    vectors = stored_vectors(tmp_path / "one")
    size = pack(tmp_path / "one", tmp_path / "world.db.xz")
    assert size < 256 * len(vectors), "vectors are not packed: they alone would take 512 bytes each"
    unpack(tmp_path / "world.db.xz", tmp_path / "two")
    assert stored_vectors(tmp_path / "two") == vectors
    async with Town.open(tmp_path / "two", model=Rules.name) as town:
        assert await town.digest() == digest
