"""What a server keeps of itself beside the log, for all servers of these data: writes done, spending, what was posted.

No words stand in it. Each is a row of the store's table `kept`, which no stream of anybody's has.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from mindstream.clock import DAY_S, HOUR_S, Clock
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.own import SERVER

WRITE, SPENT, DELIVERED, RATE, BYTES = "write:", "spent:", "delivered:", "rate:", "bytes:"
POSTS = "posts:"
LAST = {WRITE: DAY_S, SPENT: 3 * DAY_S, RATE: HOUR_S}
"""So long, in seconds, what stands there means anything: what is older says the same as nothing."""


class Ledger:
    """What servers write down; `store` gives the store that is no tenant's, once the data are open."""

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock, self._swept = store, clock, 0.0

    async def begin(self, key: str, request: str) -> tuple[str, int, str] | None:
        """Take a key for a request; return what stands there: the request, the status (0: not done), the answer.

        Keys are kept for a day.
        """
        now, found = self._clock.now(), list[tuple[str, int, str]]()

        def take(before: str | None) -> str:
            found.clear()  # it may be run again
            if before is not None and now - (held := json.loads(before))[0] <= DAY_S:
                found.append((held[1], held[2], held[3]))
                return before
            return json.dumps([now, request, 0, ""])

        await self._keep(WRITE + key, take)
        return found[-1] if found else None

    async def _keep(self, name: str, change: Callable[[str | None], str | None]) -> None:
        now = self._clock.now()
        if now - self._swept > HOUR_S:
            self._swept = now
            for prefix, lasts_s in LAST.items():
                await self._store().drop_kept(SERVER, prefix, now - lasts_s)
        await self._store().keep(SERVER, name, now, change)

    async def done(self, key: str, status: int, answer: str) -> None:
        """Keep what a request was answered with."""

        def fill(before: str | None) -> str | None:
            return None if before is None else json.dumps([*json.loads(before)[:2], status, answer])

        await self._keep(WRITE + key, fill)

    async def drop(self, key: str) -> None:
        """Let a key be taken again: nothing was done."""
        await self._keep(WRITE + key, lambda _: None)

    async def spend(self, token: str, day: int, calls: int, tokens: int, usd: float) -> tuple[int, int, float]:
        """Add to what a token has spent on a day; return what that is then, by whatever server."""
        spent = (0, 0, 0.0)

        def add(before: str | None) -> str | None:
            nonlocal spent
            was = json.loads(before) if before is not None else (0, 0, 0.0)
            spent = int(was[0]) + calls, int(was[1]) + tokens, float(was[2]) + usd
            return json.dumps(spent) if any(spent) else None

        await self._keep(f"{SPENT}{token}:{day}", add)
        return spent

    async def draw(self, key: str, a_minute: float, most: int) -> float:
        """Take up to so many of a minute's requests; return how many, or (below 0) what is missing to one."""
        now, drawn = self._clock.now(), 0.0

        def take(before: str | None) -> str:
            nonlocal drawn
            left, at = json.loads(before) if before is not None else (a_minute, now)
            left = min(a_minute, left + max(0.0, now - at) * a_minute / 60)
            drawn = min(most, int(left)) if left >= 1 else left - 1
            return json.dumps([left - max(0.0, drawn), now])

        await self._keep(RATE + key, take)
        return drawn

    async def weigh(self, key: str, a_day: float, taken: int) -> float:
        """Take bytes from what a token has of them a day; return what is left, below 0 where it took more."""
        now, rest = self._clock.now(), a_day

        def take(before: str | None) -> str:
            nonlocal rest
            left, at = json.loads(before) if before is not None else (a_day, now)
            rest = min(a_day, left + max(0.0, now - at) * a_day / DAY_S) - taken
            return json.dumps([rest, now])

        await self._keep(BYTES + key, take)
        return rest

    async def delivered(self, receiver: str) -> int | None:
        """Return the seq up to which all was posted to a receiver; None: nothing ever was."""
        found = {each.name: each.value for each in await self._store().kept(SERVER, DELIVERED)}
        return int(found[DELIVERED + receiver]) if DELIVERED + receiver in found else None

    async def deliver(self, receiver: str, seq: int) -> None:
        """Keep up to which seq all was posted to a receiver; that never goes back."""

        def forward(before: str | None) -> str:
            return str(max(seq, int(before or 0)))

        await self._keep(DELIVERED + receiver, forward)

    async def hold(self, receiver: str, owner: str, lease_s: float) -> bool:
        """Take it on to post to a receiver, for so many seconds from now (0: let go); tell whether nobody else has."""
        now, holder = self._clock.now(), owner

        def take(before: str | None) -> str | None:
            nonlocal holder
            held_by, until = json.loads(before) if before is not None else (owner, now)
            holder = held_by if now < until else owner
            if holder != owner:
                return before
            return json.dumps([owner, now + lease_s]) if lease_s else None

        await self._keep(POSTS + receiver, take)
        return holder == owner
