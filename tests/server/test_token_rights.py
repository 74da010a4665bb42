"""A token's rights end with it, and stay within its scopes; a cancelled `send` returns the stored message."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fake_endpoint import FakeEndpoint, Says
from served import Served

USER = "/api/v1/users/ann"
HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{USER}/send", {"text": "Hello!"}),
        ("/v1/chat/completions", {"model": "companion", "stream": True, "messages": HI}),
        ("/v1/responses", {"model": "companion", "stream": True, "input": "Hi again"}),
    ],
)  # fmt: skip
def test_an_answer_ends_soon_after_its_token_is_revoked(
    served: Served, client: httpx.Client, door: FakeEndpoint, path: str, body: dict[str, object]
) -> None:
    door.otherwise = Says(" ".join(f"word{n}" for n in range(60)), pause_s=0.1)
    token, made = served.change_tokens(lambda tokens: tokens.new("acme", "read,write", 1, user="ann"))
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    revoked, came = 0.0, ""
    with client.stream("POST", path, json=body, headers=headers) as stream:
        for part in stream.iter_text():
            came += part
            if not revoked and "word" in part:
                served.change_tokens(lambda tokens: tokens.revoke(made.id))
                revoked = time.monotonic()
    assert revoked and "word59" not in came


CALLED = {"name": "recall", "arguments": {"query": "when is tea?"}}
MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALLED}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{USER}/memories/recall", {"query": "when is tea?", "touch": True}),
        (f"{USER}/memories/recall", {"query": "tea", "k": 1}),
        ("/mcp/ann", MCP),
    ],
)  # fmt: skip
def test_recall_with_a_read_token_strengthens_no_memory(
    served: Served, client: httpx.Client, path: str, body: dict[str, object]
) -> None:
    writer, reader = served.token("acme"), served.token("acme", "memory.read")
    made = client.post(f"{USER}/memories", json={"text": "Tea is made at four."}, headers=writer).json()["id"]
    accepts = {"Accept": "application/json, text/event-stream"}

    def recalls() -> object:
        assert client.post(path, json=body, headers=reader | accepts).status_code == 200
        return client.get(f"{USER}/memories/{made}/strength", headers=writer).json()["level"]

    before = client.get(f"{USER}/memories/{made}/strength", headers=writer).json()["level"]
    assert recalls() == recalls() == before
    client.post(f"{USER}/memories/recall", json={"query": "when is tea?"}, headers=writer)
    assert client.get(f"{USER}/memories/{made}/strength", headers=writer).json()["level"] != before


def test_metrics_require_a_token_of_the_server_itself(served: Served, client: httpx.Client) -> None:
    for tenant, scope, more in (
        ("acme", "admin", {}), ("acme", "server.read", {}), ("local", "read", {}), ("local", "admin", {"user": "ann"}),
    ):  # fmt: skip
        assert client.get("/metrics", headers=served.token(tenant, scope, **more)).status_code == 403
    for scope in ("admin", "server.read"):
        assert client.get("/metrics", headers=served.token("local", scope)).status_code == 200
    assert client.get("/metrics").status_code == 200


@pytest.mark.parametrize(("keyed", "which"), [(False, {}), (True, {}), (True, {"session": "s1"})])
def test_a_cancelled_send_returns_the_stored_message(
    client: httpx.Client, door: FakeEndpoint, keyed: bool, which: dict[str, str]
) -> None:
    door.otherwise = Says("Well then.", pause_s=0.02)

    def send(number: int) -> httpx.Response:
        key = {"Idempotency-Key": f"k{number}"} if keyed else {}
        return client.post(f"{USER}/send", json={"text": f"line {number}", "session": f"s{number % 2}"}, headers=key)

    with ThreadPoolExecutor(24) as threads:
        sends = [threads.submit(send, number) for number in range(12)]
        cancels = [threads.submit(client.post, f"{USER}/cancel", json=which) for _ in range(24)]
        assert {each.result().status_code for each in cancels} == {200}
        answers = [each.result() for each in sends]
    assert {each.status_code for each in answers} == {202}
    again = [send(number) for number in range(12)] if keyed else answers
    heard = client.get(f"{USER}/log", params={"kinds": "heard", "limit": 100}).json()["rows"]
    assert sorted(row["seq"] for row in heard) == sorted(each.json()["seq"] for each in again), "each message once"
