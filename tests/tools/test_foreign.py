"""Tools that read what strangers wrote say so; a tool that only sometimes does says it with what it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.models.model import Call
from mindstream.tools.call import ForeignText, call_tool
from mindstream.tools.named import Means, named_tools
from mindstream.tools.tool import tool
from mindstream.tools.traits import traits_of


async def test_what_comes_from_the_web_or_from_documents_is_foreign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-0123456789")
    monkeypatch.setenv("WOLFRAM_APP_ID", "ABCDEF-0123456789")
    names = ["calculator", "web", "wikipedia", "wolfram", "read_page", f"documents:{tmp_path}"]
    async with named_tools(names, Means()) as tools:
        own = [each.spec.name for each in tools if not traits_of(each).foreign]
    assert own == ["calculator"]


async def test_a_result_can_be_foreign_though_its_tool_is_not() -> None:
    def look(where: str) -> str:
        """Look."""
        return ForeignText("theirs") if where == "outside" else "ours"

    tools = [tool(look)]
    assert (await call_tool(Call("look", '{"where": "outside"}'), tools)).foreign
    assert not (await call_tool(Call("look", '{"where": "inside"}'), tools)).foreign
