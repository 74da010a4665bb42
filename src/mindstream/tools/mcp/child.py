"""The child process that speaks MCP with a server, so that reading the server's messages has limits of time and memory.

The parent and the child exchange lines of JSON. The first input line describes the server to open
(`McpServer.opening`). Further lines are calls (`id`, `tool`, `accepted`: a fingerprint, `arguments`), or `cancel` with
an id. The child ends when its input ends. The first output line has `tools` (each as name, description, schema, hints)
and `refused` (reasons by name), or `fault`. Then follows a line for each call. It has the call's `id` and one of these:

- `text` and `failed`;
- `changed`: the tool as it is now, or null;
- `fault`, with `over` (true: no more calls are accepted) and `unheard` (true: the call did not reach the session).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mindstream.tools.limited import allow_seconds, go_on_in_child, limit
from mindstream.tools.mcp.server import MAX_BYTES, MEGABYTES, OUT_OF_MEMORY, SECONDS

if TYPE_CHECKING:
    from mindstream.tools.mcp.session import Session

MAX_REQUEST = 64_000_000
END_S = 2.0
"""Maximum seconds to wait for the results of running calls after the server has ended."""


async def serve() -> None:
    """Open the server that the first line describes, and answer calls until the input or the server ends."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_on_fault)
    asked = asyncio.StreamReader(limit=MAX_REQUEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    opening = json.loads(await asked.readline())
    process = None
    try:
        if command := opening["command"]:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=opening["environment"],
                cwd=opening["folder"],
                start_new_session=True,
                limit=MAX_BYTES,
            )
    except (OSError, ValueError) as error:
        return _send({"fault": f"{command[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}"})
    from mindstream.tools.mcp.session import Session  # loads the MCP SDK, while the server starts

    limit(SECONDS, MEGABYTES)  # after the start of the server, which would inherit the limits
    session = Session(opening, process)
    calls: dict[int, asyncio.Task[None]] = {}
    try:
        _send(await session.open())
        reading = asyncio.create_task(_read(asked, session, calls))
        over = asyncio.create_task(session.over.wait())
        await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
        if calls and over.done():
            await asyncio.wait(calls.values(), timeout=END_S)
    finally:
        await session.close()


async def _read(asked: asyncio.StreamReader, session: Session, calls: dict[int, asyncio.Task[None]]) -> None:
    """Read calls until the input ends, and start each call without waiting for earlier calls.

    A message can also ask to cancel a call.
    """
    while line := await asked.readline():
        allow_seconds(SECONDS)
        wish = json.loads(line)
        if "cancel" not in wish:
            calls[wish["id"]] = asyncio.create_task(_call(wish, session, calls))
        elif call := calls.get(wish["cancel"]):
            call.cancel()


async def _call(wish: Mapping[str, Any], session: Session, calls: dict[int, asyncio.Task[None]]) -> None:
    try:
        _send({"id": wish["id"], **await session.call(wish["tool"], wish["accepted"], wish["arguments"])})
    finally:
        del calls[wish["id"]]


def _send(message: Mapping[str, object]) -> None:
    _OUT.write(json.dumps(message).encode() + b"\n")
    _OUT.flush()


def _on_fault(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    if isinstance(context.get("exception"), MemoryError):
        os._exit(OUT_OF_MEMORY)


if __name__ == "__main__":
    go_on_in_child()
    _OUT, sys.stdout = sys.stdout.buffer, sys.stderr
    code = 1
    try:
        asyncio.run(serve())
        code = 0
    except* MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)  # without waiting for a thread that still resolves a host name
