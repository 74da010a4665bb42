"""Search of the web: by ddgs (no key), or by Tavily (a key)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.models.providers.secrets import mask, remember
from mindstream.tools.threads import run_in_thread
from mindstream.tools.tool import FunctionTool, ShortWords, tool
from mindstream.tools.traits import Traits
from mindstream.tools.web.web import Web, checked_url

TITLE, SNIPPET = 200, 600
Count = Annotated[int, Field(ge=1, le=10)]


@dataclass(frozen=True, slots=True)
class Result:
    """What was found: a page, and what stands in it."""

    title: str
    link: str
    snippet: str


class Search(Protocol):
    """Whoever finds pages."""

    async def search(self, query: str, count: int) -> list[Result]:
        """Return the best results, best first.

        Raises:
            ToolError: it failed.
        """


@dataclass(frozen=True)
class Tavily:
    """Tavily's search, by key: https://docs.tavily.com."""

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
    """Several search engines by the package ddgs, without a key; it asks them itself, and they may refuse."""

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

    return tool(web_search, Traits(foreign=True, finds=True))


def _results(found: Any, link: str, snippet: str) -> list[Result]:
    """Read results, each bounded and on a line; what is none, or leads nowhere, is left out."""
    if not isinstance(found, list):
        raise ToolError("the search answered with no list of results")
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
