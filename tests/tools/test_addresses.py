"""No tool reaches a private address, however it is written, named or redirected to."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from mindstream.errors import ToolError
from mindstream.tools.addresses import is_allowed, is_public, may_reach
from mindstream.tools.mcp.session import GuardedTransport
from mindstream.tools.web import Web

PRIVATE = (
    "127.0.0.1 127.8.9.1 0.0.0.0 0.1.2.3 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1"
    " 192.0.2.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:192.168.0.1"
    " ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 2002:7f00:1:: 2002:a9fe:a9fe:: 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe"
    " 64:ff9b:1::a00:1 2001:0:7f00:1::1 fe80::1%eth0 fec0::1 fd00::1 fd00:ec2::254 ff02::1 2001:db8::1 nonsense"
)
CERTIFICATES = ssl.create_default_context()
PUBLIC = "8.8.8.8 93.184.216.34 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1"


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses_are_recognised(address: str) -> None:
    assert not is_public(address) and not may_reach(address, "example.org", ["localhost", "10.9.9.9"])


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_are_recognised(address: str) -> None:
    assert is_public(address)


def test_only_the_allowed_hosts_are_allowed() -> None:
    allow = ("Wiki.Intranet", "[::1]", "10.0.0.7")
    assert all(is_allowed(host, allow) for host in ("wiki.intranet", "WIKI.intranet.", "::1", "[0:0::1]", "10.0.0.7"))
    others = ("intranet", "wiki.intranet.example.org", "x.wiki.intranet", "::2", "::ffff:10.0.0.7", "10.0.0.70", "")
    assert not any(is_allowed(host, allow) for host in others)


@dataclass
class Listener:
    """A local server that counts its requests and answers with a redirect to `leads_to` or with text."""

    port: int = 0
    leads_to: str = ""
    came: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.came.append(await reader.read(65_536))
        location = f"Location: {self.leads_to}\r\n" if self.leads_to else ""
        status = "302 Found" if self.leads_to else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\n{location}Content-Length: 2\r\n\r\nok".encode())
        writer.close()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    door = Listener()
    servers = [await asyncio.start_server(door.serve, "0.0.0.0", 0)]  # services listen on both address families
    door.port = servers[0].sockets[0].getsockname()[1]
    with contextlib.suppress(OSError):  # a machine without IPv6
        servers.append(await asyncio.start_server(door.serve, "::", door.port))
    yield door
    for each in servers:
        each.close()


async def by_web(url: str, *allow: str) -> str:
    try:
        return (await Web(allow, timeout_s=5).ask(url, follow=True)).text
    except ToolError as error:
        return f"refused: {error}"


async def by_mcp(url: str, *allow: str) -> str:
    transport = GuardedTransport(allow, CERTIFICATES)
    async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=5) as client:
        try:
            response = await client.post(url)
        except (httpx2.InvalidURL, httpx2.HTTPError) as error:
            return f"refused: {error}"
    return response.text if response.status_code == 200 else f"refused: {response.text}"


Way = Callable[..., Awaitable[str]]
WAYS = pytest.mark.parametrize("way", [by_web, by_mcp])
HOSTS = (
    "127.0.0.1 localhost LOCALHOST localhost. 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0177.0.0.1 017700000001 0"
    " 0.0.0.0 127.0.0.1. ①②⑦.0.0.1 127。0。0。1 [::1] [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1]"
    " [0:0:0:0:0:ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] 127.0.0.1%00.example.org example.org@127.0.0.1"
    " example.org:80@127.0.0.1 @127.0.0.1 example.org\\@127.0.0.1 127.0.0.1\\@example.org wiki.intranet@127.0.0.1"
)


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_addresses_of_this_machine_are_not_requested(scheme: str, way: Way, listener: Listener) -> None:
    for host in HOSTS.split():
        said = await way(f"{scheme}://{host}:{listener.port}/latest/meta-data", "wiki.intranet")
        assert said.startswith("refused: ") and listener.came == [], host


@WAYS
@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
async def test_a_name_rebound_to_a_private_address_is_refused(
    address: str, way: Way, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked = socket.getaddrinfo, itertools.count()

    def rebinds(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host != "rebinds.example":
            return real(host, port, *rest, **more)
        next(looked)
        return real(address, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinds)
    said = await way(f"https://rebinds.example:{listener.port}/", "wiki.intranet")
    assert said.startswith("refused: ") and "address" in said and listener.came == [] and next(looked) == 1


@WAYS
async def test_a_name_is_resolved_once_per_request(
    way: Way, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, looked = socket.getaddrinfo, itertools.count()

    def rebinds(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host != "rebinds.example":
            return real(host, port, *rest, **more)
        return real("127.0.0.1" if next(looked) == 0 else "127.0.0.2", port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", rebinds)
    await way(f"https://rebinds.example:{listener.port}/", "127.0.0.1")  # the first address is allowed, others are not
    assert next(looked) == 1 and len(listener.came) == 1
    assert b"rebinds.example" in listener.came[0], "the certificate is checked against the name"


@WAYS
@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.2:{port}/", "http://[::1]:{port}/", "//0.0.0.0:{port}/x", "http://169.254.169.254/latest/meta-data",
     "file:///etc/passwd"],
)  # fmt: skip
async def test_a_redirect_to_a_private_address_is_refused(target: str, way: Way, listener: Listener) -> None:
    listener.leads_to = target.format(port=listener.port)
    said = await way(f"http://127.0.0.1:{listener.port}/", "127.0.0.1", "wiki.intranet")
    assert said.startswith("refused: ") and len(listener.came) == 1


@WAYS
async def test_hosts_allowed_by_name_are_requested(way: Way, listener: Listener) -> None:
    assert await way(f"http://localhost:{listener.port}/", "LocalHost") == "ok"
    assert await way(f"http://127.0.0.1:{listener.port}/", "127.0.0.1") == "ok"
