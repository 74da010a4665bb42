"""GET /api/v1/events: the log as server-sent events. The id of an event is the number (`seq`) of its row.

A client that sends the header Last-Event-ID gets the rows after that number.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import FastAPI, Header, Query, Request
from fastapi.sse import format_sse_event

from mindstream.errors import InputError
from mindstream.identifiers import StreamKey
from mindstream.log.events import GROUND, Logged, every_kind
from mindstream.plugins import registered
from mindstream.server.admission import LeftS, left_of, principal_of, unlimited
from mindstream.server.problems import PREFIX, READ_PROBLEMS, problem_responses
from mindstream.server.streams import PING_S, EventStream, encode
from mindstream.service.operations.hub import Hub, Line, Listener, Wants
from mindstream.service.operations.runtime import Runtime

RETRY_MS = 1_000
"""Milliseconds after which a disconnected client should connect again."""
MAX_SEQ = 2**62


def add_events(api: FastAPI, runtime: Runtime) -> None:
    """Add the route /api/v1/events."""

    @api.get(
        PREFIX + "/events",
        tags=["log"],
        operation_id="log.events",
        response_class=EventStream,
        status_code=200,
        responses=problem_responses(*READ_PROBLEMS) | {200: {"content": {"text/event-stream": {}}}},
    )
    async def events(
        request: Request,
        user: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
        kind: Annotated[list[str] | None, Query(max_length=50)] = None,
        room: Annotated[str | None, Query(max_length=50)] = None,
        after: Annotated[int | None, Query(ge=0, le=MAX_SEQ)] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> EventStream:
        """Send the rows of the log as they are written, as server-sent events.

        With the header Last-Event-ID or `after`, the rows after this number are sent first. Without them, only new rows
        are sent. `user`: only rows of this user. `kind`: only events of these kinds. `room`: only events of this plugin
        ("ground": of the core). With several filters, a row must match all of them. Live rows, such as the parts of an
        answer that is being generated, have no id and are never sent again. The complete answer follows as a `said`
        row.
        """
        principal = principal_of(request.scope)
        principal.require("log", "read")
        about = principal.of(user or principal.only) if user or principal.only else principal
        tenant = runtime.tenant(about)
        mind = tenant.store.key(about.name) if about.user else None
        kinds = kinds_of(kind, room)

        def wants(row: Logged) -> bool:
            return (mind is None or row.mind == mind) and (kinds is None or row.event.kind in kinds)

        # AuthMiddleware does not end this response when the token expires, because `follow` sends a last event first
        request.scope["state"]["ends_itself"] = True
        start = read_id(last_event_id, after)
        return EventStream(follow(tenant.hub, wants, start, mind, left_of(request.scope)))


def kinds_of(kinds: list[str] | None, room: str | None) -> frozenset[str] | None:
    """Return the requested kinds of events; None: all.

    Args:
        room: only the kinds of the plugin with this name; "ground": only those of the core.

    Raises:
        InputError: a kind or the plugin does not exist.
    """
    wanted = frozenset(kinds or ()) or None
    if unknown := sorted((wanted or frozenset()) - every_kind().keys()):
        raise InputError(f"kind: there is no kind of event {unknown[0][:50]!r}")
    if room is None:
        return wanted
    rooms = {each.name: each for each in registered() if each.name}
    if room != "ground" and room not in rooms:
        raise InputError(f"room: there is no plugin {room!r}; use one of: ground, {', '.join(rooms)}")
    shapes = GROUND if room == "ground" else tuple(rooms[room].events())
    inside = frozenset(each.kind for each in shapes if hasattr(each, "kind"))
    return inside if wanted is None else inside & wanted


def read_id(last_event_id: str | None, after: int | None) -> int | None:
    """Return the seq to resume after; None: only new rows.

    Raises:
        InputError: Last-Event-ID is not a row number.
    """
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and int(last_event_id[:25]) <= MAX_SEQ):
        raise InputError(f"Last-Event-ID must be the id of an event, which is a number, not {last_event_id[:50]!r}")
    return int(last_event_id)


async def follow(
    hub: Hub, wants: Wants, after: int | None, mind: StreamKey | None = None, left_s: LeftS = unlimited
) -> AsyncGenerator[bytes]:
    """Yield the log as server-sent events, each row once: the rows after the row number `after`, then new rows.

    If `after` is None, only new rows are yielded. The stream ends in these cases:

    - the request's token expires (`left_s` returns the seconds until then);
    - the server closes;
    - the client reads too slowly (its queue is full).
    """
    async with hub.listening(wants, mind, after or 0) as listener:
        start = listener.begins if after is None else after
        yield f"retry: {RETRY_MS}\nid: {start}\n\n".encode()
        if after is not None:
            async with aclosing(hub.catch_up(listener, after, mind)) as portions:
                async for lines in portions:
                    if await left_s() <= 0:
                        yield _last(listener, _before(lines, listener))
                        return
                    yield _joined(lines)
        while True:
            lines = await listener.next(max(0.0, min(PING_S, await left_s())))
            if await left_s() <= 0:
                yield _last(listener, _before(lines, listener))
                return
            if lines:
                yield _joined(lines)
            elif listener.is_over or listener.is_cut:
                yield _last(listener, listener.taken)
                return
            else:  # a keep-alive with the number to resume after; rows that are still queued have later numbers
                yield f": ping\nid: {listener.taken}\n\n".encode()


def _joined(lines: list[Line]) -> bytes:
    for line in lines:
        line.shown = line.shown or encode(line.row)
    return b"".join(line.shown for line in lines)


def _before(lines: list[Line], listener: Listener) -> int:
    """Return the number of the log row after which the client must resume if these rows are not sent."""
    return next((line.row.seq for line in lines if line.row.seq), listener.taken + 1) - 1


def _last(listener: Listener, seq: int) -> bytes:
    """Return the last event of a stream, with the number of the log row after which the client must resume.

    Its name is `cut` if the client was too slow, or `end` if the server shuts down or the token expired.
    """
    name = "cut" if listener.is_cut else "end"
    return format_sse_event(data_str=json.dumps({"after": seq}), event=name, id=str(seq))
