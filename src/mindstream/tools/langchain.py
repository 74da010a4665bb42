"""LangChain's tools as mindstream tools, recognised by their attributes: LangChain is not imported."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mindstream.errors import ToolError
from mindstream.foreign_code import describe
from mindstream.models.model import Call, JsonSchema, ToolSpec
from mindstream.tools.tool import Traits, accepted_names, as_text, read_arguments, run_in_thread

UNKNOWN = Traits(changes=True, untrusted=True)
"""The traits of an unknown tool: it may change something, and its results may be third-party content."""


@dataclass(frozen=True)
class LangChainTool:
    """A LangChain tool that is wrapped so that it implements the protocol `Tool`."""

    spec: ToolSpec
    traits: Traits
    _tool: Any
    _originals: Mapping[str, str]

    async def __call__(self, call: Call) -> str:
        given = read_arguments(call, self.spec, self._originals)
        try:
            invoke: Callable[[dict[str, Any]], Awaitable[Any]] | None = getattr(self._tool, "ainvoke", None)
            result = await (invoke(given) if invoke else run_in_thread(lambda: self._tool.invoke(given)))
        except Exception as error:  # noqa: BLE001 (any error of a third-party tool is reported to its caller)
            raise ToolError(f"{self.spec.name}: {describe(error)}") from None
        result = getattr(result, "content", result)  # a message of LangChain's
        return as_text(result)


def langchain_tool(tool: Any, traits: Traits = UNKNOWN) -> LangChainTool:
    """Make a mindstream tool from a LangChain tool. `traits`: the properties of the tool, if they are known.

    Raises:
        TypeError: the tool has no name, no description, no schema, or neither `ainvoke` nor `invoke`.
    """
    name, description = getattr(tool, "name", None), getattr(tool, "description", None)
    if not (isinstance(name, str) and name and isinstance(description, str) and description.strip()):
        raise TypeError(f"a LangChain tool needs a name and a description; {type(tool).__name__} does not have both")
    if not (hasattr(tool, "ainvoke") or hasattr(tool, "invoke")):
        raise TypeError(f"the tool {name!r} has neither ainvoke nor invoke")
    schema, originals = accepted_names({"type": "object", **_schema(tool, name)})
    spec = ToolSpec(re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64], description, schema)
    return LangChainTool(spec, traits, tool, originals)


def _schema(tool: Any, name: str) -> JsonSchema:
    """Return the schema of the tool's arguments: `tool_call_schema`, or else `args_schema`.

    `tool_call_schema` lacks the arguments that LangChain itself adds to a call (the tool marks them).
    """
    for schema in (getattr(tool, each, {}) for each in ("tool_call_schema", "args_schema")):
        if isinstance(schema, dict) and schema:
            return schema
        if hasattr(schema, "model_json_schema"):
            written: JsonSchema = schema.model_json_schema()
            return written
    raise TypeError(f"the tool {name!r} has no schema of its arguments")
