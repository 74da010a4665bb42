"""Authentication: decides who sent a request before any endpoint (REST, chat, MCP, studio) sees it."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mindstream.clock import SystemClock
from mindstream.errors import InputError, StorageError
from mindstream.server.asgi import App, Message, Receive, Scope, Send
from mindstream.server.health import Metrics
from mindstream.server.ledger import Budgets
from mindstream.server.limits import BoundedBody, Limits
from mindstream.server.origins import answer_preflight, is_preflight, reading
from mindstream.server.problems import TYPE, Refusal, body_of, problem_of
from mindstream.server.rest import METADATA, LeftS, challenge, left_of
from mindstream.server.tokens import PREFIX, Token, Tokens
from mindstream.service.operations.principal import LOCAL_PRINCIPAL, Principal

if TYPE_CHECKING:
    from mindstream.server.issuer import Issuer

CLOCK = SystemClock()
OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json", "/docs", "/studio")
"""What anybody may see: nothing of anybody's is in it."""
PAGES = "/studio/"
"""The studio's pages, if they are added: files that ship, on which a token is typed in."""
OPENAI = "/v1/"
"""Here clients of OpenAI's API call, which must send some key: where none is asked for, one that is none of ours opens
nothing and shuts nothing."""
LOOK_S = 0.5
"""Seconds between two looks whether the token of an answer that goes on still holds."""
FORWARDING = (
    b"forwarded", b"x-forwarded", b"x-real-ip", b"via", b"x-client-ip", b"x-cluster-client-ip", b"x-original-",
    b"x-envoy-", b"x-proxy", b"true-client-ip", b"client-ip", b"cdn-loop", b"cf-", b"fastly-", b"fly-", b"tailscale-",
    b"x-amzn-", b"x-amz-cf-", b"x-azure-", b"x-appengine-", b"x-vercel-", b"akamai-",
)  # fmt: skip
"""Beginnings of the names of headers that only proxies send. A second line of defence: see `is_local`."""


@dataclass
class Admission:
    """Which requests are accepted.

    Attributes:
        require_token: every request needs a token, from this machine too. `Server` sets it if it listens on an address
            that other machines reach.
        hosts: names by which the server is called, beside those of this machine; "*": any.
        origins: pages that may call it from a browser, beside its own; as https://chat.example.org.
        issuer: whose tokens open, too; None: nobody's.
        public_url: the URL by which a proxy publishes the server, as https://mind.example.org; "": none. Every request
            needs a token then, since a proxy on this machine connects from a loopback address.
    """

    tokens: Tokens
    require_token: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    issuer: Issuer | None = None
    public_url: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = field(
        default=(
            (b"x-content-type-options", b"nosniff"),
            (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        )
    )


class Answer:
    """What is sent back, with the headers that all answers have; a body that was refused is what is answered.

    Attributes:
        status: 0 until something was sent.
    """

    def __init__(self, send: Send, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._send, self._headers = send, list(headers)
        self.status = 0
        self.body: BoundedBody | None = None
        self._scope: Scope | None = None
        self._looked, self._has_ended = 0.0, False

    def add(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Give it more headers."""
        self._headers.extend(headers)

    def end_with_token(self, scope: Scope) -> None:
        """End the answer soon after the request's token has ended, unless its endpoint does so itself."""
        self._scope, self._looked = scope, CLOCK.elapsed()

    async def _is_over(self, message: Message) -> bool:
        """Return whether nothing more may be sent; between two looks at the token pass LOOK_S seconds."""
        scope = self._scope
        if self._has_ended or scope is None or not message.get("more_body") or scope["state"].get("ends_itself"):
            return self._has_ended
        if CLOCK.elapsed() - self._looked >= LOOK_S:
            self._looked = CLOCK.elapsed()
            with contextlib.suppress(StorageError):  # it looks again
                self._has_ended = await left_of(scope)() <= 0
            if self._has_ended:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return self._has_ended

    async def send(self, message: Message) -> None:
        """Send a part of it."""
        if await self._is_over(message):
            return
        body, refusal = self.body, self.body.refusal if self.body is not None else None
        if refusal is not None and body is not None and not body.is_told:  # whatever was made of it
            body.is_told = True
            if not self.status:
                await refuse(self._pass_on, refusal)
        elif refusal is None:
            await self._pass_on(message)

    async def _pass_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            there = {name for name, _ in message.get("headers", ())}
            more = [each for each in self._headers if each[0] not in there]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await self._send(message)


class AuthMiddleware:
    """Lets requests in: their host, their origin, their token; `scope["state"]["who"]` says whom they are from."""

    def __init__(self, inner: App, admission: Admission, limits: Limits, budgets: Budgets, metrics: Metrics) -> None:
        self._inner, self._admission, self._limits, self._budgets = inner, admission, limits, budgets
        self._metrics = metrics
        self._names = {*admission.hosts, *filter(None, [host_name(urlsplit(admission.public_url).netloc)])}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no endpoint has one, so none is opened unauthenticated
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        began, answer = CLOCK.elapsed(), Answer(send, self._admission.headers)
        self._metrics.going += 1
        try:
            await self._let_in(scope, receive, answer)
        except (Refusal, StorageError) as refusal:
            if answer.status:
                raise
            await refuse(answer.send, refusal)
        finally:
            self._metrics.going -= 1
            self._metrics.count(scope["method"][:10], answer.status, CLOCK.elapsed() - began)

    async def _let_in(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        headers = _headers(scope)
        scope.setdefault("state", {})["public_url"] = self._admission.public_url
        if not scope["path"].startswith("/"):  # absolute form: its host would overrule the Host header
            raise Refusal("malformed", "expected a path that begins with /")
        self._check_host(headers.get("host", ""))
        self._check_origin(headers)
        if headers.get("origin") in self._admission.origins:
            answer.add(reading(headers["origin"]))
            if is_preflight(scope, headers):
                await answer_preflight(answer.send, headers)
                return
        principal, token = await self._who(scope, headers)
        if token is not None:
            principal = replace(principal, budget=await self._budgets.of(token))
        scope["state"]["who"] = principal
        async with self._limits.one(principal.key or _address(scope), token):
            answer.body = BoundedBody(scope, receive)
            if token is not None:
                answer.end_with_token(scope)
            async with self._limits.weighed(token, answer.body):
                await self._inner(scope, answer.body, answer.send)

    def _check_host(self, host: str) -> None:
        """Refuse a name that is not ours: a page may have let its own point here (DNS rebinding); an address cannot."""
        name = host_name(host)
        if name == "localhost" or is_address(name) or "*" in self._names or name in self._names:
            return
        raise Refusal("misdirected", "this server is not called so; `--allow-host NAME` lets it be")

    def _check_origin(self, headers: dict[str, str]) -> None:
        """Refuse what another page has a browser ask."""
        origin = headers.get("origin")
        if origin is None or origin in self._admission.origins or origin == (self._admission.public_url or None):
            return
        if urlsplit(origin).netloc != headers.get("host", "") or not urlsplit(origin).netloc:
            raise Refusal("forbidden", "pages of another origin may not ask here; `--allow-origin URL` lets one")

    async def _who(self, scope: Scope, headers: dict[str, str]) -> tuple[Principal, Token | None]:
        kind, _, token = headers.get("authorization", "").partition(" ")
        kind, token = kind.lower(), token.strip()
        if token and not (kind == "bearer" and self._is_made_up(token) and self._is_free(scope)):
            found = await self._find(token) if kind == "bearer" else None
            if found is None:
                raise Refusal("unauthenticated", "this token opens nothing here", challenge("invalid_token", scope))
            scope["state"]["left_s"] = self._left_of(token, found)
            return Principal(found.tenant, frozenset(found.scopes), only=found.user, key=found.id), found
        if self._is_open(scope):
            return LOCAL_PRINCIPAL, None
        path = path_of(scope)
        if path in OPEN_PATHS or path.startswith((METADATA, PAGES)):
            return Principal("", frozenset()), None
        raise Refusal("unauthenticated", "send a token: Authorization: Bearer …", challenge("", scope))

    async def _find(self, token: str) -> Token | None:
        """Return what a token stands for: one of our own, or the issuer's."""
        if token.startswith(PREFIX) or self._admission.issuer is None:
            return await self._admission.tokens.find(token)
        return await self._admission.issuer.find(token)

    def _left_of(self, token: str, found: Token) -> LeftS:
        """Return what says how long a token still holds: one of our own may be revoked meanwhile."""
        tokens, issuer = self._admission.tokens, self._admission.issuer
        if issuer is not None and not token.startswith(PREFIX):

            async def left() -> float:
                return issuer.left_s(found)

            return left
        return lambda: tokens.left_s(token)

    def _is_made_up(self, token: str) -> bool:
        """Tell whether it is nobody's token, but a word that some client has to send."""
        is_signed = self._admission.issuer is not None and token.count(".") == 2
        return not token.startswith(PREFIX) and not is_signed

    def _is_free(self, scope: Scope) -> bool:
        """Tell whether a made-up token is passed over."""
        return path_of(scope).startswith(OPENAI) and self._is_open(scope)

    def _is_open(self, scope: Scope) -> bool:
        """Tell whether the request is accepted without a token."""
        admission = self._admission
        return not (admission.require_token or admission.public_url) and is_local(scope)


def is_local(scope: Scope) -> bool:
    """Return whether a program on this machine sent the request, by an allow-list: all of these must hold.

    - The peer's address is a loopback address. A Unix socket has none: a proxy may stand behind it.
    - The one Host header names a loopback address, as a client on this machine does that was given no other name.
    - The protocol is HTTP/1.1 or later. nginx forwards as HTTP/1.0 and by the upstream's name unless told otherwise.
    - No header has a name that only proxies send.

    A proxy on this machine that does none of this cannot be told apart: `--public-url` or `--require-token` is needed.
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
    """Return whether a socket's address is one of this machine's loopback interface."""
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


def path_of(scope: Scope) -> str:
    """Return the path below the one at which the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def is_address(name: str) -> bool:
    """Tell whether a host is named by its address."""
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def checked_public_url(url: str) -> str:
    """Return an URL by which a server is called through a proxy: a scheme and a name, in small letters.

    Raises:
        InputError: it is none, or has a path.
    """
    try:
        parts = urlsplit(url.rstrip("/").lower())
        plain = f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
    except ValueError:
        plain = ""
    if not plain.startswith(("https://", "http://")) or plain != url.rstrip("/").lower() or plain.endswith("://"):
        raise InputError(f"--public-url {url[:200]!r} must be as https://mind.example.org, without a path")
    return plain


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return f"from {client[0]}" if client else "from nowhere"


def host_name(host: str) -> str:
    """Return a Host header's name, without the port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdigit() and not name.endswith(":")) else host).lower().rstrip(".")


async def refuse(send: Send, refusal: BaseException) -> None:
    """Answer with a problem."""
    found, headers = problem_of(refusal)
    body = body_of(found)
    more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    head: Iterable[tuple[bytes, bytes]] = [
        (b"content-type", TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        *more,
    ]
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
