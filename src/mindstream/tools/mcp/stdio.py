"""The stdio transport: lines of JSON to and from an MCP server that runs as a process on this machine.

It is used in a child process of mindstream, not in the main process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from mindstream.tools.mcp.raw_results import readable
from mindstream.tools.mcp.server import MAX_BYTES

MAX_LINES = 10_000
"""Maximum number of lines that a server may send without a new request to it."""
TAIL = 2_000
"""Maximum number of bytes of each text that is kept for the report on the end of the server.

The texts are the end of the server's error output, and the beginning of the last line of its output that is no message.
"""
END_S = 1.0
"""Seconds in which the server must end after its input is closed, and again after each signal."""
MAX_WORDS = 2_000
"""Maximum length in characters of an error message that is made from an invalid answer."""
LIST_CHANGED = "notifications/tools/list_changed"
Got = MemoryObjectSendStream[SessionMessage | Exception]
Sending = MemoryObjectReceiveStream[SessionMessage]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass
class Ending:
    """The state of a connection to a server's process, and the reason of its end.

    Attributes:
        over: set when the server's output has ended or cannot be read any more.
        lines: number of lines that the server has sent since the last request; a line with several messages counts as
            several lines.
        is_over: whether no more calls can be made.
        fault: the reason why the connection ended, unless the process ended.
        code: the exit code of the process; None: not known.
        tail: the end of the process's error output.
        other: the beginning of the last line of the process's output that is not a message.
    """

    over: asyncio.Event = field(default_factory=asyncio.Event)
    lines: int = 0
    is_over: bool = False
    fault: str = ""
    code: int | None = None
    tail: bytes = b""
    other: bytes = b""

    def __str__(self) -> str:
        ended = self.fault or ("its process ended" if self.code is None else f"its process ended with {self.code}")
        return f"{ended}: {said}" if (said := _shown(self.tail)) else ended

    @property
    def written(self) -> str:
        """The end of an error message, `; it wrote: …`; "" if there is no text.

        The text is the end of the server's error output or, if this output is empty, of `other`.
        """
        said = _shown(self.tail) or _shown(self.other)
        return f"; it wrote: {said}" if said else ""


def _shown(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())[-300:]


@asynccontextmanager
async def stdio_transport(process: Process, ending: Ending) -> AsyncIterator[Streams]:
    """Yield the message streams of a server's process. When the block ends, close the process's input, and end the
    process by signals if it still runs."""
    try:
        got, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, sending = anyio.create_memory_object_stream[SessionMessage](1_000)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(_keep_tail(process, ending))
            reading = group.create_task(_read(process, got, ending, listening))
            writing = group.create_task(_write(process, sending, got, ending))
            watching = group.create_task(_watch(process, reading, ending))
            try:
                yield read, write
                assert process.stdin is not None
                process.stdin.close()
                for name in ("SIGTERM", "SIGKILL"):
                    if not await _has_ended(process):
                        _signal(process, name)
                await _has_ended(process)
            finally:
                for task in (listening, reading, writing, watching):
                    task.cancel()
                for stream in (got, read, write, sending):
                    stream.close()
    finally:
        _signal(process, "SIGKILL")
        transport: Any = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()  # closes its pipes, which an escaped descendant may still hold


async def _read(process: Process, got: Got, ending: Ending, listening: asyncio.Task[None]) -> None:
    """Pass the server's messages on, and note in `ending` how the output ended.

    Of notifications, only LIST_CHANGED is passed on. Lines that are not messages are skipped, because some servers
    print other text. Reading ends when the output ends, or when the server breaks a limit.
    """
    assert process.stdout is not None
    try:
        with got, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await process.stdout.readline():
                ending.lines += 1
                if ending.lines > MAX_LINES:
                    ending.fault = f"the server sent more than {MAX_LINES:,} lines without a request"
                    return
                messages = read_messages(line)
                ending.lines += max(len(messages) - 1, 0)
                ending.other = ending.other if messages else line[:TAIL]
                for message in messages:
                    if not isinstance(message, JSONRPCNotification) or message.method == LIST_CHANGED:
                        await got.send(SessionMessage(message))
                await asyncio.sleep(0)  # `readline` does not suspend while lines are buffered
            ending.is_over = True
            if await _has_ended(process):
                ending.code = process.returncode
                await asyncio.wait({listening}, timeout=END_S)
    except ValueError:
        ending.fault = f"the server sent a line of more than {MAX_BYTES:,} bytes"
    finally:
        ending.is_over = True
        ending.over.set()


def read_messages(line: bytes) -> list[JSONRPCMessage]:
    """Return the messages of a line; [] for other text."""
    line = readable(line)
    try:
        return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
    except (ValueError, RecursionError):
        return _read_inexact(line)


def _read_inexact(line: bytes) -> list[JSONRPCMessage]:
    """Return the messages of a line that violates the protocol; [] if it has no JSON.

    Some servers write colour codes or other text before a message on the same line, or send a batch of messages. An
    answer that is not a valid message becomes an error, so that its call ends.
    """
    text = line.decode().strip()
    start = 0 if text.startswith("[") else text.find("{")
    try:
        value = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        return []
    found: list[JSONRPCMessage] = []
    for each in (value if isinstance(value, list) else [value])[:MAX_LINES]:
        if not isinstance(each, dict) or not each.keys() & {"id", "method"}:
            continue
        try:
            found.append(_message({"jsonrpc": "2.0", **each}))
        except (ValueError, RecursionError):
            if "method" not in each:
                error = {"code": INTERNAL_ERROR, "message": _words(each)[:MAX_WORDS]}
                with suppress(ValueError):
                    found.append(_message({"jsonrpc": "2.0", "id": each["id"], "error": error}))
    return found


def _message(value: dict[str, Any]) -> JSONRPCMessage:
    return jsonrpc_message_adapter.validate_json(json.dumps(value), by_name=False)


def _words(answer: dict[str, Any]) -> str:
    """Return an error message for an answer that is not a valid message: the error in the answer, if there is one."""
    error = answer.get("error")
    said = error.get("message", error) if isinstance(error, dict) else error
    if said:
        return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return f"the answer does not follow the protocol: {json.dumps(answer, ensure_ascii=False)}"


async def _write(process: Process, sending: Sending, got: Got, ending: Ending) -> None:
    assert process.stdin is not None
    with sending:
        try:
            async for item in sending:
                if isinstance(item.message, JSONRPCRequest):
                    ending.lines = 0
                process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except OSError:
            if not await _has_ended(process):
                ending.fault = "the server closed its input"
                ending.is_over = True
                got.close()  # ends the calls; if the process has ended, `_read` does so and reports why


async def _watch(process: Process, reading: asyncio.Task[None], ending: Ending) -> None:
    """End the reading soon after the process has ended, because another process may still hold its output open."""
    while not await _has_ended(process):
        pass
    await asyncio.wait({reading}, timeout=END_S)
    ending.code, ending.is_over = process.returncode, True
    reading.cancel()


async def _keep_tail(process: Process, ending: Ending) -> None:
    assert process.stderr is not None
    while said := await process.stderr.read(65_536):
        ending.tail = (ending.tail + said)[-TAIL:]


async def _has_ended(process: Process) -> bool:
    """Wait up to END_S for a process to end, and return whether it has. `Process.wait` would also wait for other
    processes that hold its output open."""
    for _ in range(50):
        if process.returncode is not None:
            return True
        await asyncio.sleep(END_S / 50)
    return False


def _signal(process: Process, name: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))  # the process leads a group of its own
        else:
            process.kill()
