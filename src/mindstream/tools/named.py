"""The tools of mindstream by name.

This module makes two tools itself: `LLM` (the name in ReWOO's plans, Xu 2023), which asks a mind's model, and `recall`,
which searches a mind's memory.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from mindstream.errors import ModelError, SettingsError, ToolError
from mindstream.guidance import nearest
from mindstream.location import AnyData
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, is_tainted
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, ask
from mindstream.models.rules import Rules
from mindstream.tools.calculator import calculator
from mindstream.tools.call import UntrustedText
from mindstream.tools.documents import open_documents
from mindstream.tools.tool import FunctionTool, Tool, Traits, Words, checked_tools, tool
from mindstream.tools.web import Ddgs, Search, Tavily, Web, page_tool, search_tool, wikipedia_tool, wolfram_tool

Instruction = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=40_000)]
A_DAY_S = 86_400.0
"""Timeout of a call of the tool `LLM`, in seconds. It is long, because the model has its own, shorter timeout."""


class AskModel(Prompt[str]):
    """Carry out one instruction, and return its result as text."""

    role: ClassVar[str] = "worker"

    instruction: str


def model_tool(model: Model) -> FunctionTool:
    """Make the tool `LLM`, which asks a model."""

    async def LLM(instruction: Instruction) -> str:  # noqa: N802 (the name that planners know)
        """Let a language model do what needs no look-up: reason, compare, extract, sum up; give it all it needs."""
        try:
            return await ask(model, AskModel(instruction=instruction))
        except ModelError as error:
            raise ToolError(f"the model did not answer: {error}") from None

    return tool(LLM, Traits(timeout_s=A_DAY_S, concludes=True))


MAX_TEXT = 1_000
"""Maximum number of characters of a record that are shown."""
Count = Annotated[int, Field(ge=1, le=20)]


def recall_tool(stream: Memory) -> FunctionTool:
    """Make the tool `recall`, which searches one memory.

    A search does not strengthen the records that it finds. A result that contains a tainted record is untrusted.
    """

    async def recall(query: Words, count: Count = 5) -> str:
        """Look in memory; returns what fits best, each with its day and what it is."""
        found = await stream.recall(query, count, touch=False)
        if not found:
            raise ToolError("recall found no memory for this query")
        text = "\n".join(_line(each.record) for each in found)
        return UntrustedText(text) if any(is_tainted(each.record) for each in found) else text

    return tool(recall)


def _line(record: Record) -> str:
    day = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d")
    by = f" by {record.by}" if record.by else ""
    mark = ", from outside" if is_tainted(record) else ""
    return f"{day} ({record.kind}{by}{mark}): {' '.join(record.text[:MAX_TEXT].split())}"


NAMES = ("calculator", "web", "wikipedia", "wolfram", "read_page", "documents:DIR", "llm", "recall")
"""The names of the tools; `web` uses Tavily if its key is set, else ddgs."""
TAVILY, WOLFRAM = "TAVILY_API_KEY", "WOLFRAM_APP_ID"


@dataclass(frozen=True)
class Means:
    """The resources that the tools need.

    Attributes:
        model: the model of `llm`.
        memory: the memory that `recall` searches. Its name is recorded as a reader of opened documents.
        data: the place where passages of documents are stored; None: a temporary folder, until the tools are closed.
        web: reads pages; `Web(allow=…)` permits private hosts. language: of Wikipedia.
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
    """Open tools by their names (see NAMES), such as `documents:notes` for the folder `notes`.

    Raises:
        SettingsError: a name is unknown, or a package, a key, a model or a memory is missing.
        InputError: a tool is named twice.
    """
    async with AsyncExitStack() as opened:
        found: list[Tool] = []
        for name in names:
            found += await _tools(name.strip(), means, opened)
        yield checked_tools(found)


async def _tools(name: str, means: Means, opened: AsyncExitStack) -> tuple[Tool, ...]:
    kind, colon, folder = name.partition(":")
    if kind == "documents" and colon:
        try:
            reader = means.memory.name if means.memory else ""
            kept = open_documents(folder, means.data, embed=means.embed, reader=reader)
            documents = await opened.enter_async_context(kept)
        except ToolError as error:
            raise SettingsError(f"documents: {error}") from None
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
    near = nearest(name.partition(":")[0].lower(), [each.partition(":")[0] for each in NAMES])
    whole = next((each for each in NAMES if near and each.startswith(near)), "")
    advice = f"did you mean {whole!r}?" if whole else f"the tools are {', '.join(NAMES)}"
    return f"there is no tool {name[:80]!r}; {advice}"
