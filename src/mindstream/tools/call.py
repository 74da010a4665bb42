"""One call of a tool, whoever wants it: found by its name, under a time limit; whatever it does wrong is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mindstream import redaction
from mindstream.errors import ToolError
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue
from mindstream.models.model import Call
from mindstream.tools.tool import Tool, traits_of
from mindstream.tracing import fail, genai, span, tell

LONGEST = 8_000
"""How much of a tool's result is taken, in characters."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What came of a call: what the tool returned, or why it failed; `foreign`: strangers wrote it."""

    text: str
    failed: bool = False
    foreign: bool = False


class ForeignText(str):
    """What a tool returns where it is not always, but this time, the words of strangers."""

    __slots__ = ()


async def call_tool(call: Call, tools: Sequence[Tool], timeout_s: float = 30.0) -> Observation:
    """Call the tool that a call names; never raises for what the tool does."""
    tool = next((tool for tool in tools if tool.spec.name == call.tool), None)
    if tool is None:
        names = ", ".join(tool.spec.name for tool in tools) or "none"
        return Observation(f"there is no tool {call.tool[:80]!r}; there are: {names}", failed=True)
    with span(genai.EXECUTE_TOOL, call.tool, {genai.TOOL: call.tool, genai.ARGUMENTS: call.arguments}) as traced:
        observation = await _observe(tool, call, timeout_s)
        if traits_of(tool).foreign:
            observation = replace(observation, foreign=True)
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
        return Observation(f"{call.tool} failed: it returned {type(result).__name__} where text is due", failed=True)
    return observe_text(result)


def observe_text(result: str) -> Observation:
    """Return what is taken of a tool's text, and whose words it is."""
    return Observation(redaction.clean(cut(result)).text, foreign=isinstance(result, ForeignText))


def cut(text: str) -> str:
    """Return what is taken of a result, without characters that nothing can encode."""
    kept = text[:LONGEST].encode("utf-8", "replace").decode()
    return kept if len(text) <= LONGEST else f"{kept}\n… ({len(text) - LONGEST} characters cut)"
