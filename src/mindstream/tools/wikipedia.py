"""Wikipedia by its API: search, and how the best page begins."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from mindstream.errors import ToolError
from mindstream.tools.tool import FunctionTool, tool
from mindstream.tools.traits import FROM_STRANGERS
from mindstream.tools.web import Web

LONGEST_QUERY, EXTRACT, OTHER = 300, 4_000, 200
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){0,2}|simple")


@dataclass(frozen=True)
class Wikipedia:
    """The encyclopedia in any of its languages; `{language}` in the address is filled in."""

    language: str = "en"
    url: str = "https://{language}.wikipedia.org/w/api.php"
    web: Web = field(default_factory=Web)

    async def look_up(self, query: str, language: str = "") -> str:
        """Return the beginning of the page that fits best, and what else was found.

        Raises:
            ToolError: there is no such language, or it failed.
        """
        language = language or self.language
        if not _LANGUAGE.fullmatch(language):
            raise ToolError(f"a language is written as en, de, zh or pt-br, not as {language[:20]!r}")
        if not query.strip() or len(query) > LONGEST_QUERY:
            raise ToolError(f"a query has 1 to {LONGEST_QUERY} characters")
        answer = await self.web.ask(self.url.format(language=language), _parameters(query))
        answer.check()
        return _text(_pages(answer.json()), query)


def wikipedia_tool(source: Wikipedia) -> FunctionTool:
    """Make the tool `wikipedia`."""

    async def wikipedia(query: str, language: str = "") -> str:
        """Look something up in Wikipedia (one thing, by its name); returns how the best page begins, and other titles.

        language: a code such as en, de or zh; empty for the usual one.
        """
        return await source.look_up(query, language)

    return tool(wikipedia, FROM_STRANGERS)


def _parameters(query: str) -> dict[str, str]:
    return {
        "action": "query", "format": "json", "formatversion": "2", "generator": "search", "gsrsearch": query,
        "gsrlimit": "4", "prop": "extracts|info", "inprop": "url", "exintro": "1", "explaintext": "1", "exlimit": "max",
        "redirects": "1",
    }  # fmt: skip


def _pages(found: Any) -> list[dict[str, Any]]:
    """Return the pages of an answer, best first."""
    if not isinstance(found, dict):
        raise ToolError("Wikipedia answered with something else than its API does")
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
