"""Limits of requests: how many a minute, how many at once, bytes a day; no body is larger or slower than allowed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from mindstream.clock import DAY_S, Clock
from mindstream.server.asgi import Message, Receive, Scope
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import Token

LARGEST_BODY = 4_000_000
BODY_S = 30.0
"""Maximum seconds between two parts of a body; the whole body may take twice as long."""
A_MINUTE, AT_ONCE = 6_000, 2_000
"""Limits of a token that sets none."""
LOCAL_TIMES = 10
"""Programs on this machine may send this many times as much."""
MAX_BUCKETS = 10_000
"""Number of buckets after which unused ones are removed; a full one is no loss."""
PORTIONS = 600
"""Portions in which a minute's requests are drawn, where several servers count together: what one has drawn and not
used is the most that may be allowed beyond the limit."""


@dataclass
class Bucket:
    """What is left of a minute's requests at a time, and how many requests are running."""

    left: float
    at: float
    running: int = 0


class Limits:
    """Counts requests by token.

    Args:
        shared: where several servers of the same data count together; None: there is one server. Requests at once are
            counted by each server alone.
    """

    def __init__(self, clock: Clock, shared: ServerState | None = None) -> None:
        self._clock, self._shared = clock, shared
        self._buckets: dict[str, Bucket] = {}
        self._bytes: dict[str, Bucket] = {}

    @contextlib.asynccontextmanager
    async def one(self, key: str, token: Token | None) -> AsyncIterator[None]:
        """Count one request while the block runs.

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
            raise _too_many(f"{a_minute} requests a minute are allowed", (1 - bucket.left) * 60 / a_minute)
        if bucket.running >= at_once:
            raise _too_many(f"{at_once} requests at once are allowed", 0)
        bucket.left -= 1
        bucket.running += 1
        try:
            yield
        finally:
            bucket.running -= 1

    @contextlib.asynccontextmanager
    async def weighed(self, token: Token | None, body: BoundedBody) -> AsyncIterator[None]:
        """Count the bytes of a body that is read while the block runs.

        Raises:
            Refusal: the token's bytes of a day are used up. Requests without a body are accepted.
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
                f"{a_day:,} bytes a day are accepted with this token: wait, or ask the operator for `--bytes-a-day`"
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

    Attributes:
        taken: bytes that were received.
        is_expected: the request's method has a body.
        refusal: why it was refused half-way; its reader may have turned the exception into another one.
        is_reported: the refusal was sent.

    Raises:
        Refusal: it is declared as larger than allowed, or as compressed.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.taken = 0
        self.is_expected = scope["method"] not in ("GET", "HEAD", "DELETE")
        self.refusal: Refusal | None = None
        self.is_reported = self._is_whole = False
        self._until = asyncio.get_running_loop().time() + 2 * BODY_S
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value[:20]) > LARGEST_BODY):
                raise self._too_large()
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise Refusal("media-type", "send the body without a content-encoding")

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()  # which waits until the client disconnects
        try:
            async with asyncio.timeout_at(min(self._until, asyncio.get_running_loop().time() + BODY_S)):
                message = await self._receive()
        except TimeoutError:
            self.refusal = Refusal("malformed", "the body did not arrive in time", {"Connection": "close"})
            raise self.refusal from None
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self.taken > LARGEST_BODY:
                self.refusal = self._too_large()
                raise self.refusal
        return message

    def _too_large(self) -> Refusal:
        return Refusal("too-large", f"a body has at most {LARGEST_BODY:,} bytes", {"Connection": "close"})
