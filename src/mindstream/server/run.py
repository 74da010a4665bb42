"""Run the server with uvicorn; at shutdown, running answers may finish."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
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
"""Maximum seconds for which running answers continue after SIGTERM."""
BACKLOG = 4_096
"""Maximum number of connections that wait to be accepted; if more arrive, the system makes their clients retry."""
SEND_BUFFER = 65_536
"""Bytes of a connection's send buffer in the operating system, which doubles this number. By default the buffer grows
to megabytes; a client that reads nothing would then look like one that has read its responses."""
COLLECTED_AFTER = (10_000, 10, 100)
"""Thresholds of the garbage collector. All requests wait while it runs (20 ms for 20,000 objects on a busy machine).
Nearly all the objects that it examines belong to running requests and cannot be freed, so it should run rarely."""


class Server(uvicorn.Server):
    """Uvicorn's server. It prints its address on standard error, and at shutdown lets running answers finish.

    Args:
        on_start: called with the address when the server listens.
    """

    def __init__(self, api_app: ApiApp, config: uvicorn.Config, on_start: Callable[[str], None] | None = None) -> None:
        super().__init__(config)
        self._api_app, self._on_start = api_app, on_start

    async def serve_app(self, sockets: list[socket.socket]) -> None:
        """Open the runtime, serve until a signal arrives, and close the runtime.

        If a socket has an address that other machines can reach, every request needs a token.

        Raises:
            MindstreamError: the runtime cannot be opened.
        """
        if not all(is_loopback(each.getsockname()[0]) for each in sockets):
            self._api_app.admission.require_token = True
        async with self._api_app.lifespan():
            await self.serve(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and Ctrl-C end the server without an error, during the `with` block."""
        loop, handled = asyncio.get_running_loop(), list[signal.Signals]()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                with contextlib.suppress(NotImplementedError):  # Windows does not support this
                    loop.add_signal_handler(number, self.handle_exit, number, None)
                    handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen; print the address and, if every request needs a token, the command that makes one; then call
        `on_start` with the URL."""
        await super().startup(sockets)
        spare_collector()
        if self.started and not self.should_exit:
            for each in sockets or []:
                host, port = each.getsockname()[:2]
                shown = f"[{host}]" if ":" in host else host
                print(f"listening on http://{shown}:{port}", file=sys.stderr, flush=True)
                admission = self._api_app.admission
                if admission.require_token or admission.public_url:
                    print("every request needs a token: `mindstream token new` makes one", file=sys.stderr, flush=True)
                if self._on_start is not None:
                    self._on_start(f"http://{shown}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests, let running answers finish (at most DRAIN_S seconds), and end the event streams."""
        for server in self.servers:
            server.close()
        await self._api_app.runtime.drain(DRAIN_S)
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 chooses a free port.

    Raises:
        InputError: the address does not exist or is in use.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # asyncio sets TCP_NODELAY only if the socket names the protocol TCP
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # accepted connections inherit it
        made.bind((host, port))
        made.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}; choose another --host or"
            " --port"
        ) from None
    made.set_inheritable(True)
    return made


def configure(api_app: ApiApp) -> uvicorn.Config:
    """Return the configuration of uvicorn."""
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
    """A formatter that logs only the type and place of an error, because its message may contain users' words."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 (logging's name)
        """Return the type of an exception and the last five places of its traceback."""
        kind, _, trace = ei
        places = [f"{Path(each.filename).name}:{each.lineno}" for each in traceback.extract_tb(trace)[-5:]]
        return f"{getattr(kind, '__name__', kind)} at {' > '.join(places)}"


def spare_collector() -> None:
    """Exclude all objects loaded so far from garbage collection: a full collection would block requests for 0.3 s."""
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    gc.enable()


def log_quietly() -> None:
    """Make uvicorn log errors on standard error, without users' words."""
    handler = logging.StreamHandler()
    handler.setFormatter(QuietFormatter("mindstream: %(message)s"))
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.ERROR)


def allow_connections() -> None:
    """Raise the process's limit of open files to the system's maximum, because each connection needs one."""
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most if most != resource.RLIM_INFINITY else 65_536, most))


def new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's event loop factory (10 % less CPU time per message); None on Windows, which has no uvloop."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


async def serve(api_app: ApiApp, host: str, port: int, on_start: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_start` is called with the address when the server listens.

    Raises:
        InputError: the address does not exist or is in use.
    """
    allow_connections()
    log_quietly()
    with listen(host, port) as listening:
        await Server(api_app, configure(api_app), on_start).serve_app([listening])
