"""Operations on a user's memory. A recall returns a receipt with each memory: why it was found."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from mindstream import redaction
from mindstream.clock import Moment
from mindstream.json_values import JsonObject
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled, Recollection
from mindstream.memory.store.record import FADING, KINDS, MAX_TEXT, Kind, Record, is_tainted
from mindstream.service.memory import parse_kinds, read_slots
from mindstream.service.operations.operation import (
    Ask,
    At,
    CallerName,
    Names,
    NotFound,
    Page,
    Principal,
    Reply,
    Short,
    Until,
    operation,
    read_place,
    write_cursor,
)
from mindstream.service.operations.runtime import Runtime


class RetainRequest(Ask):
    """A text to remember. Times are seconds since 1970, or ISO 8601 (UTC if no time zone is given).

    `created`: when it was said, by default now. It is valid from `valid_from` (included) until `valid_until` (not
    included). `by`: the name of the person or agent who said it.
    """

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    kind: Kind = "note"
    session: Short = ""
    importance: float | None = Field(None, ge=1, le=10)
    created: At | None = None
    valid_from: At | None = None
    valid_until: At | None = None
    keywords: list[str] = Field([], max_length=50)
    data: JsonObject = Field({})
    by: CallerName = Field("", max_length=100)


class Retained(Reply):
    """The new memory, or the existing one with the same text (notes, thoughts and exemplars are stored only once).

    `redacted`: how many pieces of personal data were removed before storage, by kind (server option `--redact`).
    """

    id: str
    kind: Kind
    redacted: dict[str, int] = Field({})


class RecallRequest(Ask):
    """A question to memory. Times are seconds since 1970, or ISO 8601 (UTC if no time zone is given).

    `k`: the maximum number of memories. `since`, `until`: only memories written in this time span, both ends included.
    `as_of`: only memories that were written by this time and were valid then. `floor`: if the certainty of the whole
    result is below this value, return nothing; by default uncertain results are returned with `low_confidence`.
    `touch`: false: the recall does not change the strength of memories. A token without the scope `write` always
    recalls in this way.
    """

    query: str = Field(min_length=1, max_length=MAX_TEXT)
    k: int = Field(10, ge=1, le=1_000)
    kinds: list[Kind] | None = None
    since: At | None = None
    until: Until | None = None
    as_of: Until | None = None
    session: Short = ""
    floor: float = Field(0.0, ge=0, le=1)
    touch: bool = True


class MemoryId(Ask):
    """A memory, by its id."""

    id: Short


class ForgetRequest(MemoryId):
    """A memory to forget, by its id; `dry_run`: only report what would be deleted."""

    dry_run: bool = False


class ForgetResult(Reply):
    """The ids of deleted memories; with `dry_run`, of memories that would be deleted (`forgotten` is then false).

    `asked`: memories that the request selected, and their earlier wordings. `drawn`: memories that were derived only
    from memories in `asked`. `changed`: memories that are kept, but without the forgotten words. `left`: the remaining
    text of each memory in `changed`. `items`: the deleted items of beliefs and plans. `similar`: memories on a similar
    topic that do not mention the subject and are kept; to forget one, name its id. `pending`: whether bytes of the
    deleted words are still in the database file, because another program is reading the file; the next compaction
    removes them.
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
    """Which memories to list, newest first.

    `kinds`: only these kinds; repeat the parameter, or separate kinds with commas. `by_kind`: return one page with the
    newest `limit` current memories of each kind, the newest last. If `kinds` is empty, this page also has all current
    beliefs and plans.
    """

    limit: int = Field(50, ge=1, le=1_000)
    kinds: Names = Field([])
    session: Short = ""
    by_kind: bool = False


class MemoryShape(Reply):
    """A memory. Times are seconds since 1970 UTC.

    `status`: `holds` (valid now), `upcoming` (valid from `valid_from` on), `superseded` (replaced by `superseded_by`),
    `forgotten` (archived), `ended` (valid until `valid_until`). `valid_from`, `valid_until`: the period in which the
    memory is valid, from `valid_from` (included) until `valid_until` (not included); None: no limit. `by`: who said the
    memory. `derived_from`: the ids of its sources. `seq`: its row of the log; 0: none.
    """

    id: str
    text: str
    kind: Kind
    created: Moment
    by: str = ""
    session: str = ""
    importance: float | None = None
    status: str = "holds"
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: str | None = None
    derived_from: list[str] = Field([])
    seq: int = 0
    keywords: list[str] = Field([])
    data: JsonObject = Field({})


class MemoryList(Reply):
    """A page of memories, newest first. With `by_kind`: kind by kind, the newest last.

    `next`: the cursor of the next page; "": there is none.
    """

    memories: list[MemoryShape]
    next: str


class Receipt(Reply):
    """Why a memory was recalled.

    `parts`: the parts of the score. `ranks`: for each part of the score, the memory's rank among the returned memories.
    `strength`: 0 to 1; None for kinds that never decay. `age_s`, `last_recalled_s`: seconds since the memory was
    created, and since it was last recalled. `source`: `user`, `mind` (derived by the agent), or `foreign` (third-party
    content).
    `by`: who said it. `derived_from`: the ids of its sources.
    """

    score: float
    rank: int
    parts: dict[str, float]
    ranks: dict[str, int]
    strength: float | None
    age_s: float
    last_recalled_s: float
    source: str
    by: str
    session: str
    derived_from: list[str]


class RecalledMemory(Reply):
    """A recalled memory. Times are seconds since 1970 UTC; None: no limit.

    `confidence`: the calibrated probability that it answers the question, 0 to 1. `receipt`: why it was recalled.
    """

    id: str
    text: str
    kind: Kind
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    confidence: float = Field(0.0, ge=0, le=1)
    receipt: Receipt


class RecallResult(Reply):
    """The recalled memories, best first.

    `certainty`: the probability that any of the memories answers the question, 0 to 1. `low_confidence`: the certainty
    is below 0.1, and each confidence below 0.3. `without_vectors`: why some or all memories were compared by words
    only, without vectors; "" if all were compared by words and vectors. `not_reranked`: why the configured reranker was
    not used; "" if it was used, or if no reranker is configured.
    """

    memories: list[RecalledMemory]
    certainty: float = Field(ge=0, le=1)
    low_confidence: bool = False
    without_vectors: str = ""
    not_reranked: str = ""


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
    """Remember a text. No language model is called. The text is on disk before the reply is sent."""
    memory = await runtime.memory(principal)
    cleaned = await redaction.cleaned(request.text)
    record = await memory.retain(
        cleaned.text,
        request.kind,
        episode=request.session,
        importance=request.importance,
        created=request.created,
        valid_from=request.valid_from,
        valid_until=request.valid_until,
        keywords=redaction.clean_within(request.keywords),
        data=redaction.clean_within(request.data),
        by=request.by,
    )
    return Retained(id=record.id, kind=record.kind, redacted=dict(cleaned.taken)).made_from(record)


@operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall", cli="memory recall")
async def recall(runtime: Runtime, principal: Principal, request: RecallRequest) -> RecallResult:
    """Find the memories that best answer a question. Each has a receipt: why it was found, its strength, its source."""
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
    """List memories, newest first, each with its status. Superseded and archived memories are listed, too, except with
    `by_kind`."""
    memory = await runtime.memory(principal)
    kinds, now = parse_kinds(request.kinds) if request.kinds else None, runtime.clock.now()
    if request.by_kind:
        return MemoryList(memories=[show_memory(each, now) for each in await _by_kind(memory, kinds, request)], next="")
    columns = await memory.columns()
    newest, found = len(columns) + 1, list[MemoryShape]()
    number, last = read_place(request.cursor)
    place = columns.position.get(last)
    before = min(number or newest, newest) if place is None else place + 1
    while before > 1 and len(found) < request.limit:
        first = max(0, before - 1 - 4 * request.limit)
        records = {each.id: each for each in await memory.records(columns.ids[first : before - 1])}
        for at in range(before - 2, first - 1, -1):
            before = at + 1
            record = records.get(columns.ids[at])
            if record and (not kinds or record.kind in kinds) and request.session in ("", record.episode):
                found.append(show_memory(record, now))
                if len(found) == request.limit:
                    break
    next_page = write_cursor(f"{before}:{columns.ids[before - 1]}") if 1 < before < newest else ""
    return MemoryList(memories=found, next=next_page)


async def _by_kind(memory: Memory, kinds: Sequence[Kind] | None, request: ListRequest) -> list[Record]:
    """Return the newest records of each kind in `kinds`, the newest of a kind last.

    If `kinds` is None, return the current beliefs and plans, and the newest records of each other kind.
    """
    latest, now, found = memory.store.latest, memory.clock.now(), list[Record]()
    if kinds is None:
        found += await read_slots(memory.store, memory.key, now)
    for kind in kinds or [each for each in KINDS if each not in ("belief", "plan")]:
        found += await latest(memory.key, [kind], request.limit, now=now, episode=request.session or None)
    return found


@operation("memory.get", "read", "GET /users/{user}/memories/{id}", mcp="get_memory", cli="memory get")
async def get(runtime: Runtime, principal: Principal, request: MemoryId) -> MemoryShape:
    """Return one memory, whatever its status."""
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
    """Forget a memory permanently, with all memories derived from it alone; `dry_run` only reports them."""
    memory = await runtime.memory(principal)
    await find(memory, request.id)
    return await remove(runtime, principal, await memory.find_removal(request.id), dry_run=request.dry_run)


async def remove(runtime: Runtime, principal: Principal, removal: Removal, *, dry_run: bool) -> ForgetResult:
    """Delete the memories that a removal lists, unless this is a dry run.

    Return the ids of memories, and the items of beliefs and plans, that were deleted. In a dry run, return the ids and
    items that would be deleted.
    """
    done = Forgotten()
    if not dry_run:
        memory = await runtime.memory(principal)
        done = await memory.remove(removal, deed=runtime.deed(principal, "forgot", memory.key))
    return ForgetResult(
        forgotten=not dry_run,
        asked=_ids(removal.asked),
        drawn=_ids(removal.drawn),
        changed=_ids(removal.changed),
        items=[item.text for item in removal.items],
        left=list(removal.left),
        similar=_ids(removal.similar),
        pending=bool(done.pending),
    ).made_from((removal, done))


def _ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]


async def find(memory: Memory, id_: str) -> Record:
    """Return a record of this memory.

    Raises:
        NotFound: this memory has no record with that id.
    """
    record = await memory.get(id_)
    if record is None:
        raise NotFound(f"this user has no memory with the id {id_!r}")
    return record


def show_memory(record: Record, now: Moment) -> MemoryShape:
    """Return a record as a reply, with its status at the time `now`."""
    if record.valid_until is not None and record.valid_until <= now:
        status = "superseded" if record.superseded_by else "forgotten" if record.forgotten is not None else "ended"
    elif record.forgotten is not None:
        status = "forgotten"
    else:
        status = "upcoming" if record.valid_from is not None and record.valid_from > now else "holds"
    return MemoryShape.from_object(record, session=record.episode, status=status, derived_from=record.evidence)


def show_recalled(found: Recollection, now: Moment) -> RecallResult:
    """Return recalled memories as a reply, with a receipt for each."""
    ranks: list[dict[str, int]] = [{} for _ in found]
    for part in {name for each in found for name in each.parts}:
        order = sorted(range(len(found)), key=lambda at: -found[at].parts.get(part, 0.0))
        for place, at in enumerate(order):
            ranks[at][part] = place + 1
    return RecallResult(
        memories=[
            RecalledMemory.from_object(
                each.record, confidence=each.confidence, receipt=_receipt(each, place + 1, ranks[place], now)
            )
            for place, each in enumerate(found)
        ],
        certainty=min(1.0, max(0.0, found.certainty)),
        low_confidence=found.low_confidence,
        without_vectors=found.without_vectors,
        not_reranked=found.not_reranked,
    ).made_from(found)


def _receipt(found: Recalled, rank: int, ranks: dict[str, int], now: Moment) -> Receipt:
    record = found.record
    strength = 1.0 if record.lasting else 1 - 0.5 ** max(record.level + 1, 0)
    return Receipt.from_object(
        found,
        rank=rank,
        ranks=ranks,
        strength=strength if record.kind in FADING else None,
        age_s=max(0.0, now - record.created),
        last_recalled_s=max(0.0, now - record.accessed),
        source=source_of(record),
        by=record.by,
        session=record.episode,
        derived_from=record.evidence,
    )


def source_of(record: Record) -> str:
    """Return the origin of a record: `user`, `mind` (derived by the agent), or `foreign` (third-party content)."""
    if is_tainted(record):
        return "foreign"
    by_user = record.data.get("by_user")
    return "user" if by_user or (by_user is None and not record.evidence and record.slot is None) else "mind"
