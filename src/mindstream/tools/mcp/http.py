"""The transport to a server at a URL: which addresses are asked, and how much is read; used in the child process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx2

from mindstream.tools.mcp.server import MAX_BYTES
from mindstream.tools.web.transport import PublicTransport

CONNECT_S = 10.0
FAILED, SESSION_ENDED = -31_999, -31_998
"""Codes of our own errors: the connection is lost; the server has ended the session, and the request was not heard."""
MAX_REFUSAL = 10_000
"""Maximum bytes of a refusal that are read to see whether it names the session."""


class GuardedTransport(PublicTransport):
    """Asks public addresses, and hosts that are allowed by name; a failure becomes an error of the protocol, in words.

    Redirects are not followed, and no event stream is opened (GET), since no request of a server is answered.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405)
        host = request.url.host
        try:
            response = await super().handle_async_request(request)
        except (httpx2.HTTPError, OSError, ValueError) as error:
            return _failure(f"{host} cannot be reached: {error or type(error).__name__}")
        ended = await _ended_session(request, response)
        if fault := "has ended the session" if ended else _fault(response):
            await response.aclose()
            return _failure(f"{host} {fault}", SESSION_ENDED if ended else FAILED)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=_Bounded(response), extensions=response.extensions
        )


class _Bounded(httpx2.AsyncByteStream):
    """A response's body, up to a limit; a broken connection becomes an error that the client library expects."""

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
                if taken > MAX_BYTES:
                    raise httpx2.StreamError(f"the answer has more than {MAX_BYTES:,} bytes")
                yield part
        except httpx2.HTTPError as error:
            raise httpx2.StreamError(f"the answer broke off: {error or type(error).__name__}") from None

    async def aclose(self) -> None:
        await self._response.aclose()


def _fault(response: httpx2.Response) -> str:
    """Return why a response is not passed on; "" if it is."""
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        return f"leads to {response.headers.get('location', 'nowhere')[:200]!r}, which is not followed"
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "answers packed, which was not asked for"
    if status in (401, 403):
        return f"refuses these headers (HTTP {status})"
    if status < 400 or kind.startswith("application/json"):
        return ""
    expected = ": expected the URL of an MCP endpoint (streamable HTTP, often ending in /mcp)"
    return f"answers HTTP {status}{expected if status in (404, 405) else ''}"


async def _ended_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether a server refuses a request because it does not know its session any more.

    The protocol's sign is 404. Many servers answer 400 after a restart, with a body that names the session.
    """
    if "mcp-session-id" not in request.headers or response.status_code not in (400, 404, 410):
        return False
    if response.status_code != 400:
        return True
    is_short = int(response.headers.get("content-length") or MAX_REFUSAL + 1) <= MAX_REFUSAL
    return is_short and b"session" in (await response.aread()).lower()


def _failure(words: str, code: int = FAILED) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=json.dumps(body).encode())
