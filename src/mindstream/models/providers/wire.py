"""The HTTP client for models' endpoints: it follows no redirect, and takes only so many bytes.

What is asked holds a user's words and a key; a redirect would carry both to a host that no one named. The client is
aiohttp's own session without a client library on top: for a short reply that is a third of the CPU.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from ssl import SSLContext
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, PayloadEncodingError
from yarl import URL

from mindstream.models.providers.address import OPENAI_HOME, Address
from mindstream.models.providers.failures import Fault, Kind, causes, error_fault, words_of
from mindstream.paths import variable

CONNECT_S, KEEP_S = 10.0, 5.0
"""Seconds that a connection may take to open, and that an idle one is kept: many servers close theirs after 5 s."""
STREAM_BYTES, STREAM_LINES = 8_000_000, 60_000
"""An answer that comes piece by piece: 8,000 tokens are 3 to 6 MB and 24,000 lines."""
EVENT_BYTES = 256_000
"""One event of a stream, whatever type it says to have: it is put together line by line."""
DRAIN_S = 0.2
"""Seconds for the rest of a response after its end, so that the connection can be used again."""
BODY_ERRORS = (aiohttp.ClientError, HttpProcessingError)
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Refusal(Exception):  # noqa: N818
    """What an endpoint sent is not taken; the message says why."""


class EndpointError(Exception):
    """An error that the endpoint itself reports, by its status or within a stream.

    Attributes:
        body: the error as it came, without the object around it; text where it is no JSON.
        status: of HTTP; 0 within a stream.
    """

    def __init__(self, message: str, body: object, status: int = 0, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.body, self.status, self.headers = message, body, status, headers or {}


UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
ODD = (aiohttp.ClientResponseError, HttpProcessingError, ValueError)


def kind_of(error: BaseException) -> Kind:
    """Say what a failed connection means, by what it was raised from."""
    found = list(causes(error))
    if any(isinstance(cause, Refusal) for cause in found):
        return "not_taken"
    if any(isinstance(cause, UNREACHABLE) for cause in found):
        return "unreachable"
    cut = isinstance(found[-1], PayloadEncodingError) and "Not enough data" in str(found[-1])
    return "odd" if not cut and any(isinstance(cause, ODD) for cause in found) else "broken"


def _connection_fault(error: Exception) -> Fault:
    *_, cause = causes(error)
    return Fault(f"{type(cause).__name__}: {cause}", kind_of(error))


def _reported_fault(error: Any) -> Fault:
    return error_fault(error.body, error.message, error.status, error.headers)


TOLD: dict[type[Exception], Callable[[Exception], Fault]] = {
    EndpointError: _reported_fault,
    **dict.fromkeys((Refusal, *BODY_ERRORS), _connection_fault),
}
"""How to read what this client raises."""


class Client:
    """An HTTP client for one endpoint, in one event loop; it makes one attempt.

    An address's query goes with each request. Responses are streams, or bodies of at most `whole_bytes`.
    """

    def __init__(self, at: Address, whole_bytes: int = 0) -> None:
        parts = urlsplit(at.url or OPENAI_HOME)
        self._base = urlunsplit(parts._replace(query="")).rstrip("/")
        self._query = urlencode(parse_qsl(parts.query, keep_blank_values=True))
        self._whole_bytes = whole_bytes
        here = at.vendor == "gguf"  # a server in this process: it ends each connection, and no proxy leads to it
        self._headers = _headers(at) | ({"Connection": "close"} if here else {})
        self._proxy = None if here else _proxy(parts.scheme, parts.hostname or "")
        self._secure = certificates() if parts.scheme == "https" else False
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}

    async def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request; return the response, of which nothing was read yet.

        Args:
            path: below the address's URL, or a whole URL.
            headers: in addition to the usual ones; "" leaves one out.

        Raises:
            EndpointError, Refusal, aiohttp.ClientError: there is none that can be read.
        """
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        all_headers = self._headers
        if headers:
            all_headers = {name: value for name, value in {**all_headers, **headers}.items() if value}
        try:
            got = await self._opened().request(
                method, self._url(path), data=data, headers=all_headers, proxy=self._proxy, allow_redirects=False
            )
        except aiohttp.ServerTimeoutError as error:  # a TimeoutError would mean that the endpoint said nothing
            raise aiohttp.ClientConnectionError(str(error)) from error
        response = Response(got, self._whole_bytes)
        try:
            response.check()
            if got.status >= 400:
                raise _reported(await response.whole(), got)
        except BaseException:
            response.close()
            raise
        return response

    async def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """Send a request; return the JSON of the whole response.

        Raises:
            ValueError: it is no JSON; else as `send` does.
        """
        response = await self.send(method, path, body, headers)
        try:
            return json.loads(await response.whole())
        finally:
            response.close()

    async def aclose(self) -> None:
        """Close the connections that wait for the next request."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S, ssl=self._secure),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    def _url(self, path: str) -> URL:
        if (found := self._urls.get(path)) is None:
            whole = path if path.startswith(("http://", "https://")) else self._base + path
            found = self._urls[path] = URL(f"{whole}?{self._query}" if self._query else whole)
        return found


def _headers(at: Address) -> dict[str, str]:
    """Return what goes with each request; to an address named `openai:…` also what the environment says for OpenAI."""
    found = {
        "Authorization": f"Bearer {at.key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "mindstream",
        **({"api-key": at.key} if at.is_azure else {}),
    }
    if not at.name.startswith("openai:"):
        return found
    for header, name in (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID")):
        found |= {header: value} if (value := variable(name)) else {}
    for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"):
        name, colon, value = line.partition(":")
        found |= {name.strip(): value.strip()} if colon else {}
    return found


def _proxy(scheme: str, host: str) -> str | None:
    """Return the proxy that the environment names for a host."""
    proxies = getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    return found if found and not proxy_bypass(host) else None


@cache
def certificates() -> SSLContext:
    """Load the authorities' certificates once: that takes longer than all the rest of a client."""
    import httpx2

    return httpx2.create_ssl_context()


def _reported(data: bytes, got: aiohttp.ClientResponse) -> EndpointError:
    text = data.decode("utf-8", "replace").strip()
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return EndpointError(text or f"Error code: {got.status}", text, got.status, got.headers)
    inner = body.get("error", body) if isinstance(body, dict) else body
    return EndpointError(words_of(body) or f"Error code: {got.status}", inner, got.status, got.headers)


class Response:
    """A response that is being read; reading may be cancelled, and begun again."""

    def __init__(self, got: aiohttp.ClientResponse, whole_bytes: int) -> None:
        self._got, self._content = got, got.content
        self._paused: asyncio.Transport | None = None
        """The connection while nothing is read from its socket."""
        self._allowance = Allowance(whole_bytes)

    def check(self) -> None:
        """Refuse a redirect, and a body that a few bytes could unfold to gigabytes."""
        where = self._got.headers.get("location", "")
        check_response(self._got.status, where, self._got.headers.get("content-encoding", ""))

    async def read(self) -> bytes:
        """Return what is there, or wait for it; b"" at the end.

        Raises:
            Refusal: it is too much; aiohttp.ClientError: the connection broke, after all that came before was read.
        """
        if self._paused is not None:
            self._paused.resume_reading()
            self._paused = None
        try:
            data = await self._content.readany()
        except BODY_ERRORS:
            data = self._left()
            if not data:
                raise
        self._allowance.take(data)
        return data

    async def whole(self) -> bytes:
        """Return the rest of the body; raises as `read` does."""
        found = []
        while data := await self.read():
            found.append(data)
        return b"".join(found)

    async def pause(self, seconds: float) -> None:
        """Let more come, unless the end is here; the socket is read once afterwards, and not for each packet.

        aiohttp's own pause would stop its parser, which then reads on one piece at a time.
        """
        connection = self._got.connection
        if connection is not None and connection.transport is not None and not self._content.is_eof():
            self._paused = connection.transport
            self._paused.pause_reading()
            await asyncio.sleep(seconds)

    async def drain(self) -> None:
        """Read what follows the end, for a moment."""
        if not self._content.at_eof():
            with suppress(TimeoutError, Refusal, *BODY_ERRORS):
                async with asyncio.timeout(DRAIN_S):
                    await self.whole()

    def close(self) -> None:
        """Give the connection back where the body was read to its end; else close it."""
        self._got.close()

    def _left(self) -> bytes:
        """Return what came before the connection broke: aiohttp itself raises at once, and keeps it in its buffer."""
        buffer = self._content._buffer
        data = b"".join(buffer)
        buffer.clear()
        return data


def check_response(status: int, location: str, encoding: str) -> None:
    """Refuse a redirect, and a body that a few bytes could unfold to gigabytes.

    Raises:
        Refusal: it is one of them.
    """
    if 300 <= status < 400:
        where = location[:200] or "elsewhere"
        raise Refusal(f"HTTP {status}: it sends us on to {where}, and no redirect is followed: name that")
    coding = encoding.strip().lower()
    if coding not in ("", "identity"):
        raise Refusal(f"it sent {coding[:40]!r} where plain text was asked for")


class Allowance:
    """Counts the bytes of a response: in all, in lines, and since the last event ended."""

    def __init__(self, whole_bytes: int) -> None:
        self._whole, self._left, self._lines = whole_bytes, whole_bytes or STREAM_BYTES, STREAM_LINES
        self._since, self._tail = 0, b""

    def take(self, data: bytes) -> None:
        """Count some more.

        Raises:
            Refusal: they are too many.
        """
        self._left -= len(data)
        if not self._whole:
            self._lines -= data.count(b"\n")
            if data[-2:] == b"\n\n":
                self._since, self._tail = 2, data[-3:]
            else:
                joined = self._tail + data
                end = max(joined.rfind(mark) for mark in ENDS)
                self._since = len(joined) - end if end >= 0 else self._since + len(data)
                self._tail = joined[-3:]
        if self._left < 0 or self._lines < 0 or self._since > EVENT_BYTES:
            raise Refusal("it sends without an end")
