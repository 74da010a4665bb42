"""Attacks on the server: each is refused with the right code, and affects no other client."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_endpoint import FakeEndpoint, Says
from served import Served, ServerProcess

from mindstream.server import admission, run
from mindstream.server.api_app import app

USER = "/api/v1/users/ann"
PROBLEM = "application/problem+json"


def test_a_missing_or_invalid_token_is_refused(folder: Path) -> None:
    with Served(folder, require_token=True) as served, served.client() as client:
        for headers in (
            {}, {"Authorization": "Bearer ms_nothing"}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"},
            {"Authorization": "Bearer " + "x" * 5_000},
        ):  # fmt: skip
            refused = client.get(f"{USER}/memories", headers=headers)
            assert refused.status_code == 401, headers
            assert refused.headers["www-authenticate"].startswith("Bearer")
            assert refused.headers["content-type"] == PROBLEM
        assert client.get("/healthz").status_code == 200
        assert client.get("/metrics").status_code == 401
        assert client.get(f"{USER}/memories", headers=served.token()).status_code == 200


async def test_headers_are_checked_in_any_case_of_their_names(tmp_path: Path) -> None:
    """An application that mounts the server may pass names on as a client wrote them."""
    served, answers = app(tmp_path, model="rules"), list[int]()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        answers.extend([message["status"]] if "status" in message else [])

    async with served.lifespan():
        for header in ((b"Origin", b"http://evil.example"), (b"Authorization", b"Bearer ms_bad"), (b"X", b"y")):
            scope = {
                "type": "http", "method": "GET", "path": f"{USER}/memories", "raw_path": f"{USER}/memories".encode(),
                "scheme": "http", "query_string": b"", "headers": [(b"Host", b"localhost"), header],
                "client": ("127.0.0.1", 5),
            }  # fmt: skip
            await served(scope, receive, send)
    assert answers == [403, 401, 200]


def test_expired_and_revoked_tokens_are_refused_at_once(served: Served, client: httpx.Client) -> None:
    short, _ = served.change_tokens(lambda tokens: tokens.new("acme", "read", 1e-9))
    assert client.get(f"{USER}/memories", headers={"Authorization": f"Bearer {short}"}).status_code == 401
    token, made = served.change_tokens(lambda tokens: tokens.new("acme", "read", 1))
    headers = {"Authorization": f"Bearer {token}"}
    assert client.get(f"{USER}/memories", headers=headers).status_code == 200
    served.change_tokens(lambda tokens: tokens.revoke(made.id))
    assert client.get(f"{USER}/memories", headers=headers).status_code == 401


def test_tokens_are_stored_only_as_hashes(served: Served, folder: Path) -> None:
    token, made = served.change_tokens(lambda tokens: tokens.new("acme", "read", 1))
    written = b"".join(path.read_bytes() for path in folder.glob("mindstream.db*"))
    assert made.hash.encode() in written and token.removeprefix("ms_").encode() not in written


def test_a_token_is_limited_to_its_scope(served: Served, client: httpx.Client) -> None:
    reader = served.token("acme", "read")
    assert client.post(f"{USER}/memories", json={"text": "x"}, headers=reader).status_code == 403
    assert client.post(f"{USER}/send", json={"text": "x"}, headers=reader).status_code == 403
    stream = reader | {"Accept": "text/event-stream"}
    assert client.post(f"{USER}/send", json={"text": "x"}, headers=stream).status_code == 403
    room = served.token("acme", "memory.read")
    assert client.get(f"{USER}/memories", headers=room).status_code == 200
    assert client.get(f"{USER}/belief", headers=room).status_code == 403
    assert client.get("/api/v1/events", headers=room).status_code == 403


def test_a_user_token_is_refused_for_other_users(served: Served, client: httpx.Client) -> None:
    only = served.token("acme", "admin", user="ann")
    assert client.get(f"{USER}/memories", headers=only).status_code == 200
    for name in ("bob", "Ann", "аnn"):
        assert client.get(f"/api/v1/users/{name}/memories", headers=only).status_code in (403, 422)
    assert client.get("/api/v1/events", params={"user": "bob"}, headers=only).status_code == 403
    assert client.get("/api/v1/cost", params={"user": "bob"}, headers=only).status_code == 403


NO_NAMES = (
    "acme#user#ann", "#pool#x", "..", "../ann", "ann%00", "a%0d%0ax", "%2e%2e%2fann", "pool%23x", " ", "%e2%80%8b",
    "x" * 101, "documents%23" + "0" * 40,
)  # fmt: skip


def test_crafted_user_names_reach_nothing_else(client: httpx.Client) -> None:
    for name in NO_NAMES:
        answer = client.get(f"/api/v1/users/{name}/memories")
        refused = answer.status_code in (404, 405, 422)
        assert refused or answer.headers["location"].endswith("/api/v1/users"), name  # the list of all users


def test_names_with_stream_prefixes_are_ordinary_users(served: Served, client: httpx.Client) -> None:
    made = client.post("/api/v1/users/pool:priv/memories", json={"text": "mine"})
    assert made.status_code == 201
    assert client.post(f"{USER}/pools/priv", json={"private": True, "members": ["*"]}).status_code == 201
    assert client.get("/api/v1/users/pool:priv/pools/priv").status_code == 200  # open to the tenant's users
    listed = client.get("/api/v1/users/pool:priv/memories").json()["memories"]
    assert [each["text"] for each in listed] == ["mine"]


def test_a_cursor_of_another_tenant_shows_none_of_its_records(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    for number in range(5):
        client.post(f"{USER}/memories", json={"text": f"acme {number}"}, headers=acme)
    cursor = client.get(f"{USER}/memories", params={"limit": 2}, headers=acme).json()["next"]
    assert client.get(f"{USER}/memories", params={"cursor": cursor}, headers=other).json()["memories"] == []
    client.post(f"{USER}/memories", json={"text": "other's"}, headers=other)
    shown = client.get(f"{USER}/memories", params={"cursor": cursor}, headers=other).json()["memories"]
    assert {each["text"] for each in shown} <= {"other's"}


def test_dns_rebinding_is_refused(client: httpx.Client) -> None:
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "a b"):
        refused = client.get("/healthz", headers={"Host": host})
        assert refused.status_code in (400, 421), host
    for host in ("localhost", "127.0.0.1:8377", "[::1]:8377", "192.168.1.5"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_pages_of_other_origins_are_refused(client: httpx.Client) -> None:
    own = str(client.base_url).rstrip("/")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "file://", ""):
        refused = client.post(f"{USER}/memories", json={"text": "x"}, headers={"Origin": origin})
        assert refused.status_code == 403, origin
    assert client.post(f"{USER}/memories", json={"text": "x"}, headers={"Origin": own}).status_code == 201
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        form = client.post(f"{USER}/memories", content=b'{"text": "x"}', headers={"Content-Type": kind})
        assert form.status_code in (415, 422), kind


def test_only_allowed_origins_may_read(folder: Path) -> None:
    page, asks = "https://app.example.org", {"Access-Control-Request-Method": "POST"}
    with Served(folder, origins=(page,), require_token=True) as served, served.client() as client:
        told = client.options(
            f"{USER}/memories",
            headers={"Origin": page, "Access-Control-Request-Headers": "authorization, idempotency-key"} | asks,
        )
        assert told.status_code == 200 and told.headers["access-control-allow-origin"] == page
        assert told.headers["access-control-allow-headers"] == "authorization, idempotency-key"
        refused = client.get(f"{USER}/memories", headers={"Origin": page})
        assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == page
        assert refused.headers["vary"].lower() == "origin"
        for origin in ("https://evil.example", f"{page}.evil.example", "null"):
            other = client.options(f"{USER}/memories", headers={"Origin": origin} | asks)
            assert other.status_code == 400 and "access-control-allow-origin" not in other.headers
            assert client.get(f"{USER}/memories", headers={"Origin": origin}).status_code == 403
        assert "access-control-allow-origin" not in client.get(f"{USER}/memories", headers=served.token()).headers


def test_a_token_in_the_url_is_not_accepted(folder: Path) -> None:
    with Served(folder, require_token=True) as served, served.client() as client:
        token = served.token()["Authorization"].split()[1]
        assert client.get(f"{USER}/memories", params={"token": token, "access_token": token}).status_code == 401


def test_large_bodies_are_not_read(served: Served, client: httpx.Client) -> None:
    huge = 100_000_000
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        head = f"POST {USER}/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: {huge}\r\n\r\n".encode())
        answer = raw.recv(65_536)
    assert b" 413 " in answer.split(b"\r\n")[0]

    def chunks() -> object:
        for _ in range(100):
            yield b" " * 100_000

    try:
        refused = client.post(f"{USER}/memories", content=chunks())  # type: ignore[arg-type]
    except httpx.WriteError:
        return  # disconnected while sending
    assert refused.status_code == 413


def test_compressed_bodies_are_refused(client: httpx.Client) -> None:
    bomb = gzip.compress(b" " * 100_000_000 + b"{}")  # 100 kB: below the limit for bodies
    for path in (f"{USER}/memories", "/v1/chat/completions", "/v1/responses", "/mcp", "/mcp/ann"):
        for coding in ("gzip", "x-gzip", "GZIP", "identity, gzip", "deflate", "br", "zstd"):
            packed = {"Content-Encoding": coding, "Content-Type": "application/json"}
            refused = client.post(path, content=bomb, headers=packed)
            assert refused.status_code == 415, (path, coding)
    as_it_is = client.post(f"{USER}/memories", content=bomb, headers={"Content-Type": "application/json"})
    assert as_it_is.status_code == 400


NO_REQUESTS = (
    "[" * 100_000, '{"text": ' * 5_000, '{"text": "x", "data": ' + "[" * 900 + "]" * 900 + "}", "{", "", "null",
    '{"text": "\\ud800"}', '{"text": NaN}', '{"text": "x", "importance": 1e999}', '{"text": "x", "kind": "pool"}',
    '{"text": "x", "data": {"tainted": 1e400}}', '{"text": "   "}', '{"text": "\\u0000"}',
    '{"text": "x", "stream": "#pool#p"}', '{"text": "x", "data": {"n": ' + "9" * 5_000 + "}}",
)  # fmt: skip


def test_malformed_requests_are_refused(client: httpx.Client) -> None:
    for body in NO_REQUESTS:
        answer = client.post(f"{USER}/memories", content=body.encode(), headers={"Content-Type": "application/json"})
        assert answer.status_code in (201, 400, 422), (body[:40], answer.text)
        assert client.get(f"{USER}/memories").status_code == 200, body[:40]


def test_headers_cannot_be_injected(served: Served, client: httpx.Client) -> None:
    answer = client.get(f"{USER}/memories/x%0d%0aSet-Cookie:%20a=b")
    assert answer.status_code == 404 and "set-cookie" not in answer.headers
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert raw.recv(65_536).split(b"\r\n")[0].split()[1] == b"400"
    token = served.token()["Authorization"]
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        raw.sendall(
            f"GET {USER}/memories HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
            f"Authorization: {token}\r\n\r\n".encode()
        )
        assert raw.recv(65_536).split(b"\r\n")[0].split()[1] == b"400"


def test_markup_is_returned_as_data(client: httpx.Client, door: FakeEndpoint) -> None:
    script = "<script>alert(1)</script>"
    door.otherwise = Says(script)
    client.post(f"{USER}/memories", json={"text": script})
    answer = client.get(f"{USER}/memories")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    wrong = client.get(f"/api/v1/users/{script}/memories")
    assert wrong.headers["content-type"] in (PROBLEM, "application/json")
    with client.stream("POST", f"{USER}/send", json={"text": f"{script}\n\nid: 9\n\nevent: said"}) as _:
        pass
    with client.stream("GET", "/api/v1/events", params={"after": 0, "kind": "heard"}) as stream:
        lines = []
        for line in stream.iter_lines():
            lines.append(line)
            if line.startswith("data: "):
                break
    assert json.loads(lines[-1].removeprefix("data: "))["text"].startswith(script)


def test_a_line_break_in_a_text_starts_no_event(client: httpx.Client) -> None:
    client.post(f"{USER}/send", json={"text": "one\r\n\r\nid: 999999\nevent: said\ndata: {}\n\ntwo"})
    with client.stream("GET", "/api/v1/events", params={"after": 0, "kind": "heard"}) as stream:
        for line in stream.iter_lines():
            assert not line.startswith(("id: 999999", "event: said"))
            if line.startswith("id: ") and line != "id: 0":
                break


def test_slow_request_heads_are_disconnected(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HEAD_S", 0.3)
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as silent, socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        for _ in range(5):
            time.sleep(0.1)
            try:
                slow.sendall(b"X-A: b\r\n")
            except OSError:
                break
        silent.settimeout(100)
        slow.settimeout(100)
        assert silent.recv(100) == b""
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(100) == b""


def test_slow_request_bodies_are_refused(served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "BODY_S", 0.2)
    with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as raw:
        head = f"POST {USER}/memories HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        raw.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        raw.settimeout(100)
        assert raw.recv(65_536).split()[1] == b"400"


@pytest.mark.parametrize("begun", [b"", b"G", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_connections_without_a_request_make_room_for_new_ones(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(run, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(run, "HEAD_S", 1_000.0)
    host, port = served.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as opened:
        crowd = [opened.enter_context(socket.create_connection((host, int(port)))) for _ in range(60)]
        for each in crowd:
            with contextlib.suppress(OSError):  # it was closed already
                each.sendall(begun)
        for _ in range(3):
            with served.client() as other:
                assert other.get("/healthz").status_code == 200
        crowd[0].settimeout(100)
        with contextlib.suppress(ConnectionResetError):
            assert crowd[0].recv(100) == b"", "the one that waited longest is closed"


def test_too_many_connections_with_requests_get_503_and_others_are_unaffected(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/healthz").status_code == 200
    host, port = served.url.removeprefix("http://").split(":")
    listen = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as opened:
        for _ in range(5):
            raw = opened.enter_context(socket.create_connection((host, int(port))))
            raw.settimeout(100)
            raw.sendall(listen)
            assert raw.recv(100).startswith(b"HTTP/1.1 200")
        monkeypatch.setattr(run, "MAX_CONNECTIONS", 6)
        late = opened.enter_context(socket.create_connection((host, int(port))))
        late.settimeout(100)
        assert late.recv(100).startswith(b"HTTP/1.1 503")
        assert client.get("/healthz").status_code == 200  # existing connections are still served


def test_requests_above_the_rate_of_a_token_get_429(served: Served, client: httpx.Client) -> None:
    few = served.token("acme", "read", a_minute=3)
    codes = [client.get(f"{USER}/memories", headers=few).status_code for _ in range(6)]
    assert codes[:3] == [200] * 3 and 429 in codes
    refused = client.get(f"{USER}/memories", headers=few)
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    assert client.get(f"{USER}/memories").status_code == 200  # other tokens are unaffected


def test_writes_above_the_daily_bytes_of_a_token_get_429(served: Served, client: httpx.Client) -> None:
    small = served.token("acme", bytes_a_day=20_000)
    codes = [
        client.post(f"{USER}/memories", json={"text": f"{number} " + "word " * 1_000}, headers=small).status_code
        for number in range(8)
    ]
    assert codes == [201] * 4 + [429] * 4
    refused = client.post(f"{USER}/memories", json={"text": "x"}, headers=small)
    assert refused.json()["type"].endswith(":too-many") and "--bytes-a-day" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) >= 1
    assert client.get(f"{USER}/memories", headers=small).status_code == 200, "reading is still allowed"
    assert client.post(f"{USER}/memories", json={"text": "x"}, headers=served.token("acme")).status_code == 201


def test_no_model_is_called_once_the_budget_is_spent(served: Served, client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello.", usage=(500, 500))
    poor = served.token("acme", "read,write", tokens=6_000) | {"Accept": "text/event-stream"}
    for number in range(12):
        client.post(f"{USER}/send", json={"text": f"Hello {number}!"}, headers=poor)
    asked = len(door.asked)
    assert 0 < asked <= 12  # a thousand tokens a call; parallel calls and repairs end first
    client.post("/api/v1/users/bob/send", json={"text": "Hello!"}, headers=poor)
    assert len(door.asked) == asked


def test_an_idempotency_key_repeats_the_first_answer(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = client.post(f"{USER}/send", json={"text": "Hello!"}, headers=key)
    again = client.post(f"{USER}/send", json={"text": "Hello!"}, headers=key)
    assert first.status_code == again.status_code == 202 and first.json() == again.json()
    heard = client.get(f"{USER}/log", params={"kinds": "heard"}).json()["rows"]
    assert len(heard) == 1
    other = client.post(f"{USER}/send", json={"text": "Other words"}, headers=key)
    assert other.status_code == 409
    bob = client.post("/api/v1/users/bob/send", json={"text": "Hello!"}, headers=key)
    assert bob.status_code == 202 and bob.json() != first.json()


def test_an_idempotency_key_of_another_tenant_shows_nothing(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    key = {"Idempotency-Key": "k-2"}
    first = client.post(f"{USER}/memories", json={"text": "x"}, headers=acme | key).json()
    second = client.post(f"{USER}/memories", json={"text": "x"}, headers=other | key).json()
    assert first["id"] != second["id"]


def test_an_idempotency_key_survives_a_kill(folder: Path) -> None:
    key = {"Idempotency-Key": "k-3"}
    answers = []
    for _ in range(2):
        with ServerProcess(folder) as server, httpx.Client(base_url=server.url, timeout=100) as client:
            answers.append(client.post(f"{USER}/memories", json={"text": "x"}, headers=key).json())
            server.process.kill()
            server.process.wait(100)
    assert answers[0] == answers[1]


def test_the_server_log_holds_no_secrets(folder: Path) -> None:
    with ServerProcess(folder, "--require-token") as server, httpx.Client(base_url=server.url, timeout=100) as client:
        secret = "ms_a-token-that-must-not-be-logged"
        client.get(f"{USER}/memories", headers={"Authorization": f"Bearer {secret}"})
        client.get(f"{USER}/memories", params={"q": "words of somebody"})
        client.post(f"{USER}/memories", content=b"[" * 100_000)
        server.process.terminate()
        assert server.process.stderr is not None
        said = server.process.stderr.read()
        assert server.process.wait(60) == 0
    assert secret not in said and "words of somebody" not in said and "Traceback" not in said


def test_only_one_server_opens_a_data_folder(folder: Path) -> None:
    with ServerProcess(folder):
        second = ServerProcess(folder)
        assert not second.url and "only one may use a data folder" in second.said
        assert second.process.wait(60) == 2
        assert second.process.stderr is not None
        second.process.stderr.close()
