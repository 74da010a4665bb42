"""A client that does not read is disconnected; the unread bytes of all clients are bounded."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from served import Served

from mindstream.log.database import release_heap
from mindstream.server import run

LONG = "tea " * 7_500
LISTED = "/api/v1/users/ann/memories?limit=200"


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(run, "STUCK_S", 0.6)
    monkeypatch.setattr(run, "CHECK_S", 0.1)
    serving = Served(folder, model="rules")
    serving._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)  # small system buffers
    with serving:
        with serving.client() as client:
            for number in range(4):
                client.post("/api/v1/users/ann/memories", json={"text": f"{number} {LONG}"})
            for _ in range(4):
                client.post("/api/v1/users/ann/send", json={"text": LONG[:9_000]})
        yield serving


def ask(served: Served, path: str, more: str = "", times: int = 1) -> socket.socket:
    """Send one or many requests over a connection with small buffers."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    where = urlsplit(served.url)
    raw.connect((where.hostname, where.port))
    raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n".encode() * times)
    return raw


def connections(served: Served) -> int:
    return len(served._server.server_state.connections)


def until_few(served: Served, few: int) -> bool:
    end = time.monotonic() + 30
    while connections(served) > few and time.monotonic() < end:
        time.sleep(0.05)
    return connections(served) <= few


@pytest.mark.parametrize(
    ("path", "more", "times"),
    [
        (LISTED, "", 1),
        (LISTED, "Connection: close\r\n", 1),
        (LISTED, "", 3),
        ("/openapi.json", "", 40),
        ("/api/v1/events?after=0", "", 1),
    ],
)
def test_a_client_that_reads_nothing_is_disconnected(
    served: Served, path: str, more: str, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.ExitStack() as opened:
        for _ in range(5):
            opened.enter_context(ask(served, path, more, times))
        time.sleep(0.3)
        assert until_few(served, 0)
    told = [each.getMessage() for each in caplog.records]
    assert len(told) <= 1 and not any("ASGI" in each for each in told), told


def test_a_client_that_reads_slowly_gets_all_of_it(served: Served) -> None:
    with ask(served, LISTED, "Connection: close\r\n") as raw:
        got, end = 0, time.monotonic() + 1.5
        while part := raw.recv(65_536 if time.monotonic() > end else 1_000):
            got += len(part)
            if time.monotonic() < end:
                time.sleep(0.02)
    assert got > 4 * len(LONG)


def test_an_idle_event_stream_stays_connected(served: Served) -> None:
    with ask(served, "/api/v1/events?user=bob") as raw, served.client() as client:
        time.sleep(1.5)
        assert client.post("/api/v1/users/bob/memories", json={"text": "Tea at four."}).status_code == 201
        raw.settimeout(10)
        got = b""
        while b"event: remembered" not in got:
            part = raw.recv(4_096)
            assert part
            got += part


def test_unread_bytes_of_all_clients_are_bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "STUCK_S", 1_000)
    monkeypatch.setattr(run, "MAX_UNREAD", 300_000)
    with contextlib.ExitStack() as opened:
        for _ in range(10):
            opened.enter_context(ask(served, LISTED))
            time.sleep(0.2)
        assert until_few(served, 4), "the clients that have read nothing for the longest time are disconnected"
        assert connections(served) >= 1


@pytest.mark.parametrize("path", ["/openapi.json", LISTED, "/studio"])
def test_while_many_clients_read_nothing_requests_without_a_token_are_refused_at_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(run, "STUCK_S", 1_000)
    monkeypatch.setattr(run, "MAX_WAITING", 3)
    token = served.token("local", "read")
    with contextlib.ExitStack() as opened:
        for _ in range(3):
            opened.enter_context(ask(served, LISTED))
        end = time.monotonic() + 30
        while len(getattr(served._server.server_state, "waiting", ())) < 3 and time.monotonic() < end:
            time.sleep(0.05)
        with served.client() as client:
            assert client.get(path).status_code == 503
            assert client.get(LISTED, headers=token).status_code == 200, "a token is served"
        with served.client() as client:
            assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    assert until_few(served, 1)
    with served.client() as client:
        assert client.get(LISTED).status_code == 200


@pytest.mark.parametrize(
    ("path", "times"), [(LISTED, 5), (LISTED + "&kinds=note", 3), (LISTED.replace("200", "150"), 2)]
)
def test_further_requests_of_a_connection_wait_until_the_client_reads(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str, times: int
) -> None:
    monkeypatch.setattr(run, "STUCK_S", 1_000)
    time.sleep(0.3)  # the last request of the setup is counted after its answer
    before = served._server.server_state.total_requests
    with ask(served, path, times=times) as raw:
        end = time.monotonic() + 20
        while served._server.server_state.total_requests == before and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.5)
        assert served._server.server_state.total_requests - before == 1
        got = b""
        raw.settimeout(10)
        while got.count(b"HTTP/1.1 200 OK") < times or not got.endswith(b"}"):
            got += raw.recv(1_000_000)
    assert served._server.server_state.total_requests - before == times


def test_memory_is_released_after_clients_were_disconnected(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    release_heap()  # independent of the system
    released: list[float] = []
    monkeypatch.setattr(run, "TELL_S", 0.3)
    monkeypatch.setattr(run, "release_heap", lambda: released.append(time.monotonic()))
    monkeypatch.setattr(run.BoundedConnection, "_released_at", 0.0)
    for rounds in (1, 2):
        with ask(served, LISTED), ask(served, LISTED):
            end = time.monotonic() + 20
            while len(released) < rounds and time.monotonic() < end:
                time.sleep(0.05)
        assert len(released) == rounds
