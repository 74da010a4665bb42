"""A server gives the same answers from a folder and from a database, before and after a restart."""

from __future__ import annotations

import signal
import time
from typing import Any

import httpx
import postgres_server
import pytest
from fake_endpoint import KEY, FakeEndpoint, Says, Stalls
from served import Served, ServerProcess
from test_events import follow

from mindstream.service.operations import long_running

USER = "/api/v1/users/ann"
PLAN = {
    "task": "what is 6 times 7?",
    "steps": [{"id": "E1", "tool": "calculator", "arguments": {"expression": "6*7"}}],
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def until_done(client: httpx.Client, id_: str, headers: dict[str, str]) -> dict[str, Any]:
    for _ in range(4_000):
        found: dict[str, Any] = client.get(f"/api/v1/operations/{id_}", headers=headers).json()
        if found["state"] == "done":
            return found
        time.sleep(0.05)
    raise AssertionError(id_)


def test_sent_messages_are_stored_and_appear_once_as_events(data: str, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello, Ann.")
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        first = {"Idempotency-Key": "k-1"}
        sent = client.post(f"{USER}/send", json={"text": "Hello!"}, headers=first)
        again = client.post(f"{USER}/send", json={"text": "Hello!"}, headers=first)
        assert sent.status_code == again.status_code == 202 and sent.json() == again.json()
        rows, last = follow(served.url, {"user": "ann", "after": 0}, None, "Hello, Ann.")
        assert [row["text"] for row in rows if row["event"] == "heard"] == ["Hello!"]
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        kept = client.post(f"{USER}/send", json={"text": "Hello!"}, headers=first)
        assert kept.json() == sent.json(), "the next server knows the idempotency key"
        refused = client.post(f"{USER}/send", json={"text": "Bye!"}, headers=first)
        assert refused.status_code == 409
        client.post(f"{USER}/send", json={"text": "And again."})
        more, _ = follow(served.url, {"user": "ann", "kind": "heard"}, last, "And again.")
        assert [row["text"] for row in more] == ["And again."]


def test_a_token_opens_one_tenant_until_another_process_revokes_it(data: str, door: FakeEndpoint) -> None:
    with Served(data, model=f"{door.url}#any", require_token=True) as served, served.client() as client:
        acme, other = served.token("acme"), served.token("other")
        assert client.get(f"{USER}/memories").status_code == 401
        made = client.post(f"{USER}/memories", json={"text": "Acme's plan."}, headers=acme).json()
        path = f"{USER}/memories/{made['id']}"
        assert client.get(path, headers=acme).json()["text"] == "Acme's plan."
        assert client.get(path, headers=other).status_code == 404
        found = client.post(f"{USER}/memories/recall", json={"query": "the plan"}, headers=acme).json()["memories"]
        assert [each["id"] for each in found] == [made["id"]]
        assert client.delete(path, headers=acme).json()["forgotten"]
        token, held = served.change_tokens(lambda tokens: tokens.new("acme", "read", 1))
        holds = {"Authorization": f"Bearer {token}"}
        assert client.get(f"{USER}/memories", headers=holds).status_code == 200
        served.change_tokens(lambda tokens: tokens.revoke(held.id))
        assert client.get(f"{USER}/memories", headers=holds).status_code == 401


def test_spending_and_operation_results_survive_a_restart(data: str, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.", usage=(500, 500))
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        poor = served.token("acme", tokens=6_000)
        id_ = client.post(f"{USER}/plans/run", json={"plan": PLAN}, headers=poor).json()["id"]
        before = until_done(client, id_, poor)
        assert before["result"]["answer"] == "It is 42."
        begun = [client.post(f"{USER}/plans/run", json={"plan": PLAN}, headers=poor).json() for _ in range(8)]
        for each in begun:
            until_done(client, each["id"], poor)
    asked = len(door.asked)
    with Served(data, model=f"{door.url}#any") as served, served.client() as client:
        assert client.get(f"/api/v1/operations/{id_}", headers=poor).json() == before
        for other in (served.token("other"), {}):
            assert client.get(f"/api/v1/operations/{id_}", headers=other).status_code == 404
        later = client.post(f"{USER}/plans/run", json={"plan": PLAN}, headers=poor).json()["id"]
        assert until_done(client, later, poor)["result"]["stopped"]
        assert len(door.asked) == asked, "the daily tokens are also spent for the next server"
        made = client.post(f"{USER}/memories", json={"text": "Six times seven."}, headers=poor).json()
        client.delete(f"{USER}/memories/{made['id']}", headers=poor)
        ended = client.get("/api/v1/operations", headers=poor).json()["operations"]
        assert id_ not in [each["id"] for each in ended], "an operation is removed with forgotten text"


def test_the_server_process_prints_no_password(data: str) -> None:
    with ServerProcess(data, "--require-token") as server:
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        assert httpx.get(f"{server.url}{USER}/memories").status_code == 401
        assert server.end() == 0
        assert server.process.stderr is not None and ":secret@" not in server.said + server.process.stderr.read()


def test_another_server_shows_an_operation_and_its_end(door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    url = postgres_server.fresh_url()
    door.otherwise = Stalls()
    with Served(url, model=f"{door.url}#any") as other, other.client() as elsewhere:
        with Served(url, model=f"{door.url}#any") as served, served.client() as client:
            id_ = client.post(f"{USER}/plans/run", json={"plan": PLAN}).json()["id"]
            path = f"/api/v1/operations/{id_}"
            assert elsewhere.get(path).json()["state"] == "running"
            assert [each["id"] for each in elsewhere.get("/api/v1/operations").json()["operations"]] == [id_]
            assert elsewhere.post(f"{path}/cancel", json={}).status_code == 409
            assert client.post(f"{path}/cancel", json={}).json()["state"] == "cancelled"
            assert elsewhere.get(path).json()["state"] == "cancelled"
        flags = ("--model", f"{door.url}#any")
        with ServerProcess(url, *flags) as killed:
            later = httpx.post(f"{killed.url}{USER}/plans/run", json={"plan": PLAN}, timeout=100).json()["id"]
            assert elsewhere.get(f"/api/v1/operations/{later}").json()["state"] == "running"
            killed.end(signal.SIGKILL)
        monkeypatch.setattr(long_running, "DEAD_S", 0.5)
        for _ in range(4_000):
            if (found := elsewhere.get(f"/api/v1/operations/{later}").json())["state"] == "interrupted":
                break
            time.sleep(0.05)
        assert found["state"] == "interrupted" and found["ended"], "the server that ran it is gone"
