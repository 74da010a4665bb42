"""Wikipedia by its API: search, and how the best page begins."""

from __future__ import annotations

import re
from typing import Any

from mindstream.errors import ToolError
from mindstream.tools.tool import FunctionTool, ShortWords, tool
from mindstream.tools.traits import FROM_STRANGERS
from mindstream.tools.web.web import Web

EXTRACT, OTHER = 4_000, 200
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z]{2,12}){0,2}|simple")


def wikipedia_tool(usual: str, web: Web, url: str = "https://{language}.wikipedia.org/w/api.php") -> FunctionTool:
    """Make the tool `wikipedia`, over the encyclopedia in any of its languages; `{language}` in `url` is filled in."""

    async def wikipedia(query: ShortWords, language: str = "") -> str:
        """Look something up in Wikipedia (one thing, by its name); returns how the best page begins, and other titles.

        language: a code such as en, de or zh; empty for the usual one.
        """
        language = language or usual
        if not _LANGUAGE.fullmatch(language):
            raise ToolError(f"a language is written as en, de, zh or pt-br, not as {language[:20]!r}")
        answer = await web.ask(url.format(language=language), _parameters(query))
        answer.check()
        return _text(_pages(answer.json()), query)

    return tool(wikipedia, FROM_STRANGERS)


def _parameters(query: str) -> dict[str, str]:
    return {
        "action": "query",
        "format": "json",
        "formatversion": "2",
        "generator": "search",
        "gsrsearch": query,
        "gsrlimit": "4",
        "prop": "extracts|info",
        "inprop": "url",
        "exintro": "1",
        "explaintext": "1",
        "exlimit": "max",
        "redirects": "1",
    }


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
