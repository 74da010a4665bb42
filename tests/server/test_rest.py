"""REST, as httpx asks for it: what is sent is kept, recalled with receipts, forgotten."""

from __future__ import annotations

import httpx
from served import Served


def test_what_is_retained_is_recalled_with_a_receipt(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "The spare key hangs behind the door."})
    assert made.status_code == 201
    found = client.post("/api/v1/users/ann/memories/recall", json={"query": "where is the key?", "k": 1}).json()
    (memory,) = found["memories"]
    assert memory["id"] == made.json()["id"] and memory["kind"] == "note"
    receipt = memory["receipt"]
    assert receipt["parts"]["words"] > 0 and receipt["ranks"]["words"] == 1 and receipt["source"] == "user"


def test_what_is_sent_is_acknowledged_when_it_is_on_disk(client: httpx.Client) -> None:
    sent = client.post("/api/v1/users/ann/send", json={"text": "Hello!", "session": "monday"})
    assert sent.status_code == 202 and sent.json()["session"] == "monday"
    assert sent.json()["seq"] > 0
    held = client.get("/api/v1/users/ann/memories").json()["memories"]
    assert "Hello!" in [each["text"] for each in held]


def test_a_user_sees_nothing_of_another(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "Ann likes tea."}).json()
    assert client.get(f"/api/v1/users/bob/memories/{made['id']}").status_code == 404
    assert client.delete(f"/api/v1/users/bob/memories/{made['id']}").status_code == 404
    assert client.get(f"/api/v1/users/ann/memories/{made['id']}").json()["text"] == "Ann likes tea."


def test_a_dry_run_forgets_nothing(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "A secret."}).json()
    path = f"/api/v1/users/ann/memories/{made['id']}"
    shown = client.delete(path, params={"dry_run": "true"})
    assert shown.json()["asked"] == [made["id"]] and not shown.json()["forgotten"]
    assert client.get(path).status_code == 200
    assert client.delete(path).json()["forgotten"]
    assert client.get(path).status_code == 404


def test_a_tenant_is_a_wall(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    made = client.post("/api/v1/users/ann/memories", json={"text": "Acme's plan."}, headers=acme).json()
    path = f"/api/v1/users/ann/memories/{made['id']}"
    assert client.get(path, headers=acme).status_code == 200
    assert client.get(path, headers=other).status_code == 404
    assert client.get(path).status_code == 404
