"""Forgotten or erased text does not return: not by operations, repeated requests or pending writes."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_endpoint import KEY, Asked, Behaviour, FakeEndpoint, Says, Stalls
from served import Served

from mindstream.clock import DAY_S, SystemClock
from mindstream.identifiers import StreamKey
from mindstream.log.database import FILE
from mindstream.log.retention import Rule
from mindstream.memory.opening import open_store
from mindstream.memory.store import erasure
from mindstream.memory.store.queries import next_change
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Erasure
from mindstream.service.operations import long_running
from mindstream.service.privacy import retention

SECRET = "zibeth"
TEXT = f"The {SECRET} stands in the cellar."
ANN = StreamKey("ann")
USER = "/api/v1/users/ann"
QUERY = {"query": "what stands in the cellar?", "k": 3}
PLAN = {
    "task": "what stands in the cellar?",
    "steps": [{"id": "E1", "tool": "recall", "arguments": {"query": "what stands in the cellar?"}}],
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(long_running, "BEAT_S", 0.05)


async def _erase(store: SqlStore, what: Erasure | None) -> None:
    """Erase as another process does, without a notification of this process."""

    def change(rows: Any) -> None:
        found = None if what is None else erasure.find(rows, ANN, what)
        erasure.erase(rows, ANN, found, next_change(rows))

    await store.write(change)


async def forget_one(store: SqlStore, id_: str) -> None:
    await _erase(store, Erasure(ids=(id_,)))


async def erase_all(store: SqlStore, _: str) -> None:
    await _erase(store, None)


class Later(SystemClock):
    """A clock two days ahead."""

    def now(self) -> float:
        return super().now() + 2 * DAY_S


async def retain_for_a_day(store: SqlStore, _: str) -> None:
    from mindstream.models.embedders.embedder import embedder

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("mindstream.caches.empty", lambda *_, **__: None)
        await retention.erase_expired(retention.TenantData(store, embedder("wordllama"), Later()), Rule("", DAY_S))


def elsewhere(data: str, do: Callable[[SqlStore, str], Any], id_: str) -> None:
    """Run a function with a separate store in a separate event loop."""

    async def in_store() -> None:
        async with open_store(data) as store:
            await do(store, id_)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, in_store()).result()


def until(client: httpx.Client, id_: str, is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    for _ in range(2_000):
        found: dict[str, Any] = client.get(f"/api/v1/operations/{id_}").json()
        if is_meant(found):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


def all_kept(data: str) -> str:
    """Return the content of all tables that hold text."""
    held = list[str]()

    async def look(store: SqlStore, _: str) -> None:
        for table in ("log", "records", "kept", "work"):
            sql = f"SELECT * FROM {table}"
            held.extend(map(str, await store.read(lambda rows: rows.execute(sql).fetchall())))  # noqa: B023

    elsewhere(data, look, "")
    return "\n".join(held)


@pytest.mark.parametrize("lose", [forget_one, erase_all, retain_for_a_day])
def test_forgotten_text_is_not_repeated_by_an_idempotency_key(
    data: str, door: FakeEndpoint, lose: Callable[..., Any]
) -> None:
    door.otherwise = Says(TEXT)
    keyed = {"Idempotency-Key": "once"}
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        id_ = client.post(f"{USER}/memories", json={"text": TEXT}, headers=keyed).json()["id"]
        asked = client.post(f"{USER}/memories/recall", json=QUERY, headers=keyed)
        assert (
            SECRET in asked.text
            and client.post(f"{USER}/memories/recall", json=QUERY, headers=keyed).text == asked.text
        )
        run = client.post(f"{USER}/plans/run", json={"plan": PLAN}, headers=keyed).json()["id"]
        assert SECRET in str(until(client, run, lambda found: found["state"] == "done")["result"])
        elsewhere(data, lose, id_)
        again = client.post(f"{USER}/memories/recall", json=QUERY, headers=keyed)
        assert again.status_code == 409 and SECRET not in again.text
        assert SECRET not in client.get(f"/api/v1/operations/{run}").text
        assert SECRET not in client.get("/api/v1/operations").text
        assert SECRET not in client.get(f"{USER}/plans").text
        kept = client.post(f"{USER}/memories", json={"text": TEXT}, headers=keyed)
        assert (kept.status_code, kept.json()["id"]) == (201, id_), (
            "a stored result without text is still returned and not repeated"
        )
    assert SECRET not in all_kept(data)


@pytest.mark.parametrize("lose", [forget_one, erase_all])
def test_a_running_operation_writes_no_erased_text_back(
    data: str, door: FakeEndpoint, lose: Callable[..., Any]
) -> None:
    door.otherwise = Stalls()
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        id_ = client.post(f"{USER}/memories", json={"text": TEXT}).json()["id"]
        run = client.post(f"{USER}/plans/run", json={"plan": PLAN}).json()["id"]
        until(client, run, lambda found: SECRET in str(found["progress"]))
        elsewhere(data, lose, id_)
        assert SECRET not in client.get(f"/api/v1/operations/{run}").text
        if lose is forget_one:
            ended = until(client, run, lambda found: found["state"] == "interrupted")
            assert ended["run"] and f"resume the run {ended['run']!r}" in ended["problem"]
            door.otherwise = Says("Nothing does.")
            on = client.post(f"{USER}/plans/{ended['run']}/resume", json={}).json()["id"]
            done = until(client, on, lambda found: found["state"] == "done")
            assert SECRET not in str(done) and "Nothing does." in str(done)
        else:
            assert client.get(f"/api/v1/operations/{run}").status_code == 404
            assert client.get("/api/v1/operations").json() == {"operations": []}
        assert door.hung_up.wait(20), "the model call has ended"
        time.sleep(0.2)  # some heartbeats
    left = all_kept(data)
    assert SECRET not in left and (lose is forget_one or "ann" not in left), left


def test_a_running_life_continues_without_the_forgotten_text(folder: Any, door: FakeEndpoint) -> None:
    def lives(asked: Asked) -> Behaviour:
        return Stalls() if SECRET in str(asked.body) else Says("All is done.")

    door.otherwise = lives
    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        client.post(f"{USER}/life/goal", json={"goal": "Keep the cellar tidy"}).raise_for_status()
        client.post(f"{USER}/life/say", json={"text": TEXT}).raise_for_status()
        run = client.post(f"{USER}/life/live", json={"turns": 1}).json()["id"]
        assert door.was_asked.wait(20)
        said = next(each for each in client.get(f"{USER}/memories").json()["memories"] if SECRET in each["text"])
        client.delete(f"{USER}/memories/{said['id']}").raise_for_status()
        assert SECRET not in client.get(f"/api/v1/operations/{run}").text
        client.post(f"/api/v1/operations/{run}/cancel").raise_for_status()
    assert SECRET not in all_kept(str(folder))


def test_a_repeated_forget_does_not_return_the_forgotten_text(folder: Any) -> None:
    keyed = {"Idempotency-Key": "once"}
    with Served(folder, model="rules") as served, served.client() as client:
        id_ = client.post(f"{USER}/memories", json={"text": TEXT}).json()["id"]
        first = client.delete(f"{USER}/memories/{id_}", headers=keyed)
        again = client.delete(f"{USER}/memories/{id_}", headers=keyed)
        assert first.json() == again.json() and first.json()["asked"] == [id_]


@pytest.mark.parametrize("how", ["ids", "subjects", "both"])
def test_memories_forgotten_at_the_same_time_are_gone_and_audited(folder: Path, how: str) -> None:
    texts = [f"{word} lies in the cellar." for word in ("Anchor", "Barrel", "Candle", "Drum", "Easel", "Funnel")]
    with Served(folder, model="rules") as served, served.client() as client, ThreadPoolExecutor(6) as threads:
        ids = [client.post(f"{USER}/memories", json={"text": text}).json()["id"] for text in texts]

        def forget(number: int) -> int:
            if how == "ids" or (how == "both" and number % 2):
                return client.delete(f"{USER}/memories/{ids[number]}").status_code
            return client.post(
                f"{USER}/memories/forget", json={"about": texts[number].split()[0], "dry_run": False}
            ).status_code

        assert [*threads.map(forget, range(len(ids)))] == [200] * len(ids)
        assert not client.get(f"{USER}/memories").json()["memories"]
    with closing(sqlite3.connect(folder / FILE)) as database:
        ((count,),) = database.execute("SELECT COUNT(*) FROM audit WHERE did = 'forgot'").fetchall()
    assert count == len(ids)
