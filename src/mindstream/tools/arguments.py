"""What a call brings, held to what a tool takes, where the tool itself is somebody else's."""

from __future__ import annotations

from typing import Any

from mindstream.errors import ReplyInvalid, ToolError
from mindstream.models.model import Call, ToolSpec
from mindstream.models.prompt import first_json
from mindstream.models.schema import find_faults


def read_arguments(call: Call, spec: ToolSpec) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        ToolError: they are no JSON object, or do not fit the tool's schema.
    """
    try:
        given: dict[str, Any] = first_json(call.arguments, dict) if call.arguments.strip() else {}
    except ReplyInvalid as error:
        raise ToolError(f"{spec.name}: {error}") from None
    if faults := find_faults(given, spec.parameters):
        raise ToolError(f"{spec.name}: the arguments do not fit: {'; '.join(faults)}"[:2_000])
    return given
