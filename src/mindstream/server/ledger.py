"""What a server keeps of itself beside the log, for all servers of these data: writes done, spending, what was posted.

No words stand in it. Each is a row of the store's table `kept`, which no stream of anybody's has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable

from mindstream.clock import DAY_S, HOUR_S, Clock
from mindstream.errors import StorageError
from mindstream.memory.store.store import KeptStore
from mindstream.models.wrappers.budget import Budget
from mindstream.server.tokens import ISSUED, IssuedLimits, Token, Tokens
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


KEPT_S = 2.0
"""So long what was spent may be known in memory alone, while much is left."""
NEAR = 0.8
"""Share of a limit from which on each request exchanges with the ledger what was spent."""


class Budgets:
    """A budget for each token that has limits, anew each day; what all servers spend is counted together.

    What calls in flight reserve is written down as spent, and corrected when they end. A server that is killed leaves
    its reservations counted for that day.

    Args:
        issued: the limits of each holder of an issuer's tokens.
        is_shared: other processes spend of the same budgets, so that each call exchanges with the ledger before it
            begins. One call of each process may exceed a limit then; in one process none does.
    """

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        tokens: Tokens,
        issued: IssuedLimits | None = None,
        *,
        is_shared: bool = True,
    ) -> None:
        self._ledger, self._clock, self._tokens = ledger, clock, tokens
        self._issued, self._is_shared = issued, is_shared
        self._held: dict[tuple[str, int], Budget] = {}
        self._kept: dict[tuple[str, int], tuple[int, int, float]] = {}
        self._at: dict[tuple[str, int], float] = {}

    async def of(self, token: Token) -> Budget | None:
        """Return what a token may spend today; None: there is no limit."""
        if token.tokens is None and token.usd is None:
            return None
        key = (token.id, int(self._clock.now() // DAY_S))
        if key not in self._held:
            spent = await self._ledger.spend(*key, 0, 0, 0.0)
            if key not in self._held:
                budget = Budget(None, token.tokens, token.usd, *spent)
                budget.bring_up = lambda: self._bring_up(key, is_call=True)
                self._held[key], self._kept[key], self._at[key] = budget, spent, self._clock.elapsed()
        await self._bring_up(key)
        return self._held[key]

    async def of_id(self, id_: str) -> Budget | None:
        """Return what the token of an id may spend today; None: there is no limit, or no such token."""
        if self._issued is not None and id_.startswith(ISSUED):
            return await self.of(self._issued.limited(id_))
        found = next((each for each in await self._tokens.each() if each.id == id_), None)
        return await self.of(found) if found is not None else None

    async def _bring_up(self, key: tuple[str, int], *, is_call: bool = False) -> None:
        """Exchange with the ledger what was spent: ours is added there, and that of others here."""
        budget, now = self._held.get(key), self._clock.elapsed()
        if budget is None:
            return
        if now - self._at[key] > KEPT_S or (self._is_shared and (is_call or budget.is_near(NEAR))):
            self._at[key] = now
            await self._exchange(key, budget)

    async def _exchange(self, key: tuple[str, int], budget: Budget) -> None:
        kept, ours = self._kept[key], _counted(budget)
        self._kept[key] = ours  # whoever comes meanwhile adds what comes after
        calls, tokens, usd = ours[0] - kept[0], ours[1] - kept[1], ours[2] - kept[2]
        try:
            spent = await self._ledger.spend(*key, calls, tokens, usd)
        except BaseException:
            now = self._kept[key]
            self._kept[key] = (now[0] - calls, now[1] - tokens, now[2] - usd)
            raise
        others = (spent[0] - ours[0], spent[1] - ours[1], spent[2] - ours[2])
        now = self._kept[key]
        self._kept[key] = (now[0] + others[0], now[1] + others[1], now[2] + others[2])
        budget.spent_calls += others[0]
        budget.spent_tokens += others[1]
        budget.spent_usd += others[2]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write down what is spent every KEPT_S while the block runs, and at its end: a kill loses no more."""
        over = asyncio.Event()
        going = asyncio.ensure_future(self._keep_until(over))
        try:
            yield
        finally:
            over.set()  # not cancelled: what is just being written would count twice
            await going
            await self.keep()

    async def _keep_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), KEPT_S)
            with contextlib.suppress(StorageError):  # it is written down the next time
                await self.keep()

    async def keep(self) -> None:
        """Write down what was spent since, and let go of days that are over."""
        today = int(self._clock.now() // DAY_S)
        for key, each in list(self._held.items()):
            if _counted(each) != self._kept[key]:
                await self._exchange(key, each)
            if key[1] < today - 1:
                del self._held[key], self._kept[key], self._at[key]


def _counted(budget: Budget) -> tuple[int, int, float]:
    """Return what counts for other servers: what is spent, and what calls in flight have reserved."""
    return (budget.spent_calls, budget.spent_tokens + budget.reserved_tokens, budget.spent_usd + budget.reserved_usd)
