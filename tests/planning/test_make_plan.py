"""The planner's view of a tool: one line, with the defaults and maxima of its arguments."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field, JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.prompts import describe
from mindstream.tools.tool import tool


def test_tool_descriptions_contain_defaults_and_maxima() -> None:
    async def search(
        query: str, count: Annotated[int, Field(le=10)] = 3, share: Annotated[float | None, Field(le=0.5)] = None
    ) -> str:
        """Search."""
        return query

    assert describe(tool(search).spec) == "search[query=…, count?=3 (max 10), share?=… (max 0.5)]: Search."


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer", "default": 1, "maximum": 2**53 - 1}, "n?=1"),  # a limit that is never reached
        ({"anyOf": [{"maximum": 5}, {"type": "null"}]}, "n?=… (max 5)"),
        ({"anyOf": "?"}, "n"),
    ],
)
def test_an_invalid_tool_schema_is_described_as_far_as_possible(schema: JsonValue, shown: str) -> None:
    assert describe(ToolSpec("t", "Do.", {"properties": {"n": schema}})) == f"t[{shown}]: Do."
