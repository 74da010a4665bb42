"""What browsers ask before a page of another origin may read an answer (CORS, as the Fetch standard has it)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mindstream.server.asgi import Scope, Send

METHODS = b"GET, POST, DELETE"
ASKED_AGAIN_S = b"600"
NAMES = re.compile(r"[A-Za-z0-9, -]{1,1000}")
"""Names of headers, with commas between."""


def reading(origin: str) -> list[tuple[bytes, bytes]]:
    """Return the headers by which a page of an origin that was let in may read an answer. Cookies are none of it."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"origin"),
        (b"access-control-expose-headers", b"retry-after, www-authenticate"),
    ]


def is_preflight(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Tell whether a browser asks what a page may ask; it sends no token with that."""
    return bool(scope["method"] == "OPTIONS" and "access-control-request-method" in headers)


async def answer_preflight(send: Send, headers: Mapping[str, str]) -> None:
    """Say what a page that was let in may ask: all that anybody may."""
    wanted = headers.get("access-control-request-headers", "")
    allowed = wanted.encode() if NAMES.fullmatch(wanted) else b"authorization, content-type"
    told = [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", allowed),
        (b"access-control-max-age", ASKED_AGAIN_S),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": told})
    await send({"type": "http.response.body", "body": b""})
