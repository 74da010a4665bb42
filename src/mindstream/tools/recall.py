"""A mind's own memory as a tool: a result with tainted records is third-party content."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, is_tainted
from mindstream.tools.call import UntrustedText
from mindstream.tools.tool import FunctionTool, Words, tool

MAX_TEXT = 1_000
"""Maximum number of characters of a record that are shown."""
Count = Annotated[int, Field(ge=1, le=20)]


def recall_tool(stream: Memory) -> FunctionTool:
    """Make the tool `recall` over one memory; its searches strengthen no record."""

    async def recall(query: Words, count: Count = 5) -> str:
        """Look in memory; returns what fits best, each with its day and what it is."""
        found = await stream.recall(query, count, touch=False)
        if not found:
            raise ToolError("nothing is remembered")
        text = "\n".join(_line(each.record) for each in found)
        return UntrustedText(text) if any(is_tainted(each.record) for each in found) else text

    return tool(recall)


def _line(record: Record) -> str:
    day = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d")
    by = f" by {record.by}" if record.by else ""
    mark = ", from outside" if is_tainted(record) else ""
    return f"{day} ({record.kind}{by}{mark}): {' '.join(record.text[:MAX_TEXT].split())}"
