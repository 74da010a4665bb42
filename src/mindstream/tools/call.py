"""One call of a tool: found by name, within a time limit; every failure becomes an observation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mindstream import redaction
from mindstream.errors import ToolError
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue
from mindstream.models.model import Call
from mindstream.tools.tool import Tool, traits_of
from mindstream.tracing import fail, genai, span, tell

MAX_RESULT = 8_000
"""Maximum number of characters of a tool's result; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a call, or why it failed; `untrusted`: it is third-party content."""

    text: str
    failed: bool = False
    untrusted: bool = False


class UntrustedText(str):
    """A result that is third-party content, of a tool whose results are not always so."""

    __slots__ = ()


async def call_tool(call: Call, tools: Sequence[Tool], timeout_s: float = 30.0) -> Observation:
    """Call the tool that a call names; a failure of the tool is returned, not raised."""
    tool = next((tool for tool in tools if tool.spec.name == call.tool), None)
    if tool is None:
        names = ", ".join(tool.spec.name for tool in tools) or "none"
        return Observation(f"there is no tool {call.tool[:80]!r}; there are: {names}", failed=True)
    with span(genai.EXECUTE_TOOL, call.tool, {genai.TOOL: call.tool, genai.ARGUMENTS: call.arguments}) as traced:
        observation = await _observe(tool, call, timeout_s)
        if traits_of(tool).untrusted:
            observation = replace(observation, untrusted=True)
        tell(traced, {genai.RESULT: observation.text})
        if observation.failed:
            fail(traced, ToolError.__name__)
        return observation


async def _observe(tool: Tool, call: Call, timeout_s: float) -> Observation:
    try:
        result = await ForeignTask(lambda: tool(call)).result(timeout_s)
    except Overdue:
        return Observation(f"{call.tool} did not answer within {timeout_s:g} seconds", failed=True)
    except ForeignFailure as error:
        words = str(error) if isinstance(error.cause, ToolError) else f"{call.tool} failed: {error}"
        return Observation(words, failed=True)
    if not isinstance(result, str):
        return Observation(f"{call.tool} failed: it returned {type(result).__name__} instead of text", failed=True)
    return observe_text(result)


def observe_text(result: str) -> Observation:
    """Return the observation of a tool's text: cut, redacted, marked as untrusted if it is `UntrustedText`."""
    return Observation(redaction.clean(cut(result)).text, untrusted=isinstance(result, UntrustedText))


def cut(text: str) -> str:
    """Return at most MAX_RESULT characters of a result, without characters that cannot be encoded."""
    kept = text[:MAX_RESULT].encode("utf-8", "replace").decode()
    return kept if len(text) <= MAX_RESULT else f"{kept}\n… ({len(text) - MAX_RESULT} characters cut)"


def __getattr__(name: str) -> object:
    if name == "ForeignText":
        warnings.warn("ForeignText is called UntrustedText now", DeprecationWarning, stacklevel=2)
        return UntrustedText
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
