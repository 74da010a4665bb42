"""The MCP server on standard input and output: a client program starts it for one user, without a token."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import ValidationError

from mindstream.server.mcp.tools import Caller
from mindstream.service.operations.operation import LOCAL_PRINCIPAL
from mindstream.service.operations.runtime import Runtime

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

WHOLE = ("json_invalid", "model_type", "missing")
"""Types of Pydantic's faults whose `input` is the whole line, or the whole message."""
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

    The returned input ends only after every request has its reply or was cancelled, so that `mindstream mcp < FILE`
    answers all of FILE.
    """
    from mcp.shared._context_streams import create_context_streams
    from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCNotification, JSONRPCRequest

    to_server, reading = create_context_streams[SessionMessage | Exception](0)
    writing, from_server = create_context_streams[SessionMessage](0)
    open_requests, all_answered = set[object](), asyncio.Event()

    async def forward(item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCRequest):
            open_requests.add(item.message.id)
        await to_server.send(item)
        if isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            # a cancelled request gets no reply
            open_requests.discard(cancelled_request_id_from_params(item.message.params))

    async def forward_requests() -> None:
        async with to_server:
            async for item in requests:
                messages, refusal = ([item], None) if isinstance(item, SessionMessage) else _read_again(item)
                for message in messages:
                    await forward(message)
                if refusal:
                    await replies.send(refusal)
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


def _read_again(fault: Exception) -> tuple[list[SessionMessage], SessionMessage | None]:
    """Return the messages of a line that the SDK could not read, or a refusal, or neither for an empty line.

    Without a refusal the client would wait for a reply until its own timeout.
    """
    from mcp.shared.message import SessionMessage
    from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

    from mindstream.tools.mcp.stdio import read_messages

    faults = fault.errors() if isinstance(fault, ValidationError) else []
    value = next((each["input"] for each in faults if each["type"] in WHOLE), "")
    line = value if isinstance(value, str) else json.dumps(value)
    if messages := read_messages(line.encode("utf-8", "replace")):
        return [SessionMessage(each) for each in messages], None
    if not line.strip():
        return [], None
    number = value.get("id") if isinstance(value, dict) else None
    number = number if type(number) in (int, str) else None
    error = (
        (PARSE_ERROR, "this line is not JSON")
        if isinstance(value, str)
        else (INVALID_REQUEST, "this line is not a valid JSON-RPC message")
    )
    return [], SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=error[0], message=error[1])))


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

    handled = list[signal.Signals]()
    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) != signal.SIG_IGN:
            with contextlib.suppress(NotImplementedError):  # Windows does not support this
                loop.add_signal_handler(number, leave, number)
                handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
