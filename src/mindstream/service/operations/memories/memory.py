"""Operations on a user's memory."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field, JsonValue

from mindstream import intake
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import KINDS, Kind, Record
from mindstream.memory.store.validation import MAX_TEXT
from mindstream.service.memory import parse_kinds, read_slots
from mindstream.service.operations.house import House
from mindstream.service.operations.memories.receipts import MemoryShape, RecallResult, show_memory, show_recalled
from mindstream.service.operations.shapes import Ask, At, Names, Page, Reply, Until
from mindstream.service.operations.table import operation, read_number, write_cursor
from mindstream.service.operations.who import NotFound, Who


class RetainRequest(Ask):
    """A text to remember; times are seconds since 1970, or ISO 8601 (UTC if they name no zone).

    It holds from `valid_from` (included) until `valid_until` (not included). `by`: who said or noted it.
    """

    text: str = Field(min_length=1, max_length=MAX_TEXT)
    kind: Kind = "note"
    session: str = Field("", max_length=100)
    by: str = Field("", max_length=100)
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
    k: int = Field(10, ge=1, le=1_000)
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
    """A page of a memory, newest first; `kinds`: only these, one by one or with commas between.

    `by_kind`: instead the current beliefs and plans (unless `kinds` are named), and the newest `limit` records of each
    kind, the newest last; all on one page.
    """

    limit: int = Field(50, ge=1, le=1_000)
    kinds: Names = Field([])
    session: str = Field("", max_length=100)
    by_kind: bool = False


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
async def retain(house: House, who: Who, ask: RetainRequest) -> Retained:
    """Remember a text. No model is called; it is on disk when this is answered."""
    memory = await house.memory(who)
    taken_in = await intake.cleaned(ask.text)
    record = await memory.retain(
        taken_in.text,
        ask.kind,
        by=ask.by,
        episode=ask.session,
        importance=ask.importance,
        created=ask.created,
        valid_from=ask.valid_from,
        valid_until=ask.valid_until,
        keywords=intake.clean_within(ask.keywords),
        data=intake.clean_within(ask.data),
    )
    return Retained(id=record.id, kind=record.kind, redacted=dict(taken_in.taken)).made_from(record)


@operation("memory.recall", "read", "POST /users/{user}/memories/recall", mcp="recall", cli="memory recall")
async def recall(house: House, who: Who, ask: RecallRequest) -> RecallResult:
    """Find what answers a question best, each with a receipt: why it was found, how well it is held, its source."""
    memory = await house.memory(who)
    found = await memory.recall(
        ask.query,
        ask.k,
        kinds=ask.kinds,
        since=ask.since,
        until=ask.until,
        as_of=ask.as_of,
        floor=ask.floor,
        where={"episode": ask.session} if ask.session else None,
        touch=ask.touch and who.may("memory", "write"),
    )
    return show_recalled(found, house.clock.now())


@operation("memory.list", "read", "GET /users/{user}/memories", mcp="list_memories", cli="memory list")
async def list_memories(house: House, who: Who, ask: ListRequest) -> MemoryList:
    """List memories, newest first; superseded and faded ones too, each with its status."""
    memory = await house.memory(who)
    kinds, now = parse_kinds(ask.kinds) if ask.kinds else None, house.clock.now()
    if ask.by_kind:
        return MemoryList(memories=[show_memory(each, now) for each in await _by_kind(memory, kinds, ask)], next="")
    columns = await memory.columns()
    newest, found = len(columns) + 1, list[Record]()
    before = min(read_number(ask.cursor) or newest, newest)
    while before > 1 and len(found) < ask.limit:
        first = max(0, before - 1 - 4 * ask.limit)
        records = {each.id: each for each in await memory.store.records(memory.key, columns.ids[first : before - 1])}
        for at in range(before - 2, first - 1, -1):
            before = at + 1
            record = records.get(columns.ids[at])
            if record and (not kinds or record.kind in kinds) and ask.session in ("", record.episode):
                found.append(record)
                if len(found) == ask.limit:
                    break
    return MemoryList(
        memories=[show_memory(record, now) for record in found], next=write_cursor(str(before)) if before > 1 else ""
    )


async def _by_kind(memory: Memory, kinds: Sequence[Kind] | None, ask: ListRequest) -> list[Record]:
    """Return the current beliefs and plans, unless kinds are named, and the newest records of each kind."""
    latest, now, found = memory.store.latest, memory.clock.now(), list[Record]()
    if kinds is None:
        found += await read_slots(memory.store, memory.key, now)
    for kind in kinds or [each for each in KINDS if each not in ("belief", "plan")]:
        found += await latest(memory.key, [kind], ask.limit, now=now, episode=ask.session or None)
    return found


@operation("memory.get", "read", "GET /users/{user}/memories/{id}", mcp="get_memory", cli="memory get")
async def get(house: House, who: Who, ask: MemoryId) -> MemoryShape:
    """Return one memory, whatever has become of it."""
    return show_memory(await find(await house.memory(who), ask.id), house.clock.now())


@operation(
    "memory.forget",
    "write",
    "DELETE /users/{user}/memories/{id}",
    mcp="forget",
    cli="memory forget",
    wordless=True,
    leaves_out=("items", "left"),
)
async def forget(house: House, who: Who, ask: ForgetRequest) -> ForgetResult:
    """Forget a memory for good, with all that was drawn from it alone; `dry_run` only says what would go."""
    memory = await house.memory(who)
    await find(memory, ask.id)
    return await remove(house, who, await memory.find_removal(ask.id), dry_run=ask.dry_run)


async def find(memory: Memory, id_: str) -> Record:
    """Return a record of this memory.

    Raises:
        NotFound: there is none; another's memory is none.
    """
    record = await memory.get(id_)
    if record is None:
        raise NotFound(f"there is no memory {id_!r} here")
    return record


async def remove(house: House, who: Who, removal: Removal, *, dry_run: bool) -> ForgetResult:
    """Delete what a removal names, unless it is a dry run; return what was or would be deleted, by ids."""
    done = Forgotten()
    if not dry_run:
        memory = await house.memory(who)
        done = await memory.remove(removal, deed=house.deed(who, "forgot", memory.key))
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
