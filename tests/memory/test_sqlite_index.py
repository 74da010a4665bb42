"""The index of words and vectors in a SQLite file: it finds records, and contains nothing erased."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from babble import Babble
from mindstream_evals.conformance.samples import ANN, BOB, LATER, NOW, build_record, build_writing

from mindstream.clock import ManualClock
from mindstream.log.database import FILE
from mindstream.memory.memory import Memory
from mindstream.memory.store import sql_store, sqlite, tables
from mindstream.memory.store.record import Kind, Record, RecordDraft, Vector
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Erasure, Revision
from mindstream.memory.store.word_index import candidates, in_sqlite, segments
from mindstream.memory.store.word_index.segments import hashed
from mindstream.models.embedders.embedder import WordLlama
from mindstream.text.words import terms

HELD = {"postings": "packed", "places": "numbers", "nearness": "signs"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure that a stream of 40 records counts as long, and that a segment has 8, 32 or 128 records."""
    for module, name, value in (
        (segments, "SEARCHED_FROM", 40), (segments, "SMALLEST", 8), (segments, "SEVERAL", 4),
        (segments, "LARGEST", 128), (sqlite, "LARGEST", 128), (sqlite, "SMALL", 32), (in_sqlite, "SMALLEST", 8),
        (sql_store, "SMALLEST", 8), (candidates, "SAMPLE", 4), (sqlite, "SEARCHED_FROM", 40),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(folder) as opened:
        yield opened


def talk(count: int, begins: int = 0) -> list[Record]:
    """Records with different texts and different vectors."""
    chance, made = np.random.default_rng(begins), []
    for at in range(begins, begins + count):
        drawn = chance.normal(size=128)
        vector = (drawn / np.linalg.norm(drawn)).astype(np.float16)
        record = build_record(f"common word{at % 20} number{at} 早安{at}", "chat")
        made.append(
            replace(
                record, vector=vector, embedder="tried", episode=f"{at // 5}", about=None, keywords=(),
                by="Ann" if at % 3 else "Coach",
            )
        )  # fmt: skip
    return made


async def filled(store: SqliteStore, count: int = 150) -> list[Record]:
    records = talk(count)
    for start in range(0, count, 10):
        await store.commit(build_writing(*records[start : start + 10]))
    await store.index(ANN)
    return records


async def found(store: SqliteStore, words: str = "", vector: Vector | None = None, n: int = 3) -> list[str]:
    return [each.text for each in await store.candidates(ANN, vector, terms(words), n)]


async def rows(store: SqliteStore, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    return await store.read(lambda connection: list(connection.execute(sql, values)))


async def test_keyword_and_vector_search_find_old_unrehearsed_records(store: SqliteStore) -> None:
    records = await filled(store)
    assert records[17].text in await found(store, "number17", n=1)
    assert records[17].text in await found(store, "早安17", n=1)
    assert records[23].text in await found(store, vector=records[23].vector, n=1)
    assert {each.text for each in records[15:20]} <= set(await found(store, "number17", n=5)), "neighbouring records"
    assert {each.text for each in records[-3:]} <= set(await found(store, "number17"))
    assert not await store.candidates(BOB, records[23].vector, ["number17"], 3)


async def test_candidates_rank_as_among_all_records(
    folder: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, questions = Babble(1).sentences(600), Babble(2).sentences(20, 4, 9)
    async with Memory(store, "ann", WordLlama(), ManualClock(NOW)) as memory:
        kinds: tuple[Kind, ...] = ("note", "chat", "chat")
        drafts = [
            RecordDraft(text=t, kind=kinds[at % 3], by="Ann", episode=f"{at // 20}") for at, t in enumerate(texts)
        ]
        await memory.retain_all(drafts)
        await store.index(memory.key)
        whole = [{each.record.id for each in await memory.recall(each, 5, touch=False)} for each in questions]

        async def nothing(stream: str) -> None:
            return None

        monkeypatch.setattr(memory._recaller.shelf, "at_hand", nothing)
        some = [{each.record.id for each in await memory.recall(each, 5, touch=False)} for each in questions]
    assert sum(len(one & other) for one, other in zip(whole, some, strict=True)) > 0.95 * 5 * len(questions)


async def test_index_segments_are_merged_and_hold_each_record_once(store: SqliteStore) -> None:
    await filled(store)
    for each in talk(60, 500):
        await store.commit(build_writing(each))
        await store.index(ANN)
    sizes = [count for (count,) in await rows(store, "SELECT count FROM segments ORDER BY last")]
    held = np.concatenate([np.frombuffer(row[0], np.int64) for row in await rows(store, "SELECT numbers FROM places")])
    assert sum(sizes) == len(set(held.tolist())) == len(held) > 200 and len(sizes) < 10
    for table in HELD:
        bare = f"SELECT count(*) FROM {table} WHERE segment NOT IN (SELECT id FROM segments)"
        assert await rows(store, bare) == [(0,)]


async def test_erasure_removes_only_the_record_from_its_segment(store: SqliteStore) -> None:
    records = await filled(store)
    gone, terms_of = records[17], [hashed(term) for term in terms(records[17].text)]
    before = {row[0]: row[1:] for row in await rows(store, "SELECT id, count, words, said FROM segments")}
    assert await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed("number17"))
    await store.erase(ANN, [gone.id])
    after = {row[0]: row[1:] for row in await rows(store, "SELECT id, count, words, said FROM segments")}
    assert before.keys() == after.keys() and len(before) < 10, "no segment is dropped"
    changed = [(before[each], after[each]) for each in before if before[each] != after[each]]
    assert [(was[0] - now[0], was[1] - now[1]) for was, now in changed] == [(1, len(terms(gone.text)))]
    assert not await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed("number17"))
    for packed, numbers in await rows(
        store,
        f"SELECT packed, numbers FROM postings JOIN places USING (segment) WHERE term IN ({','.join('?' * len(terms_of))})",  # noqa: E501
        *terms_of,
    ):
        places = np.frombuffer(packed, np.uint32) >> 8
        assert 18 not in np.frombuffer(numbers, np.int64)[places], "the eighteenth row of the table"
    assert gone.text not in await found(store, "number17", gone.vector)
    assert records[16].text in await found(store, "number16", records[16].vector, n=1)
    assert await rows(store, "SELECT * FROM unindexed") == []


async def test_no_byte_of_an_erased_term_or_vector_stays_in_the_file(store: SqliteStore, folder: Path) -> None:
    records = await filled(store)
    gone, stays = ((hashed(f"number{at}").to_bytes(8, "big", signed=True), records[at].vector) for at in (17, 23))
    assert gone[0] in (folder / FILE).read_bytes() + (folder / f"{FILE}-wal").read_bytes()
    await store.erase(ANN, [records[17].id])
    await store.compact()
    file = (folder / FILE).read_bytes() + (folder / f"{FILE}-wal").read_bytes()
    assert stays[0] in file and stays[1] is not None and stays[1].tobytes() in file
    assert gone[0] not in file and gone[1] is not None and gone[1].tobytes() not in file


async def test_a_speakers_name_is_removed_with_the_last_message(store: SqliteStore) -> None:
    records = await filled(store, 60)
    await store.commit(build_writing(replace(talk(1, 900)[0], by="Zibeth"), *talk(40, 901)))
    await store.index(ANN)
    (one,) = [row for (row,) in await rows(store, "SELECT said FROM segments") if "Zibeth" in row]
    (id_,) = [row[0] for row in await rows(store, "SELECT id FROM records WHERE by = 'Zibeth'")]
    await store.erase(ANN, [id_])
    assert "Zibeth" not in "".join(row for (row,) in await rows(store, "SELECT said FROM segments"))
    assert "Coach" in one and records


async def test_a_redacted_record_is_indexed_by_its_new_text(store: SqliteStore) -> None:
    records = await filled(store)
    changed = range(30, 40)
    for at in changed:
        rewritten = replace(records[at], text=f"it says zanzibar{at} now", data={})
        await store.erase(ANN, Erasure(ids=(), rows=frozenset(), rewritten=(rewritten,)))
        assert not await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed(f"number{at}"))
        assert f"it says zanzibar{at} now" in await found(store, f"zanzibar{at}", n=1)
    await store.index(ANN)
    terms_of = [hashed(f"zanzibar{at}") for at in changed]
    anew = f"SELECT count(DISTINCT term) FROM postings WHERE term IN ({','.join(map(str, terms_of))})"
    ((indexed, left),) = await rows(store, f"SELECT ({anew}), count(*) FROM unindexed")  # of one moment
    assert indexed >= len(changed) - left > 2, "segments that lost many records are rebuilt; the rest waits"
    for at in changed:
        assert f"it says zanzibar{at} now" in await found(store, f"zanzibar{at}", n=1)


async def test_a_reused_row_number_is_indexed(store: SqliteStore) -> None:
    records = await filled(store, 64)
    assert await rows(store, "SELECT max(last) FROM segments") == [(64,)]
    await store.erase(ANN, [each.id for each in records[62:]])
    assert await rows(store, "SELECT max(last) FROM segments") == [(62,)]
    await store.commit(build_writing(build_record("the parrot sings")))
    assert "the parrot sings" in await found(store, "parrot", n=1)


async def test_direct_changes_of_rows_update_the_index(store: SqliteStore, folder: Path) -> None:
    records = await filled(store)
    with closing(sqlite3.connect(folder / FILE)) as other, other:
        other.execute("UPDATE records SET text = 'another text' WHERE id = ?", (records[17].id,))
    assert not await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed("number17"))
    await store.index(ANN)
    assert "another text" in await found(store, "another", n=1)
    vector = np.negative(records[30].vector) if records[30].vector is not None else None
    await store.commit(
        Commit(mind=ANN, at=LATER, revisions=(Revision(id=records[30].id, vector=vector, embedder="tried"),))
    )
    await store.index(ANN)
    assert records[30].text in await found(store, vector=vector, n=1)
    await store.erase(ANN)
    assert [await rows(store, f"SELECT count(*) FROM {each}") for each in ("segments", *HELD)] == [[(0,)]] * 4


async def test_a_segment_is_rebuilt_if_a_record_was_erased_during_its_build(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = await filled(store, 30)  # too short to be indexed
    put, once = in_sqlite.put, [records[5].id]

    def late(connection: sqlite3.Connection, stream: Any, built: in_sqlite.Built) -> bool:
        if once:
            connection.execute("DELETE FROM records WHERE id = ?", (once.pop(),))
        return put(connection, stream, built)

    monkeypatch.setattr(in_sqlite, "put", late)
    await store.commit(build_writing(*talk(30, 100)))
    await store.index(ANN)
    assert not once and not await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed("number5"))
    assert await rows(store, "SELECT 1 FROM postings WHERE term = ?", hashed("number6"))


async def test_a_file_of_an_earlier_version_is_indexed_in_the_background(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MIGRATIONS", tables.MIGRATIONS[:10])
    monkeypatch.setattr(sql_store, "SMALLEST", 1000)  # the index is filled only with the newest tables
    async with SqliteStore(folder) as before:
        await before.commit(build_writing(*talk(100)))
    monkeypatch.setattr(sqlite, "MIGRATIONS", tables.MIGRATIONS)
    async with SqliteStore(folder) as store:
        assert talk(100)[17].text in await found(store, "number17", n=1)
        assert await rows(store, "SELECT count(*) FROM segments") == [(0,)]
        await store.index(ANN)
        assert await rows(store, "SELECT sum(count) FROM segments") > [(90,)]
        assert talk(100)[17].text in await found(store, "number17", n=1)


async def test_closing_stops_indexing_and_the_next_process_continues(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_sqlite, "RESTS_EACH", 40)
    monkeypatch.setattr(in_sqlite, "REST_S", 0.2)  # time to notice the first segment, which has 32 records
    async with SqliteStore(folder) as store:
        await store.commit(build_writing(*talk(150)))
        store._index(ANN)
        while not await rows(store, "SELECT 1 FROM segments"):
            pass
        monkeypatch.setattr(in_sqlite, "REST_S", 100.0)
    async with SqliteStore(folder) as store:
        assert await rows(store, "SELECT count(*), sum(count) < 150 FROM segments") == [(1, 1)]
        monkeypatch.setattr(in_sqlite, "REST_S", 0.001)
        await store.index(ANN)
        assert await rows(store, "SELECT sum(count) FROM segments") > [(140,)]
