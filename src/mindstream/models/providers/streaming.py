"""Replies that come piece by piece, straight from aiohttp: server-sent events, put together, counted and read.

OpenAI's client hands each piece through three libraries, an iterator in each: three in ten of an utterance's calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from yarl import URL

from mindstream.models.providers.wire import (
    CONNECT_S,
    EVENT_BYTES,
    FLOOD_BYTES,
    STREAM_BYTES,
    STREAM_LINES,
    Refusal,
    certificates,
    check_coding,
    check_redirect,
)

AT_ONCE, KEPT_S = 1_000, 5.0
"""So many connections, and so long one waits for the next request: servers let go of theirs after as long."""
AT_FIRST, GAP_S = 6, 0.04
"""So many events are read as they come: a first word is waited for. Then what comes within GAP_S is read together."""
REST_S = 0.1
"""So long the end of a stream whose last event was read may take: then its connection serves again."""


class EndpointError(Exception):
    """An error that an endpoint tells: of HTTP, or within a stream (then without a status)."""

    def __init__(self, body: object, status: int = 0, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"HTTP {status}" if status else "an error within the stream")
        self.body, self.status, self.headers = body, status, headers or {}


class Streams:
    """Asks an endpoint for streams; what it keeps open belongs to the event loop in which it was first asked."""

    def __init__(self, home: str, headers: Mapping[str, str], *, here: bool = False) -> None:
        self._home, self._here = home.rstrip("/"), here
        self._headers = {**headers, "Accept-Encoding": "identity", "Content-Type": "application/json"}
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any]:
        """Yield the events of an answer as plain data, until it says [DONE] or ends.

        Raises:
            EndpointError: the endpoint tells an error; Refusal: it sends what is not taken.
            aiohttp.ClientError, HttpProcessingError, httpx2.HTTPError: the connection.
            ValueError: what is no event.
        """
        session = self._session or self._connect()
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            response = await session.post(self._home + path, data=data, allow_redirects=False)
        except aiohttp.ConnectionTimeoutError as error:  # a TimeoutError, too: that a model is silent is another thing
            raise httpx2.ConnectTimeout(str(error)) from error
        try:
            check_redirect(response.status, response.headers)
            check_coding(response.headers)
            if response.status >= 400:
                raise EndpointError(await _error(response), response.status, response.headers)
            async with contextlib.aclosing(_events(response)) as events:
                async for event in events:
                    if event.startswith("[DONE]"):
                        await _drain(response)
                        return
                    found = json.loads(event)
                    if isinstance(found, dict) and (error := found.get("error")):
                        raise EndpointError(error)
                    yield found
        finally:
            response.close() if not response.content.at_eof() else response.release()

    async def close(self) -> None:
        """Let the connections go."""
        if self._session is not None:
            await self._session.close()

    def _connect(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=AT_ONCE, ssl=certificates(), force_close=self._here,
            **({} if self._here else {"keepalive_timeout": KEPT_S}),
        )  # fmt: skip
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            proxy=None if self._here else _proxy(URL(self._home)),
        )  # fmt: skip
        return self._session


async def _events(response: aiohttp.ClientResponse) -> AsyncGenerator[str]:
    """Yield the data of a stream's events; what of it is not whole at its end is none.

    Raises:
        Refusal: it is too much: in all, in lines, or since the last event ended.
    """
    left, lines, rest, count = STREAM_BYTES, STREAM_LINES, b"", 0
    while data := await _next(response.content, wait=count > AT_FIRST):
        left, lines = left - len(data), lines - data.count(b"\n")
        rest += data
        if b"\r" in rest:
            held = b"\r" if rest.endswith(b"\r") else b""  # the \n may follow
            rest = rest.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        *whole, rest = rest.split(b"\n\n")
        if left < 0 or lines < 0 or len(rest) > EVENT_BYTES:
            raise Refusal("it sends without an end")
        count += len(whole)
        for event in whole:
            if found := "\n".join(_data(event.decode())):
                yield found
        if len(data) >= FLOOD_BYTES:  # what is there already is read without waiting: others get their turn
            await asyncio.sleep(0)


async def _next(content: aiohttp.StreamReader, *, wait: bool) -> bytes:
    """Return what has come; b"" at the end. `wait`: together with what comes within GAP_S, unless it ends."""
    if wait:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GAP_S):
                await content.wait_eof()
    return await content.readany()


def _data(event: str) -> Iterator[str]:
    for line in event.split("\n"):
        if line.startswith("data:"):
            yield line[5:].removeprefix(" ")


async def _error(response: aiohttp.ClientResponse) -> object:
    """Read the body of an error, as data where it is JSON."""
    body = b""
    while data := await response.content.readany():
        body += data
        if len(body) > STREAM_BYTES:
            raise Refusal("it sends without an end")
    text = body.decode("utf-8", "replace").strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read to the end of what is read already but for its last bytes, so that the connection can serve again."""
    left = STREAM_BYTES
    with contextlib.suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(REST_S):
            while left > 0 and (data := await response.content.readany()):
                left -= len(data)


def _proxy(url: URL) -> str | None:
    """Return the proxy that the environment names for an address."""
    return None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)
