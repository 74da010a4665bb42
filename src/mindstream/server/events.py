"""GET /api/v1/events: the log as server-sent events. The id of an event is its seq; Last-Event-ID goes on after it."""

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
from mindstream.server.rest import PREFIX, LeftS, left_of, problems_of, unending, who_of
from mindstream.server.streams import PING_S, EventStream, encode
from mindstream.service.operations.house import House
from mindstream.service.operations.hub import Hub, Line, Listener, Wants

RETRY_MS = 1_000
LARGEST = 2**62


def add_events(api: FastAPI, house: House) -> None:
    """Add the route."""

    @api.get(
        PREFIX + "/events",
        tags=["log"],
        operation_id="log.events",
        response_class=EventStream,
        status_code=200,
        responses=problems_of("GET") | {200: {"content": {"text/event-stream": {}}}},
    )
    async def events(
        request: Request,
        user: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
        kind: Annotated[list[str] | None, Query(max_length=50)] = None,
        room: Annotated[str | None, Query(max_length=50)] = None,
        after: Annotated[int | None, Query(ge=0, le=LARGEST)] = None,
        last_event_id: Annotated[str | None, Header()] = None,
    ) -> EventStream:
        """Give the rows of the log as they are written, after Last-Event-ID or `after`; without them from now on.

        What is live only (pieces of an answer) has no id and does not come again: the whole `said` does.
        """
        who = who_of(request.scope)
        who.require("log", "read")
        about = who.of(user or who.only) if user or who.only else who
        ground = house.ground(about)
        mind = ground.store.key(about.name) if about.user else None
        wants = choose(mind, kinds_of(kind, room))
        request.scope["state"]["ends_itself"] = True  # it says where to go on
        return EventStream(follow(ground.hub, wants, read_id(last_event_id, after), mind, left_of(request.scope)))


def kinds_of(kinds: list[str] | None, room: str | None) -> frozenset[str] | None:
    """Return the kinds of events that are wanted; None: all.

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


def choose(mind: StreamKey | None, kinds: frozenset[str] | None) -> Wants:
    """Return what tells which rows are wanted: one mind's, or the tenant's; of these kinds, or of all."""

    def wants(row: Logged) -> bool:
        return (mind is None or row.mind == mind) and (kinds is None or row.event.kind in kinds)

    return wants


def read_id(last_event_id: str | None, after: int | None) -> int | None:
    """Return the seq to go on after; None: only what comes.

    Raises:
        InputError: it is no seq.
    """
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit() and int(last_event_id[:25]) <= LARGEST):
        raise InputError("Last-Event-ID is the id of an event, a number")
    return int(last_event_id)


async def follow(
    hub: Hub, wants: Wants, after: int | None, mind: StreamKey | None = None, left_s: LeftS = unending
) -> AsyncGenerator[bytes]:
    """Yield the log as events: what was written after a seq, then what is being written; each row once.

    It ends when the token has ended: `left_s` says how long that still holds.
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
                break
            else:
                yield _place(listener)
        yield _last(listener, listener.taken)


def _joined(lines: list[Line]) -> bytes:
    for line in lines:
        line.shown = line.shown or encode(line.row)
    return b"".join(line.shown for line in lines)


def _place(listener: Listener) -> bytes:
    """Return a keep-alive with the position to resume after; rows that are queued but not yet sent come after it."""
    return f": ping\nid: {listener.taken}\n\n".encode()


def _before(lines: list[Line], listener: Listener) -> int:
    """Return the seq to resume after where these lines are not sent."""
    return next((line.row.seq for line in lines if line.row.seq), listener.taken + 1) - 1


def _last(listener: Listener, seq: int) -> bytes:
    """Return the last event of a stream: it was cut, or the server or the token ended; `after` is where to resume."""
    name = "cut" if listener.is_cut else "end"
    return format_sse_event(data_str=json.dumps({"after": seq}), event=name, id=str(seq))
