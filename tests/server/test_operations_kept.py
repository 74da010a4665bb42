"""Results of long operations survive a restart of the server, for their owner, until they are forgotten."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest
from fake_endpoint import KEY, FakeEndpoint, Says, Stalls
from served import Served, ServerProcess

USER = "/api/v1/users/ann"
PLAN = {
    "task": "what is 6 times 7?",
    "steps": [{"id": "E1", "tool": "calculator", "arguments": {"expression": "6*7"}}],
}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def begun(client: httpx.Client, headers: dict[str, str] | None = None) -> str:
    """Run a plan to its end and return the id of the operation."""
    id_: str = client.post(f"{USER}/plans/run", json={"plan": PLAN}, headers=headers).json()["id"]
    for _ in range(4_000):
        if client.get(f"/api/v1/operations/{id_}", headers=headers).json()["state"] == "done":
            return id_
        time.sleep(0.05)
    raise AssertionError(id_)


def test_an_operation_result_survives_a_restart(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.")
    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        acme = served.token("acme")
        id_ = begun(client, headers=acme)
        before = client.get(f"/api/v1/operations/{id_}", headers=acme).json()
    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        assert client.get(f"/api/v1/operations/{id_}", headers=acme).json() == before
        assert [each["id"] for each in client.get("/api/v1/operations", headers=acme).json()["operations"]] == [id_]
        for other in (served.token("other"), served.token("acme", user="bob"), {}):
            assert client.get(f"/api/v1/operations/{id_}", headers=other).status_code == 404


def test_forgetting_removes_operation_results_that_hold_the_text(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.")
    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        kept = client.post(f"{USER}/memories", json={"text": "Six times seven."}).json()["id"]
        begun(client)
    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        assert len(client.get("/api/v1/operations").json()["operations"]) == 1
        client.delete(f"{USER}/memories/{kept}")
        assert client.get("/api/v1/operations").json()["operations"] == []


def test_operations_of_a_killed_server_are_interrupted(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = Stalls()
    flags = ("--model", f"{door.url}#any")
    with ServerProcess(folder, *flags) as server:
        id_ = httpx.post(f"{server.url}{USER}/plans/run", json={"plan": PLAN}, timeout=100).json()["id"]
        for _ in range(4_000):
            if run := httpx.get(f"{server.url}/api/v1/operations/{id_}", timeout=100).json()["run"]:
                break
            time.sleep(0.05)
        server.end(signal.SIGKILL)
    with ServerProcess(folder, *flags) as server:
        found = httpx.get(f"{server.url}/api/v1/operations/{id_}", timeout=100).json()
        assert found["state"] == "interrupted" and found["ended"], found
        assert run and found["run"] == run and f"resume the run {run!r}" in found["problem"]
        door.otherwise = Says("It is 42.")
        on = httpx.post(f"{server.url}{USER}/plans/{run}/resume", json={}, timeout=100)
        assert on.status_code == 202, on.text
