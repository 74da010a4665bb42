"""Operations on a user's memory."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, JsonValue

from mindstream import intake
from mindstream.memory.curation.forgetting import Removal
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.store.validation import MAX_TEXT
from mindstream.service.operations.memories.receipts import MemoryShape, RecallResult, show_memory, show_recalled
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.shapes import Ask, At, Names, Page, Reply, Until
from mindstream.service.operations.table import operation, read_number, write_cursor


class RetainRequest(Ask):
    """Something to be remembered; times are seconds since 1970, or ISO 8601 (UTC where it names no zone).

    It holds from `valid_from` (included) until `valid_until` (not included).
    """

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    kind: Kind = "note"
    session: str = Field("", max_length=100)
    importance: float | None = Field(None, ge=1, le=10)
    created: At | None = None
    valid_from: At | None = None
    valid_until: At | None = None
    keywords: list[str] = Field([], max_length=50)
    data: dict[str, JsonValue] = Field({})


class Retained(Reply):
    """What was remembered; where the same words are kept once, the id of what was there.

    `redacted`: how many of which kind were taken out before anything was kept (`--redact`).
    """

    id: str
    kind: Kind
    redacted: dict[str, int] = Field({})


class RecallRequest(Ask):
    """A question to memory.

    A token without the scope `write` always looks as with `touch` false.

    `floor`: with less certainty nothing is returned; by default all is, and `low_confidence` marks it. `touch` false:
    a look changes nothing. `since`, `until`: when it was written, both included. `as_of`: what was written by then and
    held then. Times are seconds since 1970, or ISO 8601 (UTC where it names no zone).
    """

    query: str = Field(min_length=1, max_length=MAX_TEXT)
    k: int = Field(10, ge=1, le=100)
    kinds: list[Kind] | None = None
    since: At | None = None
    until: Until | None = None
    as_of: Until | None = None
    session: str = Field("", max_length=100)
    floor: float = Field(0.0, ge=0, le=1)
    touch: bool = True


class MemoryId(Ask):
    """One memory."""

    id: str = Field(max_length=100)


class ForgetRequest(MemoryId):
    """One memory that is to be forgotten; `dry_run` only says what would go."""

    dry_run: bool = False


class ForgetResult(Reply):
    """What was deleted, or would be: what was asked for, what is derived from it alone; what stays without the words.

    `left`: the text that each of `changed` has then. `similar`: memories that do not mention the subject and are kept;
    to forget one, name its id. `pending`: bytes of the deleted words are still in the file, as another program reads
    it; the next compaction removes them.
    """

    forgotten: bool
    asked: list[str]
    drawn: list[str]
    changed: list[str]
    items: list[str]
    left: list[str] = Field([])
    similar: list[str] = Field([])
    pending: bool = False


class ListRequest(Page):
    """A page of a memory, newest first; `kinds`: only these, one by one or with commas between."""

    kinds: Names = Field([])
    session: str = Field("", max_length=100)


class MemoryList(Reply):
    """A page of memories, newest first; `next`: the cursor of the next page, "" at the end."""

    memories: list[MemoryShape]
    next: str


@operation(
    "memory.retain",
    "write",
    "POST /users/{user}/memories",
    mcp="retain",
    cli="memory retain",
    status=201,
    wordless=True,
)
async def retain(runtime: Runtime, principal: Principal, request: RetainRequest) -> Retained:
    """Remember a text. No model is called; it is on disk when this is answered."""
    memory = await runtime.memory(principal)
    taken_in = await intake.cleaned(request.text)
    record = await memory.retain(
        taken_in.text,
        request.kind,
        episode=request.session,
        importance=request.importance,
        created=request.created,
        valid_from=request.valid_from,
        valid_until=request.valid_until,
        keywords=intake.clean_within(request.keywords),
        data=intake.clean_within(request.data),
    )
    return Retained(id=record.id, kind=record.kind, redacted=dict(taken_in.taken))


@operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall", cli="memory recall")
async def recall(runtime: Runtime, principal: Principal, request: RecallRequest) -> RecallResult:
    """Find what answers a question best, each with a receipt: why it was found, how well it is held, its source."""
    memory = await runtime.memory(principal)
    found = await memory.recall(
        request.query,
        request.k,
        kinds=request.kinds,
        since=request.since,
        until=request.until,
        as_of=request.as_of,
        floor=request.floor,
        where={"episode": request.session} if request.session else None,
        touch=request.touch and principal.may("memory", "write"),
    )
    return show_recalled(found, runtime.clock.now())


@operation("memory.list", "read", "GET /users/{user}/memories", mcp="list_memories", cli="memory list")
async def list_memories(runtime: Runtime, principal: Principal, request: ListRequest) -> MemoryList:
    """List memories, newest first; superseded and faded ones too, each with its status."""
    from mindstream.service.memory import parse_kinds

    memory = await runtime.memory(principal)
    kinds = parse_kinds(request.kinds) if request.kinds else None
    columns = await memory.columns()
    newest, found, now = len(columns) + 1, list[Record](), runtime.clock.now()
    before = min(read_number(request.cursor) or newest, newest)
    while before > 1 and len(found) < request.limit:
        first = max(0, before - 1 - 4 * request.limit)
        records = {each.id: each for each in await memory.store.records(memory.key, columns.ids[first : before - 1])}
        for at in range(before - 2, first - 1, -1):
            before = at + 1
            record = records.get(columns.ids[at])
            if record and (not kinds or record.kind in kinds) and request.session in ("", record.episode):
                found.append(record)
                if len(found) == request.limit:
                    break
    return MemoryList(
        memories=[show_memory(record, now) for record in found], next=write_cursor(str(before)) if before > 1 else ""
    )


@operation("memory.get", "read", "GET /users/{user}/memories/{id}", mcp="get_memory", cli="memory get")
async def get(runtime: Runtime, principal: Principal, request: MemoryId) -> MemoryShape:
    """Return one memory, whatever has become of it."""
    return show_memory(await find(await runtime.memory(principal), request.id), runtime.clock.now())


@operation(
    "memory.forget",
    "write",
    "DELETE /users/{user}/memories/{id}",
    mcp="forget",
    cli="memory forget",
    wordless=True,
    leaves_out=("items", "left"),
)
async def forget(runtime: Runtime, principal: Principal, request: ForgetRequest) -> ForgetResult:
    """Forget a memory for good, with all that was drawn from it alone; `dry_run` only says what would go."""
    memory = await runtime.memory(principal)
    await find(memory, request.id)
    removal = await memory.find_removal(request.id)
    pending = False
    if not request.dry_run:
        done = await memory.remove(removal, deed=runtime.deed(principal, "forgot", memory.key))
        pending = bool(done.pending)
    return show_removal(removal, forgotten=not request.dry_run, pending=pending)


async def find(memory: Memory, id_: str) -> Record:
    """Return a record of this memory.

    Raises:
        NotFound: there is none; another's memory is none.
    """
    record = await memory.get(id_)
    if record is None:
        raise NotFound(f"there is no memory {id_!r} here")
    return record


def show_removal(removal: Removal, *, forgotten: bool, pending: bool = False) -> ForgetResult:
    """Return what goes, or would go, by ids."""
    return ForgetResult(
        forgotten=forgotten,
        asked=_ids(removal.asked),
        drawn=_ids(removal.drawn),
        changed=_ids(removal.changed),
        items=[item.text for item in removal.items],
        left=list(removal.left),
        similar=_ids(removal.similar),
        pending=pending,
    )


def _ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]
