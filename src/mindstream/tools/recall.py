"""A mind's own memory as a tool: what is tainted in it comes back as the words of strangers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.memory.store.record import Record, is_tainted
from mindstream.memory.stream import Stream
from mindstream.tools.call import ForeignText
from mindstream.tools.tool import FunctionTool, Words, tool

LONGEST = 1_000
Count = Annotated[int, Field(ge=1, le=20)]


def recall_tool(stream: Stream) -> FunctionTool:
    """Make the tool `recall`, over one stream; to look strengthens nothing."""

    async def recall(query: Words, count: Count = 5) -> str:
        """Look in memory; returns what fits best, each with its day and what it is."""
        found = await stream.recall(query, count, touch=False)
        if not found:
            raise ToolError("nothing is remembered")
        text = "\n".join(_line(each.record) for each in found)
        return ForeignText(text) if any(is_tainted(each.record) for each in found) else text

    return tool(recall)


def _line(record: Record) -> str:
    day = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d")
    by = f" by {record.by}" if record.by else ""
    mark = ", from outside" if is_tainted(record) else ""
    return f"{day} ({record.kind}{by}{mark}): {' '.join(record.text[:LONGEST].split())}"
