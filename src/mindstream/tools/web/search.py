"""Tools for the web: search (with ddgs, or with Tavily and its key), Wikipedia, Wolfram Alpha, pages."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import parse_qsl

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.models.providers.address import mask, remember
from mindstream.tools.child import run_child
from mindstream.tools.tool import UNTRUSTED, FunctionTool, ShortWords, Traits, run_in_thread, tool
from mindstream.tools.web.web import Web, WebResponse, checked_url

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
    line = " ".join(text[: 2 * longest].split()) if isinstance(text, str) else ""
    return line if len(line) <= longest else line[: longest - 1] + "…"


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
PARSER = Path(__file__).parents[1] / "file_text.py"
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
            raise ToolError(f"that page has only {len(text):,} characters: choose a lower from_character")
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
