"""What a token may ask for: so many requests a minute, so many at once; no request is larger or slower than this."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from mindstream.clock import DAY_S, Clock
from mindstream.server.asgi import Message, Receive, Scope
from mindstream.server.ledger import Ledger
from mindstream.server.problems import Refusal
from mindstream.server.tokens import Token

LARGEST_BODY = 4_000_000
BODY_S = 30.0
"""So long a part of a body may take to come, and so long, twice, the whole of it."""
A_MINUTE, AT_ONCE = 6_000, 2_000
"""What a token may that says nothing else; the people of this machine may ten times as much."""
LOCAL_TIMES = 10
HELD = 10_000
"""So many buckets are held; a full one is no loss."""


@dataclass
class Bucket:
    """What is left of a minute's requests, and how many go on."""

    left: float
    at: float
    going: int = 0


@dataclass
class Amount:
    """What is left of a day's bytes."""

    left: float
    at: float


PORTIONS = 600
"""So many portions a minute's requests are drawn in, where several servers count together: what one has drawn and not
used is all that may be allowed beyond the limit."""


class Limits:
    """Counts requests by token.

    Args:
        shared: where servers of the same data count together; None: there is one. What goes on at once each counts.
    """

    def __init__(self, clock: Clock, shared: Ledger | None = None) -> None:
        self._clock, self._shared = clock, shared
        self._buckets: dict[str, Bucket] = {}
        self._amounts: dict[str, Amount] = {}

    @contextlib.asynccontextmanager
    async def one(self, key: str, token: Token | None) -> AsyncIterator[None]:
        """Count one request while the block runs.

        Raises:
            Refusal: it is one too many.
        """
        times = LOCAL_TIMES if token is None else 1
        a_minute = (token and token.a_minute) or A_MINUTE * times
        at_once = (token and token.at_once) or AT_ONCE * times
        now = self._clock.elapsed()
        bucket = self._buckets.get(key)
        if bucket is None:
            self._tidy()
            bucket = self._buckets[key] = Bucket(0 if self._shared else a_minute, now)
        if self._shared is None:
            bucket.left = min(a_minute, bucket.left + (now - bucket.at) * a_minute / 60)
        elif bucket.left < 1:
            drawn = await self._shared.draw(key, a_minute, max(1, a_minute // PORTIONS))
            bucket.left = bucket.left + drawn if drawn > 0 and bucket.left > 0 else drawn
        bucket.at = now
        if bucket.left < 1:
            wait_s = max(1, round((1 - bucket.left) * 60 / a_minute + 0.5))
            raise Refusal("too-many", f"{a_minute} requests a minute are allowed", {"Retry-After": str(wait_s)})
        if bucket.going >= at_once:
            raise Refusal("too-many", f"{at_once} requests at once are allowed", {"Retry-After": "1"})
        bucket.left -= 1
        bucket.going += 1
        try:
            yield
        finally:
            bucket.going -= 1

    @contextlib.asynccontextmanager
    async def weighed(self, token: Token | None, body: BoundedBody) -> AsyncIterator[None]:
        """Count the bytes of a body that is read while the block runs.

        Raises:
            Refusal: the token's bytes of a day are spent; what is only asked for has none.
        """
        if token is None or not token.bytes_a_day:
            yield
            return
        a_day, now = token.bytes_a_day, self._clock.elapsed()
        amount = self._amounts.setdefault(token.id, Amount(a_day, now))
        if self._shared is not None and body.is_there:
            amount.left = await self._shared.weigh(token.id, a_day, 0)
        else:
            amount.left += (now - amount.at) * a_day / DAY_S
        amount.left, amount.at = min(a_day, amount.left), now
        if amount.left < 0 and body.is_there:
            wait_s = max(1, round(-amount.left * DAY_S / a_day + 0.5))
            told = f"{a_day:,} bytes a day are taken from this token: wait, or ask the operator for `--bytes-a-day`"
            raise Refusal("too-many", told, {"Retry-After": str(wait_s)})
        try:
            yield
        finally:
            amount.left -= body.taken
            if self._shared is not None and body.taken:
                await self._shared.weigh(token.id, a_day, body.taken)

    def _tidy(self) -> None:
        if len(self._buckets) >= HELD:
            self._buckets = {key: each for key, each in self._buckets.items() if each.going}


class BoundedBody:
    """A request's body, as far as it may go.

    Raises:
        Refusal: it says that it is larger, or is packed.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self.taken = 0
        self.is_there = scope["method"] not in ("GET", "HEAD", "DELETE")
        self._is_whole = False
        self.refusal: Refusal | None = None
        """Why it was refused in the middle: whoever was reading it may have made something else of that."""
        self.is_told = False
        self._until = asyncio.get_running_loop().time() + 2 * BODY_S
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value[:20]) > LARGEST_BODY):
                raise self._too_large()
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise Refusal("media-type", "send it unpacked: no content-encoding is read here")

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()  # which waits until the client goes away
        try:
            async with asyncio.timeout_at(min(self._until, asyncio.get_running_loop().time() + BODY_S)):
                message = await self._receive()
        except TimeoutError:
            self.refusal = Refusal("malformed", "the body did not come", {"Connection": "close"})
            raise self.refusal from None
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
            if self.taken > LARGEST_BODY:
                self.refusal = self._too_large()
                raise self.refusal
        return message

    def _too_large(self) -> Refusal:
        return Refusal("too-large", f"{LARGEST_BODY:,} bytes are taken at most", {"Connection": "close"})
