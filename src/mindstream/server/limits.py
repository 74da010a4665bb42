"""Limits of requests: number per minute, number at once, bytes per day, the size and duration of a body, and the daily
budgets of access tokens for model calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TypeAlias

from mindstream.clock import DAY_S, Clock
from mindstream.encodings import whole_json_text
from mindstream.errors import StorageError
from mindstream.models.wrappers.meter import Budget
from mindstream.server.asgi import Message, Receive, Scope
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import ISSUED, IssuedLimits, Token, Tokens

LARGEST_BODY = 4_000_000
"""Maximum bytes of a request's body."""
BODY_S = 30.0
"""Maximum seconds between two parts of a body; the whole body may take twice as long."""
A_MINUTE, AT_ONCE = 6_000, 2_000
"""Default limits of a token: requests per minute, and simultaneous requests."""
LOCAL_TIMES = 10
"""Factor by which the default limits are higher for programs on this machine without a token."""
MAX_BUCKETS = 10_000
"""Number of buckets (one for each token) at which those without running requests are removed. Removing a bucket only
resets the count for its limit."""
PORTIONS = 600
"""If several servers count together, each takes its allowance from the common store in portions; this is the number of
portions into which the requests of a minute are divided. Because of unused portions, the limit can be exceeded by one
portion per server."""


@dataclass
class Bucket:
    """A token bucket: the remaining allowance at a time, and the number of running requests."""

    left: float
    at: float
    running: int = 0


class Limits:
    """Counts requests by token.

    Args:
        shared: the state in which several servers of the same data count together; None: there is one server.
            Simultaneous requests are counted by each server separately.
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
            Refusal: the token's daily bytes are used up. Requests without a body are still accepted.
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
    """Receives a request's body, within the limits of size and time; JSON arrives as a whole, without half characters.

    Attributes:
        taken: number of bytes that were received.
        is_expected: requests with this method have a body.
        refusal: why the body was refused while it was received. It is stored here because the reader of the body may
            have replaced the exception by another one.
        is_reported: the refusal was sent to the client.

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
        self._is_json = False
        for name, value in scope["headers"]:
            if name == b"content-type":
                self._is_json = value.strip().lower().startswith(b"application/json")
            if name == b"content-length" and (not value.isdigit() or int(value[:20]) > LARGEST_BODY):
                raise self._too_large()
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
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
"""Interval in seconds at which a token's spending is exchanged with other processes: by a background task if this
process has spent something, and by the first request after that interval."""
NEAR = 0.8
"""Share of a limit. If more than this share is spent, every request exchanges spending with other processes."""
Spent: TypeAlias = tuple[int, int, float]
"""Spending: model calls, tokens, US dollars."""


@dataclass
class _Account:
    """The budget of an access token for one day.

    Attributes:
        stored: the part of the budget's spending that is already in the stored sum: all spending of other servers, and
            this process's up to the last exchange.
        at: the time of the last exchange.
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
        is_shared: other processes use the same budgets, so spending is exchanged before each model call. A limit can
            then be exceeded by one call of each process; with a single process it cannot be exceeded.
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
