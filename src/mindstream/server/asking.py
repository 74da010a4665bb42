"""Whom a request is from, as the entrance has found out."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import quote

from mindstream.server.asgi import Scope
from mindstream.server.problems import Refusal
from mindstream.service.operations.who import Who

LeftS: TypeAlias = Callable[[], Awaitable[float]]
"""Says how many seconds a token still holds; none where it has ended or was revoked."""
METADATA = "/.well-known/oauth-protected-resource"
"""Below it stands how the MCP server is reached with a token: whoever has none must be able to read that."""


def challenge(error: str = "", scope: Scope | None = None, wanted: str = "") -> dict[str, str]:
    """Return the header of a 401, or of a 403 for want of a scope (`wanted`).

    At the MCP server it names what says how that is reached (RFC 9728).
    """
    told = [f'error="{error}"'] if error else []
    told += [f'scope="{wanted}"'] if wanted else []
    if scope is not None and f"{scope['path']}/".startswith("/mcp/"):
        path = quote(scope["path"], safe="/")
        told.append(f'resource_metadata="{base_url(scope)}{METADATA}{path}"')
    return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(told)]).strip()}


def base_url(scope: Scope) -> str:
    """Return the URL by which the server is called: the operator's, else the request's, whose host was checked."""
    if public := scope.get("state", {}).get("public_url"):
        return f"{public}{scope.get('root_path', '')}"
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def who_of(scope: Scope) -> Who:
    """Return whom a request is from; the entrance has said so."""
    who = scope.get("state", {}).get("who")
    if not isinstance(who, Who):
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge("", scope))
    return who


async def unending() -> float:
    """Say how long somebody is let in who needs no token."""
    return math.inf


def left_of(scope: Scope) -> LeftS:
    """Return what says how long the token of a request still holds."""
    left: LeftS = scope.get("state", {}).get("left_s", unending)
    return left
