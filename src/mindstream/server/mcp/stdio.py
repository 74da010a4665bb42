"""The MCP server on standard input and output: a client program starts it for one user, without a token."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

from mindstream.server.mcp.tools import Caller
from mindstream.service.operations.principal import LOCAL_PRINCIPAL
from mindstream.service.operations.runtime import Runtime

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
    async with runtime, stdio_server() as (reading, writing):
        with leaving_on_signals(runtime):
            await server.run(reading, writing, server.create_initialization_options())


@contextlib.contextmanager
def leaving_on_signals(runtime: Runtime) -> Iterator[None]:
    """During the `with` block, let a signal end the process, because the thread that waits for input would block it."""
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
