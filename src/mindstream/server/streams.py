"""Server-sent events: rows of the log as they are written, with their seq as the id; what is live only has none."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import Request
from fastapi.sse import format_sse_event
from starlette.responses import Response

from mindstream.log.events import Logged, Piece
from mindstream.log.names import shown_name
from mindstream.server.agui import AguiWriter
from mindstream.server.asgi import Receive, Scope, Send
from mindstream.server.problems import problem_of
from mindstream.service.operations.runtime import Runtime

PING = b": ping\n\n"
PING_S = 15.0
GATHER_S = 0.02
"""So long pieces of an answer wait for more of them, after the first."""
STUCK_S = 60.0
"""Seconds after which a stream ends whose client takes nothing. `protocol.py` has closed its connection before; another
server, in which the application is mounted, may not."""


class EventStream(Response):
    """Sends chunks as they come, until they end or the client goes away."""

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        task = asyncio.current_task()
        assert task is not None
        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
        try:
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    async with asyncio.timeout(STUCK_S):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            return  # the server closes the connection of an answer that does not end
        except asyncio.CancelledError:
            if not gone.done():
                raise
            task.uncancel()
        finally:
            gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def wants_stream(request: Request) -> bool:
    """Tell whether a client accepts events rather than one answer."""
    return "text/event-stream" in request.headers.get("accept", "")


def wants_agui(request: Request) -> bool:
    """Tell whether it wants them as AG-UI has them: `Accept: text/event-stream; profile=ag-ui`, or `?format=ag-ui`."""
    accept = request.headers.get("accept", "").replace(" ", "").replace('"', "")
    return "profile=ag-ui" in accept or request.query_params.get("format") == "ag-ui"


def row_json(row: Logged) -> str:
    """Return a row as JSON: its event, seq, time, who did it, whose it is, and its own fields."""
    return json.dumps({**row.row(), "user": shown_name(row.mind)}, ensure_ascii=False)


def encode(row: Logged) -> bytes:
    """Return a row as a server-sent event."""
    return format_sse_event(data_str=row_json(row), event=row.event.kind, id=str(row.seq) if row.seq else None)


async def answer_stream(runtime: Runtime, rows: AsyncGenerator[Logged], request: Request) -> EventStream:
    """Answer with the rows that come of something; what it was asked for goes on where the client goes away.

    Raises:
        MindstreamError: it did not begin.
    """
    waiting: asyncio.Queue[Logged | BaseException | None] = asyncio.Queue()
    runtime.begin(_pump(rows, waiting))
    first = await waiting.get()
    if isinstance(first, BaseException):
        raise first
    return EventStream(_written(first, waiting, AguiWriter() if wants_agui(request) else None))


async def _pump(rows: AsyncGenerator[Logged], waiting: asyncio.Queue[Logged | BaseException | None]) -> None:
    """Let the answer go on, and hand its rows over."""
    ended: BaseException | None = None
    try:
        async with aclosing(rows):
            async for row in rows:
                waiting.put_nowait(row)
    except asyncio.CancelledError:  # it was broken off: that ends it
        raise
    except BaseException as error:
        ended = error
        raise
    finally:
        waiting.put_nowait(ended)


async def _written(
    first: Logged | None, waiting: asyncio.Queue[Logged | BaseException | None], agui: AguiWriter | None
) -> AsyncGenerator[bytes]:
    """Yield rows as they come; pieces that come fast go out together, but for the first."""
    rows: list[Logged | BaseException | None] = [first]
    is_speaking = False
    while True:
        written = b""
        for row in rows:
            if row is None:
                yield written + (agui.finish() if agui else b"")
                return
            if isinstance(row, BaseException):
                yield written + (agui.fail(row) if agui else write_problem(row))
                return
            written += agui.write(row) if agui else encode(row)
        yield written
        if is_speaking:
            await asyncio.sleep(GATHER_S)
        is_speaking = isinstance(rows[-1], Logged) and isinstance(rows[-1].event, Piece)
        rows = []
        while not rows:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    rows = [await waiting.get()]
            if not rows:
                yield PING
        while not waiting.empty():
            rows.append(waiting.get_nowait())


def write_problem(error: BaseException) -> bytes:
    """Return an event that says what went wrong after the stream had begun."""
    found, _ = problem_of(error)
    return format_sse_event(data_str=json.dumps(found.model_dump()), event="problem")
