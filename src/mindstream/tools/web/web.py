"""The way to the web for tools: public addresses only, so many bytes, so many seconds, nobody followed unchecked.

The address is checked where a socket is made, and that socket is the one that connects: what a name resolved to before,
how a number was written, and where a redirect leads make no difference.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from ssl import SSLContext, create_default_context
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

import mindstream
from mindstream.errors import ToolError
from mindstream.models.providers.secrets import mask
from mindstream.tools.web.addresses import may_reach

HOPS = 5
LONGEST_URL, QUOTED = 2_000, 200
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CHARSET = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|latin-?1|iso-8859-\d+|(windows-|cp)125\d|koi8-[ru]|gb2312|gbk|gb18030|big5"
    r"|shift[_-]jis|euc-(jp|kr)",
    re.IGNORECASE,
)
"""Encodings that pages are written in; Python knows others, some of which take their time."""
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]{2,20})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WebResponse:
    """What came: the body's beginning where it `is_cut`."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False

    @property
    def content_type(self) -> str:
        """Return what it says to be: `text/html`; "" where it says nothing."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """Return it as text; what is no text in its encoding is a mark."""
        named = re.search(r"charset=[\"']?([\w-]+)", self.headers.get("Content-Type", ""), re.IGNORECASE)
        meta = _META.search(self.body[:2_048])
        charset = named[1] if named else meta[1].decode() if meta else "utf-8"
        return self.body.decode(charset if CHARSET.fullmatch(charset) else "utf-8", "replace").lstrip("\ufeff")

    def json(self) -> Any:
        """Return it as JSON.

        Raises:
            ToolError: it is none, or too large.
        """
        if self.is_cut:
            raise ToolError(f"{_host(self.url)} sent too much: {len(self.body):,} bytes and more")
        try:
            return json.loads(self.body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise ToolError(f"{_host(self.url)} sent no JSON: {_quote(self.text)!r}") from None

    def check(self, key: str = "") -> None:
        """Raise ToolError where the status says that it failed; `key`: the variable that holds the key."""
        if self.status < 400:
            return
        who, wait = _host(self.url), self.headers.get("Retry-After", "")
        if self.status == 429:
            raise ToolError(f"{who} was asked too often (HTTP 429)" + (f": wait {wait[:40]} seconds" if wait else ""))
        if self.status in (401, 403) and key:
            raise ToolError(f"{who} refuses the key in {key} (HTTP {self.status})")
        raise ToolError(f"{who} failed (HTTP {self.status}): {_quote(self.text) or 'it does not say why'}")


@dataclass(frozen=True)
class Web:
    """Asks servers.

    Args:
        allow: hosts or addresses that are reached though they are private: `("127.0.0.1", "wiki.intranet")`.
        timeout_s: how long one answer may take, redirects included.
        most_bytes: how much of one is read.
    """

    allow: tuple[str, ...] = ()
    timeout_s: float = 20.0
    most_bytes: int = 2_000_000

    async def ask(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        *,
        data: object = None,
        headers: Mapping[str, str] | None = None,
        follow: bool = False,
    ) -> WebResponse:
        """Return what a server answers, whatever its status: to a GET, or to a POST of `data` as JSON.

        `follow`: it may send us elsewhere, some times; do not follow with a key in the headers.

        Raises:
            ToolError: it cannot be reached, is at an address that is not public, or does not end in time.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                for _ in range(HOPS if follow else 1):
                    answer = await self._ask(checked_url(url), params, data, headers)
                    if answer.status not in REDIRECTS:
                        return answer
                    url, params = urljoin(url, answer.headers.get("Location", "")), None
        except TimeoutError:
            raise ToolError(f"{_host(url)} did not answer within {self.timeout_s:g} seconds") from None
        if follow:
            raise ToolError(f"{_host(url)} sends us on and on, over {HOPS} times")
        raise ToolError(f"{_host(answer.url)} sends us on to {_quote(url)}, and it is not followed")

    async def _ask(self, url: str, params: Mapping[str, str] | None, data: object, headers: Any) -> WebResponse:
        refused: list[str] = []
        method = "GET" if data is None else "POST"
        sent = {"Accept-Encoding": "identity", "User-Agent": f"mindstream/{mindstream.__version__}", **(headers or {})}
        try:
            async with (
                self._session(url, refused) as session,
                session.request(method, url, params=params, json=data, headers=sent, allow_redirects=False) as response,
            ):
                body, is_cut = await self._body(response)
                return WebResponse(url, response.status, response.headers.copy(), body, is_cut)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            if refused:
                raise ToolError(
                    f"{_host(url)} is at {refused[0]}, which is not a public address; private ones are reached only"
                    " where they are allowed by name"
                ) from None
            raise ToolError(f"{_host(url)} cannot be reached: {_quote(str(error) or type(error).__name__)}") from None

    def _session(self, url: str, refused: list[str]) -> aiohttp.ClientSession:
        """Open a session for one request: no cookies, no proxy (it would resolve names itself), no login of .netrc."""
        connector = aiohttp.TCPConnector(
            socket_factory=self._guard(URL(url).host or "", refused),
            ssl=_certificates(),
            force_close=True,
            use_dns_cache=False,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )

    def _guard(self, host: str, refused: list[str]) -> Callable[[Any], socket.socket]:
        def make_socket(info: Any) -> socket.socket:
            family, kind, protocol, _, where = info
            address = str(where[0])
            if not may_reach(address, host, self.allow):
                refused.append(address)
                raise OSError(f"{address} is not a public address")
            return socket.socket(family, kind, protocol)

        return make_socket

    async def _body(self, response: aiohttp.ClientResponse) -> tuple[bytes, bool]:
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("", "identity"):  # a few bytes can unfold to gigabytes
            raise ToolError(f"{response.url.host} sent {coding[:40]!r} where plain text was asked for")
        body = bytearray()
        async for data in response.content.iter_chunked(65_536):
            body += data
            if len(body) > self.most_bytes:
                return bytes(body[: self.most_bytes]), True
        return bytes(body), False


def checked_url(url: str) -> str:
    """Return the address of a page that may be asked for.

    Raises:
        ToolError: it is too long, is not http or https, or holds a password.
    """
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or len(url) > LONGEST_URL or not url.isprintable() or " " in url:
        raise ToolError(f"an address looks like https://host/page, not like {_quote(url)!r}")
    if parts.username or parts.password:
        raise ToolError("an address must not hold a name and a password")
    return url


@cache
def _certificates() -> SSLContext:
    """Load the authorities' certificates once: that takes longer than all the rest of a request."""
    return create_default_context()


def _host(url: str) -> str:
    return str(urlsplit(url).hostname)[:100]


def _quote(text: str) -> str:
    """Return what a server said, in one short line, without any key."""
    line = " ".join(mask(text[: 10 * QUOTED]).split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"
