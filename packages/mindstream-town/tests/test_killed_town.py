"""A town resumes after any interruption with the same journal; its journal can be exported to a file."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from hamlet import live as live_to
from kill_town import JOURNAL, compare, live, lose_rows
from mindstream_town.events import TownSaved
from mindstream_town.journal import check_journal, read_town, rows_after, write_journal
from mindstream_town.town import Order, Town

from mindstream.errors import HeldElsewhere, InputError, SettingsError, StorageError
from mindstream.log.events import Logged
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit

MORNING = 9 * 360
linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")


@linux
@pytest.mark.parametrize("order", ["lockstep", "free"])
@pytest.mark.parametrize("model", ["rules", "scenes", "paper"])
def test_a_killed_town_has_the_same_journal(model: str, order: Order, tmp_path: Path) -> None:
    file = tmp_path / "town.toml"
    file.write_text(HAMLET)
    found = compare(str(file), 1, model, MORNING, 16, order=order)
    assert found["killed"] > 0 and found["same_journal"], found["first_difference"]


async def test_lost_rows_are_detected_by_the_journal(tmp_path: Path) -> None:
    await live(tmp_path, hamlet(), "rules", 7 * 360)
    early = (tmp_path / JOURNAL).read_bytes()
    lose_rows(tmp_path)
    with pytest.raises(InputError, match="belongs to another journal"):
        await live(tmp_path, hamlet(), "rules", MORNING)
    (tmp_path / JOURNAL).unlink()
    await live(tmp_path, hamlet(), "rules", MORNING)
    assert not (tmp_path / JOURNAL).read_bytes().startswith(early)


def test_a_town_ignores_the_local_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        assert hamlet().when(0).isoformat() == "2023-02-13T00:00:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


async def test_any_earlier_step_can_be_read(tmp_path: Path) -> None:
    lived = {}
    async with Town.open(tmp_path, hamlet(reflect_at=5.0)) as town:
        for step in (0, 7 * 360, 7 * 360 + 100, 8 * 360, MORNING, 12 * 360):
            await town.run(until=step)
            lived[step] = {name: each.state for name, each in town.residents.items()}, dict(town._clockwork.conditions)
        rows = [row.event async for row in rows_after(town.store)]
        assert sum(isinstance(row, TownSaved) for row in rows) == len(lived)
        for step, (states, conditions) in lived.items():
            again = await read_town(town.store, town.setting.profile, upto=step)
            assert (again.states, again.conditions) == (states, conditions), step


class FullStore(SqliteStore):
    """A store on a disk that is full after some rows."""

    def __init__(self, folder: Path, rows: int) -> None:
        super().__init__(folder)
        self.left = rows

    async def commit(self, *commits: Commit) -> list[Logged]:
        self.left -= sum(len(each.entries) for each in commits)
        if self.left < 0:
            raise StorageError("the disk is full")
        return await super().commit(*commits)


@pytest.mark.parametrize("rows", [8, 40])
async def test_a_full_disk_ends_the_run_at_a_complete_step(rows: int, tmp_path: Path) -> None:
    expected = await live_to(tmp_path / "peace", hamlet(), MORNING)
    full = FullStore(tmp_path / "full", rows)
    async with Town.open(full, hamlet()) as town:
        for _ in range(2):  # and nothing is written after the lost part
            with pytest.raises(StorageError, match="disk is full"):
                await town.run(until=MORNING)
            full.left = 1_000
        with pytest.raises(StorageError, match="disk is full"):
            await town.set_object(town.setting.objects_in("Hamlet:Oak Cafe:cafe")[0], "broken")
    await full.close()
    async with Town.open(tmp_path / "full") as town:
        assert town.step < MORNING
        await town.run(until=MORNING)
        assert await town.digest() == expected


async def test_a_journal_file_is_extended_and_damage_is_located(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    async with Town.open(tmp_path / "town", hamlet()) as town:
        await town.run(until=7 * 360)
        count = await write_journal(town.store, town.setting, file)
        early = file.read_bytes()
        await town.run(until=MORNING)
        file.write_bytes(early[:-20])  # its writer was killed
        with pytest.raises(InputError, match=f"line {count} of .* is damaged: the line is incomplete"):
            check_journal(file)
        assert await write_journal(town.store, town.setting, file) > count
        whole = file.read_bytes()
        assert whole.startswith(early) and whole == b"".join([line async for line in town.journal()])
        assert check_journal(file) == len(whole.splitlines())
        at = whole.index(b"\n", len(early) // 2) + 30
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        bad = whole[:at].count(b"\n") + 1
        with pytest.raises(InputError, match=f"line {bad} of .* is damaged"):
            check_journal(file)
        with pytest.raises(InputError, match=f"line {bad} of .* belongs to another journal"):
            await write_journal(town.store, town.setting, file)


async def test_a_town_opened_by_a_living_process_is_locked(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet(), lease_s=1.0) as town:
        await town.run(until=10)
        with pytest.raises(HeldElsewhere, match=f"process {os.getpid()} is letting this town live now"):
            async with Town.open(tmp_path):
                pass
        await town.run(until=20)
    async with Town.open(tmp_path) as town:
        assert town.step == 20


async def test_a_failed_open_leaves_no_thread(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()):
        pass
    before = threading.active_count()
    with pytest.raises(SettingsError):
        async with Town.open(tmp_path, embed="no such embedder"):
            pass
    assert threading.active_count() == before
