"""Operations that maintain a user's memory: corrections, history, lineage, forgetting by subject, sleep (decay)."""

from __future__ import annotations

from pydantic import Field

from mindstream.clock import Moment
from mindstream.log.events import Slept as SleptRow
from mindstream.memory.curation.curation import Drawn
from mindstream.memory.forgetting_curve import curve, rehearsals
from mindstream.memory.lifecycle.sleep import PastNight, count_fading, read_nights
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import FADING, MAX_TEXT, Kind
from mindstream.memory.store.store import read_all
from mindstream.minds.calls import CallLog
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import reflect as reflect_on
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.memory import ForgetResult, MemoryId, MemoryShape, find, remove, show_memory
from mindstream.service.operations.operation import (
    Ask,
    At,
    EmptyRequest,
    NotOffered,
    Page,
    Principal,
    Reply,
    Seq,
    Short,
    Until,
    operation,
    read_number,
    write_cursor,
)
from mindstream.service.operations.runtime import Runtime

MAX_LINEAGE = 500
"""Maximum number of sources, and of derived records, that a lineage returns."""


class CorrectRequest(MemoryId):
    """`text`: the new text of the memory."""

    text: str = Field(min_length=1, max_length=MAX_TEXT)


class Corrected(Reply):
    """The corrected memory.

    `superseded`: the id of the old version. `drawn`: ids of the current memories that were derived from the old
    version.
    `items`: the affected items of beliefs and plans.
    """

    memory: MemoryShape
    superseded: str
    drawn: list[str]
    items: list[str]


class History(Reply):
    """The versions of a memory, from the first to the current one."""

    memories: list[MemoryShape]


class Lineage(Reply):
    """The lineage of a memory, the nearest relatives first.

    `from`: its sources. `into`: the memories derived from it. `cut`: there are more than are returned.
    """

    memory: MemoryShape
    from_: list[MemoryShape] = Field(serialization_alias="from")
    into: list[MemoryShape]
    cut: bool


class Laws(Reply):
    """The rules by which memories become stronger and decay (see memory/forgetting_curve); times are in seconds.

    A recall raises the level of a memory by one if more than `first_s * base ** level` (at most `cap_s`) passed since
    the last recall of the memory. At level 0 a recall always raises the level. From `lasting_level` on the memory is
    permanent. A memory that was not recalled for `asleep_s` loses a level if a sleep selects it at random. A memory
    that was not recalled for `passed_over_s` loses a level if a recall finds it but does not return it. A memory with a
    level below 0 is archived.
    """

    first_s: float
    base: float
    cap_s: float
    passed_over_s: float
    asleep_s: float
    lasting_level: int


class HowHeld(Reply):
    """The strength of a memory.

    `fades`: whether the memory can decay (under the policy `keep`, none can). `lasting`: whether the memory is
    permanent. `returned`: when the memory was last recalled; if it was never recalled, when it was written.
    `counts_again`: the time from which a recall makes the memory stronger. `drawn`: the probability that a sleep
    selects a given memory that can decay; the policy says how many memories a sleep selects. `curve`: pairs of a number
    of days since the last recall, and the probability that the memory is not archived by then. The probability assumes
    that the memory is never recalled again, and that a sleep happens each day. `rehearsals_s`: the earliest times of
    recalls, in seconds after writing, that would make a new memory permanent. `nights`: the sleeps (not undone) that
    weakened or archived the memory, each by the log row in which the sleep began.
    """

    fades: bool
    level: int
    lasting: bool
    returned: Moment
    now: Moment
    counts_again: Moment
    laws: Laws | None
    drawn: float
    curve: list[tuple[float, float]]
    rehearsals_s: list[float]
    nights: list[int]


class NightShape(Reply):
    """A sleep: the background step that archives, weakens and merges memories, and summarizes the archived ones.

    `sleep`: the row of the log in which it began. `looked_at`: how many memories it examined. `forgotten` (archived),
    `weakened`, `merged_into`: ids of memories. `dream`: the summary of the archived ones; `dreamt_by`: the model that
    wrote it. `undone`: the sleep was undone.
    """

    sleep: int
    at: Moment
    looked_at: int
    forgotten: list[str]
    weakened: list[str]
    merged_into: list[str]
    dream: str
    dream_id: str
    dreamt_by: str
    errors: list[str]
    undone: bool


class NightList(Reply):
    """A page of sleeps, newest first; `next`: the cursor of the next page, "" at the end."""

    nights: list[NightShape]
    next: str


class ForgetAboutRequest(Ask):
    """The memories to forget: the memories in `ids`, and the memories that meet all other given conditions.

    `kinds`: memories of these kinds. `about`: memories that mention this subject. `session`: memories from this
    conversation. `since`, `until`: memories written in this time span. `dry_run`: only report what would be deleted.
    """

    ids: list[str] = Field([], max_length=1_000)
    kinds: list[Kind] = Field([])

    about: str = Field("", max_length=1_000)
    session: Short = ""
    since: At | None = None
    until: Until | None = None
    dry_run: bool = True


class SleepRequest(Ask):
    """`n`: how many memories are selected at random and may decay; by default the number in the policy (20)."""

    n: int | None = Field(None, ge=0, le=1_000_000)


class Slept(Reply):
    """`dream`: a summary of the memories that were archived; "" if none was, or if the model failed."""

    dream: str


class Reflected(Reply):
    """The new thoughts; `derived_from` of each contains the ids of its sources."""

    thoughts: list[MemoryShape]


class UndoRequest(Ask):
    """`sleep`: the row of the log in which the sleep began; 0: the last sleep that is not undone."""

    sleep: Seq = 0


class Undone(Reply):
    """The effect of undoing a sleep, as ids of memories.

    `held_again`: restored. `archived`: created by the sleep (its dream, merged memories), and archived now. `left`:
    weakened memories that are not restored, because they were recalled, archived, deleted or made long-term since.
    """

    sleep: int
    held_again: list[str]
    archived: list[str]
    left: list[str]


@operation("memory.correct", "write", "POST /users/{user}/memories/{id}/correct", mcp="correct", cli="memory correct")
async def correct(runtime: Runtime, principal: Principal, request: CorrectRequest) -> Corrected:
    """Correct a memory: a new text replaces it, the old one is its history."""
    memory = await runtime.memory(principal)
    await find(memory, request.id)
    done = await memory.correct(request.id, request.text)
    return Corrected(
        memory=show_memory(done.record, runtime.clock.now()),
        superseded=request.id,
        drawn=[each.id for each in done.drawn],
        items=[item.text for item in done.items],
    ).made_from(done)


@operation("memory.strength", "read", "GET /users/{user}/memories/{id}/strength")
async def strength(runtime: Runtime, principal: Principal, request: MemoryId) -> HowHeld:
    """Return the strength of a memory, the rules of its decay, and the probability that it survives, by day."""
    memory, now = await runtime.memory(principal), runtime.clock.now()
    await memory.settle()
    record, laws = await find(memory, request.id), memory.strength
    drawn = min(1.0, (await runtime.policy(principal)).drawn / max(1, await count_fading(memory)))
    fades = memory.decays and record.kind in FADING and not record.lasting and record.forgotten is None
    return HowHeld.from_object(
        record,
        fades=fades,
        returned=record.accessed,
        now=now,
        counts_again=record.accessed + (laws.interval_s(record.level) if laws and record.level > 0 else 0.0),
        laws=Laws.from_object(laws) if laws else None,
        rehearsals_s=rehearsals(laws) if laws else [],
        drawn=drawn,
        curve=[tuple(point) for point in curve(laws, max(0, record.level), drawn=drawn)] if laws and fades else [],
        nights=[night.begun for night in await read_nights(memory) if _touched(night, record.id)],
    )


def _touched(night: PastNight, id_: str) -> bool:
    fading = night.step("fading")
    return fading is not None and "undo" not in night.steps and id_ in (*fading.weakened, *fading.records)


@operation("memory.nights", "read", "GET /users/{user}/nights")
async def nights(runtime: Runtime, principal: Principal, request: Page) -> NightList:
    """List the sleeps of a memory, newest first: memories archived, weakened and merged, and the dream."""
    memory, before = await runtime.memory(principal), read_number(request.cursor)
    found = [each for each in reversed(await read_nights(memory)) if not before or each.begun < before]
    shown, more = found[: request.limit], len(found) > request.limit
    return NightList(
        nights=[_show_night(each) for each in shown], next=write_cursor(str(shown[-1].begun)) if more else ""
    )


def _show_night(night: PastNight) -> NightShape:
    fading = night.step("fading") or SleptRow(step="fading")
    dream = night.step("dream") or SleptRow(step="dream")
    merged = night.step("duplicates") or SleptRow(step="duplicates")
    steps = [step for row in night.steps.values() if isinstance(step := row.event, SleptRow)]
    return NightShape(
        sleep=night.begun,
        at=night.steps["fading"].at,
        looked_at=fading.looked_at,
        forgotten=list(fading.records),
        weakened=list(fading.weakened),
        dream=dream.text,
        dream_id=next(iter(dream.records), ""),
        dreamt_by=dream.model,
        merged_into=list(merged.records),
        errors=[step.error for step in steps if step.error],
        undone="undo" in night.steps,
    )


@operation(
    "memory.history", "read", "GET /users/{user}/memories/{id}/history", mcp="memory_history", cli="memory history"
)
async def history(runtime: Runtime, principal: Principal, request: MemoryId) -> History:
    """Return all versions of a memory; the id may be that of any version."""
    memory, now = await runtime.memory(principal), runtime.clock.now()
    await find(memory, request.id)
    return History(memories=[show_memory(each, now) for each in await memory.history(request.id)])


@operation(
    "memory.lineage", "read", "GET /users/{user}/memories/{id}/lineage", mcp="memory_lineage", cli="memory evidence"
)
async def lineage(runtime: Runtime, principal: Principal, request: MemoryId) -> Lineage:
    """Return the sources of a memory, and the memories derived from it."""
    memory, now = await runtime.memory(principal), runtime.clock.now()
    record = await find(memory, request.id)
    tree = await memory.evidence_of(request.id)
    drawn = list({each.record.id: each for each in _flat(tree)}.values())[1:]
    into = await _drawn_from(memory, request.id)
    below = await memory.records(into[:MAX_LINEAGE])
    return Lineage(
        memory=show_memory(record, now),
        from_=[show_memory(each.record, now) for each in drawn[:MAX_LINEAGE]],
        into=[show_memory(each, now) for each in below],
        cut=max(len(drawn), len(into)) > MAX_LINEAGE,
    ).made_from(tree)


def _flat(drawn: Drawn) -> list[Drawn]:
    """Return a tree's nodes, level by level."""
    found, level = [drawn], [drawn]
    while level := [each for one in level for each in one.evidence]:
        found += level
    return found


async def _drawn_from(memory: Memory, id_: str) -> list[str]:
    """Return the ids of records derived from a record, directly or not."""
    below: dict[str, list[str]] = {}
    async for records in read_all(memory.store, memory.key):
        for record in records:
            for each in record.evidence:
                below.setdefault(each, []).append(record.id)
    found, level = dict[str, None](), [id_]
    while level := [each for one in level for each in below.get(one, ()) if each not in found and each != id_]:
        found |= dict.fromkeys(level)
    return list(found)


@operation(
    "memory.forget_about",
    "write",
    "POST /users/{user}/memories/forget",
    cli="memory forget",
    wordless=True,
    leaves_out=("items", "left"),
)
async def forget_about(runtime: Runtime, principal: Principal, request: ForgetAboutRequest) -> ForgetResult:
    """Forget memories permanently, by ids or by conditions; unless `dry_run` is false, only report what would be
    deleted."""
    memory = await runtime.memory(principal)
    removal = await memory.find_removal(
        *request.ids,
        about=request.about,
        session=request.session,
        since=request.since,
        until=request.until,
        kinds=request.kinds,
    )
    return await remove(runtime, principal, removal, dry_run=request.dry_run)


@operation("memory.sleep", "write", "POST /users/{user}/memories/sleep", long=True, cli="memory sleep")
async def sleep(runtime: Runtime, principal: Principal, request: SleepRequest, one: RunningOperation) -> Slept:
    """Run a sleep: rate importance; under the policy `decay` also archive, summarize and merge near-duplicates."""
    memory, calls = await runtime.memory(principal), CallLog()
    models = runtime.models_of(principal, calls.take)
    drawn = (await runtime.policy(principal)).drawn if request.n is None else request.n
    one.report("asleep")
    async with calls.writing(memory):
        dream = await memory.sleep(models.of("M1"), drawn, rater=models.of("importance", "reasoner"))
    return Slept(dream=dream)


@operation("memory.reflect", "write", "POST /users/{user}/memories/reflect", long=True, mcp="reflect")
async def reflect(runtime: Runtime, principal: Principal, request: EmptyRequest, one: RunningOperation) -> Reflected:  # noqa: ARG001
    """Reflect on recent memories: ask questions about them, and keep the insights as thoughts."""
    memory, calls = await runtime.memory(principal), CallLog()
    model = runtime.models_of(principal, calls.take).of("reasoner")
    if model.name == Rules.name:
        raise NotOffered(
            "reflection needs a language model, and the operator has configured none for the role reasoner"
        )
    one.report("reflecting")
    async with calls.writing(memory):
        thoughts = await reflect_on(memory, model)
    now = runtime.clock.now()
    return Reflected(thoughts=[show_memory(each, now) for each in thoughts])


@operation("memory.undo_sleep", "write", "POST /users/{user}/memories/undo-sleep", cli="memory undo-sleep")
async def undo_sleep(runtime: Runtime, principal: Principal, request: UndoRequest) -> Undone:
    """Undo a sleep: memories that it archived, merged or weakened are restored, except expired ones."""
    memory = await runtime.memory(principal)
    done = await memory.undo_sleep(request.sleep)
    return Undone.from_object(done)
