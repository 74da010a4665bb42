"""Operations that care for a user's memory: corrections, histories, lineage, forgetting by subject, sleep."""

from __future__ import annotations

from dataclasses import asdict

from pydantic import Field

from mindstream.clock import Moment
from mindstream.log.events import Slept as SleptRow
from mindstream.memory.curation.curation import Drawn
from mindstream.memory.fading import curve, rehearsals
from mindstream.memory.lifecycle.sleep import DRAWN, PastNight, count_fading, read_nights
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import FADING, Kind
from mindstream.memory.store.store import read_all
from mindstream.memory.store.validation import MAX_TEXT
from mindstream.minds.calls import CallLog
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import reflect as reflect_on
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import Running
from mindstream.service.operations.memories.memory import ForgetResult, MemoryId, find, remove
from mindstream.service.operations.memories.receipts import MemoryShape, show_memory
from mindstream.service.operations.shapes import Ask, At, NoQuestion, Page, Reply, Until
from mindstream.service.operations.table import operation, read_number, write_cursor
from mindstream.service.operations.who import NotOffered, Who

MOST_LINEAGE = 500
"""So many records of a lineage are shown."""


class CorrectRequest(MemoryId):
    """The words that take the place of a memory's."""

    text: str = Field(min_length=1, max_length=MAX_TEXT)


class Corrected(Reply):
    """The new wording; `superseded` is history. `drawn`: what was drawn from the old one; `items`: who believes it."""

    memory: MemoryShape
    superseded: str
    drawn: list[str]
    items: list[str]


class History(Reply):
    """The wordings of a memory, from the first to the one that holds."""

    memories: list[MemoryShape]


class Lineage(Reply):
    """What a memory was drawn from, and what was drawn from it, near ones first; `cut`: there is more."""

    memory: MemoryShape
    from_: list[MemoryShape] = Field(serialization_alias="from")
    into: list[MemoryShape]
    cut: bool


class Laws(Reply):
    """The laws of fading (see memory/fading): a return counts later than first_s * base ** level after the last one.

    From `lasting_level` on a memory lasts. One that was not returned for `asleep_s` loses a level when a sleep draws
    it, for `passed_over_s` when others are returned before it.
    """

    first_s: float
    base: float
    cap_s: float
    passed_over_s: float
    asleep_s: float
    lasting_level: int


class HowHeld(Reply):
    """How well a memory is held.

    `fades`: it can; `returned`: when it last was (at first: written); `counts_again`: from when on a return makes it
    stronger. `curve`: days from its last return, and the chance that it is held still where nobody asks for it, with a
    sleep each day that draws it with the chance `drawn`. `rehearsals_s`: the earliest returns that would make a new
    memory last. `nights`: the sleeps that weakened or forgot it.
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
    """A sleep, by the row of the log in which it began: what it looked at, forgot, weakened and merged; its dream.

    Lists are ids; `undone`: it was taken back.
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
    """What to forget: records by id, a subject, a session, a span of time; `kinds`: only records of these kinds.

    `dry_run`: only return what would be deleted.
    """

    ids: list[str] = Field([], max_length=1_000)
    kinds: list[Kind] = Field([])
    about: str = Field("", max_length=1_000)
    session: str = Field("", max_length=100)
    since: At | None = None
    until: Until | None = None
    dry_run: bool = True


class SleepRequest(Ask):
    """So many memories are drawn, and may fade."""

    n: int = Field(20, ge=0, le=10_000)


class Slept(Reply):
    """What was dreamt of what was forgotten; "" where nothing was."""

    dream: str


class Reflected(Reply):
    """The thoughts that came of it, each with the ids of what it was drawn from in `data` and its lineage."""

    thoughts: list[MemoryShape]


class UndoRequest(Ask):
    """The sleep of that row of the log; 0: the last one."""

    sleep: int = Field(0, ge=0, le=2**62)


class Undone(Reply):
    """What is held again, by ids; what the sleep had made is in the archive; `left` has changed since."""

    sleep: int
    held_again: list[str]
    archived: list[str]
    left: list[str]


@operation("memory.correct", "write", "POST /users/{user}/memories/{id}/correct", mcp="correct", cli="memory correct")
async def correct(house: House, who: Who, ask: CorrectRequest) -> Corrected:
    """Correct a memory: new words take its place, the old ones are its history."""
    memory = await house.memory(who)
    await find(memory, ask.id)
    done = await memory.correct(ask.id, ask.text)
    return Corrected(
        memory=show_memory(done.record, house.clock.now()),
        superseded=ask.id,
        drawn=[each.id for each in done.drawn],
        items=[item.text for item in done.items],
    ).made_from(done)


@operation("memory.strength", "read", "GET /users/{user}/memories/{id}/strength")
async def strength(house: House, who: Who, ask: MemoryId) -> HowHeld:
    """Say how well a memory is held, by which laws, and how likely it is held still after so many days."""
    memory, now = await house.memory(who), house.clock.now()
    await memory.settle()
    record, laws = await find(memory, ask.id), memory.strength
    can_fade = await count_fading(memory)
    drawn = min(1.0, DRAWN / max(1, can_fade))
    fades = record.kind in FADING and laws is not None and not record.lasting and record.forgotten is None
    return HowHeld(
        fades=fades,
        level=record.level,
        lasting=record.lasting,
        returned=record.accessed,
        now=now,
        counts_again=record.accessed + (laws.interval_s(record.level) if laws and record.level > 0 else 0.0),
        laws=Laws(**asdict(laws), lasting_level=laws.lasting_level) if laws else None,
        rehearsals_s=rehearsals(laws) if laws else [],
        drawn=drawn,
        curve=[tuple(point) for point in curve(laws, max(0, record.level), drawn=drawn)] if laws and fades else [],
        nights=[night.begun for night in await read_nights(memory) if _touched(night, record.id)],
    )


def _touched(night: PastNight, id_: str) -> bool:
    fading = night.step("fading")
    return fading is not None and "undo" not in night.steps and id_ in (*fading.weakened, *fading.records)


@operation("memory.nights", "read", "GET /users/{user}/nights")
async def nights(house: House, who: Who, ask: Page) -> NightList:
    """List the sleeps of a memory, newest first: what was forgotten, held less well, merged, and the dream."""
    memory, before = await house.memory(who), read_number(ask.cursor)
    found = [each for each in reversed(await read_nights(memory)) if not before or each.begun < before]
    shown, more = found[: ask.limit], len(found) > ask.limit
    return NightList(
        nights=[_show_night(each) for each in shown], next=write_cursor(str(shown[-1].begun)) if more else ""
    )


def _show_night(night: PastNight) -> NightShape:
    fading, dream, merged = night.step("fading"), night.step("dream"), night.step("duplicates")
    steps = [step for row in night.steps.values() if isinstance(step := row.event, SleptRow)]
    return NightShape(
        sleep=night.begun,
        at=night.steps["fading"].at,
        looked_at=fading.looked_at if fading else 0,
        forgotten=list(fading.records) if fading else [],
        weakened=list(fading.weakened) if fading else [],
        dream=dream.text if dream else "",
        dream_id=dream.records[0] if dream and dream.records else "",
        dreamt_by=dream.model if dream else "",
        merged_into=list(merged.records) if merged else [],
        errors=[step.error for step in steps if step.error],
        undone="undo" in night.steps,
    )


@operation(
    "memory.history", "read", "GET /users/{user}/memories/{id}/history", mcp="memory_history", cli="memory history"
)
async def history(house: House, who: Who, ask: MemoryId) -> History:
    """Return the wordings of a memory, whichever of them is named."""
    memory, now = await house.memory(who), house.clock.now()
    await find(memory, ask.id)
    return History(memories=[show_memory(each, now) for each in await memory.history(ask.id)])


@operation(
    "memory.lineage", "read", "GET /users/{user}/memories/{id}/lineage", mcp="memory_lineage", cli="memory evidence"
)
async def lineage(house: House, who: Who, ask: MemoryId) -> Lineage:
    """Return what a memory was drawn from, and what was drawn from it."""
    memory, now = await house.memory(who), house.clock.now()
    record = await find(memory, ask.id)
    tree = await memory.evidence_of(ask.id)
    drawn = list({each.record.id: each for each in _flat(tree)}.values())[1:]
    into = await _drawn_from(memory, ask.id)
    below = await memory.store.records(memory.key, into[:MOST_LINEAGE])
    return Lineage(
        memory=show_memory(record, now),
        from_=[show_memory(each.record, now) for each in drawn[:MOST_LINEAGE]],
        into=[show_memory(each, now) for each in below],
        cut=max(len(drawn), len(into)) > MOST_LINEAGE,
    ).made_from(tree)


def _flat(drawn: Drawn) -> list[Drawn]:
    """Return a tree's nodes, those that are nearest to the top first."""
    found, level = [drawn], [drawn]
    while level := [each for one in level for each in one.evidence]:
        found += level
    return found


async def _drawn_from(memory: Memory, id_: str) -> list[str]:
    """Return the ids of what was drawn from a record, directly or not."""
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
async def forget_about(house: House, who: Who, ask: ForgetAboutRequest) -> ForgetResult:
    """Forget for good what meets all that is named; unless `dry_run` is false, it is only said what would go."""
    memory = await house.memory(who)
    removal = await memory.find_removal(
        *ask.ids, about=ask.about, session=ask.session, since=ask.since, until=ask.until, kinds=ask.kinds
    )
    return await remove(house, who, removal, dry_run=ask.dry_run)


@operation("memory.sleep", "write", "POST /users/{user}/memories/sleep", long=True, cli="memory sleep")
async def sleep(house: House, who: Who, ask: SleepRequest, one: Running) -> Slept:
    """Let memory sleep: rate importance; under the policy `decay` also archive, dream and merge near-duplicates."""
    memory, calls = await house.memory(who), CallLog()
    models = house.models_of(who, calls.take)
    one.tell("asleep")
    async with calls.writing(memory):
        dream = await memory.sleep(models.of("M1"), ask.n, rater=models.of("importance", "reasoner"))
    return Slept(dream=dream)


@operation("memory.reflect", "write", "POST /users/{user}/memories/reflect", long=True, mcp="reflect")
async def reflect(house: House, who: Who, ask: NoQuestion, one: Running) -> Reflected:  # noqa: ARG001
    """Think about what was remembered lately: questions are asked of it, and what it means is kept as thoughts."""
    memory, calls = await house.memory(who), CallLog()
    model = house.models_of(who, calls.take).of("reasoner")
    if model.name == Rules.name:
        raise NotOffered("without a model nobody reflects: the operator names one")
    one.tell("it reflects")
    async with calls.writing(memory):
        thoughts = await reflect_on(memory, model)
    now = house.clock.now()
    return Reflected(thoughts=[show_memory(each, now) for each in thoughts])


@operation("memory.undo_sleep", "write", "POST /users/{user}/memories/undo-sleep", cli="memory undo-sleep")
async def undo_sleep(house: House, who: Who, ask: UndoRequest) -> Undone:
    """Take a sleep back: what it forgot and merged is held again as it was."""
    memory = await house.memory(who)
    done = await memory.undo_sleep(ask.sleep)
    return Undone(
        sleep=done.sleep, held_again=list(done.held_again), archived=list(done.archived), left=list(done.left)
    )
