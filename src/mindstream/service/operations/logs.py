"""Operations on the log: its rows, what came of an utterance, what calls of models cost."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field, JsonValue

from mindstream.log.events import Heard, Logged
from mindstream.log.names import shown_name
from mindstream.service.cost import BYS, By, bill
from mindstream.service.operations.cursors import read_number, write_cursor
from mindstream.service.operations.house import House
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.shapes import Ask, Page, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who

A_TRACE = 1_000
"""So many rows after an utterance are looked through for what came of it."""


class RowsRequest(Page):
    """A page of the log; `kinds` with commas between; `after`: it begins after that seq, where no cursor is given."""

    kinds: str = Field("", max_length=500)
    after: int = Field(0, ge=0, le=2**62)


class Rows(Reply):
    """Rows of the log, oldest first; `next`: the cursor of the next page, "" where there is none yet."""

    rows: list[dict[str, JsonValue]]
    next: str


class TraceRequest(Ask):
    """An utterance, by its row of the log."""

    seq: int = Field(ge=1, le=2**62)


class CostRequest(Ask):
    """Whose calls are added up; "": all of the tenant's; `by`: one way alone."""

    user: str = Field("", max_length=100)
    by: By | None = None


class Cost(Reply):
    """What calls of models came to; prices are those that were known at the time of the call."""

    total: dict[str, JsonValue]
    by: dict[str, list[dict[str, JsonValue]]]


@operation("log.rows", "read", "GET /users/{user}/log", cli="log")
async def rows(house: House, who: Who, ask: RowsRequest) -> Rows:
    """Return what happened to a user's mind, oldest first."""
    memory = await house.memory(who)
    kinds = [name for name in ask.kinds.split(",") if name] or None
    found = await memory.store.events(memory.key, read_number(ask.cursor) or ask.after, kinds, ask.limit)
    return _rows(found, write_cursor(str(found[-1].seq)) if len(found) == ask.limit else "")


@operation("log.trace", "read", "GET /users/{user}/traces/{seq}", cli="log")
async def trace(house: House, who: Who, ask: TraceRequest) -> Rows:
    """Return what came of an utterance: calls of models and tools, what was said, thought, believed."""
    memory = await house.memory(who)
    found = await memory.store.events(memory.key, ask.seq - 1, limit=A_TRACE)
    if not found or found[0].seq != ask.seq or not isinstance(found[0].event, Heard):
        raise NotFound(f"nothing was heard at {ask.seq} here")
    later = next((row.seq for row in found[1:] if isinstance(row.event, Heard)), None)
    return _rows((row for row in found if later is None or row.seq < later or _is_about(row, ask.seq)), "")


@operation("log.cost", "read", "GET /cost", cli="cost")
async def cost(house: House, who: Who, ask: CostRequest) -> Cost:
    """Say what calls of models came to: tokens, seconds, US dollars."""
    about = who.of(ask.user or who.only) if ask.user or who.only else who
    store = house.ground(about).store
    found = await bill(store, store.key(about.name) if about.user else None)
    by = {each: [total.plain() for total in found.by[each]] for each in BYS if ask.by in (None, each)}
    return Cost(total=found.total.plain(), by={str(name): totals for name, totals in by.items()})


def _is_about(row: Logged, seq: int) -> bool:
    about = getattr(row.event, "about", ())
    return getattr(row.event, "answers", 0) == seq or (isinstance(about, tuple) and seq in about)


def _rows(found: Iterable[Logged], after: str) -> Rows:
    return Rows(rows=[{**row.row(), "user": shown_name(row.mind)} for row in found], next=after)
