"""A request without a token is accepted only from a program on this machine, by an allow-list."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from served import Served
from starlette.types import Message, Scope

from mindstream.server import app
from mindstream.server.admission import is_local

MEMORIES = "/api/v1/users/ann/memories"
DOORS = (MEMORIES, "/v1/models", "/metrics", "/api/v1/events", "/api/v1/users")


def scope_of(host: str | None = "localhost:8377", peer: str | None = "127.0.0.1", **more: object) -> Scope:
    """Return the ASGI scope of a request; `headers` are added to the Host header."""
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(name.encode(), b"x") for name in more.pop("headers", ())]  # type: ignore[attr-defined]
    return {"type": "http", "client": peer and (peer, 50_000), "headers": headers, "http_version": "1.1", **more}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8377", "127.8.9.1", "[::1]", "[::1]:8377"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.9", "::1"])
def test_requests_from_programs_on_this_machine_are_local(host: str, peer: str) -> None:
    assert is_local(scope_of(host, peer, headers=("x-stainless-lang", "user-agent", "traceparent", "x-openwebui-user")))


@pytest.mark.parametrize(
    "host",
    [
        None, "", "localhost.", "localhost.evil.example", "evil.example", "127.0.0.1.evil.example", "127.1",
        "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1:", "127.0.0.1:8377:9", "localhost:٣", "ann@localhost",
        "localhost@evil", "::1", "[::1", "[::ffff:127.0.0.1]", "[::1%25lo]", "0.0.0.0", "[::]", "192.168.1.5",
        "localhost, evil.example", "ip6-localhost", "a.localhost", "localhost/x", "127.0.0.1#x", " localhost",
    ],
)  # fmt: skip
def test_requests_for_other_hosts_are_not_local(host: str | None) -> None:
    assert not is_local(scope_of(host))


@pytest.mark.parametrize(
    "peer", [None, "", "192.168.1.5", "::ffff:192.168.1.5", "fe80::1", "testclient", "/run/a.sock"]
)
def test_requests_from_other_peers_are_not_local(peer: str | None) -> None:
    assert not is_local(scope_of(peer=peer))


@pytest.mark.parametrize(
    "name",
    [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Port", "X-Real-IP", "Via", "CF-Ray", "True-Client-IP",
        "Fly-Client-IP", "Tailscale-User-Name", "X-Envoy-External-Address", "X-Original-Forwarded-For",
        "X-Amzn-Trace-Id", "CDN-Loop",
        "Fastly-Client-IP", "X-ProxyUser-Ip", "X-Appengine-User-Ip",
    ],
)  # fmt: skip
def test_forwarded_requests_are_not_local(name: str) -> None:
    assert not is_local(scope_of(headers=(name,)))


def test_http_1_0_and_repeated_hosts_are_not_local() -> None:
    assert not is_local(scope_of(http_version="1.0"))
    two = scope_of()
    assert not is_local({**two, "headers": two["headers"] * 2})


def test_a_published_server_requires_a_token_from_everybody(folder: Path) -> None:
    public = "https://mind.example.org"
    with Served(folder, model="rules", public_url=public) as served, served.client() as client:
        for headers in ({}, {"Host": "localhost"}, {"Host": "mind.example.org"}, {"Origin": public}):
            for path in DOORS:
                assert client.get(path, headers=headers).status_code == 401, (path, headers)
            assert client.post("/mcp", json={}, headers=headers).status_code == 401
            made_up = headers | {"Authorization": "Bearer sk-any"}
            assert client.get("/v1/models", headers=made_up).status_code == 401
        assert client.get(MEMORIES, headers=served.token()).status_code == 200
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_on_a_public_address_requires_a_token_from_local_programs_too(folder: Path, host: str) -> None:
    serving = Served(folder, model="rules", host=host)
    with serving, serving.client() as client:
        assert client.get(MEMORIES).status_code == 401
        assert client.get(MEMORIES, headers=serving.token()).status_code == 200


def answer_to(url: str, request: str) -> int:
    """Send bytes and return the status of the response."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port or 0), timeout=20) as raw:
        raw.sendall(request.encode())
        return int(raw.recv(65_536).split(b" ", 2)[1])


ON_THE_WIRE = (
    (f"GET {MEMORIES} HTTP/1.1", "Host: localhost", 200),
    (f"GET {MEMORIES} HTTP/1.0", "Host: localhost", 401),
    (f"GET {MEMORIES} HTTP/1.0", "Accept: */*", 421),
    (f"GET {MEMORIES} HTTP/1.1", "Host: evil.example", 421),
    (f"GET {MEMORIES} HTTP/1.1", "Host: localhost.", 401),
    (f"GET {MEMORIES} HTTP/1.1", "Host: localhost\r\nHost: localhost", 400),
    (f"GET http://evil.example{MEMORIES} HTTP/1.1", "Host: localhost", 400),
    (f"GET {MEMORIES} HTTP/1.1", "Host: localhost\r\nX-Client-IP: 127.0.0.1", 401),
    ("OPTIONS * HTTP/1.1", "Host: localhost", 400),
)


def test_local_checks_hold_for_raw_requests(client: httpx.Client) -> None:
    for request_line, headers, status in ON_THE_WIRE:
        request = f"{request_line}\r\n{headers}\r\nConnection: close\r\n\r\n"
        assert answer_to(str(client.base_url), request) == status, request


async def test_a_mounted_application_follows_the_same_rule(folder: Path) -> None:
    api_app = app(folder, model="rules")
    mine = FastAPI()
    for path in ("/mind", "/studio"):  # the studio's static files need no token, but mounted routes do
        mine.mount(path, api_app)
    unix: dict[str, Any] = {"client": None}
    async with api_app.lifespan():
        for more, status in (({}, 200), (unix, 401), ({"client": ("10.0.0.7", 1)}, 401)):
            transport = httpx.ASGITransport(mine, **more)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                for path in ("/mind", "/studio"):
                    assert (await client.get(path + MEMORIES)).status_code == status, (more, path)
                    assert (await client.get(f"{path}/healthz")).status_code == 200
                    assert (await client.get(f"{path}/metrics")).status_code == status


async def test_websockets_are_refused(folder: Path) -> None:
    api_app, sent = app(folder), list[Message]()

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await api_app({**scope_of(), "type": "websocket", "path": "/api/v1/events"}, receive, send)
    assert [each["type"] for each in sent] == ["websocket.close"]
