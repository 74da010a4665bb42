"""Sleep: tidy memory, stay efficient; and the dream that comes of what is forgotten (the M0, M1, M2 system).

Each step is one commit, with the `Slept` event that tells it. So a sleep can be broken off anywhere, and one that was
begun for a row of the log is taken up where it was: what stands in the log after that row is not done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mindstream import chance
from mindstream.errors import Conflict, InputError, ModelError
from mindstream.log import erasures
from mindstream.log.events import Logged, Slept
from mindstream.memory.fading import after_sleep
from mindstream.memory.lifecycle import duplicates, importance
from mindstream.memory.lifecycle.dream import Dream
from mindstream.memory.recall.touch import revision, state_in
from mindstream.memory.store.columns import KIND_CODES, OPEN, Columns
from mindstream.memory.store.record import FADING, TAINTED, Record, RecordDraft, common_data
from mindstream.memory.store.store import Entry, Fence, Revision, read_log
from mindstream.models.ask import ask
from mindstream.models.rules import Rules

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model

DRAWN, BATCH = 20, 256
LONGEST, MOST = 1000, 100
"""So many characters of a fragment, and so many fragments, are given to who dreams."""
LATELY = 500
"""So many rows of the log back the end of the last sleep is looked for first, then eight times as many."""
LAST = "compaction"
ATTEMPTS = 5
CODES = [KIND_CODES[kind] for kind in FADING]


class Dreamt(NamedTuple):
    """A dream, who dreamt it, and whether words of strangers stand in it that were not in what was forgotten."""

    text: str
    model: str
    foreign: bool = False


Compose = Callable[["Model", Sequence[Record]], Awaitable[Dreamt]]
"""Makes a dream of what was forgotten; raises ModelError where nobody can."""


class Draw(NamedTuple):
    """What a sleep looks at: how many records, those that lose a level by it, and those that are held better for it."""

    looked_at: int
    weaker: Sequence[Revision]
    kept: Sequence[Revision] = ()

    @property
    def forgotten(self) -> tuple[str, ...]:
        return tuple(each.id for each in self.weaker if each.forgotten is not None)


@dataclass
class Night:
    """One sleep: of which stream, with which models, behind which fence, and the steps that are done."""

    stream: Stream
    model: Model
    rater: Model
    cause: int = 0
    fence: Fence | None = None
    steps: dict[str, Logged] = field(default_factory=dict)

    async def look_back(self) -> None:
        """Find what was done already of a sleep that was begun for the same row of the log."""
        if not self.cause:
            return
        for row in await self.stream.store.events(self.stream.key, self.cause, ["slept"]):
            assert isinstance(row.event, Slept)
            begun = self.steps.get("fading")
            if row.event.cause == (begun.seq if begun else self.cause) and (begun or row.event.step == "fading"):
                self.steps.setdefault(row.event.step, row)

    async def write(self, event: Slept, records: Sequence[Record] = (), revisions: Sequence[Revision] = ()) -> None:
        """Commit a step with all that it changes."""
        begun = self.steps.get("fading")
        event = event.model_copy(update={"cause": begun.seq if begun else self.cause})
        entry = Entry(event, "sleep", tuple(records))
        [self.steps[event.step]] = await self.stream.commit(entry, revisions=revisions, fence=self.fence)

    def step(self, name: str) -> Slept:
        """Return what was told of a step that is done."""
        event = self.steps[name].event
        assert isinstance(event, Slept)
        return event


async def sleep(
    stream: Stream,
    model: Model | None = None,
    n: int = DRAWN,
    rater: Model | None = None,
    *,
    cause: int = 0,
    fence: Fence | None = None,
    compose: Compose | None = None,
) -> str:
    """Let n random records fade, dream of what is forgotten, keep house; return the dream, or "".

    A memory that keeps everything (memory/policy) archives, merges and dreams nothing: importance is rated, and the
    store is compacted.

    A model that fails costs its step only: what is forgotten stays forgotten, and no dream is written.

    Args:
        cause: the row of the log that the sleep is begun for. Asked again for the same row, it goes on after the last
            step that was done; 0: a sleep of its own.
        fence: work that must still be its owner's at each step.
        compose: who makes the dream; None: `model`, asked once.

    Raises:
        InputError: n is below 0.
        LeaseLost: the fence's work was taken over; what was done stands.
    """
    if n < 0:
        raise InputError(f"n says how many records a sleep draws, at least 0, not {n}")
    model = model or Rules()
    night = Night(stream, model, rater or model, cause, fence)
    async with erasures.reading(stream.store):
        await night.look_back()
        await fade(night, partial(draw, stream, n))
        await dream(night, compose or compose_dream)
        return await keep_house(night, _find_none if stream.keeps_all else partial(find_duplicates, stream))


async def _find_none() -> list[list[Record]]:
    return []


async def keep_house(night: Night, find: Callable[[], Awaitable[list[list[Record]]]]) -> str:
    """Rate importance, merge the groups that are found, archive what is over; return the dream, or ""."""
    await _rate(night)
    await _merge(night, find)
    if not night.stream.keeps_all:
        await _expire(night)
    if LAST not in night.steps:
        await night.stream.store.compact()
        await night.write(Slept(step=LAST))
    return night.step("dream").text if "dream" in night.steps else ""


async def draw(stream: Stream, n: int) -> Draw:
    """Draw n random records, and apply the law of sleep to them; nothing is written."""
    columns, now = await stream.columns(), stream.clock.now()
    rows: list[int] = np.flatnonzero(columns.holding(FADING, now)).tolist() if stream.decays else []
    drawn = [columns.ids[at] for at in chance.sample(rows, n, stream.name, "sleep", now)]
    return Draw(len(drawn), [each for id_ in drawn if (each := weaken(stream, columns, id_))])


def weaken(stream: Stream, columns: Columns, id_: str) -> Revision | None:
    """Return what the law of sleep does to a record; None: nothing."""
    held, now, laws = state_in(columns, id_), stream.clock.now(), stream.strength
    if laws and held and (after := after_sleep(held, now, laws)) != held:
        return revision(id_, held, after, now)
    return None


async def fade(night: Night, choose: Callable[[], Awaitable[Draw]]) -> None:
    """Write down what a draw does; where something was touched meanwhile, draw again."""
    while "fading" not in night.steps:
        chosen = await choose()
        gone = chosen.forgotten
        weakened = tuple(each.id for each in chosen.weaker if each.forgotten is None)
        event = Slept(
            step="fading", looked_at=chosen.looked_at, changed=len(chosen.weaker), records=gone, weakened=weakened
        )
        try:
            await night.write(event, revisions=[*chosen.weaker, *chosen.kept])
        except Conflict:
            await asyncio.sleep(0)


def fragments_of(forgotten: Sequence[Record]) -> tuple[str, ...]:
    """Return what whoever dreams is given of what was forgotten."""
    return tuple(record.text[:LONGEST] for record in forgotten[:MOST])


async def compose_dream(model: Model, forgotten: Sequence[Record]) -> Dreamt:
    """Ask a model for the dream that comes of these.

    Raises:
        ModelError: it cannot.
    """
    return Dreamt(await ask(model, Dream(fragments=fragments_of(forgotten))), model.name)


async def dream(night: Night, compose: Compose) -> None:
    """Write the dream of what the fading forgot, its evidence that."""
    stream, model = night.stream, night.model
    forgotten = await stream.store.records(stream.key, night.step("fading").records)
    if "dream" in night.steps or not forgotten:
        return
    ids = tuple(record.id for record in forgotten)
    try:
        text, by, is_foreign = await compose(model, forgotten)
        data = {**common_data(forgotten), **({TAINTED: True} if is_foreign else {})}
        new = RecordDraft(text=text, kind="dream", by=stream.name, evidence=ids, data=data)
        record = (await stream.build_records([new]))[0]
    except (ModelError, InputError) as error:
        await night.write(Slept(step="dream", looked_at=len(ids), model=model.name, error=str(error)))
        return
    event = Slept(step="dream", looked_at=len(ids), changed=1, records=(record.id,), text=record.text, model=by)
    await night.write(event, [record])


async def count_fading(stream: Stream) -> int:
    """Return how many records a sleep may draw from."""
    return int(np.count_nonzero((await stream.columns()).holding(FADING, stream.clock.now())))


async def _finished(stream: Stream) -> Logged | None:
    """Return the end of the last sleep that came to its end; None: not lately, so that everything is looked at."""
    newest = await stream.store.last(stream.key, "slept")
    if newest is None:
        return None
    back = LATELY
    while True:
        steps = await stream.store.events(stream.key, after=max(0, newest.seq - back), kinds=["slept"])
        ends = [each for each in steps if isinstance(each.event, Slept) and each.event.step == LAST]
        if ends or back >= newest.seq:
            return ends[-1] if ends else None
        back *= 8


async def _rate(night: Night) -> None:
    """Rate what has no importance yet."""
    if "importance" in night.steps:
        return
    done: list[Revision] = []
    error = ""
    try:
        async for ratings in importance.rate(night.stream, night.rater):
            done += ratings
    except ModelError as failure:
        error = str(failure)
    event = Slept(step="importance", looked_at=len(done), changed=len(done), model=night.rater.name, error=error)
    await night.write(event, revisions=done)


async def find_duplicates(stream: Stream, leaving: Sequence[str] = ()) -> list[list[Record]]:
    """Return the near-duplicates that have come since the last sleep, without these ids."""
    last = await _finished(stream)
    return await duplicates.groups(stream, last.seq if last else 0, leaving)


async def _merge(night: Night, find: Callable[[], Awaitable[list[list[Record]]]]) -> None:
    """Let one record take the place of near-duplicates, its evidence what it replaces."""
    stream, error = night.stream, ""
    if "duplicates" in night.steps:
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
            await night.write(event, records, ending)
        except Conflict as conflict:  # one of them was changed meanwhile: look again
            error = str(conflict)
            await asyncio.sleep(0)
        else:
            return
    await night.write(Slept(step="duplicates", error=error))


async def _expire(night: Night) -> None:
    """Archive what was written to hold until a time that has passed by now."""
    if "expiry" in night.steps:
        return
    stream = night.stream
    columns, now, last = await stream.columns(), stream.clock.now(), await _finished(stream)
    ended = (columns.valid_until.values <= now) & (columns.valid_until.values > (last.at if last else -OPEN))
    ended &= (columns.forgotten.values == OPEN) & np.isin(columns.kind.values, CODES)
    rows = [columns.ids[at] for at in np.flatnonzero(ended)]
    records: list[Record] = []
    for start in range(0, len(rows), BATCH):
        records += await stream.store.records(stream.key, rows[start : start + BATCH])
        await asyncio.sleep(0)
    ids = tuple(record.id for record in records if record.superseded_by is None)
    revisions = [Revision(id=id_, forgotten=now) for id_ in ids]
    await night.write(Slept(step="expiry", looked_at=len(records), changed=len(ids), records=ids), revisions=revisions)


@dataclass(frozen=True, slots=True)
class PastNight:
    """A sleep that was: the row in which it began to fade, and the row of each step, in order."""

    begun: int
    steps: dict[str, Logged] = field(default_factory=dict)

    def step(self, name: str) -> Slept | None:
        """Return what was told of a step; None: it was not done."""
        row = self.steps.get(name)
        return row.event if row is not None and isinstance(row.event, Slept) else None


async def read_nights(stream: Stream) -> list[PastNight]:
    """Return all sleeps, oldest first, those that were undone too."""
    nights: dict[int, PastNight] = {}
    async for row in read_log(stream.store, stream.key, kinds=[Slept.kind]):
        if isinstance(row.event, Slept):
            begun = row.seq if row.event.step == "fading" else row.event.cause
            nights.setdefault(begun, PastNight(begun)).steps[row.event.step] = row
    return [night for night in nights.values() if "fading" in night.steps]
