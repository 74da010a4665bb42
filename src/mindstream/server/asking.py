"""Whom a request is from, as the entrance has found out."""

from __future__ import annotations

from mindstream.server.asgi import Scope
from mindstream.server.problems import Refusal
from mindstream.service.operations.who import Who


def challenge(error: str = "") -> dict[str, str]:
    """Return the header of a 401."""
    return {"WWW-Authenticate": "Bearer" + (f' error="{error}"' if error else "")}


def who_of(scope: Scope) -> Who:
    """Return whom a request is from; the entrance has said so."""
    who = scope.get("state", {}).get("who")
    if not isinstance(who, Who):
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge())
    return who
