"""What a server keeps of itself beside the log, for all servers of these data: writes done, spending, what was posted.

No words stand in it. Each is a row of the store's table `kept`, which no stream of anybody's has.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from mindstream.clock import DAY_S, HOUR_S, Clock
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.own import SERVER

WRITE, SPENT, DELIVERED = "write:", "spent:", "delivered:"


class Ledger:
    """What servers write down; `store` gives the store that is no tenant's, once the data are open."""

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock, self._swept = store, clock, 0.0

    async def begin(self, key: str, request: str) -> tuple[str, int, str] | None:
        """Take a key for a request; return what stands there: the request, the status (0: not done), the answer.

        Keys are kept for a day.
        """
        now, found = self._clock.now(), list[tuple[str, int, str]]()
        if now - self._swept > HOUR_S:
            self._swept = now
            await self._store().drop_kept(SERVER, WRITE, now - DAY_S)

        def take(before: str | None) -> str:
            if before is not None and now - (held := json.loads(before))[0] <= DAY_S:
                found.append((held[1], held[2], held[3]))
                return before
            return json.dumps([now, request, 0, ""])

        await self._store().keep(SERVER, WRITE + key, now, take)
        return found[-1] if found else None

    async def done(self, key: str, status: int, answer: str) -> None:
        """Keep what a request was answered with."""

        def fill(before: str | None) -> str | None:
            return None if before is None else json.dumps([*json.loads(before)[:2], status, answer])

        await self._store().keep(SERVER, WRITE + key, self._clock.now(), fill)

    async def drop(self, key: str) -> None:
        """Let a key be taken again: nothing was done."""
        await self._store().keep(SERVER, WRITE + key, self._clock.now(), lambda _: None)

    async def spent(self, token: str, day: int) -> tuple[int, int, float]:
        """Return the calls, tokens and US dollars that a token has spent on a day."""
        for each in await self._store().kept(SERVER, f"{SPENT}{token}:{day}"):
            calls, tokens, usd = json.loads(each.value)
            return int(calls), int(tokens), float(usd)
        return 0, 0, 0.0

    async def spend(self, token: str, day: int, calls: int, tokens: int, usd: float) -> None:
        """Keep what a token has spent on a day."""
        value = json.dumps([calls, tokens, usd])
        await self._store().keep(SERVER, f"{SPENT}{token}:{day}", self._clock.now(), lambda _: value)

    async def delivered(self, receiver: str) -> int | None:
        """Return the seq up to which all was posted to a receiver; None: nothing ever was."""
        found = {each.name: each.value for each in await self._store().kept(SERVER, DELIVERED)}
        return int(found[DELIVERED + receiver]) if DELIVERED + receiver in found else None

    async def deliver(self, receiver: str, seq: int) -> None:
        """Keep up to which seq all was posted to a receiver."""
        await self._store().keep(SERVER, DELIVERED + receiver, self._clock.now(), lambda _: str(seq))
