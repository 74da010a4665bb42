"""Run the server: uvicorn, with an end that lets answers end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from mindstream.errors import InputError
from mindstream.server.api_app import ApiApp
from mindstream.server.auth import is_loopback
from mindstream.server.protocol import BoundedConnection

DRAIN_S = 20.0
"""So long answers may go on after SIGTERM."""
BACKLOG = 4_096
"""Connections that may wait to be accepted; where it is full, the system lets a client wait ever longer."""
COLLECTED_AFTER = (1_000, 10, 100)
"""New objects, and collections of the younger generations, after which the garbage collector runs. All requests
wait while it does, a tenth of a second for 20,000 objects on a busy machine: so it looks at few at a time."""


class Server(uvicorn.Server):
    """Uvicorn's server; where it listens stands on standard error, and before it ends answers may end."""

    def __init__(self, api_app: ApiApp, config: uvicorn.Config, tell: Callable[[str], None] | None = None) -> None:
        super().__init__(config)
        self._api_app, self._tell = api_app, tell

    async def serve_doors(self, sockets: list[socket.socket]) -> None:
        """Open the house, serve until told to end, and close it. Beyond loopback every request needs a token.

        Raises:
            MindstreamError: it cannot be opened.
        """
        if not all(is_loopback(each.getsockname()[0]) for each in sockets):
            self._api_app.admission.require_token = True
        async with self._api_app.lifespan():
            await self.serve(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and Ctrl-C, and be done then: that is no failure."""
        loop, heeded = asyncio.get_running_loop(), list[signal.Signals]()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                with contextlib.suppress(NotImplementedError):  # not on Windows
                    loop.add_signal_handler(number, self.handle_exit, number, None)
                    heeded.append(number)
        try:
            yield
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say where."""
        await super().startup(sockets)
        spare_collector()
        if self.started and not self.should_exit:
            for each in sockets or []:
                host, port = each.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"listening on http://{shown}:{port}", file=sys.stderr, flush=True)
                if self._tell is not None:
                    self._tell(f"http://{shown}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more, let answers end, end the streams of events."""
        for server in self.servers:
            server.close()
        await self._api_app.runtime.drain(DRAIN_S)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes one that is free.

    Raises:
        InputError: it cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or asyncio leaves Nagle on
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(f"it cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None
    made.set_inheritable(True)
    return made


def configure(api_app: ApiApp) -> uvicorn.Config:
    """Return how the application is served."""
    return uvicorn.Config(
        api_app,
        http=BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=30,
        backlog=BACKLOG,
    )


class QuietFormatter(logging.Formatter):
    """Says of an error what kind it is and where it came up: its message, and what it was about, may hold words."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 (logging's name)
        """Return where it came up."""
        kind, _, trace = ei
        places = [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(trace)[-5:]]
        return f"{getattr(kind, '__name__', kind)} at {' > '.join(places)}"


def spare_collector() -> None:
    """Exclude everything that is loaded from garbage collection: to walk over it takes 0.3 s, in which all wait."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.enable()


def log_quietly() -> None:
    """Let uvicorn say what goes wrong, on standard error, without anybody's words."""
    handler = logging.StreamHandler()
    handler.setFormatter(QuietFormatter("mindstream: %(message)s"))
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.ERROR)


def allow_connections() -> None:
    """Let the process open as many files as the system allows: each connection is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most if most != resource.RLIM_INFINITY else 65_536, most))


def new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the loop of a server: uvloop's, a tenth less CPU an utterance; None where it does not exist."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


async def serve(api_app: ApiApp, host: str, port: int, tell: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; `tell` is called with the address when it listens.

    Raises:
        InputError: it cannot listen there.
    """
    allow_connections()
    log_quietly()
    with listen(host, port) as listening:
        await Server(api_app, configure(api_app), tell).serve_doors([listening])
