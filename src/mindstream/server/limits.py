"""Limits of requests: number per minute, number at once, bytes per day, and the size and duration of a body."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from mindstream.clock import DAY_S, Clock
from mindstream.encodings import whole_json_text
from mindstream.server.asgi import Message, Receive, Scope
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import Token

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
