"""A server as a process of this machine: JSON, line by line, over its input and output; the child's side of it."""

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
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from mindstream.tools.mcp.server import MOST_BYTES

MOST_LINES = 10_000
"""So many lines may come after what was last asked; more is no answer."""
TAIL = 2_000
"""So much is kept of what the process says beside the protocol, to tell why it ended."""
END_S = 1.0
"""How long it may take to end after its input is closed, and again after it is asked to."""
LIST_CHANGED = "notifications/tools/list_changed"
Got = MemoryObjectSendStream[SessionMessage | Exception]
Sending = MemoryObjectReceiveStream[SessionMessage]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass
class LastWords:
    """What is known of a connection that has ended; `lines`: so many came after what was last asked."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    lines: int = 0
    is_over: bool = False
    fault: str = ""
    code: int | None = None
    tail: bytes = b""

    def __str__(self) -> str:
        """Say why it ended, in one line."""
        ended = self.fault or ("its process ended" if self.code is None else f"its process ended with {self.code}")
        said = " ".join(self.tail.decode("utf-8", "replace").split())[-300:]
        return f"{ended}: {said}" if said else ended


@asynccontextmanager
async def stdio_transport(process: Process, last: LastWords) -> AsyncIterator[Streams]:
    """Give the streams to a process; at the end it is asked to end, then made to."""
    try:
        got, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, sending = anyio.create_memory_object_stream[SessionMessage](1_000)
        async with asyncio.TaskGroup() as group:
            listening = group.create_task(_keep_tail(process, last))
            talking = (_read(process, got, last, listening), _write(process, sending, got, last))
            tasks = [listening, *map(group.create_task, talking)]
            tasks.append(group.create_task(_watch(process, tasks[1], last)))
            try:
                yield read, write
                await _end(process)
            finally:
                for task in tasks:
                    task.cancel()
                for stream in (got, read, write, sending):
                    stream.close()
    finally:
        _signal(process, "SIGKILL")
        transport: Any = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()  # lets go of its pipes, which a child that got away may still hold


async def _read(process: Process, got: Got, last: LastWords, listening: asyncio.Task[None]) -> None:
    """Pass messages on; what is none is left out, as servers do print what does not belong there."""
    try:
        with got, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await _pass_on(process, got, last, listening)
    finally:
        last.over.set()


async def _pass_on(process: Process, got: Got, last: LastWords, listening: asyncio.Task[None]) -> None:
    assert process.stdout is not None
    try:
        while line := await process.stdout.readline():
            last.lines += 1
            if last.lines > MOST_LINES:
                last.fault = f"it sent more than {MOST_LINES:,} lines that nobody asked for"
                return
            if (message := _parse(line)) is not None:
                await got.send(SessionMessage(message))
            await asyncio.sleep(0)  # lines that are there already come without a pause
    except ValueError:
        last.fault = f"it sent a line of more than {MOST_BYTES:,} bytes"
        return
    finally:
        last.is_over = True
    if await _has_ended(process):
        last.code = process.returncode
        await asyncio.wait({listening}, timeout=END_S)


def _parse(line: bytes) -> JSONRPCMessage | None:
    """Return the message of a line, or None for what is none, or tells of progress that nobody watches."""
    try:
        message = jsonrpc_message_adapter.validate_json(_mend(line), by_name=False)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(message, JSONRPCNotification) and message.method != LIST_CHANGED else message


def _mend(line: bytes) -> bytes:
    """Return JSON with a mark for each half of a character, which the SDK refuses whole messages for."""
    if b"\\ud" not in line.lower():
        return line
    text = json.dumps(json.loads(line), ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


async def _write(process: Process, sending: Sending, got: Got, last: LastWords) -> None:
    assert process.stdin is not None
    with sending:
        try:
            async for item in sending:
                if isinstance(item.message, JSONRPCRequest):
                    last.lines = 0
                process.stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except OSError:
            if not await _has_ended(process):
                last.fault = "it takes no more questions"
                last.is_over = True
                got.close()  # whoever waits is told; of a process that has ended the reader tells why


async def _watch(process: Process, reading: asyncio.Task[None], last: LastWords) -> None:
    """End the reading soon after the process has ended: another may still hold its output."""
    while not await _has_ended(process):
        pass
    await asyncio.wait({reading}, timeout=END_S)
    last.code, last.is_over = process.returncode, True
    reading.cancel()


async def _keep_tail(process: Process, last: LastWords) -> None:
    assert process.stderr is not None
    while said := await process.stderr.read(65_536):
        last.tail = (last.tail + said)[-TAIL:]


# The end.


async def _end(process: Process) -> None:
    """Close its input, then ask it and what it has started to end, then make them."""
    assert process.stdin is not None
    process.stdin.close()
    for name in ("SIGTERM", "SIGKILL"):
        if not await _has_ended(process):
            _signal(process, name)
    await _has_ended(process)


async def _has_ended(process: Process) -> bool:
    """Wait a while; not with `wait`, which waits for whoever else holds its output, too."""
    for _ in range(50):
        if process.returncode is not None:
            return True
        await asyncio.sleep(END_S / 50)
    return False


def _signal(process: Process, name: str) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))  # it leads a group of its own
        else:
            process.kill()
