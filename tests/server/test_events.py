"""The log as server-sent events: nothing is lost or doubled, across reconnects and restarts."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import Served, ServerProcess

from mindstream.server import streams


def read(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Read server-sent events as a browser does: `last` is its Last-Event-ID."""
    event: dict[str, Any] = {"event": "message", "data": "", "last": ""}
    last = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            last = value
        elif name in ("event", "data"):
            event[name] = value
        elif not line:
            if event["data"]:
                yield event | {"last": last, "data": json.loads(event["data"])}
            event = {"event": "message", "data": "", "last": ""}


def follow(url: str, params: dict[str, Any], last: str | None, until: str) -> tuple[list[dict[str, Any]], str]:
    """Listen until a text arrives; return the rows and the last id."""
    headers = {"Last-Event-ID": last} if last is not None else {}
    rows = []
    with httpx.stream("GET", f"{url}/api/v1/events", params=params, headers=headers, timeout=100) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in read(answer.iter_lines()):
            last = event["last"]
            rows.append(event["data"])
            if event["data"].get("text") == until:
                break
    assert last is not None
    return rows, last


def test_log_rows_are_streamed_as_events_with_their_seqs(served: Served, client: httpx.Client) -> None:
    for number in range(3):
        client.post("/api/v1/users/ann/send", json={"text": f"line {number}"})
        client.post("/api/v1/users/bob/send", json={"text": f"bob {number}"})
    rows, _ = follow(served.url, {"user": "ann", "kind": "heard", "after": 0}, None, "line 2")
    assert [row["text"] for row in rows] == ["line 0", "line 1", "line 2"]
    assert {row["user"] for row in rows} == {"ann"}
    seqs = [row["seq"] for row in rows]
    assert seqs == sorted(seqs)


def test_last_event_id_resumes_the_stream(served: Served, client: httpx.Client) -> None:
    client.post("/api/v1/users/ann/send", json={"text": "one"})
    first, last = follow(served.url, {"kind": "heard", "after": 0}, None, "one")
    client.post("/api/v1/users/ann/send", json={"text": "two"})
    client.post("/api/v1/users/ann/send", json={"text": "three"})
    more, _ = follow(served.url, {"kind": "heard"}, last, "three")
    assert [row["text"] for row in [*first, *more]] == ["one", "two", "three"]


def test_pieces_are_streamed_live_without_an_id(served: Served, client: httpx.Client) -> None:
    client.post("/api/v1/users/ann/send", json={"text": "first", "session": "s"})
    found: list[dict[str, Any]] = []
    ready = threading.Event()

    def listen() -> None:
        with httpx.stream("GET", f"{served.url}/api/v1/events", params={"user": "ann"}, timeout=100) as answer:
            lines = answer.iter_lines()
            next(lines)
            ready.set()
            for event in read(lines):
                found.append(event["data"])
                if event["data"]["event"] == "said" and "piece" in {row["event"] for row in found}:
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    ready.wait(100)
    client.post("/api/v1/users/ann/send", json={"text": "Hello!", "session": "s"})
    thread.join(100)
    assert any(row["event"] == "piece" and row["seq"] is None for row in found)


def test_no_event_is_lost_or_doubled_when_the_server_is_killed(folder: Path) -> None:
    heard: list[dict[str, Any]] = []
    last: str | None = "0"
    for round_ in range(3):
        with ServerProcess(folder) as server, httpx.Client(base_url=server.url, timeout=100) as asking:
            for number in range(5):
                text = f"{round_}.{number}"
                assert asking.post("/api/v1/users/ann/send", json={"text": text}).status_code == 202
                if number == 2:
                    rows, last = follow(server.url, {"kind": "heard"}, last, text)
                    heard += rows
            server.end(signal.SIGKILL)
    with ServerProcess(folder) as server:
        rows, last = follow(server.url, {"kind": "heard"}, last, "2.4")
        heard += rows
    assert [row["text"] for row in heard] == [f"{round_}.{number}" for round_ in range(3) for number in range(5)]


def test_another_tenant_receives_no_events(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    client.post("/api/v1/users/ann/send", json={"text": "acme's"}, headers=acme)
    client.post("/api/v1/users/ann/send", json={"text": "other's"}, headers=other)
    with httpx.stream("GET", f"{served.url}/api/v1/events?after=0&kind=heard", headers=other, timeout=100) as answer:
        assert next(read(answer.iter_lines()))["data"]["text"] == "other's"
    with httpx.stream(
        "GET", f"{served.url}/api/v1/events?after=0&user=ann&kind=heard", headers=acme, timeout=30
    ) as answer:
        assert next(read(answer.iter_lines()))["data"]["text"] == "acme's"


def test_invalid_event_ids_are_refused(client: httpx.Client) -> None:
    for wrong in ("x", "-1", "9" * 30, "１"):
        refused = client.get("/api/v1/events", headers={b"Last-Event-ID": wrong.encode()})
        assert refused.status_code == 422 and refused.headers["content-type"] == "application/problem+json"
    assert client.get("/api/v1/events", params={"kind": "nothing"}).status_code == 422
    assert client.get("/api/v1/events", params={"room": "nothing"}).status_code == 422


def test_a_stream_ends_with_its_token_and_resumes_with_another(folder: Path) -> None:
    with Served(folder, require_token=True) as served, served.client() as client:
        token, made = served.change_tokens(lambda tokens: tokens.new("acme", "read", 1))
        holds, other = {"Authorization": f"Bearer {token}"}, served.token("acme")

        def send(text: str) -> None:
            client.post("/api/v1/users/ann/send", json={"text": text}, headers=other)

        with client.stream("GET", "/api/v1/events?user=ann&kind=heard&after=0", headers=holds) as answer:
            events = read(answer.iter_lines())
            send("before")
            assert next(events)["data"]["text"] == "before"
            served.change_tokens(lambda tokens: tokens.revoke(made.id))
            send("after")
            last = list(events)
        assert [each["event"] for each in last] == ["end"], "no event follows"
        assert client.get("/api/v1/events", headers=holds).status_code == 401
        resumed = other | {"Last-Event-ID": last[0]["last"]}
        with client.stream("GET", "/api/v1/events?user=ann&kind=heard", headers=resumed) as answer:
            assert next(read(answer.iter_lines()))["data"]["text"] == "after"


async def test_a_stream_ends_whose_client_takes_nothing_and_not_one_that_has_nothing_to_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "STUCK_S", 0.05)
    begun, closed, sent = asyncio.Event(), asyncio.Event(), list[Any]()

    async def chunks() -> AsyncGenerator[bytes]:
        try:
            await asyncio.sleep(0.2)  # longer than a client may take for a chunk
            yield b"first"
            yield b"second"
        finally:
            closed.set()

    async def send(message: Any) -> None:
        sent.append(message.get("body"))
        if message.get("body") == b"first":
            begun.set()
            await asyncio.Event().wait()

    async def receive() -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(10):
        await streams.EventStream(chunks())({"type": "http"}, receive, send)
    assert begun.is_set() and closed.is_set() and sent == [None, b"first"]
