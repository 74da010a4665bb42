"""The entrance: whom a request is from, before anything else is read of it. In front of all doors, chat and MCP too."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

from mindstream.server.problems import TYPE, Refusal, body_of, problem_of
from mindstream.server.tokens import Tokens
from mindstream.service.operations.who import LOCAL_PEOPLE, Who

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs")
"""What anybody may see: nothing of anybody's is in it."""
METADATA = "/.well-known/oauth-protected-resource"
"""Below it stands how the MCP server is reached with a token: whoever has none must be able to read that."""
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Admission:
    """Who gets in.

    Attributes:
        require_token: also from this machine.
        hosts: names by which the server is called, beside those of this machine; "*": any.
        origins: pages that may call it from a browser, beside its own; as https://chat.example.org.
    """

    tokens: Tokens
    require_token: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = field(
        default=(
            (b"x-content-type-options", b"nosniff"),
            (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        )
    )


class Entrance:
    """Lets requests in: their host, their origin, their token; `scope["state"]["who"]` says whom they are from."""

    def __init__(self, inner: App, admission: Admission) -> None:
        self._inner, self._admission = inner, admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                there = {name for name, _ in message.get("headers", ())}
                more = [each for each in self._admission.headers if each[0] not in there]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        try:
            headers = _headers(scope)
            self._check_host(headers.get("host", ""))
            self._check_origin(headers)
            scope.setdefault("state", {})["who"] = self._who(scope, headers)
            await self._inner(scope, receive, sending)
        except Refusal as refusal:
            if started:
                raise
            await refuse(sending, refusal)

    def _check_host(self, host: str) -> None:
        """Refuse a name that is not ours: a page may have let its own name point here (DNS rebinding)."""
        name = host_name(host)
        if name in LOOPBACK or "*" in self._admission.hosts or name in self._admission.hosts:
            return
        raise Refusal("misdirected", "this server is not called so; `--allow-host NAME` lets it be")

    def _check_origin(self, headers: dict[str, str]) -> None:
        """Refuse what another page has a browser ask."""
        origin = headers.get("origin")
        if origin is None or origin in self._admission.origins:
            return
        if urlsplit(origin).netloc != headers.get("host", "") or not urlsplit(origin).netloc:
            raise Refusal("forbidden", "pages of another origin may not ask here; `--allow-origin URL` lets one")

    def _who(self, scope: Scope, headers: dict[str, str]) -> Who:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if token:
            found = self._admission.tokens.find(token.strip()) if kind.lower() == "bearer" else None
            if found is None:
                raise Refusal("unauthenticated", "this token opens nothing here", challenge("invalid_token", scope))
            return Who(found.tenant, frozenset(found.scopes), only=found.user, key=found.id)
        if not self._admission.require_token and is_here(scope):
            return LOCAL_PEOPLE
        if scope["path"] in OPEN_PATHS or scope["path"].startswith(METADATA):
            return Who("", frozenset())
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge("", scope))


def challenge(error: str = "", scope: Scope | None = None) -> dict[str, str]:
    """Return the header of a 401; at the MCP server it names what says how that is reached (RFC 9728)."""
    told = [f'error="{error}"'] if error else []
    if scope is not None and f"{scope['path']}/".startswith("/mcp/"):
        path = quote(scope["path"], safe="/")
        told.append(f'resource_metadata="{base_url(scope)}{METADATA}{path}"')
    return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(told)]).strip()}


def base_url(scope: Scope) -> str:
    """Return the URL by which the server was called; the host was checked."""
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def is_here(scope: Scope) -> bool:
    """Tell whether a request comes from this machine, and no proxy has passed it on from another."""
    client = scope.get("client")
    names = {name.lower() for name, _ in scope.get("headers", ())}
    if not client or names & {b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"}:
        return False
    try:
        return ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """Return a Host header's name, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdigit() and not name.endswith(":")) else host).lower().rstrip(".")


def who_of(scope: Scope) -> Who:
    """Return whom a request is from; the entrance has said so."""
    who = scope.get("state", {}).get("who")
    if not isinstance(who, Who):
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge())
    return who


async def refuse(send: Send, refusal: BaseException) -> None:
    """Answer with a problem."""
    found, headers = problem_of(refusal)
    body = body_of(found)
    more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    head: Iterable[tuple[bytes, bytes]] = [
        (b"content-type", TYPE.encode()), (b"content-length", str(len(body)).encode()), *more
    ]  # fmt: skip
    await send({"type": "http.response.start", "status": found.status, "headers": list(head)})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by name, in small letters.

    Raises:
        Refusal: one that decides who asks stands there twice.
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization"):
            raise Refusal("malformed", f"the header {key} stands there twice")
        found[key] = value.decode("latin-1")
    return found
