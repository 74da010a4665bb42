"""GET /api/v1/events: the log as server-sent events. An event's id is its seq; Last-Event-ID resumes after it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import FastAPI, Header, Query, Request
from fastapi.sse import format_sse_event

from mindstream.errors import InputError
from mindstream.log.events import GROUND, Logged, every_kind
from mindstream.log.names import StreamKey
from mindstream.plugins import registered
from mindstream.server.rest import PREFIX, READ_PROBLEMS, LeftS, left_of, principal_of, problem_responses, unlimited
from mindstream.server.streams import PING_S, EventStream, encode
from mindstream.service.operations.hub import Hub, Line, Listener, Wants
from mindstream.service.operations.runtime import Runtime

RETRY_MS = 1_000
MAX_SEQ = 2**62


def add_events(api: FastAPI, runtime: Runtime) -> None:
    """Add the route."""

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
        """Send the rows of the log as they are written: those after Last-Event-ID or `after`, else new ones only.

        Live rows (pieces of an answer) have no id and are not sent again: the whole `said` is.
        """
        principal = principal_of(request.scope)
        principal.require("log", "read")
        about = principal.of(user or principal.only) if user or principal.only else principal
        tenant = runtime.tenant(about)
        mind = tenant.store.key(about.name) if about.user else None
        kinds = kinds_of(kind, room)

        def wants(row: Logged) -> bool:
            return (mind is None or row.mind == mind) and (kinds is None or row.event.kind in kinds)

        request.scope["state"]["ends_itself"] = True  # its last event says where to resume
        start = read_id(last_event_id, after)
        return EventStream(follow(tenant.hub, wants, start, mind, left_of(request.scope)))


def kinds_of(kinds: list[str] | None, room: str | None) -> frozenset[str] | None:
    """Return the kinds of events that are requested; None: all.

    Raises:
        InputError: there is no such kind or room.
    """
    wanted = frozenset(kinds or ()) or None
    if unknown := sorted((wanted or frozenset()) - every_kind().keys()):
        raise InputError(f"there is no kind of event {unknown[0][:50]!r}")
    if room is None:
        return wanted
    rooms = {each.name: each for each in registered() if each.name}
    if room != "ground" and room not in rooms:
        raise InputError(f"there is no room {room!r}; there are ground, {', '.join(rooms)}")
    shapes = GROUND if room == "ground" else tuple(rooms[room].events())
    inside = frozenset(each.kind for each in shapes if hasattr(each, "kind"))
    return inside if wanted is None else inside & wanted


def read_id(last_event_id: str | None, after: int | None) -> int | None:
    """Return the seq to resume after; None: only new rows.

    Raises:
        InputError: Last-Event-ID is no seq.
    """
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and int(last_event_id[:25]) <= MAX_SEQ):
        raise InputError("Last-Event-ID is the id of an event, a number")
    return int(last_event_id)


async def follow(
    hub: Hub, wants: Wants, after: int | None, mind: StreamKey | None = None, left_s: LeftS = unlimited
) -> AsyncGenerator[bytes]:
    """Yield the log as events: what was written after a seq, then what is being written; each row once.

    It ends when the token ends: `left_s` says for how long that is still valid.
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
            else:  # a keep-alive, with the seq to resume after: queued rows that are not yet sent come later
                yield f": ping\nid: {listener.taken}\n\n".encode()


def _joined(lines: list[Line]) -> bytes:
    for line in lines:
        line.shown = line.shown or encode(line.row)
    return b"".join(line.shown for line in lines)


def _before(lines: list[Line], listener: Listener) -> int:
    """Return the seq to resume after if these lines are not sent."""
    return next((line.row.seq for line in lines if line.row.seq), listener.taken + 1) - 1


def _last(listener: Listener, seq: int) -> bytes:
    """Return a stream's last event: it was cut, or the server or the token ended; `after` is where to resume."""
    name = "cut" if listener.is_cut else "end"
    return format_sse_event(data_str=json.dumps({"after": seq}), event=name, id=str(seq))
