"""LangChain tools as mindstream tools.

The stand-ins have the shape that `BaseTool` of langchain-core 1.7 has: name, description, args_schema, ainvoke, invoke.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import pytest
from mindstream_evals.conformance import tool as contract
from mindstream_evals.conformance.samples import Promise
from pydantic import BaseModel, Field

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.tools.langchain import langchain_tool
from mindstream.tools.tool import Traits, traits_of


class SearchArguments(BaseModel):
    """What a search takes."""

    query: str = Field(description="what to look for")
    limit: int = 3


class Search:
    """A tool in the style of langchain-core: arguments by a Pydantic class, async and sync."""

    name, description, args_schema = "web search", "Search the web.", SearchArguments

    async def ainvoke(self, given: dict[str, Any]) -> Any:
        arguments = SearchArguments.model_validate(given)
        if arguments.query == "fail":
            raise ValueError("the web is closed")
        return {"found": [arguments.query] * arguments.limit}

    def invoke(self, given: dict[str, Any]) -> Any:
        raise AssertionError("it is async")


class Where:
    """A sync tool with a JSON Schema, whose result is a message."""

    name, description = "where", "Tell the thread."
    args_schema: ClassVar[dict[str, Any]] = {"properties": {"depth": {"type": "integer"}}, "required": ["depth"]}

    def invoke(self, given: dict[str, Any]) -> Any:
        class Message:
            content = f"{given['depth']} {threading.current_thread() is threading.main_thread()}"

        return Message()


class FromDict(Search):
    """A tool whose schema is JSON Schema already, as MCP adapters make them."""

    args_schema = SearchArguments.model_json_schema()  # type: ignore[assignment]


SEARCHES = [Search, FromDict]


@asynccontextmanager
async def trial(build: Any) -> AsyncIterator[contract.Trial]:
    yield contract.Trial(langchain_tool(build()), '{"query": "tea"}', '{"query": 7}')


@pytest.mark.parametrize("promise", contract.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("build", SEARCHES, ids=lambda each: each.__name__)
async def test_a_langchain_tool_satisfies_the_tool_contract(build: Any, promise: Promise[contract.Trial]) -> None:
    await promise(partial(trial, build))


@pytest.mark.parametrize("build", SEARCHES, ids=lambda each: each.__name__)
async def test_results_of_a_langchain_tool_are_text(build: Any) -> None:
    search = langchain_tool(build())
    given = await search(Call("web_search", '{"query": "tea", "limit": 2}'))
    assert given.split() == ["{", '"found":', "[", '"tea",', '"tea"', "]", "}"]
    assert search.spec.name in ("web_search", "search") and "query" in search.spec.parameters["properties"]


async def test_errors_of_a_langchain_tool_become_tool_errors() -> None:
    with pytest.raises(ToolError, match="web_search: ValueError: the web is closed"):
        await langchain_tool(Search())(Call("web_search", '{"query": "fail"}'))


async def test_a_sync_tool_runs_outside_the_loop() -> None:
    where = langchain_tool(Where())
    assert await where(Call("where", '{"depth": 2}')) == "2 False"
    with pytest.raises(ToolError, match="depth is missing"):
        await where(Call("where", "{}"))


def test_of_what_nothing_is_known_the_worst_is_assumed() -> None:
    assert traits_of(langchain_tool(Search())) == Traits(changes=True, untrusted=True)
    assert traits_of(langchain_tool(Search(), Traits(untrusted=True))) == Traits(untrusted=True)
