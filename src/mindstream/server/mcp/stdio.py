"""The MCP server on standard input and output: a client program starts it for one user, without a token."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mindstream.server.mcp.tools import Caller
from mindstream.service.operations.principal import LOCAL_PRINCIPAL
from mindstream.service.operations.runtime import Runtime

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

CLOSE_S = 5.0
"""Maximum seconds for closing the runtime after a signal."""


async def serve_stdio(runtime: Runtime, user: str, sets: frozenset[str]) -> None:
    """Answer requests until the input ends. A signal ends the process with the exit code 128 plus its number.

    Args:
        sets: the sets of tools that are listed in addition to the usual ones.

    Raises:
        InputError: the user's name is not valid.
        StorageError: the data cannot be read or written.
    """
    from mcp.server.stdio import stdio_server

    from mindstream.server.mcp.server import make_server

    caller = Caller.about(LOCAL_PRINCIPAL, user, sets)
    server = make_server(runtime, lambda _: caller)
    async with runtime, stdio_server() as streams, asyncio.TaskGroup() as tasks:
        reading, writing = _answer_before_the_end(streams[0], streams[1], tasks)
        with leaving_on_signals(runtime):
            await server.run(reading, writing, server.create_initialization_options())


def _answer_before_the_end(
    requests: ReadStream[SessionMessage | Exception], replies: WriteStream[SessionMessage], tasks: asyncio.TaskGroup
) -> tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]:
    """Return streams for a server that would drop its running requests at the end of input.

    The returned input ends only after every request has its reply, so that `mindstream mcp < FILE` answers all of FILE.
    """
    from mcp.shared._context_streams import create_context_streams
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCRequest

    to_server, reading = create_context_streams[SessionMessage | Exception](0)
    writing, from_server = create_context_streams[SessionMessage](0)
    open_requests, all_answered = set[object](), asyncio.Event()

    async def forward_requests() -> None:
        async with to_server:
            async for item in requests:
                if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                    open_requests.add(item.message.id)
                await to_server.send(item)
            while open_requests:
                all_answered.clear()
                await all_answered.wait()

    async def forward_replies() -> None:
        async with replies:
            async for item in from_server:
                await replies.send(item)
                open_requests.discard(getattr(item.message, "id", None))
                if not open_requests:
                    all_answered.set()

    tasks.create_task(forward_requests())
    tasks.create_task(forward_replies())
    return reading, writing


@contextlib.contextmanager
def leaving_on_signals(runtime: Runtime) -> Iterator[None]:
    """During the `with` block, let a signal close the runtime and end the process: a normal exit would wait for the
    thread that reads input."""
    loop, left = asyncio.get_running_loop(), list[asyncio.Future[None]]()

    async def close_and_exit(number: int) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await runtime.__aexit__(None, None, None)
        os._exit(128 + number)

    def leave(number: int) -> None:
        left.append(asyncio.ensure_future(close_and_exit(number)))

    handled = [number for number in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(number) != signal.SIG_IGN]
    for number in handled:
        with contextlib.suppress(NotImplementedError):  # Windows does not support this
            loop.add_signal_handler(number, leave, number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
