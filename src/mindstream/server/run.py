"""Run the server: uvicorn, with an end that lets answers end."""

from __future__ import annotations

import socket
import sys

import uvicorn

from mindstream.errors import InputError
from mindstream.server.app import Doors

DRAIN_S = 20.0
"""So long answers may go on after SIGTERM."""


class Server(uvicorn.Server):
    """Uvicorn's server; where it listens stands on standard error, and before it ends answers may end."""

    def __init__(self, doors: Doors, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._doors = doors

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say where."""
        await super().startup(sockets)
        if self.started and not self.should_exit:
            for each in sockets or []:
                host, port = each.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"listening on http://{shown}:{port}", file=sys.stderr, flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, let answers end, end the streams of events."""
        for server in self.servers:
            server.close()
        await self._doors.house.drain(DRAIN_S)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes one that is free.

    Raises:
        InputError: it cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2_048)
    except (OSError, OverflowError) as error:
        raise InputError(f"it cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    made.set_inheritable(True)
    return made


def configure(doors: Doors) -> uvicorn.Config:
    """Return how the application is served."""
    return uvicorn.Config(
        doors, http="h11", ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=10, timeout_keep_alive=30,
    )  # fmt: skip


async def serve(doors: Doors, host: str, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        InputError: it cannot listen there.
    """
    with listen(host, port) as listening:
        await Server(doors, configure(doors)).serve([listening])
