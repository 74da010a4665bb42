"""Operations on the log: its rows, the trace of an utterance, model calls and their cost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Literal

from pydantic import Field

from mindstream.clock import Moment, period
from mindstream.identifiers import StreamKey, shown_name
from mindstream.json_values import JsonObject
from mindstream.log.events import Heard, Logged, ModelCalled
from mindstream.memory.store.store import LogStore
from mindstream.service.cost import BROKEN_OFF, BYS, Bill, By, bill
from mindstream.service.operations.operation import (
    Ask,
    At,
    CallerName,
    Names,
    NotFound,
    Page,
    Principal,
    Reply,
    RowNumber,
    Seq,
    Short,
    Until,
    operation,
    read_number,
    write_cursor,
)
from mindstream.service.operations.runtime import Runtime

MAX_TRACE = 1_000
"""Maximum number of rows, from an utterance's row on, that are searched for its trace."""
MIN_WINDOW, MAX_WINDOW = 1_000, 64_000
"""Number of rows that are read at a time, backwards from the end. The first read is of MIN_WINDOW rows. While few rows
match, the number doubles, up to MAX_WINDOW."""


class RowsRequest(Page):
    """Which rows of the log to return.

    `kinds`: only events of these kinds; repeat the parameter, or separate kinds with commas. `after`: only rows after
    this row number (`seq`). `upto`: only rows up to this number. `newest`: the newest rows first.
    """

    kinds: Names = Field([])
    after: Seq = 0
    upto: Seq | None = None
    newest: bool = False


class Rows(Reply):
    """Rows of the log, oldest first by default; `next`: the cursor of the next page, "" if there is none yet."""

    rows: list[JsonObject]
    next: str


class TraceRequest(Ask):
    """`seq`: the row of the log that contains the utterance."""

    seq: RowNumber


class CostRequest(Ask):
    """Which model calls to sum up.

    `user`: only the calls of this user, "": all calls of the tenant. `by`: return only this grouping. `upto`: only
    calls up to this row of the log.
    """

    user: CallerName = Field("", max_length=100)
    by: By | None = None
    upto: Seq | None = None


class Limits(Reply):
    """Limits of spending on models (None: no limit).

    `of`: `token`: the daily limits of this token; `server`: the limits of the server, which all callers share until the
    server is restarted. `spent_tokens`, `spent_usd`: what this token has spent today; None with `server`.
    """

    of: Literal["token", "server"]
    tokens: int | None
    usd: float | None
    spent_tokens: int | None = None
    spent_usd: float | None = None


class Cost(Reply):
    """The cost of model calls, at the prices that were known at the time of each call.

    `total`: the sum. `by`: sums by grouping. `days`: sums by day (UTC), and on each day by role. `limits`: None if no
    limit is set.
    """

    total: JsonObject
    by: dict[str, list[JsonObject]]
    days: dict[str, list[JsonObject]] = Field({})
    limits: Limits | None = None


class CallsRequest(Page):
    """Which model calls to return, newest first; an empty field does not filter.

    `role`, `prompt`, `model`: only calls with this name. `failed`: only failed calls, not those that were cancelled.
    `since`, `until`: only calls in this time span. `upto`: only calls up to this row of the log.
    """

    role: Short = ""
    prompt: Short = ""
    model: str = Field("", max_length=300)
    failed: bool = False
    since: At | None = None
    until: Until | None = None
    upto: Seq | None = None
    about: RowNumber | None = None
    """Only calls for this row of the log."""


class CallRequest(Ask):
    """`seq`: the row of the log that contains the call."""

    seq: RowNumber


class CallShape(Reply):
    """A model call.

    `first_part_s`: seconds until the first part of a streamed reply. `cost_usd`: None if no price is known. `cut`: the
    parts of the prompt that were left out to fit the model's window. `mended`: the reply was not valid JSON (but,
    for example, JSON5), and was repaired. `about`: the rows of the log that the call answers or reasons about.
    `resident`, `step`: in a town: the resident for whom the model was called, and the step of the simulation. `kept`:
    messages and reply are stored.
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
    """A message that was sent to the model."""

    role: str
    text: str


class CallWords(Reply):
    """A call with its texts; `messages` is empty if the texts were not stored (see the setting `keep_prompts`).

    `answered`: the model's reply. `about`: the rows of the log that the call answers or reasons about.
    """

    call: CallShape
    messages: list[MessageShape]
    answered: str
    about: list[JsonObject]


@operation("log.rows", "read", "GET /users/{user}/log", cli="log")
async def rows(runtime: Runtime, principal: Principal, request: RowsRequest) -> Rows:
    """Return the log of a user's mind, oldest first, or newest first."""
    memory, at = await runtime.memory(principal), read_number(request.cursor)
    kinds = request.kinds or None
    if request.newest:
        end = 1 + (await runtime.tenant(principal).store.last_seq() if request.upto is None else request.upto)
        found = await _first(_newest(memory.store, memory.key, kinds, min(at or end, end)), request.limit)
        found = [row for row in found if row.seq > request.after]
    else:
        found = await memory.store.events(memory.key, at or request.after, kinds, request.limit)
    shown = [row for row in found if request.upto is None or row.seq <= request.upto]
    is_full = len(shown) == request.limit
    return _rows(shown, write_cursor(str(shown[-1].seq)) if is_full else "")


def require_utterance(rows: Sequence[Logged], seq: int) -> Heard:
    """Return the event of the first of these rows.

    Raises:
        NotFound: the first row has another number, or is not an utterance.
    """
    if not rows or rows[0].seq != seq or not isinstance(rows[0].event, Heard):
        raise NotFound(f"row {seq} of this user's log is not an utterance: give the number of an utterance's row")
    return rows[0].event


@operation("log.trace", "read", "GET /users/{user}/traces/{seq}", cli="log")
async def trace(runtime: Runtime, principal: Principal, request: TraceRequest) -> Rows:
    """Return the trace of an utterance: model and tool calls, the answer, thoughts, beliefs."""
    memory = await runtime.memory(principal)
    found = await memory.store.events(memory.key, request.seq - 1, limit=MAX_TRACE)
    require_utterance(found, request.seq)
    later = next((row.seq for row in found[1:] if isinstance(row.event, Heard)), None)
    return _rows((row for row in found if later is None or row.seq < later or _is_about(row, request.seq)), "")


@operation("log.cost", "read", "GET /cost", cli="cost")
async def cost(runtime: Runtime, principal: Principal, request: CostRequest) -> Cost:
    """Return the cost of model calls: tokens, seconds, US dollars."""
    about = principal.of(request.user or principal.only) if request.user or principal.only else principal
    store = runtime.tenant(about).store
    found = await bill(store, store.key(about.name) if about.user else None, request.upto)
    by = {each: [total.plain() for total in found.by[each]] for each in BYS if request.by in (None, each)}
    return Cost(
        total=found.total.plain(),
        by={str(name): totals for name, totals in by.items()},
        days=days_of(found),
        limits=_limits(runtime, principal),
    ).made_from(found)


@operation("log.calls", "read", "GET /users/{user}/calls")
async def calls(runtime: Runtime, principal: Principal, request: CallsRequest) -> CallList:
    """List a user's model calls, newest first."""
    memory = await runtime.memory(principal)
    return await list_calls(memory.store, memory.key, request)


@operation("log.call", "read", "GET /users/{user}/calls/{seq}")
async def call(runtime: Runtime, principal: Principal, request: CallRequest) -> CallWords:
    """Return a model call: its messages, its reply, and the rows of the log that it answers or reasons about."""
    memory = await runtime.memory(principal)
    return await find_call(memory.store, memory.key, request.seq)


async def list_calls(
    store: LogStore, key: StreamKey, request: CallsRequest, resident: str = "", step: int | None = None
) -> CallList:
    """Return a page of the model calls in a stream's log.

    Args:
        resident: only calls of this resident of a town; "": all.
        step: only calls at this step of a town; None: all.
    """
    found: list[CallShape] = []
    period(request.since, request.until)
    last = await store.last(key, ModelCalled.kind)
    before = read_number(request.cursor) or (last.seq + 1 if last is not None else 1)
    before = before if request.upto is None else min(before, request.upto + 1)
    async for row in _newest(store, key, [ModelCalled.kind], before):
        if not isinstance(called := row.event, ModelCalled):
            continue
        if request.since is not None and called.time(row.at) < request.since:
            break
        if _matches(row, called, request) and resident in ("", called.resident) and step in (None, called.step):
            found.append(_show(row, called))
            if len(found) == request.limit:
                return CallList(calls=found, next=write_cursor(str(row.seq)))
    return CallList(calls=found, next="")


async def find_call(store: LogStore, key: StreamKey, seq: int) -> CallWords:
    """Return a model call by its row, with the rows that it answers or reasons about.

    Raises:
        NotFound: that row is not a model call.
    """
    found = await store.events(key, seq - 1, limit=1)
    if not found or found[0].seq != seq or not isinstance(called := found[0].event, ModelCalled):
        raise NotFound(f"row {seq} of this log is not a model call: give the number of a model call's row")
    about = [row for each in called.about for row in await store.events(key, each - 1, limit=1) if row.seq == each]
    said = [MessageShape(role=role, text=text) for role, text in called.messages()]
    return CallWords(call=_show(found[0], called), messages=said, answered=called.answered, about=_rows(about, "").rows)


async def _newest(store: LogStore, key: StreamKey, kinds: Sequence[str] | None, before: int) -> AsyncGenerator[Logged]:
    """Yield the rows of a stream before the row `before`, newest first."""
    window = MIN_WINDOW
    while before > 1:
        first = max(0, before - 1 - window)
        rows = [row for row in await store.events(key, first, kinds, window) if row.seq < before]
        for row in reversed(rows):
            yield row
        before, window = first + 1, window if len(rows) > MIN_WINDOW // 4 else min(2 * window, MAX_WINDOW)


async def _first(rows: AsyncGenerator[Logged], count: int) -> list[Logged]:
    found: list[Logged] = []
    async with aclosing(rows):
        async for row in rows:
            found.append(row)
            if len(found) == count:
                break
    return found


def _matches(row: Logged, called: ModelCalled, request: CallsRequest) -> bool:
    wanted = ((request.role, called.role), (request.prompt, called.prompt), (request.model, called.model))
    return (
        all(asked in ("", is_so) for asked, is_so in wanted)
        and (request.until is None or called.time(row.at) <= request.until)
        and (not request.failed or called.error not in ("", BROKEN_OFF))
        and (request.about is None or request.about in called.about)
    )


def _show(row: Logged, called: ModelCalled) -> CallShape:
    return CallShape.from_object(called, seq=row.seq, at=called.time(row.at), kept=bool(called.asked))


def _limits(runtime: Runtime, principal: Principal) -> Limits | None:
    if (own := principal.budget) is not None:
        return Limits(
            of="token", tokens=own.tokens, usd=own.cost_usd, spent_tokens=own.spent_tokens, spent_usd=own.spent_usd
        )
    settings = runtime.settings
    if settings.budget_tokens is None and settings.budget_usd is None:
        return None
    return Limits(of="server", tokens=settings.budget_tokens, usd=settings.budget_usd)


def days_of(found: Bill) -> dict[str, list[JsonObject]]:
    """Return the sums of a bill by day, and on each day by role."""
    return {day: [total.plain() for _, total in sorted(roles.items())] for day, roles in found.days.items()}


def _is_about(row: Logged, seq: int) -> bool:
    about = getattr(row.event, "about", ())
    return getattr(row.event, "answers", 0) == seq or (isinstance(about, tuple) and seq in about)


def _rows(found: Iterable[Logged], after: str) -> Rows:
    return Rows(rows=[{**row.row(), "user": shown_name(row.mind)} for row in found], next=after)
