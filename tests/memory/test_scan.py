"""Without an index the texts of a file are scanned: rare words count more, within a time limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from keys import key_of
from world import Words

from mindstream import ManualClock, Memory, RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.word_index import in_sqlite as scan
from mindstream.text.words import terms

ANN = key_of("ann")
SAID = {
    "The parrot Zibeth sings.": (),
    "Happy people sing.": (),
    "A bird.": ("parrot",),
    "The singing kettle is blue.": (),
}


async def fill(store: SqliteStore, name: str, said: dict[str, tuple[str, ...]], more: int) -> None:
    async with Memory(store, name, Words(), ManualClock()) as memory:
        await memory.retain_all([RecordDraft(text=text, kind="note", keywords=of) for text, of in said.items()])
        await memory.retain_all([RecordDraft(text=f"They sing song {n}.", kind="note") for n in range(more)])


async def found(store: SqliteStore, query: str, n: int) -> list[str]:
    numbers = await store._database.read(lambda each: scan.find_by_words(each, ANN, terms(query), n))
    sql = f"SELECT number, text FROM records WHERE number IN ({','.join(map(str, numbers)) or 'NULL'})"
    texts: dict[int, str] = dict(await store._database.read(lambda each: each.execute(sql).fetchall()))
    return [texts[number] for number in numbers]


async def test_rare_words_count_more_and_newer_records_come_first(folder: Path) -> None:
    async with SqliteStore(folder) as store:
        await fill(store, "bob", {"Zibeth is bob's parrot.": ()}, 5)
        await fill(store, "ann", SAID, 50)
        assert await found(store, "Does Zibeth the parrot sing?", 3) == [
            "The parrot Zibeth sings.", "A bird.", "They sing song 49.",
        ]  # fmt: skip
        assert await found(store, "Who is happiest? Who is happy?", 1) == ["Happy people sing."]
        assert await found(store, "quantum", 9) == await found(store, "?", 9) == []
        assert len(await found(store, "song", 99)) == 50


async def test_the_scan_stops_at_its_time_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "SCANNED", 10)
    async with SqliteStore(folder) as store:
        await fill(store, "ann", SAID, 50)
        assert await found(store, "parrot", 1) == ["A bird."]
        monkeypatch.setattr(scan, "LOOK_S", -1.0)
        assert await found(store, "parrot", 1) == [] and len(await found(store, "song", 99)) == 10
