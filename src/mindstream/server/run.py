"""Run the server with uvicorn; at shutdown, running answers may finish.

`BoundedConnection` is its HTTP/1.1 protocol with limits for clients that are silent, slow, too many, or do not read
responses.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import math
import re
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol as Connection

from mindstream.errors import InputError
from mindstream.log.database import release_heap
from mindstream.server.admission import is_loopback
from mindstream.server.api_app import ApiApp

LOG = logging.getLogger("mindstream.server")
HEAD_S = 15.0
"""Maximum seconds until the headers of a request have arrived. For the first request they are counted from the
connection, for later ones from the first byte."""
STUCK_S, CHECK_S = 30.0, 5.0
"""Seconds. STUCK_S: a client that has read none of its pending bytes for this time is disconnected. CHECK_S: the
interval of that check."""
MAX_CONNECTIONS = 4_000
"""Maximum number of open connections. A further connection replaces the one that has waited longest for the headers of
its first request. If there is none, the further connection gets the response 503."""
MAX_WAITING = 256
"""If at least this many clients have unread responses, requests without a token get 503 at once. Requests in PROBES are
still answered."""
PROBES = (b"GET /healthz ", b"GET /readyz ")
TOKEN = re.compile(rb"\r\nauthorization:", re.IGNORECASE)
MAX_UNREAD, LARGE, BOUND_S = 128_000_000, 65_536, 0.02
"""MAX_UNREAD: maximum bytes of pending responses of all clients together. The sum is computed only if a client has more
than LARGE pending bytes, and at most once in BOUND_S seconds."""
TELL_S = 10.0
"""Minimum interval between log messages about closed connections, in seconds. Also the delay after which the memory of
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
        """Check at intervals whether the client reads, until no bytes are pending; closing the connection does not end
        the checks. If the client has more than LARGE unread bytes, also check the sum of all clients."""
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
        """If more than MAX_UNREAD bytes are pending in all, close connections until at most MAX_UNREAD are pending.
        Close first the connections whose clients have read nothing for longest."""
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


DRAIN_S = 20.0
"""Maximum seconds for which running answers continue after SIGTERM."""
BACKLOG = 4_096
"""Maximum number of connections that wait to be accepted; if more arrive, the system makes their clients retry."""
SEND_BUFFER = 65_536
"""Size of a connection's send buffer in bytes; the operating system doubles it. By default the buffer grows to
megabytes. A client that reads nothing would then look like a client that has read its responses."""
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
        """Start to listen, print the address, and call `on_start` with the URL. If every request needs a token, also
        print the command that makes a token."""
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
        InputError: the server cannot listen there: the address does not exist or is in use, or the port is not allowed.
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
    """Log uvicorn's errors and the outages of models on standard error, without users' words."""
    handler = logging.StreamHandler()
    handler.setFormatter(QuietFormatter("mindstream: %(message)s"))
    for name, level in (("uvicorn.error", logging.ERROR), ("mindstream.models", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


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
        InputError: the server cannot listen there: the address does not exist or is in use, or the port is not allowed.
    """
    allow_connections()
    log_quietly()
    with listen(host, port) as listening:
        await Server(api_app, configure(api_app), on_start).serve_app([listening])
