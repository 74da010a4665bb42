"""The HTTP client for models' endpoints: it follows nobody elsewhere, and takes only so many bytes.

What is asked holds a user's words and a key; a redirect would carry both to a host that nobody named.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from ssl import SSLContext
from typing import Any

import aiohttp
import httpx2
from aiohttp.http_exceptions import HttpProcessingError, PayloadEncodingError
from openai import DefaultAioHttpClient, DefaultAsyncHttpxClient

from mindstream.models.providers.failures import Kind, causes

CONNECT_S = 10.0
STREAM_BYTES, STREAM_LINES = 8_000_000, 60_000
"""An answer that comes piece by piece: 8,000 tokens are 3 to 6 MB and 24,000 lines."""
EVENT_BYTES = 256_000
"""One event of a stream, whatever type it says to have: clients put an event together line by line."""
HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL)
BODY_ERRORS = (*HTTP_ERRORS, aiohttp.ClientError, HttpProcessingError)
FLOOD_BYTES = 4_096
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Refusal(httpx2.RequestError):
    """What an endpoint sent is not taken; the message says why."""


UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, httpx2.ConnectError)
ODD = (aiohttp.ClientResponseError, HttpProcessingError, httpx2.DecodingError, ValueError)


def kind_of(error: BaseException) -> Kind:
    """Say what a failed connection means, by what it was raised from."""
    found = list(causes(error))
    if any(isinstance(cause, Refusal) for cause in found):
        return "not_taken"
    if any(isinstance(cause, UNREACHABLE) for cause in found):
        return "unreachable"
    cut = isinstance(found[-1], PayloadEncodingError) and "Not enough data" in str(found[-1])
    return "odd" if not cut and any(isinstance(cause, ODD) for cause in found) else "broken"


def http_client(whole_bytes: int = 0, *, quick: bool = True, here: bool = False) -> httpx2.AsyncClient:
    """Return a client for streams, or for whole answers of at most `whole_bytes`.

    It waits as long as it is told elsewhere, but 10 s for a connection. `quick`: through aiohttp, whose parser is in C
    (a third of the work); what else is built upon httpx2 reads its errors. `here`: for a server in this process, which
    ends each connection, and to which no proxy leads.
    """

    async def check(response: httpx2.Response) -> None:
        _check(response)
        response.stream = _Counted(response.stream, whole_bytes)

    return (DefaultAioHttpClient if quick else DefaultAsyncHttpxClient)(
        timeout=httpx2.Timeout(None, connect=CONNECT_S),
        follow_redirects=False,
        trust_env=not here,
        headers={"connection": "close"} if here else None,
        verify=_certificates(),
        event_hooks={"request": [_ask_plain], "response": [check]},
    )


@cache
def _certificates() -> SSLContext:
    """Load the authorities' certificates once: that takes longer than all the rest of a client."""
    return httpx2.create_ssl_context()


async def _ask_plain(request: httpx2.Request) -> None:
    request.headers["accept-encoding"] = "identity"


def _check(response: httpx2.Response) -> None:
    if 300 <= response.status_code < 400:
        where = response.headers.get("location", "")[:200] or "elsewhere"
        raise Refusal(f"HTTP {response.status_code}: it sends us on to {where}, and no redirect is followed: name that")
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):  # a few bytes can unfold to gigabytes
        raise Refusal(f"it sent {coding[:40]!r} where plain text was asked for")


class _Counted(httpx2.AsyncByteStream):
    """Passes bytes on until they are too many: in all, in lines, or since the last event ended."""

    def __init__(self, stream: Any, whole_bytes: int) -> None:
        self._stream = stream
        self._whole = whole_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, lines, since, tail = self._whole or STREAM_BYTES, STREAM_LINES, 0, b""
        async for data in self._stream:
            left -= len(data)
            if not self._whole:
                lines -= data.count(b"\n")
                joined = tail + data
                end = max(joined.rfind(mark) for mark in ENDS)
                since = len(joined) - end if end >= 0 else since + len(data)
                tail = joined[-3:]
                if len(data) >= FLOOD_BYTES:  # what is there already is read without waiting: others get their turn
                    await asyncio.sleep(0)
            if left < 0 or lines < 0 or since > EVENT_BYTES:
                raise Refusal("it sends without an end")
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
