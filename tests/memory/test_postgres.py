"""The store in PostgreSQL, beyond the promises of all stores: isolation, migrations, secrets, erased bytes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import postgres_server
import pytest
from hamlet import hamlet
from mindstream_evals.conformance.samples import ANN, NOW, build_record, build_writing
from mindstream_town.town import Town

from mindstream import ManualClock, Memory, Mind, SqliteStore
from mindstream.chance import token
from mindstream.coach.coach import Coach
from mindstream.errors import MindstreamError, StorageError
from mindstream.identifiers import StreamName
from mindstream.log.events import Heard, Thought
from mindstream.memory.opening import open_store
from mindstream.memory.store.store import Commit, Entry, NewWork, WorkDone
from mindstream.models.embedders.embedder import WordLlama

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed")

from mindstream.memory.store.postgres import postgres  # noqa: E402
from mindstream.memory.store.postgres.pool import MOST, NO_TENANT  # noqa: E402
from mindstream.memory.store.postgres.postgres import PostgresStore  # noqa: E402
from mindstream.memory.store.postgres.tables import MIGRATIONS, TABLES  # noqa: E402

MARKED = "INSERT INTO counters (name, value) VALUES ('unindexed', 1) ON CONFLICT (tenant, name) DO UPDATE SET value = 1"


@pytest.fixture
def url() -> str:
    return postgres_server.fresh_url()


async def test_a_statement_without_a_filter_sees_one_tenants_rows(url: str) -> None:
    for tenant in ("acme", "other"):
        async with PostgresStore(url, tenant) as store, Memory(store, "ann", WordLlama(), ManualClock()) as memory:
            await memory.retain(f"what {tenant} knows", "note")
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = 'acme'")
        texts = connection.execute("SELECT text FROM records").fetchall()
        assert texts == [("what acme knows",)]
        assert connection.execute("UPDATE records SET text = 'x' WHERE tenant = 'other'").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO counters (name, value, tenant) VALUES ('x', 1, 'other')")


async def test_tenants_share_connections_without_seeing_each_others_rows(url: str) -> None:
    """More tenants than connections, reading and writing concurrently; some lose their server, some are cancelled."""
    names = [f"tenant{number}" for number in range(20)]
    stores = [PostgresStore(url, name) for name in names]
    keys = {name: StreamName("user", "ann", name).key for name in names}
    notes = {name: replace(build_record(f"what {name} knows"), stream=key, by=key) for name, key in keys.items()}

    def fails(rows: Any) -> None:
        rows.execute("SELECT nothing FROM nowhere")

    def seen(rows: Any) -> list[Any]:
        return list(rows.execute("SELECT DISTINCT tenant FROM records").fetchall())

    async def use(name: str, store: PostgresStore) -> None:
        await store.commit(replace(build_writing(notes[name]), mind=keys[name]))
        for number in range(6):
            with suppress(StorageError):
                await (store.write if number % 2 else store.read)(fails)
            look = store._database.glance if number % 3 else store.read
            assert await look(seen) == [(name,)]
            assert await store.write(seen) == [(name,)]
            async with store.walk(notes[name].stream) as (count, _):
                assert count == 1

    await asyncio.gather(*map(use, names, stores))
    lent = stores[0]._database._lent
    assert all(store._database._lent is lent for store in stores)
    for lending in (lent.reading, lent.writing):
        assert 1 <= len(lending._idle) <= 2 * MOST
        with lending.lend(NO_TENANT) as connection:
            assert connection.execute("SELECT count(*) FROM records").fetchone() == (0,)
    for store in stores:
        await store.close()
    assert not lent.reading._idle and not lent.writing._idle


async def test_a_connection_cut_while_idle_is_discarded(url: str) -> None:
    async with PostgresStore(url, "acme") as store, PostgresStore(url, "other") as other:
        await store.version()
        lending = store._database._lent.reading
        (held,) = lending._idle
        held.connection.close()
        assert await other.version() == await store.version() == -1
        assert held not in lending._idle


async def test_a_connection_without_a_tenant_sees_nothing(url: str) -> None:
    async with PostgresStore(url) as store:
        await store.commit(build_writing(build_record("mine")))
    with psycopg.connect(url, autocommit=True) as connection:
        for table in TABLES:
            with pytest.raises(psycopg.Error, match=r"mindstream\.tenant"):
                connection.execute(f"SELECT * FROM {table}")


def test_a_role_that_bypasses_row_level_security_is_refused() -> None:
    with pytest.raises(StorageError, match="'postgres' bypasses row-level security"):
        PostgresStore(postgres_server.admin_url())


async def test_errors_contain_no_password(url: str) -> None:
    wrong = [
        "postgresql://ann:hunter2@127.0.0.1:9/mind",
        url.replace("/postgres?", "/nowhere?").replace("secret", "hunter2"),
        "postgresql://ann:hunter2@127.0.0.1:port/mind",
    ]
    for each in wrong:
        with pytest.raises(MindstreamError) as caught:
            PostgresStore(each)
        assert "hunter2" not in str(caught.value) and caught.value.__cause__ is None
    with pytest.raises(StorageError, match=r"cannot be reached.*pg_isready"):
        PostgresStore(wrong[0])


async def test_a_database_is_migrated_once_and_a_newer_schema_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS[:1])  # from before row-level security
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE writers (id text PRIMARY KEY, batch bigint, at timestamptz DEFAULT now())")
    async with PostgresStore(url) as store:
        record = build_record("from before")
        await store.commit(build_writing(record))
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS)
    opened = await asyncio.gather(*(asyncio.to_thread(PostgresStore, url) for _ in range(3)))
    for store in opened:
        assert [each.text for each in await store.records(ANN, [record.id])] == ["from before"]
        await store.close()
    with psycopg.connect(url) as connection:
        seen = connection.execute("SELECT seen FROM mindstream_migrations ORDER BY seen").fetchall()
        assert seen == [(number,) for number in range(1, len(MIGRATIONS) + 1)]
    monkeypatch.setattr(postgres, "MIGRATIONS", MIGRATIONS[:1])
    with pytest.raises(StorageError, match="newer mindstream"):
        PostgresStore(url)


async def test_a_reader_misses_no_row_of_concurrent_writers(url: str) -> None:
    stores = [PostgresStore(url) for _ in range(3)]
    reader, seen, rows, point, after = stores[0], list[str](), list[int](), 0, 0
    records = [build_record(f"note {number}") for number in range(60)]
    writing = [
        asyncio.ensure_future(stores[number % 3].commit(build_writing(record))) for number, record in enumerate(records)
    ]
    done = False
    while not done:
        done = all(each.done() for each in writing)  # a later read contains all of them
        changes = await reader.changes(ANN, point)
        point = changes.upto
        seen += [record.id for record in changes.records]
        found = [row.seq for row in await reader.events(ANN, after)]
        after = max(found, default=after)
        rows += found
    logged = [row.seq for each in writing for row in each.result()]
    assert sorted(seen) == sorted(record.id for record in records) and rows == sorted(logged)
    for store in stores:
        await store.close()


async def test_changes_and_walk_return_records_in_write_order(url: str) -> None:
    async with PostgresStore(url) as store:
        records = [build_record(f"note {number} " + "x" * 2_000) for number in range(70)]
        await store.commit(build_writing(*records))
        found, after, aheads = list[str](), 0, list[int]()
        while True:
            portion = await store.changes(ANN, 0, after, 40)
            found += [record.id for record in portion.records]
            aheads.append(portion.ahead)
            if not (after := portion.left):
                break
        assert found == [record.id for record in records]
        assert aheads[0] > 0 and len(aheads) > 2  # long records end a portion before it is full
        async with store.walk(ANN) as (count, walked):
            await store.commit(build_writing(build_record("while it is walked")))
            assert (count, [record.id async for record in walked]) == (70, found)


async def test_compact_removes_erased_text_from_the_table_files(url: str) -> None:
    async with PostgresStore(url) as store:
        gone, stays = build_record("the secret of the lighthouse keeper"), build_record("what stays of the harbour")
        await store.commit(build_writing(gone))
        await store.commit(build_writing(stays))
        await store.erase(ANN, [gone.id])
        await store.compact()
    tables = await asyncio.to_thread(postgres_server.tables)
    assert any(b"what stays of the harbour" in each for each in tables)
    assert not any(b"lighthouse keeper" in each for each in tables)


async def test_an_erasure_during_compaction_requires_another_compaction(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore(url) as store:
        records = [build_record("one"), build_record("two")]
        await store.commit(build_writing(*records))
        vacuum = store._database.vacuum

        async def beside(tables: str, *, full: bool) -> None:
            await vacuum(tables, full=full)
            if tables == "nearness" and records:
                await store.erase(ANN, [records.pop().id])
                await store.write(lambda rows: rows.execute(MARKED))

        await store.erase(ANN, [records.pop().id])
        await store.write(lambda rows: rows.execute(MARKED))
        monkeypatch.setattr(store._database, "vacuum", beside)
        await store.compact()
        due = "SELECT count(*) FROM counters WHERE name IN ('erased', 'unindexed') AND value > 0"
        assert await store.read(lambda rows: rows.execute(due).fetchone()) == (2,)
        await store.compact()
        assert await store.read(lambda rows: rows.execute(due).fetchone()) == (0,)


async def test_recall_is_the_same_from_sqlite_and_postgres(url: str, tmp_path: Path) -> None:
    told = ["Ann goes to bed at 23:00.", "Trams squeal below Ann's window.", "Bob sells tea by the harbour."]
    answers = []
    for store in (SqliteStore(tmp_path), PostgresStore(url)):
        async with Memory(store, "ann", WordLlama(), ManualClock(NOW)) as memory:
            for text in told:
                await memory.retain(text, "note")
            found = await memory.recall("what is outside Ann's window?", k=3, touch=False)
            answers.append([(each.record.text, each.score) for each in found])
            assert replace(found[0].record, id="", seq=0).level == 0
    assert answers[0] == answers[1] and answers[0][0][0] == told[1]


async def test_a_memory_and_a_mind_open_by_url(url: str) -> None:
    async with Memory.open(url, "ann") as memory:
        await memory.retain("Ann goes to bed at 23:00.", "note")
    async with Mind.open(url, user="ann", responder=Coach.using(pack="sleep")) as mind:
        assert [each.text for each in await mind.memory.latest("note")] == ["Ann goes to bed at 23:00."]
        assert await mind.send("I lie awake at night.")
        await mind.settled()
    async with Memory.open(url, "ann") as memory:
        assert await memory.store.count(memory.key, "heard") == 1
        assert await memory.store.open_work(memory.key) == []


async def test_without_psycopg_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("mindstream.memory.store.postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"pip install 'mindstream\[postgres\]'"):
        open_store("postgresql://ann@db/mind")


@pytest.mark.parametrize("written", ["postgresql://ann:hunter2@db/mind", "postgres://ann:hunter2@db/mind"])
def test_an_unreachable_database_gives_advice_without_the_password(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "mindstream", "memory", "list", "--data", written], capture_output=True, text=True
    )
    assert ran.returncode == 2 and "pg_isready" in ran.stderr and "hunter2" not in ran.stderr + ran.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_database_with_a_non_unicode_encoding_is_refused(url: str) -> None:
    name = f"latin{token().lower()}"
    postgres_server.ask(
        f"CREATE DATABASE {name} OWNER {postgres_server.ROLE} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
    )
    with pytest.raises(StorageError, match="encoding must be UTF8, but is LATIN1"):
        PostgresStore(url.replace("/postgres?", f"/{name}?"))


async def test_concurrent_claims_give_work_to_one_store(url: str) -> None:
    stores = [PostgresStore(url) for _ in range(2)]
    for _ in range(5):
        heard = Entry(Heard(text="hello", session="s", record="r"), ANN)
        await stores[0].commit(Commit(mind=ANN, at=1.0, entries=(heard,), wake=NewWork(("belief",), "dead", 2.0)))
        claims = [store.claim(ANN, "belief", f"owner {number}", 50.0, 90.0) for number, store in enumerate(stores)]
        claimed = await asyncio.gather(*claims)
        assert sorted(map(len, claimed)) == [0, 1]
        winner = 0 if claimed[0] else 1
        (work,) = claimed[winner]
        done = Entry(Thought(slot="belief", about=(1,), text="", model="rules"), "belief")
        await stores[0].commit(
            Commit(mind=ANN, at=60.0, entries=(done,), finish=WorkDone((work.id,), f"owner {winner}"))
        )
    for store in stores:
        await store.close()


async def test_a_town_has_the_same_journal_in_sqlite_and_postgres(url: str, tmp_path: Path) -> None:
    digests = []
    for place in (str(tmp_path / "town"), url):
        async with Town.open(place, hamlet()) as town:
            await town.run(until=30)
        async with Town.open(place) as town:  # another process goes on
            await town.run(until=40)
            digests.append((town.step, await town.digest()))
    assert digests[0] == digests[1] and digests[0][0] == 40


def test_a_folder_is_opened_without_importing_psycopg(tmp_path: Path) -> None:
    code = (
        "import sys, mindstream; from mindstream.memory.opening import open_store;"
        f" open_store({str(tmp_path / 'data')!r}); print('psycopg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_take_work_skips_rows_locked_by_other_stores(url: str) -> None:
    async with PostgresStore(url) as store, PostgresStore(url) as other:
        for number in range(3):
            heard = Entry(Heard(text=f"hello {number}", session="s", record="r"), ANN)
            wake = NewWork((f"slot {number}",), "nobody", 0.0)
            await store.commit(Commit(mind=ANN, at=NOW, entries=(heard,), wake=wake))
        with psycopg.connect(url) as first:  # it is committing, and has one of them
            first.execute("SET mindstream.tenant = ''")
            first.execute("SELECT value FROM counters WHERE name = 'changed' FOR UPDATE")
            first.execute("SELECT id FROM work WHERE slot = 'slot 0' FOR UPDATE")
            async with asyncio.timeout(100):
                both = await asyncio.gather(
                    *(each.take_work(f"w{n}", NOW, NOW + 60, 1, answers=False) for n, each in enumerate((store, other)))
                )
        slots = [slot for taken in both for each in taken for slot in each.slots]
        assert len(slots) == len(set(slots)) and set(slots) <= {"slot 1", "slot 2"} and slots
        assert [each.slots for each in await other.take_work("w2", NOW, NOW + 60, 9, answers=False)] == [
            tuple(sorted({"slot 0", "slot 1", "slot 2"} - set(slots)))
        ]
