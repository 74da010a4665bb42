"""The admission of requests: who sent a request, and within which limits, before any endpoint (REST, chat, MCP, studio)
sees it.

The limits are: number of requests per minute and at once, bytes per day, the size and duration of a body, and the daily
budgets of access tokens for model calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mindstream.clock import DAY_S, Clock, SystemClock
from mindstream.encodings import whole_json_text
from mindstream.errors import InputError, StorageError
from mindstream.models.wrappers.meter import Budget
from mindstream.server.problems import OPENAI, Refusal, problem_response
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import ISSUED, PREFIX, IssuedLimits, Token, Tokens
from mindstream.service.operations.operation import LOCAL_PRINCIPAL, Principal

if TYPE_CHECKING:
    from mindstream.server.health import Metrics
    from mindstream.server.issuer import Issuer

LARGEST_BODY = 4_000_000
"""Maximum bytes of a request's body."""
BODY_S = 30.0
"""Maximum seconds between two parts of a body; the whole body may take twice as long."""
A_MINUTE, AT_ONCE = 6_000, 2_000
"""Default limits of a token: requests per minute, and simultaneous requests."""
LOCAL_TIMES = 10
"""Factor by which the default limits are higher for programs on this machine without a token."""
MAX_BUCKETS = 10_000
"""Number of buckets (one for each token) at which the buckets without running requests are removed. Removing a bucket
only resets the count for the limit of this token."""
PORTIONS = 600
"""Number of portions into which the requests of a minute are divided, if several servers count together.

Each server takes its allowance from the common store in such portions. The limit can be exceeded by one portion per
server, because a portion may be left unused for a while.
"""


@dataclass
class Bucket:
    """A token bucket: the allowance that was `left` at the time `at`, and the number of running requests."""

    left: float
    at: float
    running: int = 0


class Limits:
    """Counts requests by token.

    Args:
        shared: the state in which several servers of the same data count together; None: there is one server.
            Simultaneous requests are always counted by each server separately.
    """

    def __init__(self, clock: Clock, shared: ServerState | None = None) -> None:
        self._clock, self._shared = clock, shared
        self._buckets: dict[str, Bucket] = {}
        self._bytes: dict[str, Bucket] = {}

    @contextlib.asynccontextmanager
    async def one(self, key: str, token: Token | None) -> AsyncIterator[None]:
        """Count one request, which runs during the `with` block.

        Raises:
            Refusal: a limit is exceeded.
        """
        times = LOCAL_TIMES if token is None else 1
        a_minute = (token and token.a_minute) or A_MINUTE * times
        at_once = (token and token.at_once) or AT_ONCE * times
        now = self._clock.elapsed()
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= MAX_BUCKETS:
                self._buckets = {name: each for name, each in self._buckets.items() if each.running}
            bucket = self._buckets[key] = Bucket(0 if self._shared else a_minute, now)
        if self._shared is None:
            bucket.left = min(a_minute, bucket.left + (now - bucket.at) * a_minute / 60)
        elif bucket.left < 1:
            drawn = await self._shared.draw(key, a_minute, max(1, a_minute // PORTIONS))
            bucket.left = bucket.left + drawn if drawn > 0 and bucket.left > 0 else drawn
        bucket.at = now
        if bucket.left < 1:
            raise _too_many(f"at most {a_minute} requests a minute are allowed", (1 - bucket.left) * 60 / a_minute)
        if bucket.running >= at_once:
            raise _too_many(f"at most {at_once} requests at once are allowed", 0)
        bucket.left -= 1
        bucket.running += 1
        try:
            yield
        finally:
            bucket.running -= 1

    @contextlib.asynccontextmanager
    async def weighed(self, token: Token | None, body: BoundedBody) -> AsyncIterator[None]:
        """Count the bytes of a request's body, which is read during the `with` block.

        Raises:
            Refusal: the token's daily bytes are used up. Requests with GET, HEAD or DELETE are still accepted.
        """
        if token is None or not token.bytes_a_day:
            yield
            return
        a_day, now = token.bytes_a_day, self._clock.elapsed()
        bucket = self._bytes.setdefault(token.id, Bucket(a_day, now))
        if self._shared is not None and body.is_expected:
            bucket.left = await self._shared.weigh(token.id, a_day, 0)
        else:
            bucket.left += (now - bucket.at) * a_day / DAY_S
        bucket.left, bucket.at = min(a_day, bucket.left), now
        if bucket.left < 0 and body.is_expected:
            allowed = (
                f"at most {a_day:,} bytes a day are accepted with this token: wait, or ask the operator for a higher"
                " limit (`--bytes-a-day`)"
            )
            raise _too_many(allowed, -bucket.left * DAY_S / a_day)
        try:
            yield
        finally:
            bucket.left -= body.taken
            if self._shared is not None and body.taken:
                await self._shared.weigh(token.id, a_day, body.taken)


def _too_many(allowed: str, wait_s: float) -> Refusal:
    return Refusal("too-many", allowed, {"Retry-After": str(max(1, round(wait_s + 0.5)))})


class BoundedBody:
    """Receives a request's body, within the limits of size and time.

    JSON is passed on as a whole. In JSON, U+FFFD replaces each escaped surrogate whose other half is missing.

    Attributes:
        taken: number of bytes that were received.
        is_expected: whether requests with this method have a body.
        refusal: why the body was refused while it was received. It is stored here because the reader of the body may
            have replaced the exception by another one.
        is_reported: whether the refusal was sent to the client.

    Raises:
        Refusal: a header declares the body as larger than allowed, or as compressed.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.taken = 0
        self.is_expected = scope["method"] not in ("GET", "HEAD", "DELETE")
        self.refusal: Refusal | None = None
        self.is_reported = self._is_whole = False
        self._until = asyncio.get_running_loop().time() + 2 * BODY_S
        headers = Headers(scope=scope)
        self._is_json = headers.get("content-type", "").strip().lower().startswith("application/json")
        if any(not each.isdecimal() or int(each[:20]) > LARGEST_BODY for each in headers.getlist("content-length")):
            raise self._too_large()
        if any(each.strip().lower() not in ("", "identity") for each in headers.getlist("content-encoding")):
            raise Refusal("media-type", "the body is compressed, which is not supported: send it uncompressed")

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()  # waits until the client disconnects
        message = await self._part()
        if not self._is_json or message["type"] != "http.request":
            return message
        body = bytearray(message.get("body", b""))
        while not self._is_whole:
            message = await self._part()
            if message["type"] != "http.request":
                return message
            body += message.get("body", b"")
        return {**message, "body": whole_json_text(bytes(body)), "more_body": False}

    async def _part(self) -> Message:
        try:
            async with asyncio.timeout_at(min(self._until, asyncio.get_running_loop().time() + BODY_S)):
                message = await self._receive()
        except TimeoutError:
            self.refusal = Refusal(
                "malformed",
                f"no part of the body arrived for {BODY_S:g} seconds, or the whole body took over {2 * BODY_S:g}",
                {"Connection": "close"},
            )
            raise self.refusal from None
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self.taken > LARGEST_BODY:
                self.refusal = self._too_large()
                raise self.refusal
        return message

    def _too_large(self) -> Refusal:
        return Refusal("too-large", f"the body may have at most {LARGEST_BODY:,} bytes", {"Connection": "close"})


KEPT_S = 2.0
"""Interval, in seconds, at which a token's spending is exchanged with other processes.

A background task exchanges the spending if this process has spent something. A request exchanges the spending if the
last exchange is longer ago than this interval. If several processes share the state, there is also an exchange at each
model call, and at each request near a limit (NEAR).
"""
NEAR = 0.8
"""Share of a limit. If more than this share is spent, every request exchanges spending with other processes."""
Spent: TypeAlias = tuple[int, int, float]
"""Spending: model calls, tokens, US dollars."""


@dataclass
class _Account:
    """The budget of an access token for one day.

    Attributes:
        stored: how much of the spending in `budget` is also in the stored sum: the spending of other processes, and the
            spending of this process up to its last exchange with the store (see `Budgets`).
        at: the time of the last exchange with the store.
    """

    budget: Budget
    stored: Spent
    at: float


class Budgets:
    """The daily budgets of all access tokens that have limits; the spending of all servers is counted together.

    Reservations of running calls are stored as spent, and corrected when the calls end. Reservations of a killed server
    remain counted for that day.

    Args:
        issued: the limits of each user or application that signs in through the OIDC issuer.
        is_shared: whether other processes use the same budgets. If so, spending is exchanged before each model call,
            and a limit can be exceeded by one call of each process. With a single process, only a limit in US dollars
            can be exceeded, by one call.
    """

    def __init__(
        self,
        state: ServerState,
        clock: Clock,
        tokens: Tokens,
        issued: IssuedLimits | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self._state, self._clock, self._tokens = state, clock, tokens
        self._issued, self._is_shared = issued, is_shared
        self._accounts: dict[tuple[str, int], _Account] = {}

    async def of(self, token: Token) -> Budget | None:
        """Return today's budget of an access token; None: it has no limit."""
        if token.tokens is None and token.usd is None:
            return None
        key = (token.id, int(self._clock.now() // DAY_S))
        if key not in self._accounts:
            spent = await self._state.spend(*key, 0, 0, 0.0)
            if key not in self._accounts:
                budget = Budget(None, token.tokens, token.usd, *spent)
                budget.bring_up = lambda: self._refresh(key, is_call=True)
                self._accounts[key] = _Account(budget, spent, self._clock.elapsed())
        await self._refresh(key)
        return self._accounts[key].budget

    async def of_id(self, id_: str) -> Budget | None:
        """Return today's budget of the access token with this id; None: it has no limit, or does not exist."""
        if self._issued is not None and id_.startswith(ISSUED):
            return await self.of(self._issued.limited(id_))
        found = next((each for each in await self._tokens.each() if each.id == id_), None)
        return await self.of(found) if found is not None else None

    async def _refresh(self, key: tuple[str, int], *, is_call: bool = False) -> None:
        account, now = self._accounts.get(key), self._clock.elapsed()
        if account is None:
            return
        if now - account.at > KEPT_S or (self._is_shared and (is_call or account.budget.is_near(NEAR))):
            account.at = now
            await self._exchange(key, account)

    async def _exchange(self, key: tuple[str, int], account: _Account) -> None:
        """Add this process's spending to the stored sum, and other processes' spending to the budget."""
        before, ours = account.stored, _counted(account.budget)
        account.stored = ours  # spending during this exchange is added by the next one
        added = _minus(ours, before)
        try:
            spent = await self._state.spend(key[0], key[1], *added)
        except BaseException:
            account.stored = _minus(account.stored, added)
            raise
        others, budget = _minus(spent, ours), account.budget
        account.stored = _minus(account.stored, _minus(ours, spent))
        budget.spent_calls += others[0]
        budget.spent_tokens += others[1]
        budget.spent_usd += others[2]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Store spending every KEPT_S seconds during the `with` block and at its end.

        A killed process loses at most the spending of KEPT_S seconds.
        """
        over = asyncio.Event()
        storing = asyncio.ensure_future(self._store_until(over))
        try:
            yield
        finally:
            over.set()  # the task is not cancelled, because a cancelled `_exchange` may count spending twice
            await storing
            await self.keep()

    async def _store_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), KEPT_S)
            with contextlib.suppress(StorageError):  # the next round stores it
                await self.keep()

    async def keep(self) -> None:
        """Store spending since the last exchange, and drop budgets that are older than yesterday."""
        today = int(self._clock.now() // DAY_S)
        for key, account in list(self._accounts.items()):
            if _counted(account.budget) != account.stored:
                await self._exchange(key, account)
            if key[1] < today - 1:
                del self._accounts[key]


def _counted(budget: Budget) -> Spent:
    """Return the spending to exchange with other servers: spent amounts plus reservations of running calls."""
    return (budget.spent_calls, budget.spent_tokens + budget.reserved_tokens, budget.spent_usd + budget.reserved_usd)


def _minus(one: Spent, other: Spent) -> Spent:
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2])


LeftS: TypeAlias = Callable[[], Awaitable[float]]
"""Returns the seconds for which a token is still valid; 0 or less if it expired or was revoked."""
METADATA = "/.well-known/oauth-protected-resource"
"""Beginning of the paths of the MCP server's metadata (RFC 9728), which clients read before they have a token."""
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


def challenge(error: str = "", scope: Scope | None = None, wanted: str = "") -> dict[str, str]:
    """Return the header WWW-Authenticate of a 401 response, or of a 403 response for a missing scope (`wanted`).

    For requests to the MCP server it contains the URL of the server's metadata (RFC 9728).
    """
    parts = [f'error="{error}"'] if error else []
    parts += [f'scope="{wanted}"'] if wanted else []
    if scope is not None and f"{scope['path']}/".startswith("/mcp/"):
        path = quote(scope["path"], safe="/")
        parts.append(f'resource_metadata="{base_url(scope)}{METADATA}{path}"')
    return {"WWW-Authenticate": " ".join(["Bearer", ", ".join(parts)]).strip()}


def path_below_mount(scope: Scope) -> str:
    """Return the path of a request, relative to the path at which the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def base_url(scope: Scope) -> str:
    """Return the server's URL: the operator's public URL, or else the URL in the request, whose host was checked."""
    if public := scope.get("state", {}).get("public_url"):
        return f"{public}{scope.get('root_path', '')}"
    host = Headers(scope=scope).get("host", "localhost")
    return f"{scope.get('scheme', 'http')}://{host}{scope.get('root_path', '')}"


def principal_of(scope: Scope) -> Principal:
    """Return the caller of a request, which AuthMiddleware stored in the scope.

    Raises:
        Refusal: no caller is stored there.
    """
    principal = scope.get("state", {}).get("principal")
    if not isinstance(principal, Principal):
        raise _needs_token(scope)
    return principal


def _needs_token(scope: Scope) -> Refusal:
    detail = "this request needs a token: send the header `Authorization: Bearer TOKEN`"
    return Refusal("unauthenticated", detail, challenge("", scope))


async def unlimited() -> float:
    """Return infinity: the validity in seconds of a caller that needs no token."""
    return math.inf


def left_of(scope: Scope) -> LeftS:
    """Return a function that computes the number of seconds for which the token of a request is still valid."""
    left: LeftS = scope.get("state", {}).get("left_s", unlimited)
    return left


@dataclass
class Admission:
    """Which requests are accepted.

    Attributes:
        tokens: the server's own tokens.
        require_token: whether every request needs a token, even from this machine. `Server` sets this field if it
            listens on an address that other machines can reach.
        hosts: accepted names in the Host header, in addition to localhost and addresses; "*": any name.
        origins: other origins whose pages may call the server from a browser, such as https://chat.example.org.
        issuer: an OIDC issuer whose tokens are accepted in addition to `tokens`.
        public_url: the URL by which a proxy publishes the server, such as https://mind.example.org; "": none. With a
            public URL every request needs a token, because a proxy on this machine connects from a loopback address.
    """

    tokens: Tokens
    require_token: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    issuer: Issuer | None = None
    public_url: str = ""


class ResponseSender:
    """Sends a response: adds the security headers, ends the response when the token expires, reports a refused body.

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
        """End the response if its token has expired. Return whether the response was ended.

        The token is checked at most once in TOKEN_CHECK_S seconds.
        """
        if (
            self._has_ended
            or self._checked is None
            or not message.get("more_body")
            or self._scope["state"].get("ends_itself")
        ):
            return self._has_ended
        if CLOCK.elapsed() - self._checked >= TOKEN_CHECK_S:
            self._checked = CLOCK.elapsed()
            with contextlib.suppress(StorageError):  # the token is checked again after TOKEN_CHECK_S
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

    def __init__(
        self, inner: ASGIApp, admission: Admission, limits: Limits, budgets: Budgets, metrics: Metrics
    ) -> None:
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
        # lower-case names, because an application that mounts this one may pass them on as they came
        headers = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
        path = path_below_mount(scope)
        scope.setdefault("state", {}).update(public_url=self._admission.public_url, path=path)
        if not scope["path"].startswith("/"):  # an absolute URL: its host would override the checked Host header
            raise Refusal("malformed", "the request target must be a path that begins with /, not an absolute URL")
        for name in ("host", "origin", "authorization"):
            if len(headers.getlist(name)) > 1:
                raise Refusal("malformed", f"the header {name} occurs twice: send it once")
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

    def _check_origin(self, headers: Headers) -> None:
        """Refuse requests that a browser sends for a page of another origin, unless the operator permits that
        origin."""
        origin = headers.get("origin")
        if origin is None or origin in self._admission.origins or origin == (self._admission.public_url or None):
            return
        if urlsplit(origin).netloc != headers.get("host", "") or not urlsplit(origin).netloc:
            raise Refusal(
                "forbidden", "pages of another origin may not call this server; `--allow-origin URL` permits an origin"
            )

    async def _authenticate(self, scope: Scope, headers: Headers) -> tuple[Principal, Token | None]:
        path = scope["state"]["path"]
        if path in WITHOUT_PREFIX:
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
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIXES):
            return Principal("", frozenset()), None
        raise _needs_token(scope)

    def _source(self, token: str) -> Tokens | Issuer:
        """Return the checker of a token: the server's own tokens, or the OIDC issuer."""
        if token.startswith(PREFIX) or self._admission.issuer is None:
            return self._admission.tokens
        return self._admission.issuer

    def _is_placeholder(self, token: str, scope: Scope) -> bool:
        """Return whether a token is only a placeholder: OpenAI clients must send a key even if none is required."""
        is_signed = self._admission.issuer is not None and token.count(".") == 2
        is_made_up = not token.startswith(PREFIX) and not is_signed
        return is_made_up and scope["state"]["path"].startswith(OPENAI) and self._is_open(scope)

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
