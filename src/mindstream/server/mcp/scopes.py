"""403 where a token's scopes do not allow the tool that is called: an MCP client can then ask its user for more."""

from __future__ import annotations

import json

from mindstream.server.asgi import Message, Receive, Scope
from mindstream.server.asking import challenge
from mindstream.server.mcp.tools import Caller, every_tool, set_of
from mindstream.server.problems import Refusal
from mindstream.service.operations.who import Who

ENOUGH = frozenset({"read", "write"})


def has_all(who: Who) -> bool:
    """Tell whether whoever asks may call any tool; then nothing of the request has to be read for it."""
    return "admin" in who.scopes or who.scopes >= ENOUGH


async def require_scope(scope: Scope, receive: Receive, caller: Caller) -> Receive:
    """Refuse the call of a tool that the token does not allow; return what gives the body that was read for it.

    Raises:
        Refusal: 403, with `insufficient_scope` and the scope that is wanted (RFC 6750, section 3.1).
    """
    if has_all(caller.who):
        return receive
    messages, body = list[Message](), b""
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())
        body += messages[-1].get("body", b"")
    tool = every_tool().get(called_in(body))
    if tool is not None and set_of(tool) in ("", *caller.sets) and not tool.is_allowed(caller.who):
        wanted = f"{tool.operation.room}.{tool.operation.scope}"
        told = f"this token may not call {tool.name}: it wants the scope `{tool.operation.scope}`, or `{wanted}`"
        raise Refusal("forbidden", told, challenge("insufficient_scope", scope, wanted))

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return again


def called_in(body: bytes) -> str:
    """Return the tool that a request calls; "" where it calls none, or cannot be read: that is told by the protocol."""
    try:
        asked = json.loads(body)
        name = asked["params"]["name"] if asked["method"] == "tools/call" else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""
