"""Operations on the log: its rows, the trace of an utterance, calls of models and their cost."""

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
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.shapes import Ask, At, CallerName, Names, Page, Reply, Until
from mindstream.service.operations.table import operation, read_number, write_cursor

MAX_TRACE = 1_000
"""Maximum number of rows after an utterance that are searched for its trace."""
MIN_WINDOW, MAX_WINDOW = 1_000, 64_000
"""Rows of the log that are read at a time, from its end backwards: more if few of them belong to this stream."""


class RowsRequest(Page):
    """A page of the log; `kinds`: only these, one by one or separated by commas.

    `after`: it begins after that seq, if no cursor is given; `upto`: the last row; `newest`: newest rows first.
    """

    kinds: Names = Field([])
    after: int = Field(0, ge=0, le=2**62)
    upto: int | None = Field(None, ge=0, le=2**62)
    newest: bool = False


class Rows(Reply):
    """Rows of the log, oldest first by default; `next`: the next page's cursor, "": there is none yet."""

    rows: list[dict[str, JsonValue]]
    next: str


class TraceRequest(Ask):
    """An utterance, by its row of the log."""

    seq: int = Field(ge=1, le=2**62)


class CostRequest(Ask):
    """`user`: whose calls are summed up, "": all of the tenant's; `by`: one grouping alone; `upto`: the last row."""

    user: CallerName = Field("", max_length=100)
    by: By | None = None
    upto: int | None = Field(None, ge=0, le=2**62)


class Limits(Reply):
    """Limits of spending on models (None: no limit), and what this token spent today.

    `of`: the owner of the limits: the token, or the server, whose limits all callers share until it is restarted.
    """

    of: Literal["token", "server"]
    tokens: int | None
    usd: float | None
    spent_tokens: int | None = None
    spent_usd: float | None = None


class Cost(Reply):
    """The cost of calls of models; prices are those that were known at the time of the call.

    `days`: the same by day (UTC), and on each day by role. `limits`: None if there are none.
    """

    total: dict[str, JsonValue]
    by: dict[str, list[dict[str, JsonValue]]]
    days: dict[str, list[dict[str, JsonValue]]] = Field({})
    limits: Limits | None = None


class CallsRequest(Page):
    """A page of calls of models, newest first; of a role, a prompt, a model; failed ones; of a time; up to a row."""

    role: str = Field("", max_length=100)
    prompt: str = Field("", max_length=100)
    model: str = Field("", max_length=300)
    failed: bool = False
    since: At | None = None
    until: Until | None = None
    upto: int | None = Field(None, ge=0, le=2**62)
    about: int | None = Field(None, ge=1, le=2**62)
    """Only calls for this row of the log."""


class CallRequest(Ask):
    """A call, by its row of the log."""

    seq: int = Field(ge=1, le=2**62)


class CallShape(Reply):
    """A call of a model.

    `about`: the rows of the log that it answers, or reasons about; `resident`, `step`: of a town, who called and when.
    `cost_usd`: None: no price is known. `kept`: its messages and its reply are kept.
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
    """A message of a request."""

    role: str
    text: str


class CallWords(Reply):
    """A call with its texts; if these were not kept (`keep_prompts`), `messages` is empty. `about`: those rows."""

    call: CallShape
    messages: list[MessageShape]
    answered: str
    about: list[dict[str, JsonValue]]


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


@operation("log.trace", "read", "GET /users/{user}/traces/{seq}", cli="log")
async def trace(runtime: Runtime, principal: Principal, request: TraceRequest) -> Rows:
    """Return the trace of an utterance: calls of models and tools, the answer, thoughts, beliefs."""
    memory = await runtime.memory(principal)
    found = await memory.store.events(memory.key, request.seq - 1, limit=MAX_TRACE)
    if not found or found[0].seq != request.seq or not isinstance(found[0].event, Heard):
        raise NotFound(f"nothing was heard at {request.seq} here")
    later = next((row.seq for row in found[1:] if isinstance(row.event, Heard)), None)
    return _rows((row for row in found if later is None or row.seq < later or _is_about(row, request.seq)), "")


@operation("log.cost", "read", "GET /cost", cli="cost")
async def cost(runtime: Runtime, principal: Principal, request: CostRequest) -> Cost:
    """Return the cost of calls of models: tokens, seconds, US dollars."""
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
    """List a user's calls of models, newest first."""
    memory = await runtime.memory(principal)
    return await list_calls(memory.store, memory.key, request)


@operation("log.call", "read", "GET /users/{user}/calls/{seq}")
async def call(runtime: Runtime, principal: Principal, request: CallRequest) -> CallWords:
    """Return a call of a model: its messages, its reply, and the rows that it is about."""
    memory = await runtime.memory(principal)
    return await find_call(memory.store, memory.key, request.seq)


async def list_calls(
    store: LogStore, key: StreamKey, request: CallsRequest, resident: str = "", step: int | None = None
) -> CallList:
    """Return a page of the calls in a stream's log; `resident`, `step`: only those of a town's resident, at a step."""
    found: list[CallShape] = []
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
    """Return a call by its row, with the rows that it is about.

    Raises:
        NotFound: that row is no call.
    """
    found = await store.events(key, seq - 1, limit=1)
    if not found or found[0].seq != seq or not isinstance(called := found[0].event, ModelCalled):
        raise NotFound(f"row {seq} is no call of a model here")
    about = [row for each in called.about for row in await store.events(key, each - 1, limit=1) if row.seq == each]
    said = [MessageShape(role=role, text=text) for role, text in called.messages()]
    return CallWords(call=_show(found[0], called), messages=said, answered=called.answered, about=_rows(about, "").rows)


async def _newest(store: LogStore, key: StreamKey, kinds: Sequence[str] | None, before: int) -> AsyncGenerator[Logged]:
    """Yield the rows of a stream before one, newest first."""
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


def days_of(found: Bill) -> dict[str, list[dict[str, JsonValue]]]:
    """Return a bill by day, and on each day by role."""
    return {day: [total.plain() for _, total in sorted(roles.items())] for day, roles in found.days.items()}


def _is_about(row: Logged, seq: int) -> bool:
    about = getattr(row.event, "about", ())
    return getattr(row.event, "answers", 0) == seq or (isinstance(about, tuple) and seq in about)


def _rows(found: Iterable[Logged], after: str) -> Rows:
    return Rows(rows=[{**row.row(), "user": shown_name(row.mind)} for row in found], next=after)
