"""Authentication: decides who sent a request before any endpoint (REST, chat, MCP, studio) sees it."""

from __future__ import annotations

import contextlib
import ipaddress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindstream.clock import SystemClock
from mindstream.errors import InputError, StorageError
from mindstream.server.asgi import App, Message, Receive, Scope, Send, path_of
from mindstream.server.health import Metrics
from mindstream.server.limits import BoundedBody, Budgets, Limits
from mindstream.server.problems import OPENAI, Refusal, problem_response
from mindstream.server.rest import METADATA, challenge, left_of
from mindstream.server.tokens import PREFIX, Token, Tokens
from mindstream.service.operations.operation import LOCAL_PRINCIPAL, Principal

if TYPE_CHECKING:
    from mindstream.server.issuer import Issuer

CLOCK = SystemClock()
OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs", "/studio")
"""Paths that need no token, because they contain no user's data."""
WITHOUT_PREFIX = ("/models", "/chat/completions", "/responses", "/embeddings", "/completions")
"""Paths that an OpenAI client calls if its base URL lacks /v1."""
OPEN_PREFIXES = (METADATA, "/studio/")
"""Prefixes of paths that need no token: static files, and the metadata by which MCP clients find the issuer."""
TOKEN_CHECK_S = 0.5
"""While a response is streamed: seconds between two checks of whether the request's token is still valid."""
FORWARDING = (
    b"forwarded", b"x-forwarded", b"x-real-ip", b"via", b"x-client-ip", b"x-cluster-client-ip", b"x-original-",
    b"x-envoy-", b"x-proxy", b"true-client-ip", b"client-ip", b"cdn-loop", b"cf-", b"fastly-", b"fly-", b"tailscale-",
    b"x-amzn-", b"x-amz-cf-", b"x-azure-", b"x-appengine-", b"x-vercel-", b"akamai-",
)  # fmt: skip
"""Prefixes of the names of headers that only proxies send: a second line of defence in `is_local`."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers that are added to every response, unless it sets them itself."""


@dataclass
class Admission:
    """Which requests are accepted.

    Attributes:
        tokens: the server's own tokens.
        require_token: every request needs a token, also from this machine. `Server` sets it if it listens on an address
            that other machines can reach.
        hosts: accepted names in the Host header, in addition to localhost and addresses; "*": any name.
        origins: other origins whose pages may call the server from a browser, such as https://chat.example.org.
        issuer: an OIDC issuer whose tokens are accepted in addition to `tokens`.
        public_url: the URL by which a proxy publishes the server, such as https://mind.example.org; "": none. If it is
            set, every request needs a token, because a proxy on this machine connects from a loopback address.
    """

    tokens: Tokens
    require_token: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    issuer: Issuer | None = None
    public_url: str = ""


class ResponseSender:
    """Sends a response: adds the security headers, ends it when the token expires, and reports a refused body.

    Attributes:
        status: the status code that was sent; 0: nothing was sent yet.
        body: the body of the request, once the request was admitted.
    """

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self.status = 0
        self.body: BoundedBody | None = None
        self._checked: float | None = None
        self._has_ended = False

    def end_with_token(self) -> None:
        """End the response soon after the request's token expires, unless the endpoint does this itself."""
        self._checked = CLOCK.elapsed()

    async def _is_over(self, message: Message) -> bool:
        """End the response if its token has expired, and return whether it was ended; check the token at most once in
        TOKEN_CHECK_S seconds."""
        if (
            self._has_ended
            or self._checked is None
            or not message.get("more_body")
            or self._scope["state"].get("ends_itself")
        ):
            return self._has_ended
        if CLOCK.elapsed() - self._checked >= TOKEN_CHECK_S:
            self._checked = CLOCK.elapsed()
            with contextlib.suppress(StorageError):  # checked again after TOKEN_CHECK_S
                self._has_ended = await left_of(self._scope)() <= 0
            if self._has_ended:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return self._has_ended

    async def send(self, message: Message) -> None:
        """Send an ASGI message; if the request's body was refused, send the refusal instead."""
        if await self._is_over(message):
            return
        body = self.body
        if body is None or body.refusal is None:
            await self._pass_on(message)
        elif not body.is_reported:
            body.is_reported = True
            if not self.status:
                await self.refuse(body.refusal)

    async def refuse(self, error: BaseException) -> None:
        """Send an error as a problem document."""
        await problem_response(error, self._scope)(self._scope, _no_body, self._pass_on)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = message.get("headers", ())
            names = {name for name, _ in given}
            message = {**message, "headers": [*given, *(each for each in SECURITY_HEADERS if each[0] not in names)]}
        await self._send(message)


async def _no_body() -> Message:
    return {"type": "http.disconnect"}


class AuthMiddleware:
    """Checks the host, origin, token and limits of each request; stores the caller in `scope["state"]["principal"]`."""

    def __init__(self, inner: App, admission: Admission, limits: Limits, budgets: Budgets, metrics: Metrics) -> None:
        self._inner, self._admission, self._limits, self._budgets = inner, admission, limits, budgets
        self._metrics = metrics
        self._names = {*admission.hosts, *filter(None, [host_name(urlsplit(admission.public_url).netloc)])}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no endpoint uses websockets, so every connection is closed
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began, response = CLOCK.elapsed(), ResponseSender(scope, send)
        self._metrics.going += 1
        try:
            await self._admit(scope, receive, response)
        except (Refusal, StorageError) as refusal:
            if response.status:
                raise
            await response.refuse(refusal)
        finally:
            self._metrics.going -= 1
            self._metrics.requests[scope["method"][:10], response.status] += 1
            self._metrics.seconds[scope["method"][:10]] += CLOCK.elapsed() - began

    async def _admit(self, scope: Scope, receive: Receive, response: ResponseSender) -> None:
        headers = _headers(scope)
        scope.setdefault("state", {})["public_url"] = self._admission.public_url
        if not scope["path"].startswith("/"):  # an absolute URL: its host would override the checked Host header
            raise Refusal("malformed", "the request target must be a path that begins with /, not an absolute URL")
        self._check_host(headers.get("host", ""))
        self._check_origin(headers)
        principal, token = await self._authenticate(scope, headers)
        if token is not None:
            principal = replace(principal, budget=await self._budgets.of(token))
            response.end_with_token()
        scope["state"]["principal"] = principal
        client = scope.get("client")
        async with self._limits.one(principal.key or f"from {client[0] if client else 'nowhere'}", token):
            response.body = BoundedBody(scope, receive)
            async with self._limits.weighed(token, response.body):
                await self._inner(scope, response.body, response.send)

    def _check_host(self, host: str) -> None:
        """Refuse a Host header with a name that is not this server's, as a protection against DNS rebinding.

        In that attack a web page makes its own host name point to this server. IP addresses are safe and accepted.
        """
        name = host_name(host)
        if not (name == "localhost" or is_address(name) or "*" in self._names or name in self._names):
            raise Refusal(
                "misdirected", f"this server does not accept the host name {name[:100]!r}; `--allow-host NAME` adds one"
            )

    def _check_origin(self, headers: dict[str, str]) -> None:
        """Refuse requests that a browser sends for a page of another origin."""
        origin = headers.get("origin")
        if origin is None or origin in self._admission.origins or origin == (self._admission.public_url or None):
            return
        if urlsplit(origin).netloc != headers.get("host", "") or not urlsplit(origin).netloc:
            raise Refusal(
                "forbidden", "pages of another origin may not call this server; `--allow-origin URL` permits an origin"
            )

    async def _authenticate(self, scope: Scope, headers: dict[str, str]) -> tuple[Principal, Token | None]:
        if path_of(scope) in WITHOUT_PREFIX:
            raise Refusal("not-found", "paths of the OpenAI-compatible API begin with /v1: give clients the URL …/v1")
        kind, _, token = headers.get("authorization", "").partition(" ")
        kind, token = kind.lower(), token.strip()
        if token and not (kind == "bearer" and self._is_placeholder(token, scope)):
            source = self._source(token)
            found = await source.find(token) if kind == "bearer" else None
            if found is None:
                raise Refusal(
                    "unauthenticated",
                    "this token is not valid: it is wrong, expired or revoked",
                    challenge("invalid_token", scope),
                )
            scope["state"]["left_s"] = partial(source.left_s, token, found)
            return Principal(found.tenant, frozenset(found.scopes), only=found.user, key=found.id), found
        if self._is_open(scope):
            return LOCAL_PRINCIPAL, None
        path = path_of(scope)
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIXES):
            return Principal("", frozenset()), None
        raise Refusal(
            "unauthenticated",
            "this request needs a token: send the header `Authorization: Bearer TOKEN`",
            challenge("", scope),
        )

    def _source(self, token: str) -> Tokens | Issuer:
        """Return the checker of a token: the server's own tokens, or the OIDC issuer."""
        if token.startswith(PREFIX) or self._admission.issuer is None:
            return self._admission.tokens
        return self._admission.issuer

    def _is_placeholder(self, token: str, scope: Scope) -> bool:
        """Return whether a token is only a placeholder: OpenAI clients must send a key even if none is required."""
        is_signed = self._admission.issuer is not None and token.count(".") == 2
        is_made_up = not token.startswith(PREFIX) and not is_signed
        return is_made_up and path_of(scope).startswith(OPENAI) and self._is_open(scope)

    def _is_open(self, scope: Scope) -> bool:
        """Return whether the request is accepted without a token."""
        return not (self._admission.require_token or self._admission.public_url) and is_local(scope)


def is_local(scope: Scope) -> bool:
    """Return whether a program on this machine sent the request. All of these conditions must hold:

    - The peer's address is a loopback address. A Unix socket has no address, and may belong to a proxy.
    - There is one Host header, and it names a loopback address, as clients on this machine do by default.
    - The protocol is HTTP/1.1 or later. By default nginx forwards requests as HTTP/1.0, with another Host header.
    - No header has a name that only proxies send.

    A proxy on this machine whose requests meet all conditions is not recognized: behind such a proxy the server needs
    `--public-url` or `--require-token`.
    """
    peer = (scope.get("client") or ("",))[0]
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"]
    return (
        is_loopback(peer)
        and len(hosts) == 1
        and is_loopback_host(hosts[0])
        and scope.get("http_version", "1.1") != "1.0"
        and not any(name.lower().startswith(FORWARDING) for name, _ in scope["headers"])
    )


def is_loopback(address: str) -> bool:
    """Return whether an IP address is a loopback address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_loopback_host(host: str) -> bool:
    """Return whether a Host header is `localhost`, an address of 127.0.0.0/8 or `[::1]`, with or without a port."""
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not colon:
        name = host
    elif not (port.isascii() and port.isdigit()):
        return False
    return name.lower() in ("localhost", "[::1]") or (":" not in name and is_loopback(name))


def is_address(name: str) -> bool:
    """Return whether a host name is an IP address."""
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def checked_public_url(url: str) -> str:
    """Return the URL by which a proxy publishes the server, in lower case: a scheme, a name and perhaps a port.

    Raises:
        InputError: `url` is not such a URL, or has a path.
    """
    try:
        parts = urlsplit(url.rstrip("/").lower())
        plain = f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        plain = ""
    if not plain.startswith(("https://", "http://")) or plain != url.rstrip("/").lower() or plain.endswith("://"):
        raise InputError(
            f"--public-url must be a URL without a path, such as https://mind.example.org, not {url[:200]!r}"
        )
    return plain


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port, in lower case."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdigit() and not name.endswith(":")) else host).lower().rstrip(".")


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by their names in lower case.

    Raises:
        Refusal: Host, Origin or Authorization occurs twice.
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization"):
            raise Refusal("malformed", f"the header {key} occurs twice: send it once")
        found[key] = value.decode("latin-1")
    return found
