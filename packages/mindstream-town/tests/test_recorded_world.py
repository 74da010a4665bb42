"""The world that ships: it opens without a model or a key, is whole, and lives on."""

from __future__ import annotations

from pathlib import Path

import pytest
from mindstream_town.events import Acted, DayPlanned, Talked
from mindstream_town.inspect.history import read_history
from mindstream_town.saves.importing import pack_world, unpack_world
from mindstream_town.town import Town

from mindstream.errors import InputError
from mindstream.models.rules import Rules


async def test_a_day_was_lived_with_reasons(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    history = await read_history(tmp_path)
    assert len(history.names) == 6
    for name in history.names:
        assert any(event.day == 0 and len(event.blocks) >= 6 for _, event in history.events(name, DayPlanned))
        assert len(list(history.events(name, Acted))) >= 8
    talks = [event for name in history.names for _, event in history.events(name, Talked)]
    assert len(talks) >= 12, "six talks stand in the streams of two each"


async def test_it_lives_on_from_where_it_was(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    async with Town.open(tmp_path, models=Rules.name) as town:
        before = town.step
        await town.run(until=before + 60)
        assert town.step == before + 60


def test_nothing_is_written_over(tmp_path: Path) -> None:
    unpack_world("recorded", tmp_path)
    with pytest.raises(InputError, match="already"):
        unpack_world("recorded", tmp_path)
    with pytest.raises(InputError, match="recorded"):
        unpack_world("atlantis", tmp_path / "other")


async def test_what_is_packed_is_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack_world("recorded", tmp_path / "one")
    async with Town.open(tmp_path / "one", models=Rules.name) as town:
        digest = await town.digest()
    packed = tmp_path / "packs"
    packed.mkdir()
    pack_world(tmp_path / "one", packed / "recorded.db.xz")
    monkeypatch.setattr("mindstream_town.saves.importing.__file__", str(tmp_path / "saves" / "recorded.py"))
    unpack_world("recorded", tmp_path / "two")
    async with Town.open(tmp_path / "two", models=Rules.name) as town:
        assert await town.digest() == digest
