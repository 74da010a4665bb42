"""One call of a tool: found by name, within a time limit; every failure becomes an observation.

Once third-party content is in the context, fetching an address can leak data: a document may instruct the model to
fetch `https://its.host/?d=CONTENTS_OF_THE_MEMORY`. Therefore a call that only reads needs approval if it contains an
address from no trusted source. Trusted sources are the user, a plan that was written before the content was read, and
tools whose results name pages (`Traits.finds`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from pydantic import JsonValue

from mindstream import redaction, tracing
from mindstream.errors import ReplyInvalid, ToolError
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue
from mindstream.json_values import texts_in
from mindstream.models.model import Call
from mindstream.models.reply import first_json
from mindstream.moved import renamed
from mindstream.text.links import bare, links
from mindstream.tools.approval import ApprovedTool
from mindstream.tools.tool import Tool, traits_of
from mindstream.tracing import fail, is_on, span, tell

MAX_RESULT = 8_000
"""Maximum number of characters of a tool's result; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of a call, or the reason of its failure; `untrusted`: the text is third-party content."""

    text: str
    failed: bool = False
    untrusted: bool = False


class UntrustedText(str):
    """A result that is third-party content, from a tool whose results are not always third-party content."""

    __slots__ = ()


async def call_tool(call: Call, tools: Sequence[Tool], timeout_s: float = 30.0) -> Observation:
    """Call the tool that a call names; a failure of the tool is returned, not raised."""
    tool = next((tool for tool in tools if tool.spec.name == call.tool), None)
    if tool is None:
        names = ", ".join(tool.spec.name for tool in tools) or "none"
        return Observation(f"there is no tool {call.tool[:80]!r}; the tools are: {names}", failed=True)
    return await observe_call(call, tool, timeout_s)


async def observe_call(call: Call, tool: Tool, timeout_s: float) -> Observation:
    """Call a tool; its failure is returned, not raised.

    The time that a person takes to approve the call does not count.

    Args:
        timeout_s: maximum duration in seconds, unless the tool has one of its own (`Traits.timeout_s`).
    """
    with span(tracing.EXECUTE_TOOL, call.tool, {tracing.TOOL: call.tool, tracing.ARGUMENTS: call.arguments}) as traced:
        traits = traits_of(tool)
        observation = await _observe(tool, call, traits.timeout_s or timeout_s)
        if traits.untrusted:
            observation = replace(observation, untrusted=True)
        if is_on():
            tell(traced, {tracing.RESULT: observation.text})
        if observation.failed:
            fail(traced, ToolError.__name__)
        return observation


async def _observe(tool: Tool, call: Call, timeout_s: float) -> Observation:
    try:
        if isinstance(tool, ApprovedTool):
            await ForeignTask(partial(tool.ask, call)).result()
            tool = tool.inner
        result = await ForeignTask(partial(tool, call)).result(timeout_s)
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
    kept = text[:MAX_RESULT]
    if not kept.isascii():
        kept = kept.encode("utf-8", "replace").decode()
    return kept if len(text) <= MAX_RESULT else f"{kept}\n… ({len(text) - MAX_RESULT} characters cut)"


_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.\-]*:/*\S|\s*//", re.IGNORECASE)


def addresses_of(arguments: JsonValue) -> frozenset[str]:
    """Return the arguments of a call that are addresses (URLs), in the normal form of `text.links.bare`.

    A value that begins like an address counts as one address as a whole, because a tool would send all of it. A text
    that only contains an address, such as a question to a search engine or a model, does not count: it is not fetched.

    Args:
        arguments: values, or their JSON text as a model wrote it.
    """
    if isinstance(arguments, str):
        try:
            arguments = first_json(arguments, dict)
        except ReplyInvalid:
            return frozenset()  # without JSON arguments no tool is called
    return frozenset(bare(text.strip()) for text in texts_in(arguments) if _is_address(text))


def ungiven(tool: Tool, arguments: str, given: Set[str]) -> str:
    """Return an address in a call that no trusted source gave (`given`: the addresses that such a source gave); "" if
    there is none.

    The result is "" for tools with the trait `changes`, which need approval anyway, and for tools with the trait
    `concludes`, which only read their arguments.
    """
    if traits_of(tool).changes or traits_of(tool).concludes:
        return ""
    return min(addresses_of(arguments) - given, default="")


def refusal_of(address: str) -> str:
    """Return the message to the model about a call that was not approved because of its address."""
    return (
        f"not called: neither the user nor a search gave the address {address[:200]!r}, third-party content was read"
        " before, and the call was not approved. Use an address that was given."
    )


def _is_address(text: str) -> bool:
    return _ADDRESS.match(text) is not None or links([text]) == {bare(text.strip())}


__getattr__ = renamed(__name__, ForeignText="UntrustedText")
