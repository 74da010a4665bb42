"""The state that all servers of the same data share: idempotency keys, spending, request rates, webhook progress.

It contains no users' words. Each item is a row of the store's table `kept` under the server's own key.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from mindstream.clock import DAY_S, HOUR_S, Clock
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.operation import SERVER

WRITE, SPENT, DELIVERED, RATE, BYTES, POSTS = "write:", "spent:", "delivered:", "rate:", "bytes:", "posts:"
RETENTION_S = {WRITE: DAY_S, SPENT: 3 * DAY_S, RATE: HOUR_S}
"""Seconds after which rows with each prefix have no effect any more and are deleted."""
T = TypeVar("T")


class ServerState:
    """The state that all servers of the same data share.

    Args:
        store: returns the server's own store; called only after the data were opened.
    """

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock, self._swept = store, clock, 0.0

    async def _update(self, name: str, change: Callable[[Any], tuple[Any, T]]) -> T:
        """Change a value in one transaction.

        Args:
            change: takes the stored JSON value, or None if there is none. Returns the new value (None deletes the row)
                and the result of this method. It may be called again after a conflict with another server.
        """
        now, results = self._clock.now(), list[T]()
        if now - self._swept > HOUR_S:
            self._swept = now
            for prefix, seconds in RETENTION_S.items():
                await self._store().drop_kept(SERVER, prefix, now - seconds)

        def apply(before: str | None) -> str | None:
            after, result = change(None if before is None else json.loads(before))
            results.append(result)
            return None if after is None else json.dumps(after)

        await self._store().keep(SERVER, name, now, apply)
        return results[-1]

    async def begin(self, key: str, request: str) -> tuple[str, int, str] | None:
        """Reserve an idempotency key for a request, for a day.

        Returns:
            None if the key was free and is reserved now. Otherwise the request for which it was reserved, the status
            of the reply (0: not executed yet), and the stored reply.
        """
        now = self._clock.now()

        def reserve(held: Any) -> tuple[Any, tuple[str, int, str] | None]:
            if held is not None and now - held[0] <= DAY_S:
                return held, (held[1], held[2], held[3])
            return [now, request, 0, ""], None

        return await self._update(WRITE + key, reserve)

    async def done(self, key: str, status: int, answer: str) -> None:
        """Store the status and the reply of the request with an idempotency key."""
        await self._update(WRITE + key, lambda held: (held and [*held[:2], status, answer], None))

    async def drop(self, key: str) -> None:
        """Release an idempotency key whose request was not executed."""
        await self._update(WRITE + key, lambda _: (None, None))

    async def spend(self, token: str, day: int, calls: int, tokens: int, usd: float) -> tuple[int, int, float]:
        """Add to the spending of an access token on a day; return the token's spending on this day, of all servers."""

        def add(before: Any) -> tuple[Any, tuple[int, int, float]]:
            was = before or (0, 0, 0.0)
            spent = int(was[0]) + calls, int(was[1]) + tokens, float(was[2]) + usd
            return (spent if any(spent) else None), spent

        return await self._update(f"{SPENT}{token}:{day}", add)

    async def draw(self, key: str, a_minute: float, most: int) -> float:
        """Take up to `most` requests from the allowance of `a_minute` requests per minute.

        Returns:
            The number of requests taken. If less than one request is left, a negative number between -1 and 0: minus
            the missing part of a request.
        """
        now = self._clock.now()

        def take(before: Any) -> tuple[Any, float]:
            left, at = before or (a_minute, now)
            left = min(a_minute, left + max(0.0, now - at) * a_minute / 60)
            drawn = min(most, int(left)) if left >= 1 else left - 1
            return [left - max(0.0, drawn), now], drawn

        return await self._update(RATE + key, take)

    async def weigh(self, key: str, a_day: float, taken: int) -> float:
        """Take bytes from the daily allowance of a token; return the rest, negative if too few bytes were left.

        Args:
            a_day: the daily allowance in bytes; it is refilled at an even rate.
            taken: number of bytes to take.
        """
        now = self._clock.now()

        def take(before: Any) -> tuple[Any, float]:
            left, at = before or (a_day, now)
            rest = min(a_day, left + max(0.0, now - at) * a_day / DAY_S) - taken
            return [rest, now], rest

        return await self._update(BYTES + key, take)

    async def delivered(self, receiver: str) -> int | None:
        """Return the number of the log row after which posting to a webhook receiver continues; None: a new receiver.

        A new receiver starts at the end of the log. Rows that the receiver rejects are skipped.
        """
        name = DELIVERED + receiver
        rows = await self._store().kept(SERVER, name)
        return next((int(each.value) for each in rows if each.name == name), None)

    async def deliver(self, receiver: str, seq: int) -> None:
        """Store the number of the log row after which posting to a receiver continues; the number never decreases."""
        await self._update(DELIVERED + receiver, lambda before: (max(seq, int(before or 0)), None))

    async def hold(self, receiver: str, owner: str, lease_s: float) -> bool:
        """Take, renew or release the lease under which one server posts to a receiver.

        Args:
            owner: identifies the server.
            lease_s: seconds from now; 0 releases the lease.

        Returns:
            False if another server holds the lease, else True.
        """
        now = self._clock.now()

        def take(before: Any) -> tuple[Any, bool]:
            held_by, until = before or (owner, now)
            if now < until and held_by != owner:
                return before, False
            return ([owner, now + lease_s] if lease_s else None), True

        return await self._update(POSTS + receiver, take)
