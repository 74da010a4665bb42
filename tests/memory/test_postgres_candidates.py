"""Candidates from a PostgreSQL database: found by words and vectors in an index that is filled in the background."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import postgres_server
import pytest
from babble import Babble
from mindstream_evals.conformance.samples import ANN, BOB, LATER, NOW, build_record, build_writing

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.recall import recall, selection
from mindstream.memory.store.record import Record, RecordDraft, Vector
from mindstream.memory.store.store import Commit, Revision
from mindstream.models.embedders.embedder import WordLlama
from mindstream.text.dates import DateSpan
from mindstream.text.words import terms

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed")

from mindstream.memory.store import sql_store  # noqa: E402
from mindstream.memory.store.postgres import index as postgres_index  # noqa: E402
from mindstream.memory.store.postgres import postgres  # noqa: E402
from mindstream.memory.store.postgres.postgres import PostgresStore  # noqa: E402
from mindstream.memory.store.postgres.tables import MIGRATIONS, SEARCHED  # noqa: E402
from mindstream.memory.store.word_index import candidates  # noqa: E402
from mindstream.memory.store.word_index import segments as index  # noqa: E402
from mindstream.memory.store.word_index.segments import hashed  # noqa: E402

MANY = (
    "INSERT INTO records (id, stream, kind, text, created, accessed, by, episode, level, lasting, depth, seq, embedder,"
    " changed) SELECT 'r' || n, ?, ?, 'text', 0, 0, '', '', 0, false, 0, n, '', n FROM generate_series(?::int, ?) AS n"
)
WORDS = [first + second for first in ("har", "lan", "mor", "tam") for second in ("bour", "tern", "row", "sel", "dun")]


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    """A database in which a stream of 40 records counts as long, and a segment has 8, 32 or 128 records."""
    for module, name, value in (
        (index, "SEARCHED_FROM", 40), (index, "SMALLEST", 8), (index, "SEVERAL", 4),
        (index, "LARGEST", 128), (postgres_index, "LARGEST", 128), (postgres_index, "SMALLEST", 8),
        (sql_store, "SMALLEST", 8),
        (candidates, "SAMPLE", 4),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    return postgres_server.fresh_url()


@pytest.fixture
async def store(url: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore(url) as opened:
        yield opened


def talk(count: int, begins: int = 0) -> list[Record]:
    """Records with different texts and different vectors."""
    chance = np.random.default_rng(begins)
    made = []
    for at in range(begins, begins + count):
        text = f"{WORDS[at % 20]} {WORDS[at // 20 % 20]} number{at}"
        drawn = chance.normal(size=32)
        vector = (drawn / np.linalg.norm(drawn)).astype(np.float16)
        record = build_record(text, "chat")
        made.append(replace(record, vector=vector, embedder="tried", episode=f"{at // 5}", about=None, keywords=()))
    return made


def vector_of(record: Record) -> Vector:
    assert record.vector is not None
    return record.vector


async def filled(store: PostgresStore, count: int = 150) -> list[Record]:
    records = talk(count)
    for start in range(0, count, 10):
        await store.commit(build_writing(*records[start : start + 10]))
    await store.index(ANN)
    return records


async def found(store: PostgresStore, words: str = "", vector: np.ndarray | None = None, n: int = 3) -> list[str]:
    return [each.text for each in await store.candidates(ANN, vector, terms(words), n)]


def needs_pgvector() -> None:
    if not postgres_server.ask("SELECT 1 FROM pg_extension WHERE extname = 'vector'"):
        pytest.skip("nearness is not tried: this server has no pgvector")


async def test_vector_search_finds_old_unrehearsed_records(store: PostgresStore) -> None:
    needs_pgvector()
    records = await filled(store)
    assert records[23].text in await found(store, vector=records[23].vector, n=1)
    other = np.negative(vector_of(records[30]))
    revised = Revision(id=records[30].id, vector=other, embedder="tried")
    await store.commit(Commit(mind=ANN, at=LATER, revisions=(revised,)))
    await store.index(ANN)
    assert records[30].text in await found(store, vector=other, n=1)
    assert not await store.candidates(BOB, records[23].vector, ["number17"], 3)


async def test_keyword_search_finds_old_unrehearsed_records(store: PostgresStore) -> None:
    records = await filled(store)
    newest = [each.text for each in records[-3:]]
    assert records[17].text in await found(store, "number17", n=1)
    assert set(newest) <= set(await found(store, "number17"))
    assert len(await found(store, "number17 number31", records[23].vector)) <= 4 * 3 + 16 + 4 * 3
    assert not await store.candidates(BOB, None, ["number17"], 3)


async def test_neighbours_of_matching_records_are_candidates(store: PostgresStore) -> None:
    records = await filled(store)
    assert {each.text for each in records[15:20]} <= set(await found(store, "number17", n=5))


async def test_candidates_are_limited_to_the_requested_kinds(store: PostgresStore) -> None:
    await filled(store)
    note = build_record("number17 as a note", "note")
    await store.commit(build_writing(note), build_writing(*talk(40, 200)))
    await store.index(ANN)
    ids = [each.id for each in await store.candidates(ANN, None, terms("number17"), 1, kinds=["note"])]
    assert ids == [note.id]


async def test_index_segments_are_merged_and_hold_each_record_once(store: PostgresStore, url: str) -> None:
    records = await filled(store)
    for each in talk(60, 500):
        await store.commit(build_writing(each))
        await store.index(ANN)
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = ''")
        sizes = [row[0] for row in connection.execute("SELECT count FROM segments WHERE ready ORDER BY last")]
        near = [row[0] for row in connection.execute("SELECT number FROM nearness")]
        held = b"".join(row[0] for row in connection.execute("SELECT numbers FROM segments"))
        bare = connection.execute("SELECT count(*) FROM postings WHERE segment NOT IN (SELECT id FROM segments)")
        assert bare.fetchone() == (0,)
    assert sum(sizes) >= len(records) + 50 and len(sizes) < 10
    numbers = sorted(np.frombuffer(held, np.int64))
    assert len(set(numbers)) == sum(sizes) and sorted(near) in (numbers, [])  # none: without pgvector


async def test_erased_records_are_in_no_index(store: PostgresStore, url: str) -> None:
    records = await filled(store)
    await store.erase(ANN, [records[17].id])
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = ''")
        number = "SELECT count(*) FROM postings WHERE term = %s"
        assert connection.execute(number, (hashed(terms("number17")[0]),)).fetchone() == (0,)
    await store.index(ANN)
    assert records[17].text not in await found(store, "number17", records[17].vector)
    assert records[16].text in await found(store, "number16", n=1)
    await store.erase(ANN)
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = ''")
        assert [connection.execute(f"SELECT count(*) FROM {each}").fetchone() for each in SEARCHED] == [(0,)] * 3


async def test_compact_removes_erased_vectors_from_the_files(store: PostgresStore) -> None:
    records = talk(60, 9_000)  # values that occur in no other schema of this server
    await store.commit(build_writing(*records))
    await store.index(ANN)
    gone, stays = (vector_of(records[at]).tobytes() for at in (17, 23))
    assert any(gone in each for each in await asyncio.to_thread(postgres_server.tables))
    await store.erase(ANN, [records[17].id])
    await store.compact()
    tables = await asyncio.to_thread(postgres_server.tables)
    assert any(stays in each for each in tables)
    assert not any(gone in each for each in tables)


async def test_a_segment_is_discarded_if_a_record_was_erased_during_its_build(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = talk(60)
    monkeypatch.setattr(index, "SEARCHED_FROM", 1000)  # not yet
    await store.commit(build_writing(*records))
    await store.index(ANN)
    monkeypatch.setattr(index, "SEARCHED_FROM", 40)
    loop, written, once = asyncio.get_running_loop(), postgres_index._write_postings, [records[5].id]

    def slowly(*given: object) -> object:
        if once:
            asyncio.run_coroutine_threadsafe(store.erase(ANN, [once.pop()]), loop).result()
        return written(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(postgres_index, "_write_postings", slowly)
    await store.index(ANN)
    await store.index(ANN)
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = ''")
        number = "SELECT count(*) FROM postings WHERE term = %s"
        assert connection.execute(number, (hashed(terms("number5")[0]),)).fetchone() == (0,)
        assert connection.execute(number, (hashed(terms("number6")[0]),)).fetchone() == (1,)


@pytest.mark.parametrize("table", ["segments", "nearness", "postings"])
async def test_closing_stops_indexing_and_the_next_store_continues(
    url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_pgvector()
    monkeypatch.setattr(postgres_index, "PORTION", 16)
    records = talk(60)
    everything = "SELECT number, xmin::text FROM nearness ORDER BY number"
    with psycopg.connect(url) as other:
        async with PostgresStore(url) as store:
            await filled(store, 100)
            await store.erase(ANN)
        other.execute("SET mindstream.tenant = ''")
        async with asyncio.timeout(100), PostgresStore(url) as store:
            other.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE")
            await store.commit(build_writing(*records))
            oid = other.execute("SELECT %s::regclass::oid", (table,)).fetchone()
            waits = f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = {oid[0]}"
            await asyncio.to_thread(lambda: next(filter(postgres_server.ask, itertools.repeat(waits))))
        assert not await asyncio.to_thread(postgres_server.ask, waits), "the server has stopped indexing"
        other.rollback()
        other.execute("SET mindstream.tenant = ''")
        assert other.execute("SELECT count(*) FROM segments").fetchone() == (0,)
        before = other.execute(everything).fetchall()
        assert len(before) == (32 if table == "postings" else 0), "a segment of 32, no vectors if that table is locked"
        async with PostgresStore(url) as store:
            await store.index(ANN)
            assert records[17].text in await found(store, "number17", records[17].vector, n=1)
        assert other.execute(everything).fetchall()[: len(before)] == before, "existing rows are not rewritten"


async def test_without_pgvector_keyword_search_still_works(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = postgres_index.EXTENSION.replace("'vector'", "'nowhere'")
    monkeypatch.setattr(postgres_index, "EXTENSION", nowhere)
    records = await filled(store)
    assert records[17].text in await found(store, "number17", records[23].vector, n=1)
    assert records[23].text not in await found(store, "", records[23].vector, n=1)


async def test_the_index_is_isolated_by_tenant(url: str) -> None:
    async with PostgresStore(url) as store:
        await filled(store)
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = 'acme'")
        assert [connection.execute(f"SELECT count(*) FROM {each}").fetchone() for each in SEARCHED] == [(0,)] * 3


@pytest.mark.parametrize("seen", [5, 9])
async def test_a_database_with_an_earlier_schema_is_indexed(
    url: str, seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = talk(60)
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS[:seen])
    monkeypatch.setattr(sql_store, "SMALLEST", 1000)  # the index is filled only with the newest schema
    async with PostgresStore(url) as before:
        await before.commit(build_writing(*records))
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS)
    async with PostgresStore(url) as store:
        await store.index(ANN)
        assert records[17].text in await found(store, "number17", n=1)


async def test_scores_of_candidates_agree_with_scores_among_all_records(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Babble(1).sentences(600)
    questions = Babble(2).sentences(20, 4, 9)
    async with PostgresStore(url) as store, Memory(store, "ann", WordLlama(), ManualClock(NOW)) as memory:
        drafts = [
            RecordDraft(text=t, kind="note" if at % 3 == 0 else "chat", by="Ann", episode=f"{at // 20}")
            for at, t in enumerate(texts)
        ]
        await memory.retain_all(drafts)
        await store.index(memory.key)
        whole = [{each.record.id for each in await memory.recall(question, 5, touch=False)} for question in questions]

        async def nothing(stream: str) -> None:
            return None

        monkeypatch.setattr(memory._recaller.shelf, "at_hand", nothing)
        monkeypatch.setattr(recall, "CANDIDATES", 50)
        some = [{each.record.id for each in await memory.recall(question, 5, touch=False)} for question in questions]
        monkeypatch.setattr(selection, "PartLexical", lambda columns, told: columns.lexical)
        alone = [{each.record.id for each in await memory.recall(question, 5, touch=False)} for question in questions]
    assert shared(whole, some) > 0.9 > shared(whole, alone)


async def test_stream_statistics_report_speakers_lengths_and_times(store: PostgresStore) -> None:
    by = ["Ann" if at % 3 else "Coach" for at in range(150)]
    records = [
        replace(each, by=name, created=NOW + at) for at, (each, name) in enumerate(zip(talk(150), by, strict=True))
    ]
    for start in range(0, 150, 10):
        await store.commit(build_writing(*records[start : start + 10]))
    await store.index(ANN)
    spans = [DateSpan(NOW + 20, NOW + 33), DateSpan(NOW + 30, NOW + 36)]
    candidates = await store.candidates(ANN, None, ["number90"], 20, spans=spans)
    told, there = candidates.told, [each.text for each in candidates]
    assert told and told.written == 16 and {each.text for each in records[20:36]} <= set(there)
    held = records[: told.records]
    assert told.said == {
        name: (sum(each.by == name for each in held), sum(len(terms(each.text)) for each in held if each.by == name))
        for name in ("Ann", "Coach")
    }
    assert 0 <= told.groups - len({each.episode for each in held}) < 5, "some are counted in two segments"
    drawn = [there[at] for at in told.sample]
    assert {records[0].text, held[-1].text} <= set(drawn) <= {each.text for each in held}


async def test_a_person_mentioned_often_is_not_taken_for_the_speaker(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MOST", 20)  # Tom is in all results
    said = [f"{'Tom' if at % 30 == 4 else 'somebody'} watered the garden number{at}" for at in range(900)]
    async with PostgresStore(url) as store, Memory(store, "ann", WordLlama(), ManualClock(NOW)) as memory:
        await memory.retain_all(
            [
                RecordDraft(text=text, kind="chat", by="Ann" if at % 2 == 0 else "Coach", episode=f"{at // 10}")
                for at, text in enumerate(said)
            ]
        )
        await store.index(memory.key)
        whole = await memory.recall("What did Tom do in the garden?", 5, touch=False)

        async def nothing(stream: str) -> None:
            return None

        monkeypatch.setattr(memory._recaller.shelf, "at_hand", nothing)
        some = await memory.recall("What did Tom do in the garden?", 5, touch=False)
    assert some.by_candidates and not whole.by_candidates
    assert "who" not in whole[0].parts and "who" not in some[0].parts


async def test_the_number_of_remaining_changes_is_reported(store: PostgresStore) -> None:
    records = await filled(store)
    first = await store.changes(ANN, 0, 0, 20)
    assert len(first.records) + first.ahead == len(records)
    await store.commit(build_writing(*talk(30, 500)))
    later = await store.changes(ANN, first.upto, 0, 20)
    assert len(later.records) + later.ahead == 30


def shared(some: list[set[str]], others: list[set[str]]) -> float:
    """Return the share of results that were found again."""
    return sum(len(one & other) for one, other in zip(some, others, strict=True)) / sum(map(len, some))


async def test_queries_use_indexes_without_statistics_about_names(store: PostgresStore) -> None:
    await filled(store)
    await store.write(lambda rows: rows.execute(MANY, (ANN, "chat", 1, 20_000)).rowcount)
    await store.compact()  # as maintenance does, with ANALYZE
    asked = {
        "SELECT number FROM records WHERE stream = ? AND kind = ? ORDER BY number DESC LIMIT 20": (ANN, "chat"),
        postgres_index.UNHELD: (ANN, ANN, 512),
        "SELECT id FROM records WHERE number = ANY(?)": (list(range(50)),),
        "SELECT stream FROM records WHERE id = ?": ("r1",),
    }
    plans = await store.read(
        lambda rows: [
            "\n".join(row[0] for row in rows.execute(f"EXPLAIN {sql}", values).fetchall())
            for sql, values in asked.items()
        ]
    )
    for plan in plans:
        assert "using records_" in plan, plan
        assert "Seq Scan on records" not in plan and "Sort Key: number" not in plan and "Bitmap" not in plan, plan


async def test_planner_statistics_contain_no_text_names_or_vectors(store: PostgresStore) -> None:
    needs_pgvector()
    await filled(store)
    await store.compact()
    sql = (
        "SELECT DISTINCT c.relname, a.attname FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid"
        " JOIN pg_attribute a ON a.attrelid = s.starelid AND a.attnum = s.staattnum"
        " WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass(%s))"
    )
    schema = await store.read(lambda rows: rows.execute("SELECT current_schema()").fetchone())
    with postgres_server.psycopg_admin() as admin:
        found = set(admin.execute(sql, (f"{schema[0]}.records",)).fetchall())
    assert ("records", "created") in found, "statistics exist"
    told = {column for table, column in found if table != "counters"}
    assert not told & {"stream", "mind", "tenant", "text", "near", "vector", "payload", "value", "term", "key"}, found
