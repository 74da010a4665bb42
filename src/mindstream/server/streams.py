"""Server-sent events: rows of the log, with their number (`seq`) as the event id; live rows have no id."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

from fastapi import Request
from fastapi.sse import format_sse_event
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from mindstream.identifiers import shown_name
from mindstream.log.events import Logged, Signal
from mindstream.server.agui import AguiWriter
from mindstream.server.problems import problem_of
from mindstream.service.operations.runtime import Runtime

PING = b": ping\n\n"
PING_S = 15.0
"""Seconds without an event after which a ping is sent."""
STUCK_S = 60.0
"""Seconds after which a stream ends if its client reads nothing. With our own server, `run.py` closes such a
connection earlier; this limit is for other servers in which the application is mounted."""
T = TypeVar("T")


class EventStream(Response):
    """A response that sends chunks as they are generated.

    It ends when the chunks end, when the client disconnects, or when the client has read nothing for STUCK_S to twice
    STUCK_S seconds.
    """

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes]) -> None:
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        task = asyncio.current_task()
        assert task is not None
        loop, is_over, sending_since = asyncio.get_running_loop(), False, math.inf
        watch: asyncio.TimerHandle

        def end() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                task.cancel()

        def look() -> None:
            nonlocal watch
            watch = loop.call_later(STUCK_S, look)
            if loop.time() - sending_since >= STUCK_S:
                end()

        watch = loop.call_later(STUCK_S, look)  # one timer for all chunks
        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(lambda done: None if done.cancelled() else end())
        try:
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    sending_since = loop.time()
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                    sending_since = math.inf
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:
            if not is_over:
                raise
            task.uncancel()  # the response stays unfinished, so uvicorn closes the connection
        finally:
            gone.cancel()
            watch.cancel()
            look = end  # `look` refers to itself: without this, only the garbage collector would free the request


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class BackgroundItems(Generic[T]):
    """The items of a generator that runs in a background task. The task continues if the reader disconnects.

    Args:
        if_cancelled: the exception that `next` raises if the task was cancelled; None: the items end normally.
    """

    def __init__(self, runtime: Runtime, items: AsyncGenerator[T], if_cancelled: Exception | None = None) -> None:
        self._items, self._more, self._if_cancelled = list[T](), Signal(), if_cancelled
        self.task = runtime.begin(self._run(items))
        self.task.add_done_callback(lambda _: self._more.set())

    async def _run(self, items: AsyncGenerator[T]) -> None:
        async with aclosing(items):
            async for item in items:
                self._items.append(item)
                self._more.set()

    async def next(self, within_s: float | None = None) -> list[T] | None:
        """Return the new items since the last call; [] after `within_s` seconds without one, None at the end.

        Raises:
            BaseException: the error of the generator, after its last items were returned.
        """
        await self._more.wait(within_s)
        items, self._items = self._items, []
        if not self.task.done():
            self._more.clear()
            return items
        error = self._if_cancelled if self.task.cancelled() else self.task.exception()
        if error is not None and not items:
            raise error
        return items or None


def wants_stream(request: Request) -> bool:
    """Return whether a client requests server-sent events."""
    return "text/event-stream" in request.headers.get("accept", "")


def wants_agui(request: Request) -> bool:
    """Return whether a client requests AG-UI events: `Accept: text/event-stream; profile=ag-ui` or `?format=ag-ui`."""
    accept = request.headers.get("accept", "").replace(" ", "").replace('"', "")
    return "profile=ag-ui" in accept or request.query_params.get("format") == "ag-ui"


def encode(row: Logged) -> bytes:
    """Return a row as a server-sent event: kind, seq, time, author, user, and the fields of the row's event."""
    text = json.dumps({**row.row(), "user": shown_name(row.mind)}, ensure_ascii=False)
    return format_sse_event(data_str=text, event=row.event.kind, id=str(row.seq) if row.seq else None)


async def answer_stream(runtime: Runtime, rows: AsyncGenerator[Logged], request: Request) -> EventStream:
    """Return a response that streams the rows of an operation. The operation continues if the client disconnects.

    Raises:
        MindstreamError: the operation failed before its first row.
    """
    feed = BackgroundItems(runtime, rows)
    return EventStream(_written(await feed.next(), feed, AguiWriter() if wants_agui(request) else None))


async def _written(
    rows: list[Logged] | None, feed: BackgroundItems[Logged], agui: AguiWriter | None
) -> AsyncGenerator[bytes]:
    """Yield encoded rows as they are written.

    After PING_S seconds without a row, yield PING. An error is the last event.
    """
    while rows is not None:
        yield b"".join(agui.write(row) if agui else encode(row) for row in rows) or PING
        try:
            rows = await feed.next(PING_S)
        except Exception as error:  # noqa: BLE001 (the response has begun, so every error is sent within the stream)
            told = json.dumps(problem_of(error)[0].model_dump())
            yield agui.fail(error) if agui else format_sse_event(data_str=told, event="problem")
            return
    if agui:
        yield agui.finish()
