"""Operations on the log: its rows, what came of an utterance, what calls of models cost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Literal

from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.log.events import Heard, Logged, ModelCalled
from mindstream.log.names import StreamKey, shown_name
from mindstream.memory.store.store import LogStore
from mindstream.service.cost import BROKEN_OFF, BYS, Bill, By, bill
from mindstream.service.operations.house import House
from mindstream.service.operations.shapes import Ask, At, CallerName, Names, Page, Reply, Until
from mindstream.service.operations.table import operation, read_number, write_cursor
from mindstream.service.operations.who import NotFound, Who

A_TRACE = 1_000
"""So many rows after an utterance are looked through for what came of it."""
A_WINDOW, LONGEST_WINDOW = 1_000, 64_000
"""So many rows of the log are read at a time, from its end on; more where few of them are calls of this stream."""


class RowsRequest(Page):
    """A page of the log; `kinds`: only these, one by one or with commas between.

    `after`: it begins after that seq, where no cursor is given; `upto`: no row after that one; `newest`: those first.
    """

    kinds: Names = Field([])
    after: int = Field(0, ge=0, le=2**62)
    upto: int | None = Field(None, ge=0, le=2**62)
    newest: bool = False


class Rows(Reply):
    """Rows of the log, oldest first unless asked otherwise; `next`: the next page's cursor, "": there is none yet."""

    rows: list[dict[str, JsonValue]]
    next: str


class TraceRequest(Ask):
    """An utterance, by its row of the log."""

    seq: int = Field(ge=1, le=2**62)


class CostRequest(Ask):
    """Whose calls are added up; "": all of the tenant's; `by`: one way alone; `upto`: no row after that one."""

    user: CallerName = Field("", max_length=100)
    by: By | None = None
    upto: int | None = Field(None, ge=0, le=2**62)


class Limits(Reply):
    """What may be spent on models, None: as much as one likes; and what was: today, by this token.

    `of`: the token, or the server, whose budget is that of all who ask, until it ends.
    """

    of: Literal["token", "server"]
    tokens: int | None
    usd: float | None
    spent_tokens: int | None = None
    spent_usd: float | None = None


class Cost(Reply):
    """What calls of models came to; prices are those that were known at the time of the call.

    `days`: the same by day (UTC), and on each by role. `limits`: None where there are none.
    """

    total: dict[str, JsonValue]
    by: dict[str, list[dict[str, JsonValue]]]
    days: dict[str, list[dict[str, JsonValue]]] = Field({})
    limits: Limits | None = None


class CallsRequest(Page):
    """A page of calls of models, newest first; of a role, a prompt, a model; what failed; of a time; up to a row."""

    role: str = Field("", max_length=100)
    prompt: str = Field("", max_length=100)
    model: str = Field("", max_length=300)
    failed: bool = False
    since: At | None = None
    until: Until | None = None
    upto: int | None = Field(None, ge=0, le=2**62)
    about: int | None = Field(None, ge=1, le=2**62)
    """Those for this row of the log alone."""


class CallRequest(Ask):
    """A call, by its row of the log."""

    seq: int = Field(ge=1, le=2**62)


class CallShape(Reply):
    """A call of a model.

    `about`: the rows of the log that it answers, or thinks about; `resident`, `step`: who in a town asked, and when.
    `cost_usd`: None: no price is known. `kept`: what was asked and answered is kept.
    """

    seq: int
    at: Moment
    role: str
    prompt: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float
    first_part_s: float | None
    cost_usd: float | None
    cut: str
    error: str
    mended: bool
    about: list[int]
    resident: str
    step: int | None
    kept: bool


class CallList(Reply):
    """A page of calls, newest first; `next`: the cursor of the next page, "" at the end."""

    calls: list[CallShape]
    next: str


class MessageShape(Reply):
    """A message of what was asked."""

    role: str
    text: str


class CallWords(Reply):
    """A call word by word; where its words were not kept (`keep_prompts`), `messages` is empty. `about`: those rows."""

    call: CallShape
    messages: list[MessageShape]
    answered: str
    about: list[dict[str, JsonValue]]


@operation("log.rows", "read", "GET /users/{user}/log", cli="log")
async def rows(house: House, who: Who, ask: RowsRequest) -> Rows:
    """Return what happened to a user's mind, oldest first, or newest first."""
    memory, at = await house.memory(who), read_number(ask.cursor)
    kinds = ask.kinds or None
    if ask.newest:
        end = 1 + (await house.ground(who).store.last_seq() if ask.upto is None else ask.upto)
        found = await _first(_newest(memory.store, memory.key, kinds, min(at or end, end)), ask.limit)
        found = [row for row in found if row.seq > ask.after]
    else:
        found = await memory.store.events(memory.key, at or ask.after, kinds, ask.limit)
    shown = [row for row in found if ask.upto is None or row.seq <= ask.upto]
    is_full = len(shown) == ask.limit
    return _rows(shown, write_cursor(str(shown[-1].seq)) if is_full else "")


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
    found = await bill(store, store.key(about.name) if about.user else None, ask.upto)
    by = {each: [total.plain() for total in found.by[each]] for each in BYS if ask.by in (None, each)}
    return Cost(
        total=found.total.plain(),
        by={str(name): totals for name, totals in by.items()},
        days=days_of(found),
        limits=_limits(house, who),
    ).made_from(found)


@operation("log.calls", "read", "GET /users/{user}/calls")
async def calls(house: House, who: Who, ask: CallsRequest) -> CallList:
    """List the calls of models that a user's mind made, newest first."""
    memory = await house.memory(who)
    return await list_calls(memory.store, memory.key, ask)


@operation("log.call", "read", "GET /users/{user}/calls/{seq}")
async def call(house: House, who: Who, ask: CallRequest) -> CallWords:
    """Return a call of a model: what was asked and answered, word by word, and what it was about."""
    memory = await house.memory(who)
    return await find_call(memory.store, memory.key, ask.seq)


async def list_calls(
    store: LogStore, key: StreamKey, ask: CallsRequest, resident: str = "", step: int | None = None
) -> CallList:
    """Return a page of the calls in a stream's log; `resident`: of one of a town's; `step`: at that step."""
    found: list[CallShape] = []
    last = await store.last(key, ModelCalled.kind)
    before = read_number(ask.cursor) or (last.seq + 1 if last is not None else 1)
    before = before if ask.upto is None else min(before, ask.upto + 1)
    async for row in _newest(store, key, [ModelCalled.kind], before):
        if not isinstance(called := row.event, ModelCalled):
            continue
        if ask.since is not None and called.time(row.at) < ask.since:
            break
        if _is_meant(row, called, ask) and resident in ("", called.resident) and step in (None, called.step):
            found.append(_show(row, called))
            if len(found) == ask.limit:
                return CallList(calls=found, next=write_cursor(str(row.seq)))
    return CallList(calls=found, next="")


async def find_call(store: LogStore, key: StreamKey, seq: int) -> CallWords:
    """Return a call by its row, with the rows that it is about.

    Raises:
        NotFound: no call stands there.
    """
    found = await store.events(key, seq - 1, limit=1)
    if not found or found[0].seq != seq or not isinstance(called := found[0].event, ModelCalled):
        raise NotFound(f"no call of a model stands at {seq} here")
    about = [row for each in called.about for row in await store.events(key, each - 1, limit=1) if row.seq == each]
    said = [MessageShape(role=role, text=text) for role, text in called.messages()]
    return CallWords(call=_show(found[0], called), messages=said, answered=called.answered, about=_rows(about, "").rows)


async def _newest(store: LogStore, key: StreamKey, kinds: Sequence[str] | None, before: int) -> AsyncGenerator[Logged]:
    """Yield the rows of a stream before one, newest first."""
    window = A_WINDOW
    while before > 1:
        first = max(0, before - 1 - window)
        rows = [row for row in await store.events(key, first, kinds, window) if row.seq < before]
        for row in reversed(rows):
            yield row
        before, window = first + 1, window if len(rows) > A_WINDOW // 4 else min(2 * window, LONGEST_WINDOW)


async def _first(rows: AsyncGenerator[Logged], count: int) -> list[Logged]:
    found: list[Logged] = []
    async with aclosing(rows):
        async for row in rows:
            found.append(row)
            if len(found) == count:
                break
    return found


def _is_meant(row: Logged, called: ModelCalled, ask: CallsRequest) -> bool:
    wanted = ((ask.role, called.role), (ask.prompt, called.prompt), (ask.model, called.model))
    return (
        all(asked in ("", is_so) for asked, is_so in wanted)
        and (ask.until is None or called.time(row.at) <= ask.until)
        and (not ask.failed or called.error not in ("", BROKEN_OFF))
        and (ask.about is None or ask.about in called.about)
    )


def _show(row: Logged, called: ModelCalled) -> CallShape:
    return CallShape(
        seq=row.seq,
        at=called.time(row.at),
        role=called.role,
        prompt=called.prompt,
        model=called.model,
        input_tokens=called.input_tokens,
        output_tokens=called.output_tokens,
        cached_tokens=called.cached_tokens,
        seconds=called.seconds,
        first_part_s=called.first_part_s,
        cost_usd=called.cost_usd,
        cut=called.cut,
        error=called.error,
        mended=called.mended,
        about=list(called.about),
        resident=called.resident,
        step=called.step,
        kept=bool(called.asked),
    )


def _limits(house: House, who: Who) -> Limits | None:
    if (own := who.budget) is not None:
        return Limits(
            of="token", tokens=own.tokens, usd=own.cost_usd, spent_tokens=own.spent_tokens, spent_usd=own.spent_usd
        )
    settings = house.settings
    if settings.budget_tokens is None and settings.budget_usd is None:
        return None
    return Limits(of="server", tokens=settings.budget_tokens, usd=settings.budget_usd)


def days_of(found: Bill) -> dict[str, list[dict[str, JsonValue]]]:
    """Return a bill by day, and on each day by role."""
    return {day: [total.plain() for _, total in sorted(roles.items())] for day, roles in found.days.items()}


def _is_about(row: Logged, seq: int) -> bool:
    about = getattr(row.event, "about", ())
    return getattr(row.event, "answers", 0) == seq or (isinstance(about, tuple) and seq in about)


def _rows(found: Iterable[Logged], after: str) -> Rows:
    return Rows(rows=[{**row.row(), "user": shown_name(row.mind)} for row in found], next=after)
