"""The process that speaks a server's protocol in our place: what a server sends is read here, within limits.

JSON, a line each way. In comes first what to open (`McpServer.opening`), then calls (`id`, `tool`, `accepted`: a
fingerprint, `arguments`), and `cancel` with an id; the end of the input is the end of all. Out goes first what is
offered, `tools` (each as name, description, schema, hints) and `refused` (why, by name), or `fault`; then for each call
its `id` with `text` and `failed`, with `changed` (the tool as it is now, or null), or with `fault`, and `over` where no
more calls are taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mindstream.tools.limited import allow_seconds, go_on_in_child, limit
from mindstream.tools.mcp.server import MEGABYTES, MOST_BYTES, OUT_OF_MEMORY, SECONDS

if TYPE_CHECKING:
    from mindstream.tools.mcp.session import Session

LONGEST_QUESTION = 64_000_000
END_S = 2.0
"""How long calls may take to be told that their server has ended."""


async def serve() -> None:
    """Open what the first line names, and answer until the input ends, or the server does."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_on_fault)
    asked = asyncio.StreamReader(limit=LONGEST_QUESTION)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    opening = json.loads(await asked.readline())
    try:
        process = await _start(opening) if opening["command"] else None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return _tell({"fault": f"{opening['command'][0]!r} cannot be started: {reason}"})
    from mindstream.tools.mcp.session import Session  # the SDK, which is loaded while the server starts

    limit(SECONDS, MEGABYTES)  # from here on: not for the server
    session = Session(opening, process)
    calls: dict[int, asyncio.Task[None]] = {}
    try:
        _tell(await session.open())
        reading = asyncio.create_task(_read(asked, session, calls))
        over = asyncio.create_task(session.over.wait())
        await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
        if calls and over.done():
            await asyncio.wait(calls.values(), timeout=END_S)
    finally:
        await session.close()


async def _start(opening: Mapping[str, Any]) -> Process:
    return await asyncio.create_subprocess_exec(
        *opening["command"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env=opening["environment"],
        cwd=opening["folder"],
        start_new_session=True,
        limit=MOST_BYTES,
    )


async def _read(asked: asyncio.StreamReader, session: Session, calls: dict[int, asyncio.Task[None]]) -> None:
    """Begin the calls that come in, side by side, until the input ends."""
    while line := await asked.readline():
        allow_seconds(SECONDS)
        wish = json.loads(line)
        if "cancel" in wish:
            if call := calls.get(wish["cancel"]):
                call.cancel()
        else:
            calls[wish["id"]] = call = asyncio.create_task(_call(wish, session))
            call.add_done_callback(partial(_drop, calls, wish["id"]))


def _drop(calls: dict[int, asyncio.Task[None]], number: int, _: object) -> None:
    del calls[number]


async def _call(wish: Mapping[str, Any], session: Session) -> None:
    _tell({"id": wish["id"], **await session.call(wish["tool"], wish["accepted"], wish["arguments"])})


def _tell(message: Mapping[str, object]) -> None:
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
        os._exit(code)  # a thread may still look up a host
