"""A server at a URL: which addresses are asked, and how much is taken of what they answer; the child's side of it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection

import httpx2

from mindstream.tools.mcp.server import MOST_BYTES
from mindstream.tools.web.addresses import may_reach

CONNECT_S = 10.0
FAILED = -31_999
"""The code of our own errors: there is no connection any more."""
SESSION_ENDED = -31_998
"""The code of our own error for a session that the server has ended: the request was not heard."""
LONGEST_REFUSAL = 10_000
"""Maximum bytes that are read of a refusal, to see whether it names the session."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Asks public addresses, and hosts that are allowed by name; whatever fails is an error of the protocol, in words.

    Redirects are not followed, and no stream is opened that a server fills when it likes: nothing it asks is answered.
    """

    def __init__(self, allow: Collection[str], inner: httpx2.AsyncBaseTransport | None = None) -> None:
        self._allow = allow
        self._inner = inner or httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405)
        try:
            response = await self._ask(request)
        except (httpx2.HTTPError, OSError, ValueError) as error:
            return _failure(f"{request.url.host} cannot be reached: {error or type(error).__name__}")
        if await _ended_session(request, response):
            await response.aclose()
            return _failure(f"{request.url.host} has ended the session", SESSION_ENDED)
        if fault := _fault(response):
            await response.aclose()
            return _failure(f"{request.url.host} {fault}")
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=_Bounded(response), extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _ask(self, request: httpx2.Request) -> httpx2.Response:
        """Ask the addresses that were looked at, in place of a name that could mean others the next moment.

        Raises:
            OSError: the host is not known, or is not to be asked.
        """
        url = request.url
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
        there = dict.fromkeys(str(entry[4][0]) for entry in found)
        addresses = [each for each in there if may_reach(each, url.host, self._allow)]
        if not addresses:
            hidden = " and ".join(there)
            raise OSError(f"{hidden} is an address of this machine or of a private network; allow the host by name")
        extensions = {**request.extensions, "sni_hostname": url.host}
        for address in addresses:
            try:
                return await self._inner.handle_async_request(
                    httpx2.Request(
                        request.method,
                        url.copy_with(host=address),
                        headers=request.headers,
                        stream=request.stream,
                        extensions=extensions,
                    )
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise AssertionError("one of them answered, or was the last")


class _Bounded(httpx2.AsyncByteStream):
    """What a server answers, up to a limit; what breaks off is an error that the client library waits for."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:
            yield self._response.content
            return
        taken = 0
        try:
            async for part in self._response.aiter_raw():
                taken += len(part)
                if taken > MOST_BYTES:
                    raise httpx2.StreamError(f"the answer has more than {MOST_BYTES:,} bytes")
                yield part
        except httpx2.HTTPError as error:
            raise httpx2.StreamError(f"the answer broke off: {error or type(error).__name__}") from None

    async def aclose(self) -> None:
        await self._response.aclose()


def _fault(response: httpx2.Response) -> str:
    """Say why an answer is not handed on; "" where it is."""
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        return f"leads to {response.headers.get('location', 'nowhere')[:200]!r}, which is not followed"
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "answers packed, which was not asked for"
    if status in (401, 403):
        return f"lets nobody in without the right headers (HTTP {status})"
    if status in (404, 405) and not kind.startswith("application/json"):
        return f"answers HTTP {status}: expected the URL of an MCP endpoint (streamable HTTP, often ending in /mcp)"
    if status >= 400 and not kind.startswith("application/json"):
        return f"answers HTTP {status}"
    return ""


async def _ended_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Tell whether a server refuses a request since it does not know its session any more.

    The protocol's sign is 404. Many servers answer 400 after a restart, with a body that names the session.
    """
    if "mcp-session-id" not in request.headers or response.status_code not in (400, 404, 410):
        return False
    if response.status_code != 400:
        return True
    if int(response.headers.get("content-length") or LONGEST_REFUSAL + 1) > LONGEST_REFUSAL:
        return False
    return b"session" in (await response.aread()).lower()


def _failure(words: str, code: int = FAILED) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    headers = {"content-type": "application/json"}
    return httpx2.Response(502, headers=headers, content=json.dumps(body).encode())
