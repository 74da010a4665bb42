"""The dependents of a record are found by an index, with the same result as reading the whole memory."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from keys import key_of
from test_mentions import OTHER, SAME
from world import Words

from mindstream import ManualClock, Memory, RecordDraft, SqliteStore
from mindstream.log.database import FILE
from mindstream.log.events import Event, FollowUp, Heard, Logged, Said, SetAside, Thought, ToolCalled
from mindstream.memory.curation.mentions import mentions
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Closure, Entry, Revision, read_log
from mindstream.memory.store.tables import MIGRATIONS

ANN = key_of("ann")
SLOTS = ("facts", "belief")


async def live(memory: Memory, other: Memory, chance: random.Random, steps: int = 60) -> None:
    """Write conversations, thoughts, notes, corrections and beliefs at random."""
    rows, ids = list[int](), [(await other.retain("a record of somebody else")).id]
    for step in range(steps):
        match chance.randrange(8):
            case 0 | 1:
                (record,) = await memory.build_records([RecordDraft(text=f"I saw light {step}", kind="chat")])
                (row,) = await memory.commit(
                    Entry(Heard(text=record.text, session="s", record=record.id), "ann", (record,))
                )
                rows.append(row.seq)
            case 2 | 3 if rows:
                (record,) = await memory.build_records([RecordDraft(text=f"You saw {step}", kind="chat")])
                answers, words = chance.choice(rows[-3:]), record.text
                said: Event = FollowUp(text=words, answers=answers, record=record.id)
                if chance.random() < 0.7:
                    said = Said(text=words, answers=answers, belief_version=0, model="m", record=record.id)
                await memory.commit(Entry(said, "agent", (record,)))
            case 4 if rows:
                slot, about = chance.choice(SLOTS), tuple(chance.sample(rows, min(len(rows), chance.randrange(1, 3))))
                await memory.commit(Entry(ToolCalled(slot=slot, tool="t", arguments=f"{step}"), slot))
                thought: Event = Thought(slot=slot, about=about, text="so", model="m")
                if chance.random() < 0.3:
                    thought = SetAside(slot=slot, about=about, reason="r", attempts=3)
                await memory.commit(Entry(thought, slot))
                continue
            case 5 if len(ids) > 3:
                with contextlib.suppress(Exception):
                    await memory.correct(chance.choice(ids[1:]), f"rather {step}")
                continue
            case _:
                drawn = tuple(chance.sample(ids, min(len(ids), chance.randrange(4))))
                record = await memory.retain(f"note {step}", "note", evidence=drawn)
        ids.append(record.id)


async def close_by_reading(store: SqliteStore, asked: list[str]) -> dict[str, Any]:
    """Find the dependents of records by reading all records and log rows."""
    records = {each.id: each for each in (await store.changes(ANN, 0)).records}
    log = [row async for row in read_log(store, ANN)]
    heard = {row.seq: row.event.record for row in log if isinstance(row.event, Heard)}
    evidence = {each.id: each.evidence for each in records.values() if each.evidence}
    for row in log:
        if isinstance(row.event, Said | FollowUp) and row.event.answers in heard:
            evidence.setdefault(row.event.record, (heard[row.event.answers],))
    earlier: dict[str, list[str]] = {}
    for each in records.values():
        if each.superseded_by and each.slot is None:
            earlier.setdefault(each.superseded_by, []).append(each.id)
    asked_for = set(asked)
    while more := {old for new in asked_for for old in earlier.get(new, ())} - asked_for:
        asked_for |= more
    there = records.keys() | (await store.owners([id_ for some in evidence.values() for id_ in some])).keys()
    gone = set(asked_for)
    while more := {
        id_ for id_, some in evidence.items()
        if id_ in records and id_ not in gone and not gone.isdisjoint(some)
        and not any(each in there and each not in gone for each in _besides(some, earlier.get(id_, [])))
    }:  # fmt: skip
        gone |= more
    below = set(gone)
    while more := {id_ for id_, some in evidence.items() if not below.isdisjoint(some)} - below:
        below |= more
    return {
        "asked": asked_for, "gone": gone, "below": (below - gone) & records.keys(), "rows": set(_bare(log, gone)),
        "answered": {row.event.record for row in log if isinstance(row.event, Said | FollowUp)} & gone - asked_for,
    }  # fmt: skip


def _besides(evidence: tuple[str, ...], corrected: list[str]) -> tuple[str, ...]:
    return tuple(each for each in evidence if each not in corrected) or evidence


def _bare(log: list[Logged], gone: set[str]) -> list[int]:
    rows, heard, runs = list[int](), set[int](), dict[str, list[int]]()
    for row in log:
        match row.event:
            case Heard(record=record) | Said(record=record) | FollowUp(record=record) if record in gone:
                rows.append(row.seq)
                heard.add(row.seq)
            case Thought(slot=slot, about=about) | SetAside(slot=slot, about=about):
                run = runs.pop(slot, [])
                rows += [row.seq, *run] if heard.issuperset(about) else []
            case ToolCalled(slot=slot):
                runs.setdefault(slot, []).append(row.seq)
    return rows


def shown(closure: Closure) -> dict[str, Any]:
    return {name: set(getattr(closure, name)) for name in ("asked", "gone", "below", "rows", "answered")}


@pytest.mark.parametrize("seed", range(4))
async def test_the_lineage_index_equals_a_full_scan(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    async with SqliteStore(folder) as store:
        clock = ManualClock()
        async with Memory(store, "ann", Words(), clock) as memory, Memory(store, "bob", Words(), clock) as other:
            await live(memory, other, chance)
        ids = [each.id for each in (await store.changes(ANN, 0)).records]
        asked = [chance.sample(ids, size) for size in (1, 1, 1, 1, 2, 3, 5, 8, 13)]
        found = [shown(await store.closure(ANN, some)) for some in asked]
        assert found == [await close_by_reading(store, some) for some in asked]
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:  # as an earlier version left it
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_master WHERE name LIKE '%lineage%' AND type <> 'index' OR name IN"
            " ('records_superseded', 'records_unembedded', 'work_failed') ORDER BY type = 'table'"
        ).fetchall():
            connection.execute(f"DROP {kind} IF EXISTS {name}")
        MIGRATIONS[10](connection)
        connection.commit()
    async with SqliteStore(folder) as store:
        assert found == [shown(await store.closure(ANN, some)) for some in asked]


async def test_the_mention_index_equals_a_full_scan(folder: Path) -> None:
    chance, texts = random.Random(3), [text for _, text in (*SAME, *OTHER)]
    texts += [f"{chance.choice(texts)} {chance.choice(texts)} 3.5kg of {chance.choice(texts)}" for _ in range(300)]
    texts += [text.upper() for text in texts[:60]] + [
        f"{n} {chance.choice(texts)}{chance.choice(texts)}" for n in range(99)
    ]
    subjects = [subject for subject, _ in (*SAME, *OTHER)] + ["kg", "Straße", "a green canoe and Zoë"]
    async with ReadingStore(folder) as store, Memory(store, "ann", Words(), ManualClock()) as memory:
        records = await memory.retain_all([RecordDraft(text=text, kind="chat") for text in texts])
        few = 0
        for subject in subjects:
            await memory.columns()
            store.read_ids = 0
            removal = await memory.find_removal(about=subject)
            is_mentioned = mentions(subject)
            assert [each.id for each in removal.asked] == [each.id for each in records if is_mentioned(each.text)], (
                subject
            )
            few += store.read_ids < len(records)
        assert few > 0.6 * len(subjects)


class ReadingStore(SqliteStore):
    """A store that counts the records that are read by id or in portions."""

    read_ids = 0

    async def records(self, *args: Any) -> list[Record]:
        found = await super().records(*args)
        self.read_ids += len(found)
        return found

    async def changes(self, *args: Any) -> Any:
        found = await super().changes(*args)
        self.read_ids += len(found.records)
        return found


async def test_a_few_erased_records_do_not_cause_a_vacuum(folder: Path) -> None:
    """Only VACUUM changes SQLite's schema version."""
    async with SqliteStore(folder) as store, Memory(store, "ann", Words(), ManualClock()) as memory:
        records = await memory.retain_all(
            [RecordDraft(text=f"zebra {n} " * (1 + n % 50), kind="chat") for n in range(200)]
        )
        await memory.commit(
            revisions=[Revision(id=each.id, importance=5.0, superseded_by="x") for each in records[::3]]
        )
        schema = _schema(folder)
        await memory.forget(*(each.id for each in records[1::2]))
        assert _schema(folder) == schema
    kept = {each.text.split()[1] for each in records[::2]}
    assert _numbers(b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())) <= kept  # noqa: ASYNC240


def _schema(folder: Path) -> int:
    with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
        return int(connection.execute("PRAGMA schema_version").fetchone()[0])


def _numbers(data: bytes) -> set[str]:
    return {each.split(b" ")[0].decode() for each in data.split(b"zebra ")[1:] if each.split(b" ")[0].isdigit()}
