"""Tools for the web: search (with ddgs, or with Tavily and its key), Wikipedia, Wolfram Alpha, pages.

Their HTTP requests go only to public or allowed addresses, redirects included, with limits of bytes and seconds.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import ssl
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from pydantic import Field

import mindstream
from mindstream.errors import ToolError, clipped
from mindstream.models.providers.address import mask, remember, split_web_url
from mindstream.models.providers.failures import retry_after_s
from mindstream.models.providers.wire import certificates
from mindstream.text.words import count_of
from mindstream.tools.addresses import may_reach
from mindstream.tools.child import run_child
from mindstream.tools.tool import UNTRUSTED, FunctionTool, ShortWords, Traits, run_in_thread, tool

__path__: list[str] = []  # so that moved.py can redirect imports of former submodules


class PublicTransport(httpx2.AsyncHTTPTransport):
    """Resolves a host name once, and connects only to permitted addresses among those found.

    The name is not resolved a second time, because it could then resolve to other addresses.

    Args:
        allow: private hosts or addresses that are permitted, too.
    """

    def __init__(self, allow: Collection[str], verify: ssl.SSLContext | bool = True) -> None:
        super().__init__(verify=verify, trust_env=False)  # no proxy: it would resolve names itself, unchecked
        self._allow = allow

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first permitted address of its host that accepts a connection.

        Raises:
            OSError: the host is unknown, or none of its addresses is permitted (`may_reach`).
            httpx2.ConnectError, httpx2.ConnectTimeout: none of the permitted addresses accepts a connection.
        """
        url = request.url
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
        there = dict.fromkeys(str(entry[4][0]) for entry in found)
        addresses = [each for each in there if may_reach(each, url.host, self._allow)]
        if not addresses:
            raise OSError(
                f"{url.host} has no public address ({', '.join(there)}); add the host to `allow` to permit it"
            )
        for address in addresses:
            asked = httpx2.Request(
                request.method,
                url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": url.host},
            )
            try:
                return await super().handle_async_request(asked)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise AssertionError("one of the addresses has answered, or the error of the last one was raised")


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
            raise ToolError(f"{_host(self.url)} sent more than {len(self.body):,} bytes, the maximum")
        try:
            return json.loads(self.body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise ToolError(f"expected JSON from {_host(self.url)}, found {_quote(self.text)!r}") from None

    def check(self, key: str = "") -> None:
        """Raise ToolError if the status is an error; `key`: the name of the environment variable with the API key."""
        if self.status < 400:
            return
        who = _host(self.url)
        if self.status == 429:
            wait_s = math.ceil(retry_after_s(self.headers) or 0)
            wait = f": wait {count_of(wait_s, 'second')}" if wait_s else ""
            raise ToolError(f"{who} was asked too often (HTTP 429){wait}")
        if self.status in (401, 403) and key:
            raise ToolError(f"{who} refuses the key in {key} (HTTP {self.status})")
        raise ToolError(f"{who} failed (HTTP {self.status}): {_quote(self.text) or 'it does not say why'}")


@dataclass(frozen=True)
class Web:
    """Sends requests to servers.

    Args:
        allow: private hosts or addresses to which requests may be sent, such as `("127.0.0.1", "wiki.intranet")`.
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
        """Return a server's response to a GET, or to a POST of `data` as JSON. An error status is returned, not raised.

        Args:
            follow: whether to follow redirects, up to MAX_REDIRECTS requests in all. Do not follow redirects in
                requests with a key in the headers.

        Raises:
            ToolError: the server cannot be reached, has no permitted address, or does not answer in time; the server
                redirects, and `follow` is False; or it redirects too often.
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
            raise ToolError(f"{_host(url)} redirects too often: {MAX_REDIRECTS} times or more")
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
            raise ToolError(
                f"the request to {_host(url)} failed: {_quote(str(error) or type(error).__name__)}"
            ) from None

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
        ToolError: the URL is too long, is not a valid http or https URL, or contains a user name, a password, a space
            or an unprintable character.
    """
    parts = split_web_url(url)
    if parts is None or len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise ToolError(
            f"an address looks like https://host/page, with at most {MAX_URL:,} characters, not like {_quote(url)!r}"
        )
    if parts.username or parts.password:
        raise ToolError("an address must not contain a user name or a password")
    return url


def _host(url: str) -> str:
    return str(urlsplit(url).hostname)[:100]


def _quote(text: str) -> str:
    """Return a server's text for an error message: one line of at most MAX_QUOTED characters, with API keys masked."""
    return clipped(" ".join(mask(text[: 10 * MAX_QUOTED]).split()), MAX_QUOTED)


TITLE, SNIPPET = 200, 600
Count = Annotated[int, Field(ge=1, le=10)]


@dataclass(frozen=True, slots=True)
class Result:
    """A page that a search found; `snippet` is an excerpt of its text."""

    title: str
    link: str
    snippet: str


class Search(Protocol):
    """A search engine."""

    async def search(self, query: str, count: int) -> list[Result]:
        """Return the best results, best first.

        Raises:
            ToolError: the search failed.
        """


@dataclass(frozen=True)
class Tavily:
    """Tavily's search, which needs a key: https://docs.tavily.com."""

    key: str = field(repr=False)
    url: str = "https://api.tavily.com/search"
    web: Web = field(default_factory=Web)

    def __post_init__(self) -> None:
        remember(self.key)

    async def search(self, query: str, count: int) -> list[Result]:
        asked = {"query": query, "max_results": count, "search_depth": "basic"}
        answer = await self.web.ask(self.url, data=asked, headers={"Authorization": f"Bearer {self.key}"})
        answer.check("TAVILY_API_KEY")
        found = answer.json()
        return _results(found.get("results") if isinstance(found, dict) else None, "url", "content")


class Ddgs:
    """Search by the package ddgs, which asks several search engines without a key; these may refuse requests."""

    def __init__(self, engines: str = "auto") -> None:
        self.engines = engines

    async def search(self, query: str, count: int) -> list[Result]:
        return await run_in_thread(lambda: self._search(query, count))

    def _search(self, query: str, count: int) -> list[Result]:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException

        try:
            found = DDGS(timeout=10).text(query, max_results=count, backend=self.engines)
        except DDGSException as error:
            said = " ".join(mask(str(error)).split())
            if "no results" in said.lower():
                return []
            raise ToolError(f"the search failed: {said[:200]}") from None
        return _results(found, "href", "body")


def search_tool(search: Search) -> FunctionTool:
    """Make the tool `web_search`."""

    async def web_search(query: ShortWords, count: Count = 5) -> str:
        """Search the web; returns titles, links and snippets of pages, best first."""
        found = (await search.search(" ".join(query.split()), count))[:count]
        lines = [f"{n}. {each.title}\n{each.link}\n{each.snippet}" for n, each in enumerate(found, 1)]
        return "\n\n".join(lines) or "nothing was found"

    return tool(web_search, Traits(untrusted=True, finds=True))


def _results(found: Any, link: str, snippet: str) -> list[Result]:
    """Return the results with title and snippet cut to a maximum length; results without a valid address are left
    out."""
    if not isinstance(found, list):
        raise ToolError("the search did not return a list of results")
    results = []
    for each in found:
        with suppress(ToolError, AttributeError):
            address = checked_url(str(each.get(link) or ""))
            title = _line(each.get("title"), TITLE) or address
            results.append(Result(title, address, _line(each.get(snippet), SNIPPET)))
    return results


def _line(text: object, longest: int) -> str:
    return clipped(" ".join(text[: 2 * longest].split()), longest) if isinstance(text, str) else ""


EXTRACT, OTHER = 4_000, 200
WIKIPEDIA = dict(
    parse_qsl(
        "action=query&format=json&formatversion=2&generator=search&gsrlimit=4&prop=extracts|info&inprop=url&exintro=1"
        "&explaintext=1&exlimit=max&redirects=1"
    )
)
"""The parameters of a search in Wikipedia's API, except for the query."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){0,2}|simple")


def wikipedia_tool(usual: str, web: Web, url: str = "https://{language}.wikipedia.org/w/api.php") -> FunctionTool:
    """Make the tool `wikipedia`; `usual`: the default language code, which replaces `{language}` in `url`."""

    async def wikipedia(query: ShortWords, language: str = "") -> str:
        """Look something up in Wikipedia (one thing, by its name); returns how the best page begins, and other titles.

        language: a code such as en, de or zh; empty for the usual one.
        """
        language = language or usual
        if not _LANGUAGE.fullmatch(language):
            raise ToolError(f"a language is written as en, de, zh or pt-br, not as {language[:20]!r}")
        answer = await web.ask(url.format(language=language), {**WIKIPEDIA, "gsrsearch": query})
        answer.check()
        return _text(_pages(answer.json()), query)

    return tool(wikipedia, UNTRUSTED)


def _pages(found: Any) -> list[dict[str, Any]]:
    """Return the pages of an answer, best first."""
    if not isinstance(found, dict):
        raise ToolError("Wikipedia's answer has an unexpected form")
    if isinstance(error := found.get("error"), dict):
        raise ToolError(f"Wikipedia refuses: {str(error.get('info') or error.get('code'))[:200]}")
    query = found.get("query")
    pages = query.get("pages") if isinstance(query, dict) else None
    pages = [each for each in pages if isinstance(each, dict)] if isinstance(pages, list) else []
    return sorted(pages, key=lambda page: index if isinstance(index := page.get("index"), int) else 99)


def _text(pages: list[dict[str, Any]], query: str) -> str:
    if not pages:
        return f"there is no page on {query!r}"
    first, others = pages[0], pages[1:]
    parts = [f"{_words(first, 'title')}\n{_words(first, 'fullurl')}\n{_words(first, 'extract')[:EXTRACT]}".strip()]
    parts += [f"See also: {_words(page, 'title')}. {_words(page, 'extract')[:OTHER]}".strip() for page in others]
    return "\n\n".join(parts)


def _words(page: dict[str, Any], field: str) -> str:
    found = page.get(field)
    return found.strip() if isinstance(found, str) else ""


MAX_ANSWER, NOT_UNDERSTOOD = 4_000, 501


def wolfram_tool(key: str, web: Web, url: str = "https://www.wolframalpha.com/api/v1/llm-api") -> FunctionTool:
    """Make the tool `wolfram`: https://products.wolframalpha.com/llm-api/documentation."""
    remember(key)

    async def wolfram(query: ShortWords) -> str:
        """Ask Wolfram Alpha in a few English words: mathematics, units, dates, science, countries.

        Returns its results as text.
        """
        parameters = {"input": query, "maxchars": str(MAX_ANSWER)}
        answer = await web.ask(url, parameters, headers={"Authorization": f"Bearer {key}"})
        if answer.status == NOT_UNDERSTOOD:
            raise ToolError(f"Wolfram Alpha does not understand {query!r}: ask in fewer, plainer words")
        answer.check("WOLFRAM_APP_ID")
        return mask(answer.text[:MAX_ANSWER]).strip() or "Wolfram Alpha answered with nothing"

    return tool(wolfram, UNTRUSTED)


PART = 6_000
"""Maximum number of characters of a page that one call returns."""
PARSER = Path(__file__).with_name("file_text.py")
SECONDS, MEGABYTES = 5, 1_000
Place = Annotated[int, Field(ge=0, le=10_000_000)]


def page_tool(web: Web) -> FunctionTool:
    """Make the tool `read_page`."""

    async def read_page(url: str, from_character: Place = 0) -> str:
        """Read the text of a page of the web (http or https); what is long comes in parts, by `from_character`."""
        answer = await web.ask(url, follow=True, headers={"Accept": "text/html, text/*, application/json"})
        answer.check()
        text = await readable(answer)
        if from_character and from_character >= len(text):
            raise ToolError(f"that page has only {count_of(len(text), 'character')}: choose a lower from_character")
        part = text[from_character : from_character + PART]
        end = from_character + len(part)
        if end < len(text):
            return f"{part}\n… (characters {from_character} to {end} of {len(text)}; the next part is from {end})"
        return f"{part}\n… (the page was too large, and its end is cut off)" if answer.is_cut else part

    return tool(read_page, UNTRUSTED)


async def readable(answer: WebResponse) -> str:
    """Return the text of a page; for HTML, its title and main content with one paragraph per line.

    Raises:
        ToolError: the page is not text, or is empty.
    """
    kind = answer.content_type
    if kind and not (kind.startswith("text/") or kind.endswith(("json", "xml"))):
        raise ToolError(f"that page is {kind[:60]}, and only text is read")
    if b"\0" in answer.body[:1_000] and "utf-16" not in answer.headers.get("Content-Type", "").lower():
        raise ToolError("that page is not text")
    text = answer.text
    if "html" in kind or (not kind and "<html" in text[:1_000].lower()):
        text = await run_child(PARSER, "read_html", text, seconds=SECONDS, megabytes=MEGABYTES)
    if not text.strip():
        raise ToolError("there is no text on that page; it may be made by scripts, which are not run")
    return text
