"""Tools that read untrusted text declare it; a tool that sometimes does marks the result."""

from __future__ import annotations

from mindstream.models.model import Call
from mindstream.tools.call import ForeignText, call_tool
from mindstream.tools.tool import tool


async def test_a_result_can_be_foreign_though_its_tool_is_not() -> None:
    def look(where: str) -> str:
        """Look."""
        return ForeignText("theirs") if where == "outside" else "ours"

    tools = [tool(look)]
    assert (await call_tool(Call("look", '{"where": "outside"}'), tools)).foreign
    assert not (await call_tool(Call("look", '{"where": "inside"}'), tools)).foreign
