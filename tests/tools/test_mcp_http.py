"""MCP servers over HTTP: allowed addresses, and accepted responses."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mindstream.errors import SettingsError, ToolError
from mindstream.models.model import Call
from mindstream.tools.mcp.mcp import mcp_tools
from mindstream.tools.mcp.pins import Pins
from mindstream.tools.mcp.server import McpServer

LOOPBACK = "127.0.0.1"
opened = partial(mcp_tools, approve=lambda changes: True)


@pytest.fixture
def pins(tmp_path: Path) -> Pins:
    return Pins(tmp_path / "mcp.json")


# A server of the SDK.


def free_port() -> int:
    with socket.socket() as door:
        door.bind((LOOPBACK, 0))
        return int(door.getsockname()[1])


@pytest.fixture(scope="module")
def good() -> Iterator[str]:
    """The server of the SDK in a separate process with uvicorn."""
    port = free_port()
    script = Path(__file__).parent / "mcp_servers" / "good.py"
    with subprocess.Popen([sys.executable, script, str(port)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("Uvicorn running" in line for line in process.stderr)
        yield f"http://{LOOPBACK}:{port}/mcp"
        process.terminate()


async def test_calls_to_an_sdk_server_run_concurrently(good: str, pins: Pins) -> None:
    async with opened(good, pins=pins, allow=[LOOPBACK]) as tools:
        by_name = {tool.spec.name: tool for tool in tools}
        assert await by_name["add"](Call("add", '{"a": 2, "b": 5}')) == "7"
        meets = [by_name["meet"](Call("meet", '{"count": 4}')) for _ in range(4)]
        assert await asyncio.gather(*meets) == ["met 4"] * 4
        with pytest.raises(ToolError, match="Error executing tool"):
            await by_name["fails"](Call("fails", ""))


# Servers that violate the protocol on purpose.


JSON, EVENTS = "application/json", "text/event-stream"
INEXACT = {
    "half a character": (b"", b"a \\ud83d b \\ud83d\\ude00 \\\\ud83d", b"", JSON),
    "half a character in an event": (b"event: message\ndata: ", b"a \\uDE00 b", b"\n\n", EVENTS),
    "a mark": (b"\xef\xbb\xbf", b"a", b"", JSON),
    "another encoding": (b"data: ", b"gr\xfcn", b"\n\n", EVENTS),
    "no end of the event": (b"data: ", b"a", b"", EVENTS),
}
"""Bytes before an answer, in its text and after it, and its content type."""


@dataclass
class RawHttp:
    """A server with a minimal protocol and scripted responses."""

    how: str = "well"
    url: str = ""
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                headers = {}
                while (header := (await reader.readline()).decode().strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                message = json.loads(body) if body else {}
                self.asked.append((line.decode().split()[0], headers, message))
                await self.answer(message, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        method = message.get("method", "")
        if "id" not in message:
            return self.send(writer, "202 Accepted", b"")
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            version = message["params"]["protocolVersion"]
            result: dict[str, Any] = {"protocolVersion": version, "capabilities": {}, "serverInfo": info}
            return self.result(writer, message, result, "mcp-session-id: abc\r\n")
        if method == "tools/list":
            return self.result(writer, message, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
        if method != "tools/call":
            error = {"code": -32601, "message": "unknown"}
            return self.send(writer, "200 OK", json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        return await self.call(message, writer)

    async def call(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        match self.how:
            case "redirect":
                self.send(writer, "307 Temporary Redirect", "", "location: http://127.0.0.1:9/elsewhere\r\n")
            case "session gone":
                self.how = "well"
                self.send(writer, "404 Not Found", "{}")
            case "session unknown":  # as servers of the TypeScript SDK's examples answer after a restart
                self.how = "well"
                fault = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
                self.send(writer, "400 Bad Request", json.dumps({"jsonrpc": "2.0", "error": fault, "id": None}))
            case "locked":
                self.send(writer, "401 Unauthorized", "{}")
            case "large":
                self.send(writer, "200 OK", b"[" + b" " * 10_000_000 + b"]")
            case "packed":
                self.send(writer, "200 OK", b"\x1f\x8b\x08", "content-encoding: gzip\r\n")
            case "cut off":
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{")
                writer.close()
            case "no event":
                self.send(writer, "200 OK", b"", kind="text/event-stream")
            case "silent":
                await asyncio.sleep(30)
            case "busy":
                self.send(writer, "503 Service Unavailable", "come back\nlater", kind="text/plain")
            case "broken":
                self.send(writer, "500 Internal Server Error", '{"error": "out of disk"}')
            case "refused":
                fault = {"code": -32602, "message": "no such city"}
                refusal = {"jsonrpc": "2.0", "id": message["id"], "error": fault}
                self.send(writer, "400 Bad Request", json.dumps(refusal))
            case str(how) if how in INEXACT:
                before, words, after, kind = INEXACT[how]
                result = {"content": [{"type": "text", "text": "@"}]}
                body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
                self.send(writer, "200 OK", before + body.replace(b"@", words) + after, kind=kind)
            case _:
                self.result(writer, message, {"content": [{"type": "text", "text": "hello"}]})

    def result(self, writer: asyncio.StreamWriter, message: dict[str, Any], result: object, more: str = "") -> None:
        self.send(writer, "200 OK", json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), more)

    def send(
        self,
        writer: asyncio.StreamWriter,
        status: str,
        body: str | bytes,
        more: str = "",
        kind: str = "application/json",
    ) -> None:
        body = body.encode() if isinstance(body, str) else body
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)


@asynccontextmanager
async def raw_http(how: str) -> AsyncIterator[RawHttp]:
    door = RawHttp(how)
    server = await asyncio.start_server(door.serve, LOOPBACK, 0)
    door.url = f"http://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield door
    finally:
        server.close()


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("redirect", r"leads to 'http://127.0.0.1:9/elsewhere', which is not followed"),
        ("locked", r"refuses these headers \(HTTP 401\)"),
        ("large", r"more than 8,000,000 bytes"),
        ("packed", r"sent a compressed answer"),
        ("cut off", r"the answer broke off"),
        ("no event", r"ended without a response"),
        ("silent", r"did not answer within 1 seconds"),
        ("busy", r"127.0.0.1 answers HTTP 503: come back later"),
        ("broken", r"127.0.0.1 answers HTTP 500: .*out of disk"),
        ("refused", r"127_0_0_1: no such city"),
    ],
)
async def test_a_failed_call_gives_an_error_and_the_next_is_answered(how: str, found: str, pins: Pins) -> None:
    async with raw_http(how) as door:
        async with opened(McpServer(door.url, timeout_s=1.0), pins=pins, allow=[LOOPBACK]) as (echo,):
            with pytest.raises(ToolError, match=found) as caught:
                await echo(Call("echo", ""))
            assert len(str(caught.value)) < 1_000
            door.how = "well"
            assert await echo(Call("echo", "")) == "hello"
        assert "GET" not in [method for method, _, _ in door.asked], "no unused stream is opened"


@pytest.mark.parametrize(
    ("how", "found"),
    [*zip(INEXACT, ["a \ufffd b \U0001f600 \\ud83d", "a \ufffd b", "a", "gr\ufffdn", "a"], strict=True)],
)
async def test_inexact_answers_are_read(how: str, found: str, pins: Pins) -> None:
    async with raw_http(how) as door, opened(door.url, pins=pins, allow=[LOOPBACK]) as (echo,):
        assert await echo(Call("echo", "")) == found


@pytest.mark.parametrize("how", ["session gone", "session unknown"])
async def test_a_session_ended_by_the_server_is_reopened(how: str, pins: Pins) -> None:
    async with raw_http(how) as door, opened(door.url, pins=pins, allow=[LOOPBACK]) as (echo,):
        assert await echo(Call("echo", "")) == "hello"
        assert [message.get("method") for _, _, message in door.asked].count("initialize") == 2


async def test_headers_come_from_the_environment_and_are_not_stored(
    pins: Pins, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_KEY", "nk-1234567890")
    async with raw_http("locked") as door:
        server = McpServer(door.url, headers={"Authorization": "Bearer $NOTES_KEY"})
        async with opened(server, pins=pins, allow=[LOOPBACK]) as (echo,):
            with pytest.raises(ToolError):
                await echo(Call("echo", ""))
        assert {headers.get("authorization") for _, headers, _ in door.asked} == {"Bearer nk-1234567890"}
    assert "nk-1234567890" not in repr(server) + pins.path.read_text("utf-8")
    monkeypatch.delenv("NOTES_KEY")
    with pytest.raises(SettingsError, match="needs the environment variable NOTES_KEY, which is not set"):
        async with opened(server, pins=pins, allow=[LOOPBACK]):
            pass


@pytest.mark.parametrize(
    ("url", "error", "words"),
    [
        ("https://me:secret@example.com/mcp", SettingsError, "must not contain a user name or a password"),
        ("https://127.0.0.1:1/mcp", ToolError, "127.0.0.1 has no public address"),
        ("https://169.254.169.254/latest", ToolError, "has no public address"),
    ],
)
async def test_private_addresses_are_requested_only_if_allowed_by_name(
    url: str, error: type[Exception], words: str, pins: Pins
) -> None:
    with pytest.raises(error, match=words):
        async with opened(url, pins=pins, allow=["another.host"]):
            pass
