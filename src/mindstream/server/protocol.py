"""Connections that say nothing, or too slowly, or are too many, cost nothing: uvicorn's protocol with these bounds."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol as Connection

HEAD_S = 15.0
"""So long a request's head may take, from the connection or from its first byte on."""
LINGER_S = 5.0
"""So long a connection that was closed may take to read what was sent."""
MOST = 4_000
"""So many connections are open at once; beyond, they are told to come back."""
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 2\r\n"
    b'connection: close\r\ncontent-length: 101\r\n\r\n{"type":"urn:mindstream:problem:unavailable","title":"Too many '
    b'connections","status":503,"detail":""}'
)


class BoundedConnection(Connection):
    """One connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.write(BUSY)
            self._end()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_idle():
            if self._late is None and self.timeout_keep_alive_task is None:
                self._wait_for_head()
        else:
            self._unset_late()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset_late()
        super().connection_lost(exc)

    def _is_idle(self) -> bool:
        """Tell whether no request has come whole to its body."""
        return self.cycle is None or (self.cycle.response_complete and self.conn.our_state is h11.IDLE)

    def _wait_for_head(self) -> None:
        self._late = self.loop.call_later(HEAD_S, self._give_up)

    def _unset_late(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        self._late = None
        if self._is_idle() and not self.transport.is_closing():
            self._end()

    def _end(self) -> None:
        """Close it; where nobody reads what is left, break it off."""
        transport: Any = self.transport
        transport.close()
        self.loop.call_later(LINGER_S, transport.abort)
