"""The connections that a process has to one database: a few, lent to all tenants' stores, each time as one tenant.

Row-level security shows a connection the rows of the tenant that it is set to. Whoever is lent one is that tenant on
it, whoever had it before; one that cannot be set is not lent. What a connection had begun when it came back is rolled
back, or it is let go.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg

from mindstream.clock import SystemClock
from mindstream.errors import StorageError

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
MOST = 8
"""So many are lent at a time; each is a process of the server."""
WAIT_S, IDLE_S, REST_S = 30.0, 60.0, 0.1
"""So long is waited for one that is free, one is held that nobody uses, and is rested where the server went away."""
NOBODY, UNKNOWN = "\n", "\r"
"""No tenant is called so: what a connection is before it is anybody's, and while nobody knows whose it is."""
IDLE = psycopg.pq.TransactionStatus.IDLE


@dataclass
class _Held:
    connection: Connection
    tenant: str
    since: float


class Lending:
    """Lends connections; they are made when they are asked for, in the thread that asks.

    Args:
        connect: makes one, in autocommit.
    """

    def __init__(self, place: str, connect: Callable[[], Connection], most: int = MOST) -> None:
        self._place, self._connect = place, connect
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_Held] = []
        self._clock = SystemClock()
        self._sweep: threading.Timer | None = None
        self._closed = False

    @contextlib.contextmanager
    def lend(self, tenant: str, *, beyond: bool = False) -> Iterator[Connection]:
        """Lend a connection that is the tenant's while the block runs.

        Args:
            beyond: beside the others, for it is kept for long while others are asked for.

        Raises:
            StorageError: none was free for WAIT_S.
            psycopg.Error: none can be made, or what the block raises.
        """
        if not beyond and not self._room.acquire(timeout=WAIT_S):
            raise StorageError(f"{self._place}: no connection was free for {WAIT_S:.0f} seconds")
        try:
            held = self._taken(tenant)
            try:
                if held.tenant != tenant:
                    held.tenant = UNKNOWN
                    be(held.connection, tenant)
                    held.tenant = tenant
                yield held.connection
            finally:
                self._take_back(held)
        finally:
            if not beyond:
                self._room.release()

    def forget(self) -> None:
        """Let go of all that nobody has: the server went away."""
        with self._lock:
            idle, self._idle = self._idle, []
        _close(idle)

    def close(self) -> None:
        """Let go of all; what is lent yet is let go of when it comes back."""
        self._closed = True
        with self._lock:
            if self._sweep is not None:
                self._sweep.cancel()
        self.forget()

    def _taken(self, tenant: str) -> _Held:
        with self._lock:
            place = next((at for at in reversed(range(len(self._idle))) if self._idle[at].tenant == tenant), -1)
            if self._idle:
                return self._idle.pop(place)
        return _Held(self._connect(), NOBODY, 0.0)

    def _take_back(self, held: _Held) -> None:
        if not held.connection.closed and held.connection.info.transaction_status != IDLE:
            with contextlib.suppress(psycopg.Error):
                held.connection.rollback()
        fit = not held.connection.closed and held.connection.info.transaction_status == IDLE
        fit = fit and held.connection.autocommit and held.tenant != UNKNOWN
        held.since = self._clock.elapsed()
        with self._lock:
            if fit and not self._closed:
                self._idle.append(held)
                if self._sweep is None:
                    self._sweep_later()
                return
        _close([held])

    def _sweep_later(self) -> None:
        self._sweep = threading.Timer(IDLE_S / 2, self._let_go_of_old)
        self._sweep.daemon = True
        self._sweep.start()

    def _let_go_of_old(self) -> None:
        before = self._clock.elapsed() - IDLE_S
        with self._lock:
            old = [each for each in self._idle if each.since < before]
            self._idle = [each for each in self._idle if each.since >= before]
            self._sweep = None
            if self._idle and not self._closed:
                self._sweep_later()
        _close(old)


def be(connection: Connection, tenant: str) -> None:
    """Let a connection be a tenant's: row-level security shows it that tenant's rows alone.

    The planner knows nothing of names (tables.WORDS), and takes each stream for a short one: it would collect all of it
    and sort. Without bitmaps it walks the index that has the order.
    """
    connection.execute(
        "SELECT set_config('mindstream.tenant', %s, false), set_config('enable_bitmapscan', 'off', false)", (tenant,)
    )


def _close(held: list[_Held]) -> None:
    for each in held:
        with contextlib.suppress(psycopg.Error):
            each.connection.close()
