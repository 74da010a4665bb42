"""A folder copied into PostgreSQL and back: nothing lost, nothing doubled; an interrupted copy leaves nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import postgres_server
import pytest
from mindstream_evals.conformance.samples import ANN, THEN, build_event, build_record, build_version, build_writing

from mindstream import ManualClock, Memory, SqliteStore
from mindstream.cli import edge
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamName
from mindstream.log.events import Heard
from mindstream.memory.opening import copy_data
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Commit, Entry, NewWork

pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed")

from mindstream.memory.store.postgres import copying
from mindstream.memory.store.postgres.postgres import PostgresStore


async def _fill(folder: Path) -> None:
    """Write something into every table, for two tenants and for none; the newest row is erased again."""
    for tenant in ("", "acme"):
        async with SqliteStore(folder, tenant) as store:
            key = store.key(StreamName("user", "ann"))
            records = [replace(build_record(f"{tenant} 茶 note {number}"), stream=key) for number in range(700)]
            await store.commit(Commit(mind=key, at=THEN, entries=(Entry(build_event(), "ann", tuple(records)),)))
            heard = Entry(Heard(text="hello", session="s", record="r"), "ann")
            kept = Checkpoint("head", 1, b"\0\1\2")
            wake = NewWork(("belief",), "me", 100.0)
            await store.commit(
                Commit(mind=key, at=THEN, entries=(heard,), wake=wake, checkpoint=kept, unique="created")
            )
            await store.erase(key, [records[5].id])
            await store.keep(key, "result:1", THEN, lambda _: "what came of it")
    async with SqliteStore(folder) as store:
        await store.commit(build_writing(build_version(1)))
        bob = store.key(StreamName("user", "bob"))
        await store.commit(Commit(mind=bob, at=THEN, entries=(Entry(build_event(), "bob"),)))
        await store.erase(bob)


def _dump(folder: Path) -> list[str]:
    with sqlite3.connect(folder / "mindstream.db") as connection:
        lines = sorted(
            line
            for line in connection.iterdump()
            if line.startswith("INSERT") and not any(each in line for each in ("'erased'", "'unindexed'"))
        )
    connection.close()
    return lines


async def test_a_round_trip_between_sqlite_and_postgres_loses_nothing(tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    await _fill(there)
    url = postgres_server.fresh_url()
    copied = copy_data(str(there), url)
    assert {each.table: each.rows for each in copied} == {
        "streams": 2, "log": 5, "records": 1399, "erased": 2, "work": 2, "checkpoints": 2, "uniques": 2, "kept": 2,
        "salts": 1, "erasures": 3, "audit": 0, "retention": 0,
    }  # fmt: skip
    assert copy_data(url, str(back)) == copied
    assert _dump(back) == _dump(there)


async def test_a_copy_continues_with_fresh_numbers(tmp_path: Path) -> None:
    await _fill(tmp_path)
    url = postgres_server.fresh_url()
    copy_data(str(tmp_path), url)
    async with SqliteStore(tmp_path) as old, PostgresStore(url) as new:
        point = (await old.changes(ANN, 0)).upto
        writing = build_writing(build_record("tea"))
        rows = [await store.commit(writing) for store in (old, new)]
        assert rows[0][0].seq == rows[1][0].seq
        assert [each.text for each in (await new.changes(ANN, point)).records] == ["tea"]
        assert await old.version() == await new.version()
    async with PostgresStore(url, "acme") as walled:
        assert [each.mind for each in await walled.events()] == ["acme#user#ann"] * 2


async def test_a_copy_needs_an_empty_target_and_a_failed_copy_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _fill(tmp_path / "there")
    url = postgres_server.fresh_url()
    monkeypatch.setattr(copying, "_summed", lambda side, table: copying.Copied(table, 0, 0))
    for target in (url, str(tmp_path / "broken")):
        source = str(tmp_path / "there")
        if target != url:
            monkeypatch.undo()
            copy_data(source, url)  # the target was empty
            monkeypatch.setattr(copying, "_summed", lambda side, table: copying.Copied(table, 0, 0))
            source = url
        with pytest.raises(StorageError, match="differs from the source"):
            copy_data(source, target)
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"postgresql://mind@.* already contains data"):
        copy_data(str(tmp_path / "there"), url)
    copy_data(url, str(tmp_path / "broken"))
    with pytest.raises(InputError, match="already contains data"):
        copy_data(url, str(tmp_path / "broken"))
    for pair in ((str(tmp_path), str(tmp_path)), (url, url)):
        with pytest.raises(InputError, match="one location must be"):
            copy_data(*pair)
    async with PostgresStore(url, "acme") as store:  # row-level security is active again
        assert await store.owners([each.id for each in await _notes(tmp_path / "there")]) == {}


async def _notes(folder: Path) -> list[Record]:
    async with SqliteStore(folder) as store:
        return (await store.changes(ANN, 0)).records


async def test_a_memory_can_be_used_in_the_copy(tmp_path: Path) -> None:
    async with Memory.open(tmp_path, "ann", clock=ManualClock()) as memory:
        await memory.retain("Trams squeal below Ann's window.", "note")
    url = postgres_server.fresh_url()
    copy_data(str(tmp_path), url)
    async with Memory.open(url, "ann", clock=ManualClock()) as memory:
        found = await memory.recall("what is outside Ann's window?", k=1)
        assert [each.record.text for each in found] == ["Trams squeal below Ann's window."]


def test_data_copy_prints_the_copied_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(_fill(tmp_path / "there"))
    words = ["data", "copy", str(tmp_path / "there"), postgres_server.fresh_url()]
    assert edge.run(words) == 0
    out = capsys.readouterr().out
    assert "records" in out and "1399" in out
    assert edge.run([*words, "--json"]) != 0
    out, err = capsys.readouterr()
    assert "already contains data" in err and "secret" not in err + out
