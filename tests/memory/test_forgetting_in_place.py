"""Cached columns lose forgotten records in place: no record is read again, and recall equals a fresh one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from world import Words

from mindstream import ManualClock, Memory, RecordDraft, SqliteStore
from mindstream.memory.store import index_cache
from mindstream.memory.store.store import Changes

QUESTIONS = ("thing3 near place2", "what did thing7 say?", "place5", "Key3 thing11", "[erased] thing1", "thing2 place9")


class Counting(SqliteStore):
    """A store that counts the records that are read to fill columns."""

    rows = 0

    async def changes(self, *args: object, **more: object) -> Changes:
        found = await super().changes(*args, **more)  # type: ignore[arg-type]
        self.rows += len(found.records)
        return found


def drafts(count: int, chance: random.Random) -> list[RecordDraft]:
    return [
        RecordDraft(
            text=f"thing{chance.randrange(17)} stood near place{n % 11}, said {n}{'?' * (n % 5 == 0)}",
            kind="observation" if n % 9 == 0 else "chat", by=("ann", "coach")[n % 2], episode=f"talk {n // 7}",
            keywords=(f"Key{n % 7}",), data={"by_user": n % 2 == 0, "n": n % 13} if n % 3 else {},
        )
        for n in range(count)
    ]  # fmt: skip


async def found(memory: Memory) -> list[list[tuple[str, float]]]:
    asked = [await memory.recall(each, 8, touch=False) for each in QUESTIONS]
    asked.append(await memory.recall("thing4", 8, where={"n": 5}, touch=False))
    return [[(each.record.id, round(each.score, 4)) for each in some] for some in asked]


@pytest.mark.parametrize("kept_from", [50, 10_000])
async def test_recall_after_forget_equals_recall_with_fresh_columns(
    folder: Path, kept_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_cache, "KEPT_FROM", kept_from)
    chance = random.Random(kept_from)
    async with Counting(folder) as store, Memory(store, "ann", Words(), ManualClock(), seed=1) as memory:
        records = await memory.retain_all(drafts(150, chance))
        notes = await memory.retain_all([
            RecordDraft(text=f"Ann saw: {each.text}", kind="note", evidence=(each.id, records[0].id))
            for each in records[1:40:3]
        ])  # fmt: skip
        await memory.recall("thing1", touch=False)
        await memory._recaller.shelf.settled()
        for round_ in range(8):
            store.rows = 0
            gone = chance.sample(records, (1, 1, 2, 7)[round_ % 4])
            if round_ == 6:
                gone = [each for each in records if each.episode == records[-1].episode]
            await memory.forget(*(each.id for each in gone))
            records = [each for each in records if each not in gone]
            held = await found(memory)
            assert store.rows <= 2 * len(notes)  # those that lost some text, and got a new vector
            async with SqliteStore(folder) as other, Memory(other, "ann", Words(), ManualClock()) as anew:
                assert held == await found(anew)
            records += await memory.retain_all(drafts(2, chance))
