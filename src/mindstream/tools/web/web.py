"""HTTP requests of tools: only to public or allowed addresses, redirects included, with limits of bytes and seconds."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

import mindstream
from mindstream.errors import ToolError
from mindstream.models.providers.address import mask, split_web_url
from mindstream.models.providers.wire import certificates
from mindstream.tools.web.transport import PublicTransport

MAX_REDIRECTS = 5
MAX_URL, MAX_QUOTED = 2_000, 200
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CHARSET = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|latin-?1|iso-8859-\d+|(windows-|cp)125\d|koi8-[ru]|gb2312|gbk|gb18030|big5"
    r"|shift[_-]jis|euc-(jp|kr)",
    re.IGNORECASE,
)
"""The encodings in which pages are decoded, by name. Python knows others, some of which are slow."""
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w-]{2,20})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A server's response; `is_cut`: only the beginning of the body was read."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool = False

    @property
    def content_type(self) -> str:
        """The declared media type, such as `text/html`; "" if there is none."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text; invalid bytes become U+FFFD."""
        named = re.search(r"charset=[\"']?([\w-]+)", self.headers.get("Content-Type", ""), re.IGNORECASE)
        meta = _META.search(self.body[:2_048])
        charset = named[1] if named else meta[1].decode() if meta else "utf-8"
        return self.body.decode(charset if CHARSET.fullmatch(charset) else "utf-8", "replace").lstrip("\ufeff")

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            ToolError: the body is not JSON, or was cut because it is too large.
        """
        if self.is_cut:
            raise ToolError(f"{_host(self.url)} sent more than {len(self.body):,} bytes")
        try:
            return json.loads(self.body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise ToolError(f"expected JSON from {_host(self.url)}, found {_quote(self.text)!r}") from None

    def check(self, key: str = "") -> None:
        """Raise ToolError if the status is an error; `key`: the name of the environment variable with the API key."""
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
    """Sends requests to servers.

    Args:
        allow: hosts or addresses to which requests are sent although they are private, such as
            `("127.0.0.1", "wiki.intranet")`.
        timeout_s: timeout in seconds of a request together with its redirects.
        most_bytes: maximum number of bytes of a response's body that are read.
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
        """Return a server's response to a GET, or to a POST of `data` as JSON; it can have any status but a redirect.

        Args:
            follow: whether to follow redirects, up to MAX_REDIRECTS requests in all. Do not use this for requests with
                a key in the headers.

        Raises:
            ToolError: the server cannot be reached, has no permitted address, does not answer in time, or redirects
                although `follow` is False or too often.
        """
        try:
            async with asyncio.timeout(self.timeout_s):
                for _ in range(MAX_REDIRECTS if follow else 1):
                    answer = await self._ask(checked_url(url), params, data, headers)
                    if answer.status not in REDIRECTS:
                        return answer
                    url, params = urljoin(url, answer.headers.get("Location", "")), None
        except TimeoutError:
            raise ToolError(f"{_host(url)} did not answer within {self.timeout_s:g} seconds") from None
        if follow:
            raise ToolError(f"{_host(url)} redirects more than {MAX_REDIRECTS} times")
        raise ToolError(f"{_host(answer.url)} redirects to {_quote(url)}, which is not followed")

    async def _ask(self, url: str, params: Mapping[str, str] | None, data: object, headers: Any) -> WebResponse:
        method = "GET" if data is None else "POST"
        sent = {"Accept-Encoding": "identity", "User-Agent": f"mindstream/{mindstream.__version__}", **(headers or {})}
        transport = PublicTransport(self.allow, certificates())
        try:
            async with (
                httpx2.AsyncClient(transport=transport, trust_env=False, timeout=None) as client,
                client.stream(method, url, params=params, json=data, headers=sent) as response,
            ):
                body, is_cut = await self._body(response)
                return WebResponse(url, response.status_code, response.headers, body, is_cut)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise ToolError(f"{_host(url)} cannot be reached: {_quote(str(error) or type(error).__name__)}") from None

    async def _body(self, response: httpx2.Response) -> tuple[bytes, bool]:
        coding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("", "identity"):  # a few bytes can unpack to gigabytes
            raise ToolError(f"{response.url.host} sent the content encoding {coding[:40]!r}, which was not requested")
        body = bytearray()
        async for data in response.aiter_raw():
            body += data
            if len(body) > self.most_bytes:
                return bytes(body[: self.most_bytes]), True
        return bytes(body), False


def checked_url(url: str) -> str:
    """Return a URL unchanged if it is valid.

    Raises:
        ToolError: the URL is too long, is not http or https, or contains a user name or a password.
    """
    parts = split_web_url(url)
    if parts is None or len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise ToolError(f"an address looks like https://host/page, not like {_quote(url)!r}")
    if parts.username or parts.password:
        raise ToolError("an address must not contain a user name or a password")
    return url


def _host(url: str) -> str:
    return str(urlsplit(url).hostname)[:100]


def _quote(text: str) -> str:
    """Return a server's text for an error message: in one line of at most MAX_QUOTED characters, without keys."""
    line = " ".join(mask(text[: 10 * MAX_QUOTED]).split())
    return line if len(line) <= MAX_QUOTED else line[: MAX_QUOTED - 1] + "…"
