"""The transport to an MCP server at a URL, which limits the addresses that it connects to and the size of answers; used
in the child process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx2

from mindstream.tools.mcp.raw_results import readable
from mindstream.tools.mcp.server import MAX_BYTES
from mindstream.tools.web import PublicTransport

CONNECT_S = 10.0
FAILED, SESSION_ENDED = -31_999, -31_998
"""Codes of errors that this client makes itself. FAILED: the request failed, for example because the server cannot be
reached. SESSION_ENDED: the server had ended the session before the request."""
MAX_REFUSAL = 10_000
"""Maximum length in bytes of a refusal's body that is read, to quote it or to search it for the word "session". A
refusal is a response with a status of 400 or more."""


class GuardedTransport(PublicTransport):
    """Connects to public addresses, and to hosts that are allowed by name; turns a failure into an MCP error message.

    Redirects are not followed. No event stream (GET) is opened, because requests from the server are not answered.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(405)
        host = request.url.host
        try:
            response = await super().handle_async_request(request)
            await _read_refusal(response)
        except (httpx2.HTTPError, OSError, ValueError) as error:
            return _failure(f"{host} cannot be reached: {error or type(error).__name__}")
        ended = _ended_session(request, response)
        if fault := "has ended the session" if ended else _fault(response):
            await response.aclose()
            return _failure(f"{host} {fault}", SESSION_ENDED if ended else FAILED)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=_Bounded(response), extensions=response.extensions
        )


class _Bounded(httpx2.AsyncByteStream):
    """A response's body, with invalid parts replaced (see `readable`).

    A body of more than MAX_BYTES, or a broken connection, raises an error that the client library expects.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._response.is_stream_consumed:
            yield readable(self._response.content)
            return
        taken, rest = 0, bytearray()
        try:
            async for part in self._response.aiter_raw():
                taken += len(part)
                if taken > MAX_BYTES:
                    raise httpx2.StreamError(f"the answer has more than {MAX_BYTES:,} bytes")
                whole, end, begun = part.rpartition(b"\n")
                if end:
                    yield readable(bytes(rest) + whole + end)
                    rest.clear()
                rest += begun
        except httpx2.HTTPError as error:
            raise httpx2.StreamError(f"the answer broke off: {error or type(error).__name__}") from None
        is_stream = self._response.headers.get("content-type", "").lower().startswith("text/event-stream")
        yield readable(bytes(rest)) + (b"\n\n" if is_stream else b"")  # some servers do not end their last event

    async def aclose(self) -> None:
        await self._response.aclose()


def _fault(response: httpx2.Response) -> str:
    """Return the reason why a response is refused; "" if it is accepted."""
    status, kind = response.status_code, response.headers.get("content-type", "").lower()
    if 300 <= status < 400:
        return f"leads to {response.headers.get('location', 'nowhere')[:200]!r}, which is not followed"
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "sent a compressed answer, although an uncompressed one was requested"
    if status in (401, 403):
        return f"refuses these headers (HTTP {status})"
    said = response.content if response.is_stream_consumed else b""
    if status < 400 or (kind.startswith("application/json") and (not said or b'"jsonrpc"' in said)):
        return ""
    expected = ": expected the URL of an MCP endpoint (streamable HTTP, often ending in /mcp)"
    words = "" if "html" in kind else " ".join(said.decode("utf-8", "replace").split())[:300]
    return f"answers HTTP {status}" + (expected if status in (404, 405) else f": {words}" if words else "")


async def _read_refusal(response: httpx2.Response) -> None:
    """Read the body of a refusal if it is short."""
    length = response.headers.get("content-length", "")
    if response.status_code >= 400 and length.isdecimal() and int(length) <= MAX_REFUSAL:
        await response.aread()


def _ended_session(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether a server refuses a request because it no longer knows the session.

    The protocol's status for this is 404. After a restart, many servers answer 400 with a body that names the session.
    """
    if "mcp-session-id" not in request.headers or response.status_code not in (400, 404, 410):
        return False
    return response.status_code != 400 or (response.is_stream_consumed and b"session" in response.content.lower())


def _failure(words: str, code: int = FAILED) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": words}}
    return httpx2.Response(502, headers={"content-type": "application/json"}, content=json.dumps(body).encode())
