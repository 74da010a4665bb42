"""No byte of a forgotten text is left in any file of the data folder; without overwriting the search finds some."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from world import Words

from mindstream import ManualClock, Memory, RecordDraft, SqliteStore
from mindstream.memory.store import sqlite
from mindstream.memory.store.record import Record


def found_in(folder: Path, word: str) -> int:
    return sum(path.read_bytes().count(word.encode()) for path in folder.rglob("*") if path.is_file())


async def forget_some(folder: Path, rounds: int) -> list[int]:
    """Write and forget in turns, also through a second store; return how often each forgotten word is in the files."""
    chance, left, there, number = random.Random(3), list[int](), list[tuple[str, Record]](), 0
    clock = ManualClock()
    async with (
        SqliteStore(folder) as store,
        SqliteStore(folder) as other,
        Memory(store, "ann", Words(), clock) as memory,
        Memory(other, "ann", Words(), clock) as beside,
    ):
        for round_ in range(rounds):
            for writer in (memory, beside):
                words = [f"quince{at:05d}zyx" for at in range(number, number + 12)]
                texts = [f"They said {word}. {'so ' * chance.randrange(90)}" for word in words]
                records = await writer.retain_all([RecordDraft(text=text, kind="chat") for text in texts])
                there += zip(words, records, strict=True)
                number += len(words)
            await memory.recall(there[chance.randrange(len(there))][0])  # its effects change rows in place
            chosen = [there.pop(-1 - chance.randrange(min(60, len(there)))) for _ in range(4)]
            if round_ == 0:
                assert all(found_in(folder, word) for word, _ in chosen)
            await memory.forget(*(record.id for _, record in chosen))
            left += [found_in(folder, word) for word, _ in chosen]
        assert all(found_in(folder, word) for word, _ in there)
    return left


async def test_no_byte_of_a_forgotten_text_is_left(folder: Path) -> None:
    assert not any(await forget_some(folder, 12))


async def test_without_overwriting_bytes_are_left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "overwrite_where_due", lambda *_, **__: True)
    assert any(await forget_some(folder, 2))
