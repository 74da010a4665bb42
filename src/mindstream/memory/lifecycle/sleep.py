"""Sleep, the maintenance of a memory: decay, a dream, importance ratings, merging of duplicates, expiry.

It is the operation S() of the M0, M1, M2 system (docs/papers.md). Each step is one commit with its `Slept` event, so a
sleep can be interrupted at any point. A sleep that was started for a row of the log can be continued: steps that were
logged after that row are not repeated.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from mindstream import chance
from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError, ModelError
from mindstream.log import erasures
from mindstream.log.events import Logged, Slept
from mindstream.memory.forgetting_curve import Strength, StrengthState, after_sleep
from mindstream.memory.lifecycle import duplicates, importance
from mindstream.memory.recall.recall import revision, state_in
from mindstream.memory.store.columns import KIND_CODES, OPEN, Columns
from mindstream.memory.store.record import FADING, TAINTED, Record, RecordDraft, common_data
from mindstream.memory.store.store import Entry, Fence, Revision, read_log
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.models.rules import Rules
from mindstream.text.words import batches

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model

MAX_PIECE = 120
MAX_PIECES = 7


class Dream(Prompt[str]):
    """Make a dream of the archived records."""

    role: ClassVar[str] = "reasoner"

    fragments: tuple[str, ...]


@rule(Dream)
def join_fragments(ask: Dream) -> str:
    """Without a model, join the fragments in order."""
    pieces = [_piece(text) for text in ask.fragments[:MAX_PIECES]]
    if sum(bool(re.search(r"[\u3040-\u30ff\u3400-\u9fff]", piece)) for piece in pieces) * 2 > len(pieces):
        return "我梦见：" + "；然后，".join(pieces) + ("……" if len(ask.fragments) > MAX_PIECES else "。")
    dream = "I dreamt: " + "; and then: ".join(pieces)
    return dream + (" … and more that I cannot hold." if len(ask.fragments) > MAX_PIECES else ".")


def _piece(text: str) -> str:
    piece = " ".join(text.split()).strip(" .。!！“”\"'")
    return piece if len(piece) <= MAX_PIECE else piece[:MAX_PIECE].rsplit(" ", 1)[0] + " …"


BATCH = 256
LONGEST, MOST = 1000, 100
"""LONGEST: maximum number of characters of a fragment in the dream's prompt. MOST: maximum number of fragments."""
SEARCHED_ROWS = 500
"""Number of rows of the log, up to the newest `Slept` row, that are searched first for the end of the last completed
sleep. Each further search covers eight times as many rows."""
LAST_STEP = "compaction"
ATTEMPTS = 5
CODES = [KIND_CODES[kind] for kind in FADING]


class Dreamt(NamedTuple):
    """A dream.

    Attributes:
        model: name of the model that wrote the dream.
        foreign: whether the dream contains untrusted text that does not come from the archived records.
    """

    text: str
    model: str
    foreign: bool = False


Law = Callable[[StrengthState, Moment, Strength], StrengthState]
Compose = Callable[["Model", Sequence[Record]], Awaitable[Dreamt]]
"""Makes a dream from archived records; raises ModelError if the model fails."""


class Draw(NamedTuple):
    """The changes that a sleep makes to the strength of records.

    Attributes:
        looked_at: number of drawn records.
        weaker: the changes of records that lose a level or are archived.
        kept: the changes of records that are strengthened.
    """

    looked_at: int
    weaker: Sequence[Revision]
    kept: Sequence[Revision] = ()

    @property
    def forgotten(self) -> tuple[str, ...]:
        return tuple(each.id for each in self.weaker if each.forgotten is not None)


@dataclass
class SleepRun:
    """One sleep.

    Attributes:
        rater: the model that rates importance.
        cause: the row of the log that the sleep is started for; 0: none.
        fence: work whose lease the process must still hold at each commit.
        steps: the log rows of the completed steps, by the name of the step.
    """

    stream: Stream
    model: Model
    rater: Model
    cause: int = 0
    fence: Fence | None = None
    steps: dict[str, Logged] = field(default_factory=dict)

    async def look_back(self) -> None:
        """Find the completed steps of an interrupted sleep for the same row of the log (`cause`); they are not
        repeated."""
        if not self.cause:
            return
        for row in await self.stream.store.events(self.stream.key, self.cause, ["slept"]):
            assert isinstance(row.event, Slept)
            begun = self.steps.get("fading")
            if row.event.cause == (begun.seq if begun else self.cause) and (begun or row.event.step == "fading"):
                self.steps.setdefault(row.event.step, row)

    async def write(self, event: Slept, records: Sequence[Record] = (), revisions: Sequence[Revision] = ()) -> None:
        """Commit the event of a completed step, with the changes that the step makes."""
        begun = self.steps.get("fading")
        event = event.model_copy(update={"cause": begun.seq if begun else self.cause})
        entry = Entry(event, "sleep", tuple(records))
        [self.steps[event.step]] = await self.stream.commit(entry, revisions=revisions, fence=self.fence)

    def step(self, name: str) -> Slept:
        """Return the event of a completed step."""
        event = self.steps[name].event
        assert isinstance(event, Slept)
        return event


async def sleep(
    stream: Stream,
    model: Model | None = None,
    n: int | None = None,
    rater: Model | None = None,
    *,
    cause: int = 0,
    fence: Fence | None = None,
    compose: Compose | None = None,
) -> str:
    """Let n random records decay, write a summary of the archived ones (the dream), and tidy up (`tidy_up`).

    Return the dream, or "". In a memory with the policy `keep` (memory/policy), nothing is archived, merged or dreamt:
    a sleep only rates importance and compacts the store. If a model fails, only the step that called it is lost: for
    example, archived records stay archived without a dream.

    Args:
        n: number of records to draw; None: the number in the policy.
        rater: model that rates importance; None: `model`.
        cause: the row of the log that the sleep is started for. A second call for the same row continues after the last
            completed step. 0: the sleep cannot be continued.
        fence: work whose lease the process must still hold at each step.
        compose: function that makes the dream; None: one call of `model`.

    Raises:
        InputError: n is below 0.
        LeaseLost: another process took over the fence's work; completed steps stay.
    """
    n = checked_draw(stream, n)
    model = model or Rules()
    run = SleepRun(stream, model, rater or model, cause, fence)
    async with erasures.reading(stream.store):
        await run.look_back()
        await fade(run, partial(draw, stream, n))
        await dream(run, compose or compose_dream)
        return await tidy_up(run, partial(find_duplicates, stream))


def checked_draw(stream: Stream, n: int | None) -> int:
    """Return the number of records that a sleep draws; None: the number in the policy.

    Raises:
        InputError: n is below 0.
    """
    if n is not None and n < 0:
        raise InputError(f"n, the number of records that a sleep draws, must be at least 0, not {n}")
    return stream.drawn if n is None else n


async def tidy_up(run: SleepRun, find: Callable[[], Awaitable[list[list[Record]]]]) -> str:
    """Rate importance, merge the groups that `find` returns, archive expired records, and compact the store. Return the
    text of the sleep's dream, "" if there is none.

    With the policy `keep`, expired records are not archived.
    """
    await _rate(run)
    await _merge(run, find)
    if not run.stream.keeps_all:
        await _archive_expired(run)
    if LAST_STEP not in run.steps:
        await run.stream.store.compact()
        await run.write(Slept(step=LAST_STEP))
    return run.step("dream").text if "dream" in run.steps else ""


async def draw(stream: Stream, n: int) -> Draw:
    """Draw n random records that can decay, and return the changes by the sleep's decay rule, which are not written
    yet.

    Under the policy `keep`, no record can decay.
    """
    columns, now = await stream.columns(), stream.clock.now()
    rows: list[int] = np.flatnonzero(columns.holding(FADING, now)).tolist() if stream.decays else []
    drawn = [columns.ids[at] for at in chance.sample(rows, n, stream.name, "sleep", now)]
    return Draw(len(drawn), [each for id_ in drawn if (each := change_by(after_sleep, stream, columns, id_))])


def change_by(law: Law, stream: Stream, columns: Columns, id_: str) -> Revision | None:
    """Return the change that a rule of strengthening or decay makes to a record; None if it makes none."""
    held, now, laws = state_in(columns, id_), stream.clock.now(), stream.strength
    if laws and held and (after := law(held, now, laws)) != held:
        return revision(id_, held, after, now)
    return None


async def fade(run: SleepRun, choose: Callable[[], Awaitable[Draw]]) -> None:
    """Write the changes that `choose` returns. If one of the records has changed in the meantime, choose again."""
    while "fading" not in run.steps:
        chosen = await choose()
        gone = chosen.forgotten
        weakened = tuple(each.id for each in chosen.weaker if each.forgotten is None)
        event = Slept(
            step="fading", looked_at=chosen.looked_at, changed=len(chosen.weaker), records=gone, weakened=weakened
        )
        try:
            await run.write(event, revisions=[*chosen.weaker, *chosen.kept])
        except Conflict:
            await asyncio.sleep(0)


def fragments_of(forgotten: Sequence[Record]) -> tuple[str, ...]:
    """Return the texts of archived records as the prompt of the dream shows them: at most MOST, each shortened."""
    return tuple(record.text[:LONGEST] for record in forgotten[:MOST])


async def compose_dream(model: Model, forgotten: Sequence[Record]) -> Dreamt:
    """Ask a model for a dream made from these records.

    Raises:
        ModelError: the model failed.
    """
    return Dreamt(await ask(model, Dream(fragments=fragments_of(forgotten))), model.name)


async def dream(run: SleepRun, compose: Compose) -> None:
    """Write the dream of the records that this sleep archived, with these records as evidence. If the model fails, log
    the error instead. If no record was archived, or the dream was written before an interruption, do nothing."""
    stream, model = run.stream, run.model
    forgotten = await stream.records(run.step("fading").records)
    if "dream" in run.steps or not forgotten:
        return
    ids = tuple(record.id for record in forgotten)
    try:
        text, by, is_foreign = await compose(model, forgotten)
        data = {**common_data(forgotten), **({TAINTED: True} if is_foreign else {})}
        new = RecordDraft(text=text, kind="dream", by=stream.name, evidence=ids, data=data)
        record = (await stream.build_records([new]))[0]
    except (ModelError, InputError) as error:
        await run.write(Slept(step="dream", looked_at=len(ids), model=model.name, error=str(error)))
        return
    event = Slept(step="dream", looked_at=len(ids), changed=1, records=(record.id,), text=record.text, model=by)
    await run.write(event, [record])


async def count_fading(stream: Stream) -> int:
    """Return the number of records that a sleep may draw: current records of kinds that can decay."""
    return int(np.count_nonzero((await stream.columns()).holding(FADING, stream.clock.now())))


async def _finished(stream: Stream) -> Logged | None:
    """Return the last event of the last completed sleep; None if there was none."""
    newest = await stream.store.last(stream.key, "slept")
    if newest is None:
        return None
    back = SEARCHED_ROWS
    while True:
        steps = await stream.store.events(stream.key, after=max(0, newest.seq - back), kinds=["slept"])
        ends = [each for each in steps if isinstance(each.event, Slept) and each.event.step == LAST_STEP]
        if ends or back >= newest.seq:
            return ends[-1] if ends else None
        back *= 8


async def _rate(run: SleepRun) -> None:
    """Rate the importance of records that have no rating yet."""
    if "importance" in run.steps:
        return
    done: list[Revision] = []
    error = ""
    try:
        async for ratings in importance.rate(run.stream, run.rater):
            done += ratings
    except ModelError as failure:
        error = str(failure)
    event = Slept(step="importance", looked_at=len(done), changed=len(done), model=run.rater.name, error=error)
    await run.write(event, revisions=done)


async def find_duplicates(stream: Stream, leaving: Sequence[str] = ()) -> list[list[Record]]:
    """Return the groups of near-duplicates that contain a record written since the last sleep; records in `leaving` are
    ignored. Under the policy `keep`, which merges nothing, return []."""
    if stream.keeps_all:
        return []
    last = await _finished(stream)
    return await duplicates.groups(stream, last.seq if last else 0, leaving)


async def _merge(run: SleepRun, find: Callable[[], Awaitable[list[list[Record]]]]) -> None:
    """Replace each group of near-duplicates by one record, with the group as its evidence."""
    stream, error = run.stream, ""
    if "duplicates" in run.steps:
        return
    for _ in range(ATTEMPTS):
        now, records, ending = stream.clock.now(), list[Record](), list[Revision]()
        for group in await find():
            id_ = stream.ids.make(now, group[0].kind, group[0].text)
            records.append(duplicates.merged(group, id_, now))
            ending += [Revision(id=each.id, valid_until=now, superseded_by=id_, holds=True) for each in group]
        kept = tuple(record.id for record in records)
        event = Slept(step="duplicates", looked_at=len(ending), changed=len(ending), records=kept)
        try:
            await run.write(event, records, ending)
        except Conflict as conflict:  # a record has changed since `find`: try again
            error = str(conflict)
            await asyncio.sleep(0)
        else:
            return
    await run.write(Slept(step="duplicates", error=error))


async def _archive_expired(run: SleepRun) -> None:
    """Archive the records whose validity has ended since the last sleep. Records that another record supersedes, and
    records of kinds that cannot decay, are left.
    """
    if "expiry" in run.steps:
        return
    stream = run.stream
    columns, now, last = await stream.columns(), stream.clock.now(), await _finished(stream)
    ended = (columns.valid_until.values <= now) & (columns.valid_until.values > (last.at if last else -OPEN))
    ended &= (columns.forgotten.values == OPEN) & np.isin(columns.kind.values, CODES)
    rows = [columns.ids[at] for at in np.flatnonzero(ended)]
    records: list[Record] = []
    for some in batches(rows, BATCH):
        records += await stream.records(some)
        await asyncio.sleep(0)
    ids = tuple(record.id for record in records if record.superseded_by is None)
    revisions = [Revision(id=id_, forgotten=now) for id_ in ids]
    await run.write(Slept(step="expiry", looked_at=len(records), changed=len(ids), records=ids), revisions=revisions)


@dataclass(frozen=True, slots=True)
class PastNight:
    """A sleep in the log: the number of its first row, and the row of each completed step, in order."""

    begun: int
    steps: dict[str, Logged] = field(default_factory=dict)

    def step(self, name: str) -> Slept | None:
        """Return the event of a step; None: it was not done."""
        row = self.steps.get(name)
        return row.event if row is not None and isinstance(row.event, Slept) else None


async def read_nights(stream: Stream) -> list[PastNight]:
    """Return all sleeps, oldest first, including interrupted and undone ones."""
    nights: dict[int, PastNight] = {}
    async for row in read_log(stream.store, stream.key, kinds=[Slept.kind]):
        if isinstance(row.event, Slept):
            begun = row.seq if row.event.step == "fading" else row.event.cause
            nights.setdefault(begun, PastNight(begun)).steps[row.event.step] = row
    return [run for run in nights.values() if "fading" in run.steps]
