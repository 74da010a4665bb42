"""The tools of mindstream by name."""

from __future__ import annotations

import difflib
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

from mindstream.errors import SettingsError, ToolError
from mindstream.location import AnyData
from mindstream.memory.memory import Memory
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.tools.calculator import calculator
from mindstream.tools.documents import open_documents
from mindstream.tools.own_tools import model_tool, recall_tool
from mindstream.tools.tool import Tool, checked_tools, tool
from mindstream.tools.web.search import Ddgs, Search, Tavily, page_tool, search_tool, wikipedia_tool, wolfram_tool
from mindstream.tools.web.web import Web

NAMES = ("calculator", "web", "wikipedia", "wolfram", "read_page", "documents:DIR", "llm", "recall")
"""The names of the tools; `web` uses Tavily if its key is set, else ddgs."""
TAVILY, WOLFRAM = "TAVILY_API_KEY", "WOLFRAM_APP_ID"


@dataclass(frozen=True)
class Means:
    """Resources of the tools.

    Attributes:
        model: the model of `llm`.
        memory: the memory that `recall` searches; documents are stored for its owner.
        data: the place where passages of documents are stored; None: a temporary folder, until the tools are closed.
        trusts_documents: whether the user vouches for the documents, so that they are no third-party content.
    """

    model: Model | None = None
    memory: Memory | None = None
    data: AnyData | None = None
    web: Web = field(default_factory=Web)
    language: str = "en"
    embed: str = "wordllama"
    trusts_documents: bool = False


@asynccontextmanager
async def named_tools(names: Iterable[str], means: Means = Means()) -> AsyncIterator[tuple[Tool, ...]]:
    """Open tools by their names, `documents:DIR` for a folder.

    Raises:
        SettingsError: a name is unknown, or a package, a key, a model or a memory is missing.
        InputError: a tool is named twice.
    """
    async with AsyncExitStack() as opened:
        found: list[Tool] = []
        for name in names:
            found += await _tools(name.strip(), means or Means(), opened)
        yield checked_tools(found)


async def _tools(name: str, means: Means, opened: AsyncExitStack) -> tuple[Tool, ...]:
    kind, colon, folder = name.partition(":")
    if kind == "documents" and colon:
        try:
            reader = means.memory.name if means.memory else ""
            kept = open_documents(folder, means.data, embed=means.embed, reader=reader)
            documents = await opened.enter_async_context(kept)
        except ToolError as error:
            raise SettingsError(f"{name!r}: {error}") from None
        return documents.tools(trusted=means.trusts_documents)
    match name:
        case "calculator":
            return (tool(calculator),)
        case "web":
            return (search_tool(_search(means)),)
        case "wikipedia":
            return (wikipedia_tool(means.language, means.web),)
        case "wolfram":
            if not (key := os.environ.get(WOLFRAM, "").strip()):
                raise SettingsError(f"{name!r} needs a key: set {WOLFRAM}")
            return (wolfram_tool(key, means.web),)
        case "read_page":
            return (page_tool(means.web),)
        case "llm":
            if means.model is None or means.model.name == Rules.name:
                raise SettingsError("'llm' needs a language model, not the rules: name one with --model")
            return (model_tool(means.model),)
        case "recall":
            if means.memory is None:
                raise SettingsError("'recall' needs the memory of a mind, but none is open here")
            return (recall_tool(means.memory),)
    raise SettingsError(_unknown(name))


def _search(means: Means) -> Search:
    if key := os.environ.get(TAVILY, "").strip():
        return Tavily(key, web=means.web)
    if find_spec("ddgs") is None:
        raise SettingsError(f"'web' needs a package: pip install 'mindstream[web]' (or set {TAVILY})")
    return Ddgs()


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.partition(":")[0].lower(), [each.partition(":")[0] for each in NAMES], 1)
    whole = next((each for each in NAMES if near and each.startswith(near[0])), "")
    advice = f"did you mean {whole!r}?" if whole else f"the tools are {', '.join(NAMES)}"
    return f"there is no tool {name[:80]!r}; {advice}"
