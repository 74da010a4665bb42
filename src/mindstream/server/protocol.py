"""Uvicorn's HTTP/1.1 protocol with limits for clients that are silent, slow, too many, or do not read responses."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol as Connection

from mindstream.log.database import release_heap

LOG = logging.getLogger("mindstream.server")
HEAD_S = 15.0
"""Maximum seconds until the headers of a request have arrived. For the first request they are counted from the
connection, for later ones from the first byte."""
STUCK_S, CHECK_S = 30.0, 5.0
"""Seconds. STUCK_S: a client that has read none of its pending bytes for this time is disconnected. CHECK_S: the
interval of that check."""
MAX_CONNECTIONS = 4_000
"""Maximum number of open connections. A further one replaces the one that has waited longest for the headers of its
first request; if there is none, it gets the response 503."""
MAX_WAITING = 256
"""If at least this many clients have unread responses, requests without a token get 503 at once. Requests in PROBES are
still answered."""
PROBES = (b"GET /healthz ", b"GET /readyz ")
TOKEN = re.compile(rb"\r\nauthorization:", re.IGNORECASE)
MAX_UNREAD, LARGE, BOUND_S = 128_000_000, 65_536, 0.02
"""MAX_UNREAD: maximum bytes of pending responses of all clients together. The sum is computed only if a client has more
than LARGE pending bytes, and at most once in BOUND_S seconds."""
TELL_S = 10.0
"""Seconds: the minimum interval of log messages about closed connections; and the delay after which the memory of
closed connections is returned to the system."""
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 2\r\n"
    b'connection: close\r\ncontent-length: 101\r\n\r\n{"type":"urn:mindstream:problem:unavailable","title":"Too many '
    b'connections","status":503,"detail":""}'
)


class CountedTransport:
    """A transport that counts written bytes, and calls `on_waiting` if the client has not read some of them yet."""

    def __init__(self, transport: asyncio.Transport, on_waiting: Any) -> None:
        self._transport, self.on_waiting, self.written = transport, on_waiting, 0

    def write(self, data: bytes) -> None:
        """Write bytes to the client."""
        self.written += len(data)
        self._transport.write(data)
        if self._transport.get_write_buffer_size():
            self.on_waiting()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class BoundedConnection(Connection):
    """A connection with limits.

    Attributes:
        transport: counts the written bytes.
    """

    transport: Any
    _late: asyncio.TimerHandle | None = None
    _check: asyncio.TimerHandle | None = None
    _is_deferred = False
    _bounded_at = _told_at = _released_at = -math.inf
    _taken, _taken_at = 0, 0.0
    """Number of bytes that the client has read, and the time at which it last read some."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        counted: Any = CountedTransport(transport, self._watch)
        super().connection_made(counted)
        if len(self.connections) > MAX_CONNECTIONS and not self._replace_idle():
            self._refuse()
        else:
            self._wait_for_head()

    @property
    def _shared(self) -> tuple[dict[BoundedConnection, None], dict[BoundedConnection, None]]:
        """Return the server's connections without any request yet, and those whose client has unread responses."""
        state: Any = self.server_state
        if not hasattr(state, "idle"):
            state.idle, state.waiting = {}, {}
        return state.idle, state.waiting

    def _replace_idle(self) -> bool:
        """Close the connection that has waited longest for its first request; return whether there is one."""
        first = next(iter(self._shared[0]), None)
        if first is None:
            return False
        del self._shared[0][first]
        first.transport.abort()
        return True

    def _refuse(self) -> None:
        """Answer 503, before any work on a request, and close the connection."""
        self._unset_late()
        self.transport.write(BUSY)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if (
            len(self._shared[1]) >= MAX_WAITING
            and self._is_idle()
            and not (TOKEN.search(data) or data.startswith(PROBES))
        ):
            self._refuse()
            return
        super().data_received(data)
        if self._is_idle():
            if self._late is None and self.timeout_keep_alive_task is None:
                self._wait_for_head()
        else:
            self._unset_late()

    def handle_events(self) -> None:
        """Delay the next request until the client has read enough of the earlier responses."""
        self._is_deferred = self.flow.write_paused and self.cycle is not None and self.cycle.response_complete
        if not self._is_deferred:
            super().handle_events()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._is_deferred:
            self.handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_late()
        if self._check is not None:
            self._check.cancel()
            self._check = None
        self._shared[1].pop(self, None)
        super().connection_lost(exc)
        # The connection, its transport and its last request refer to one another. Cutting these references frees them
        # at once. Otherwise the garbage collector would free them, and all requests wait while it runs.
        self.cycle, self.transport.on_waiting = None, lambda: None  # type: ignore[assignment]

    def _is_idle(self) -> bool:
        """Return whether no request is running, and the headers of the next one have not arrived completely."""
        return self.cycle is None or (self.cycle.response_complete and self.conn.our_state is h11.IDLE)

    def _wait_for_head(self) -> None:
        self._late = self.loop.call_later(HEAD_S, self._give_up)
        if self.cycle is None:
            self._shared[0][self] = None

    def _unset_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
            self._shared[0].pop(self, None)

    def _give_up(self) -> None:
        self._unset_late()
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    @property
    def unread(self) -> int:
        """Number of bytes that the client has not read yet."""
        return int(self.transport.get_write_buffer_size())

    def _watch(self) -> None:
        """Begin to check whether the client reads; the checks continue while a closed connection has pending bytes. If
        this client has more than LARGE unread bytes, also check the sum of all clients."""
        if self._check is None:
            self._taken, self._taken_at = self.transport.written - self.unread, self.loop.time()
            self._check = self.loop.call_later(min(CHECK_S, STUCK_S), self._look)
            self._shared[1][self] = None
        if self.unread > LARGE and self.loop.time() - BoundedConnection._bounded_at > BOUND_S:
            BoundedConnection._bounded_at = self.loop.time()
            self._bound_all()

    def _look(self) -> None:
        self._check, now = None, self.loop.time()
        if not (waiting := self.unread):
            self._shared[1].pop(self, None)
            return
        if (taken := self.transport.written - waiting) != self._taken:
            self._taken, self._taken_at = taken, now
        if now - self._taken_at >= STUCK_S:
            self._break_off(f"the client has read nothing for {STUCK_S:g} seconds")
        else:
            self._check = self.loop.call_later(min(CHECK_S, STUCK_S), self._look)

    def _bound_all(self) -> None:
        """If too many bytes are pending in all, close connections, first those that have read nothing for longest."""
        waiting = self._shared[1]
        total = sum(each.unread for each in waiting)
        if total <= MAX_UNREAD:
            return
        for each in sorted(waiting, key=lambda each: each._taken_at):
            total -= each.unread
            each._break_off(f"more than {MAX_UNREAD:,} bytes are pending for clients that do not read")
            if total <= MAX_UNREAD:
                return

    def _break_off(self, why: str) -> None:
        """Close the connection without sending pending bytes. `why` is logged, at most once every TELL_S seconds."""
        if self.loop.time() - BoundedConnection._told_at > TELL_S:
            BoundedConnection._told_at = self.loop.time()
            LOG.warning("mindstream: a connection was closed: %s", why)
        self.transport.abort()
        if self.loop.time() >= BoundedConnection._released_at:
            BoundedConnection._released_at = self.loop.time() + TELL_S
            self.loop.call_later(TELL_S, release_heap)
