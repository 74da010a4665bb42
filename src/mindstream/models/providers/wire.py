"""The HTTP client for model endpoints: it follows no redirect, and bounds the size of responses.

Requests hold users' text and a key; a redirect would send both to a host that the user did not configure. The client
uses aiohttp's session directly: for a short reply, this takes a third of the CPU of a vendor's client library.

`EventReader` reads a response as JSON values: Server-Sent Events, also malformed ones, or one complete JSON body.
OpenAI's own decoder reads neither a JSON body with the content type of a stream, nor events without a blank line
between them; some endpoints send these.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from ipaddress import ip_address, ip_network
from ssl import SSLContext
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError, PayloadEncodingError
from yarl import URL

from mindstream.errors import SettingsError
from mindstream.models.providers.address import OPENAI_HOME, Address
from mindstream.models.providers.failures import Fault, Kind, causes, error_fault, words_of
from mindstream.paths import variable

CONNECT_S, KEEP_S = 10.0, 5.0
"""CONNECT_S: timeout for opening a connection, in seconds. KEEP_S: time for which an idle connection is kept, in
seconds; many servers close it after 5 s."""
MAX_STREAM_BYTES, MAX_STREAM_LINES = 8_000_000, 60_000
"""Maximum bytes and lines of a streamed response; 8,000 tokens take 3 to 6 MB and 24,000 lines."""
MAX_EVENT_BYTES = 256_000
"""Maximum bytes of one event of a stream, which is assembled in memory line by line."""
PACKED_CODINGS = ("gzip", "x-gzip", "deflate")
"""Encodings that are unpacked; the request asks for none, but some gateways compress every response."""
MAX_UNPACKED = 1 << 20
"""Maximum bytes that are unpacked at once, before the size limits are checked again."""
DRAIN_S = 0.2
"""Timeout in seconds for reading bytes after the end of a stream, so that the connection can be used again."""
BODY_ERRORS = (aiohttp.ClientError, HttpProcessingError)
BLANK = " \t\r\n\"'"
"""Characters that are ignored around the value of an environment variable."""
ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Refusal(Exception):  # noqa: N818
    """This client refuses a response; the message names the reason."""


class EndpointError(Exception):
    """An error that the endpoint itself reports, by its status or within a stream.

    Attributes:
        body: the value of the response's `error`; without `error`, the whole body. A text if the body is not JSON.
        status: the HTTP status; 0 within a stream.
    """

    def __init__(self, message: str, body: object, status: int = 0, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message, self.body, self.status, self.headers = message, body, status, headers or {}


UNREACHABLE = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
ODD = (aiohttp.ClientResponseError, HttpProcessingError, ValueError)


def kind_of(error: BaseException) -> Kind:
    """Classify a failed connection by the error's causes."""
    found = list(causes(error))
    if any(isinstance(cause, Refusal) for cause in found):
        return "not_taken"
    if any(isinstance(cause, UNREACHABLE) for cause in found):
        return "unreachable"
    cut = isinstance(found[-1], PayloadEncodingError) and "Not enough data" in str(found[-1])
    return "odd" if not cut and any(isinstance(cause, ODD) for cause in found) else "broken"


def _connection_fault(error: Exception) -> Fault:
    *_, cause = causes(error)
    through = "through the proxy of the environment: " * isinstance(error, aiohttp.ClientProxyConnectionError)
    return Fault(f"{through}{type(cause).__name__}: {cause}", kind_of(error))


def _reported_fault(error: Any) -> Fault:
    return error_fault(error.body, error.message, error.status, error.headers)


ERROR_READERS: dict[type[Exception], Callable[[Exception], Fault]] = {
    EndpointError: _reported_fault,
    **dict.fromkeys((Refusal, *BODY_ERRORS), _connection_fault),
}
"""Functions that convert this client's errors to faults, for `failures`."""


class Client:
    """An HTTP client for one endpoint, in one event loop; it sends each request once.

    The query of the address is added to each request. If `whole_bytes` is 0, responses are streams; otherwise they are
    complete bodies of at most this size.
    """

    def __init__(self, at: Address, whole_bytes: int = 0) -> None:
        parts = urlsplit(at.url or OPENAI_HOME)
        self._base = urlunsplit(parts._replace(query="")).rstrip("/")
        self._query = urlencode(parse_qsl(parts.query, keep_blank_values=True))
        self._whole_bytes = whole_bytes
        here = at.vendor == "gguf"  # a server in this process: it closes each connection, and no proxy is used
        self._headers = _headers(at) | ({"Connection": "close"} if here else {})
        self._proxy = None if here else environment_proxy(at.url or OPENAI_HOME)
        self._secure = certificates() if parts.scheme == "https" else False
        self._session: aiohttp.ClientSession | None = None

    async def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Send a request; return the response before its body is read.

        Args:
            path: below the address's URL, or a complete URL.
            headers: headers to add to the usual ones, or to remove (value "").

        Raises:
            EndpointError, Refusal, aiohttp.ClientError: there is no acceptable response.
        """
        data = None
        if body is not None:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        all_headers = {name: value for name, value in {**self._headers, **(headers or {})}.items() if value}
        whole = path if path.startswith(("http://", "https://")) else self._base + path
        url = URL(f"{whole}?{self._query}" if self._query else whole)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_S, ssl=self._secure),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        try:
            got = await self._session.request(
                method, url, data=data, headers=all_headers, proxy=self._proxy, allow_redirects=False
            )
        except aiohttp.ServerTimeoutError as error:
            # replaced, because it is a TimeoutError, which callers take for a silent endpoint
            raise aiohttp.ClientConnectionError(str(error)) from error
        coding = got.headers.get("content-encoding", "").strip().lower()
        response = Response(got, self._whole_bytes, is_packed=coding in PACKED_CODINGS)
        try:
            check_response(got.status, got.headers.get("location", ""), "" if coding in PACKED_CODINGS else coding)
            if got.status >= 400:
                raise _reported(await response.whole(), got)
        except BaseException:
            response.close()
            raise
        return response

    async def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """Send a request; return the JSON of the complete response.

        Raises:
            ValueError: the response is not JSON.
            EndpointError, Refusal, aiohttp.ClientError: there is no acceptable response.
        """
        response = await self.send(method, path, body, headers)
        try:
            return json.loads(await response.whole())
        finally:
            response.close()

    async def aclose(self) -> None:
        """Close idle connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _headers(at: Address) -> dict[str, str]:
    """Return the headers of all requests; for an address named `openai:…` also those of OpenAI's variables."""
    found = {
        "Authorization": f"Bearer {at.key}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": "mindstream",
        **({"api-key": at.key} if at.is_azure else {}),
    }
    if at.name.startswith("openai:"):
        own = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
        found |= {header: value for header, name in own.items() if (value := variable(name))}
        lines = (line.partition(":") for line in os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n"))
        found |= {name.strip(): value.strip() for name, colon, value in lines if colon}
    return found


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for a URL. None: it names none, or the URL's host is this machine or
    in `no_proxy`.

    Raises:
        SettingsError: the proxy is of a kind that is not supported, or its address is invalid.
    """
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    source = next((name for name in (parts.scheme, "all") if proxies.get(name, "").strip(BLANK)), "")
    if not source or proxy_bypass(host) or _is_direct(host, parts.port, proxies.get("no", "")):
        return None
    given = proxies[source].strip(BLANK)
    found = given if "://" in given else f"http://{given}"
    with suppress(ValueError):
        proxy = urlsplit(found)
        if proxy.scheme in ("http", "https") and proxy.hostname and (proxy.port or found is given or "." in found):
            return found
    raise SettingsError(
        f"the environment variable {source}_proxy is not the address of a proxy: write one such as http://host:3128"
        " (SOCKS is not supported), or add the model's host to no_proxy"
    )


def _is_direct(host: str, port: int | None, listed: str) -> bool:
    """Return whether a host needs no proxy: the host is this machine, or is in the list `no_proxy` (`listed`).

    The list may contain the host as `host:port`, or a network (such as 10.0.0.0/8) with the host's address.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    if f"{host}:{port}" in (each.strip(BLANK) for each in listed.split(",")):
        return True
    with suppress(ValueError):
        address = ip_address(host)
        if address.is_loopback:
            return True
        for each in listed.split(","):
            with suppress(ValueError):
                if address in ip_network(each.strip(BLANK), strict=False):
                    return True
    return False


@cache
def certificates() -> SSLContext:
    """Return a TLS context with the certificate authorities; loading it is the slowest part of opening a client."""
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


def _unpacker() -> Any:
    """Return a decompressor that recognises the headers of gzip and zlib."""
    return zlib.decompressobj(zlib.MAX_WBITS | 32)


class Response:
    """A response whose body is being read; reading may be cancelled, and resumed."""

    def __init__(self, got: aiohttp.ClientResponse, whole_bytes: int, *, is_packed: bool = False) -> None:
        self._got, self._content = got, got.content
        self._unpack, self._packed = (_unpacker() if is_packed else None), b""
        self._paused: asyncio.Transport | None = None
        """The connection while nothing is read from its socket."""
        self._allowance = Allowance(whole_bytes)

    async def read(self) -> bytes:
        """Return the bytes that have arrived, or wait for some; b"" at the end.

        Raises:
            Refusal: the body is too long, or its compression is damaged.
            aiohttp.ClientError: the connection broke; raised only after all earlier bytes were returned.
        """
        data = b""
        if self._unpack is None:
            data = await self._received()
        while self._unpack and not data:
            if not (packed := self._packed or await self._received()):
                data = self._unpack.flush()
                break
            if self._unpack.eof:  # the body has several gzip members
                self._unpack = _unpacker()
            try:
                data = self._unpack.decompress(packed, MAX_UNPACKED)
            except zlib.error as error:
                raise Refusal(f"its compressed body is damaged: {error}") from None
            self._packed = self._unpack.unconsumed_tail or self._unpack.unused_data
        self._allowance.take(data)
        return data

    async def _received(self) -> bytes:
        if self._paused is not None:
            self._paused.resume_reading()
            self._paused = None
        try:
            data = await self._content.readany()
        except BODY_ERRORS:  # aiohttp raises at once, and keeps earlier bytes in its buffer
            buffer = self._content._buffer
            data = b"".join(buffer)
            buffer.clear()
            if not data:
                raise
        return data

    async def whole(self) -> bytes:
        """Return the rest of the body.

        Raises:
            Refusal: the body is too long, or its compression is damaged.
            aiohttp.ClientError: the connection broke.
        """
        found = []
        while data := await self.read():
            found.append(data)
        return b"".join(found)

    async def pause(self, seconds: float) -> None:
        """Stop reading from the socket for some seconds, unless the body has ended, so that data arrives in one piece.

        aiohttp's own pause would stop its parser, which then continues one piece at a time.
        """
        connection = self._got.connection
        if connection is not None and connection.transport is not None and not self._content.is_eof():
            self._paused = connection.transport
            self._paused.pause_reading()
            await asyncio.sleep(seconds)

    async def drain(self) -> None:
        """Read and drop the bytes that follow the last event of a stream, for at most DRAIN_S seconds."""
        if not self._content.at_eof():
            with suppress(TimeoutError, Refusal, *BODY_ERRORS):
                async with asyncio.timeout(DRAIN_S):
                    await self.whole()

    def close(self) -> None:
        """Close the connection. If the body was read to its end, the connection stays open: it is in the pool again."""
        self._got.close()


def check_response(status: int, location: str, encoding: str) -> None:
    """Refuse redirects and bodies with a content encoding. A caller that unpacks an encoding itself passes "" for it.

    Raises:
        Refusal: the response is a redirect, or has a content encoding.
    """
    if 300 <= status < 400:
        where = location[:200] or "elsewhere"
        raise Refusal(f"HTTP {status}: redirects to {where} are not followed: use that address itself")
    coding = encoding.strip().lower()
    if coding not in ("", "identity"):
        raise Refusal(f"expected an uncompressed response, found the content encoding {coding[:40]!r}")


class Allowance:
    """Limits the size of a response.

    Args:
        whole_bytes: maximum number of bytes. 0: the response is a stream of events, with fixed maximum numbers of
            bytes, of lines, and of bytes since the end of the last event.
    """

    def __init__(self, whole_bytes: int) -> None:
        self._whole, self._left, self._lines = whole_bytes, whole_bytes or MAX_STREAM_BYTES, MAX_STREAM_LINES
        self._since, self._tail = 0, b""

    def take(self, data: bytes) -> None:
        """Count further bytes.

        Raises:
            Refusal: a limit is exceeded.
        """
        self._left -= len(data)
        if not self._whole:
            self._lines -= data.count(b"\n")
            joined = self._tail + data  # the blank line after an event may arrive separately
            end = max(map(joined.rfind, ENDS))
            self._since = len(joined) - end if end >= 0 else self._since + len(data)
            self._tail = joined[-3:]
        if self._left < 0 or self._lines < 0 or self._since > MAX_EVENT_BYTES:
            raise Refusal("the response exceeds a size limit")


DONE = "[DONE]"
FIELDS = ("data", "event", "id", "retry", "")
_JOINED = re.compile(r"(?<=[}\]])\s*data:\s*(?=[{\[])|(?<=\})\s*(?=\{\"(?:id|choices|object)\")")
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class EventReader:
    """Turns a response, chunk by chunk, into the JSON values of its events; DONE is the announced end of a stream."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest = self._event = ""
        self._data, self._other = list[str](), list[str]()
        """`_data`: the data lines of the current event. `_other`: lines before the first event, such as those of a JSON
        body."""
        self._has_events = False
        self._error: ValueError | None = None

    def feed(self, data: bytes) -> list[Any]:
        """Return the values that further bytes complete.

        Raises:
            ValueError: an event is not JSON; the events before it were returned.
        """
        text = self._rest + self._decode(data)
        *lines, self._rest = _LINE_END.split(text) if "\r" in text else text.split("\n")
        return self._values(lines)

    def end(self) -> list[Any]:
        """Return the values that the end of the response completes; call it once.

        Raises:
            ValueError: an event is not JSON (earlier events were returned); or the body is neither events nor JSON.
        """
        rest, self._rest = self._rest, ""
        found = self._values([*_LINE_END.split(rest.removesuffix("\r")), ""])
        lines, self._other = self._other, []
        if self._has_events or not lines:
            return found
        body = "\n".join(lines)
        if (value := _parsed(body.strip())) is not None:
            return [value]
        if all(line.lstrip().startswith("{") for line in lines):
            return [json.loads(line) for line in lines]
        raise ValueError(f"expected server-sent events or JSON, found {body[:80]!r}")

    def _values(self, lines: list[str]) -> list[Any]:
        if self._error is not None:
            raise self._error
        found: list[Any] = []
        try:
            for line in lines:
                self._take(line, found)
        except ValueError as error:
            if not found:
                raise
            self._error = error
        return found

    def _take(self, line: str, found: list[Any]) -> None:
        if not (self._data or self._event):  # nearly all lines: a whole event, or the blank line after it
            if not line:
                return
            if line.startswith("data: {") and isinstance(value := _parsed(line[6:]), dict):
                self._has_events = True
                found.append(value)
                return
        name, colon, value = line.partition(":")
        name = name.strip()
        if not line:
            self._dispatch(found)
        elif not self._has_events and not self._data and (name not in FIELDS or not colon):
            self._other.append(line)
        elif name == "event":
            self._event = value.strip()
        elif name == "data":
            self._data.append(value.removeprefix(" "))
            if value.rstrip().endswith(("}", "]")):  # usually the whole event; some servers send no blank line after it
                self._dispatch(found, ended=False)

    def _dispatch(self, found: list[Any], *, ended: bool = True) -> None:
        """Append the value of the current event to `found`.

        `ended`: whether a blank line has ended the event. False: the value is appended only if it is complete JSON.
        """
        data = "\n".join(self._data).strip()
        while data.startswith("data:"):  # a proxy wrapped the event once more
            data = data[5:].strip()
        value = _parsed(data) if data else None
        if not ended and not isinstance(value, dict | list):
            return
        event, self._event, self._data = self._event, "", []
        if data[:1] != "{" and data.strip('"').upper().startswith((DONE, "DONE")):
            value = DONE
        elif event == "error" and data:
            value = value if isinstance(value, dict) and value.get("error") else {"error": value or data}
        elif value is None and data[:1] in ("{", "["):
            found += _several(data)
            self._has_events = True
        if value == DONE or isinstance(value, dict | list):  # other values are keep-alives: `null`, a time, `: ping`
            self._has_events = True
            found.append(value)


_DECODE = json.JSONDecoder().raw_decode


def _several(data: str) -> list[Any]:
    """Return the values of events that a proxy joined on one line.

    Raises:
        ValueError: they are not JSON.
    """
    values: list[Any] = []
    try:
        for each in _JOINED.split(data):
            values.append(DONE if each.strip().upper() == DONE else json.loads(each))
    except ValueError:
        raise ValueError(f"expected an event with JSON, found {data[:80]!r}") from None
    return values


def _parsed(text: str) -> Any:
    """Return the value of a text that is exactly one JSON value, with no white space around it; else None."""
    try:
        value, end = _DECODE(text)
    except ValueError:
        return None
    return value if end == len(text) else None
