"""Check a call's arguments against its tool's JSON Schema, before anything is called."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call, ToolSpec
from mindstream.models.reply import check_depth, clean
from mindstream.models.schema import find_faults


def complaint(call: Call, tools: Sequence[ToolSpec]) -> str | None:
    """Say what is wrong with a call, in words for the model, or None."""
    tool = next((tool for tool in tools if tool.name == call.tool), None)
    if tool is None:
        return f"There is no tool {call.tool!r}. There are: {', '.join(tool.name for tool in tools)}."
    try:
        arguments = json.loads(call.arguments or "{}")
        check_depth(arguments)
    except (ValueError, RecursionError, ReplyInvalid) as error:
        why = "they are nested too deep" if isinstance(error, RecursionError) else str(error).rstrip(".")
        return f"The arguments of {call.tool!r} are not JSON that can be read: {why}."
    if not isinstance(arguments, dict):
        return f"The arguments of {call.tool!r} should be one JSON object."
    found = find_faults(clean(arguments), tool.parameters)
    return f"The arguments of {call.tool!r} do not fit: {'; '.join(found)}." if found else None
