"""Faults of a PostgreSQL server: cut connections, rollbacks, a full disk, a clock with another time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import postgres_server
import pytest
from mindstream_evals.conformance.samples import ANN, BOB, THEN, build_event, build_record, build_writing

from mindstream.clock import SharedClock, SystemClock
from mindstream.errors import Conflict, StorageError
from mindstream.location import Location
from mindstream.memory.store.store import Commit, Entry

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL is not tried: psycopg is not installed")

from mindstream.memory.store.postgres import connection as connections  # noqa: E402
from mindstream.memory.store.postgres.postgres import PostgresStore  # noqa: E402
from mindstream.memory.store.postgres.writer import Listening  # noqa: E402


@pytest.fixture
def url() -> str:
    return postgres_server.fresh_url()


def a_row(unique: str = "") -> Commit:
    return Commit(mind=ANN, at=THEN, entries=(Entry(build_event(), ANN),), unique=unique)


WAITING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO writers%' AND wait_event_type = 'Lock'"


def cut_all() -> None:
    postgres_server.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mind' AND pid <> pg_backend_pid()"
    )


async def test_cut_connections_are_replaced(url: str) -> None:
    async with PostgresStore(url) as store:
        await store.commit(a_row())
        for count in range(2, 6):
            cut_all()
            await store.commit(a_row())
            cut_all()
            assert len(await store.events(ANN)) == count


async def test_a_walk_on_a_cut_connection_raises_storage_error(url: str) -> None:
    async with PostgresStore(url) as store:
        await store.commit(build_writing(*(build_record(f"note {n}") for n in range(300))))
        with pytest.raises(StorageError):
            async with store.walk(ANN) as (_, records):
                await anext(records)
                cut_all()
                async for _ in records:
                    pass
        async with store.walk(ANN) as (count, _):
            assert count == 300


async def test_a_failed_open_ends_soon_and_holds_no_connection(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = list[int]()

    def away() -> Any:
        tries.append(1)
        raise psycopg.OperationalError("connection refused")

    async with PostgresStore(url) as store:
        lent = store._database._lent
        lent.reading.forget()
        monkeypatch.setattr(lent.reading, "_connect", away)
        with pytest.raises(StorageError, match="refused"):
            PostgresStore(url, "acme")
        assert len(tries) < 9, "the event loop is blocked during these attempts"
        assert lent.users == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_a_commit_with_unknown_outcome_is_looked_up(
    url: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks during a commit: once after the server has done it, once before."""
    breaks = [True]

    class Breaking:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def execute(self, sql: str | bytes, *more: Any, **named: Any) -> Any:
            if isinstance(sql, bytes) and sql.endswith(b"COMMIT") and breaks.pop() if breaks else False:
                if kept:
                    self._inner.execute(sql, *more, **named)
                self._inner.close()
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return self._inner.execute(sql, *more, **named)

    async with PostgresStore(url) as store:
        lending = store._database._lent.writing
        connect = lending._connect
        monkeypatch.setattr(lending, "_connect", lambda: Breaking(connect()))
        (row,) = await store.commit(a_row())
        assert [each.seq for each in await store.events(ANN)] == [row.seq]
        assert not breaks


async def test_a_lookup_waits_for_a_commit_that_is_still_running(url: str) -> None:
    """The server has not finished when a new connection asks, so a missing row proves nothing."""
    async with PostgresStore(url) as store:
        writer = store._database._writer
        writer._batch = 1
        with psycopg.connect(url) as ending:
            ending.execute("INSERT INTO writers (id, batch) VALUES (%s, 1)", (writer._id,))
            told = asyncio.ensure_future(asyncio.to_thread(writer._was_committed))
            while not told.done() and not int(postgres_server.ask(WAITING)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            ending.commit()
        assert await told
        await store.commit(a_row())


async def test_rows_of_killed_writers_are_removed(url: str) -> None:
    async with PostgresStore(url) as store, PostgresStore(url) as other:
        await store.commit(a_row())
        await other.commit(a_row())
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO writers (id, batch, at) VALUES ('dead', 7, now() - interval '2 days')")
        await store.close()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT id FROM writers").fetchall() == [(other._database._writer._id,)]


@pytest.fixture
def failing(url: str) -> Iterator[str]:
    """Make the log refuse rows with an error, as often as the table `refusals` says."""

    def set_up(state: str, times: int) -> None:
        with psycopg.connect(url) as connection:
            connection.execute("CREATE SEQUENCE IF NOT EXISTS tries; ALTER SEQUENCE tries RESTART")
            connection.execute(
                "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                f" IF nextval('tries') <= {times} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'; END IF;"
                " RETURN NEW; END $$"
            )
            connection.execute("CREATE OR REPLACE TRIGGER refusing BEFORE INSERT ON log EXECUTE FUNCTION refuse()")

    yield set_up  # type: ignore[misc]


@pytest.mark.parametrize("state", ["40001", "40P01", "25P03"])
async def test_transient_transaction_errors_are_retried(url: str, state: str, failing: Any) -> None:
    async with PostgresStore(url) as store:
        failing(state, 3)
        await asyncio.gather(*(store.commit(a_row()) for _ in range(5)))
        assert len(await store.events(ANN)) == 5


async def test_a_full_disk_raises_an_error_and_later_writes_succeed(url: str, failing: Any) -> None:
    async with PostgresStore(url) as store:
        failing("53100", 1)
        with pytest.raises(StorageError, match="disk or memory is full"):
            await store.commit(a_row())
        await store.commit(a_row())
        assert len(await store.events(ANN)) == 1


async def test_a_failed_write_does_not_fail_its_group(url: str) -> None:
    async with PostgresStore(url) as store:
        made = [store.commit(a_row("one")), store.commit(a_row("one")), *(store.commit(a_row()) for _ in range(20))]
        came = await asyncio.gather(*made, return_exceptions=True)
        assert sum(isinstance(each, Conflict) for each in came) == 1
        assert len(await store.events(ANN)) == 21


async def test_a_subscriber_is_notified_of_other_stores_writes(url: str) -> None:
    told, of_bob = asyncio.Event(), asyncio.Event()
    async with PostgresStore(url) as store, PostgresStore(url) as other:
        with store.subscribe(ANN, told.set), store.subscribe(BOB, of_bob.set):
            for _ in range(3):
                async with asyncio.timeout(100):
                    while not told.is_set():  # it may not be set up yet
                        of_bob.clear()
                        await other.commit(a_row())
                        with suppress(TimeoutError):
                            await asyncio.wait_for(told.wait(), 0.3)
                told.clear()
                cut_all()


async def test_an_ending_listener_thread_keeps_its_successor(url: str) -> None:
    """A caller starts a new thread while the old one closes its connection; otherwise both would continue."""
    listening, newer = Listening(url), threading.Thread(target=threading.Event().wait, daemon=True)
    listening._subscribers, listening._thread = {"digest": {lambda: None}}, newer
    older = threading.Thread(target=listening._listen)
    older.start()
    await asyncio.to_thread(older.join)
    assert listening._thread is newer


async def test_a_connection_returned_during_close_is_closed(url: str) -> None:
    async with PostgresStore(url) as store:
        await store.version()
        lending = store._database._lent.reading
        (held,) = lending._idle
        lent, since = lending.lend(""), held.since
        connection = lent.__enter__()
        with lending._lock:
            back = threading.Thread(target=lent.__exit__, args=(None, None, None))
            back.start()
            while held.since == since:  # noqa: ASYNC110 (it is at the lock)
                await asyncio.sleep(0)
            lending._closed = True
        back.join()
        assert connection.closed and not lending._idle


async def test_a_skewed_clock_follows_the_database_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Skewed(SystemClock):
        def now(self) -> float:
            return time.time() + 300

    clock = SharedClock(Skewed())
    monkeypatch.setitem(connections._clocks, str(Location.of(url)), clock)
    async with PostgresStore(url) as store:
        assert store.clock is clock and abs(clock.now() - time.time()) < 2
        await store.commit(build_writing(build_record("kept")))
        assert abs(clock.now() - time.time()) < 2
