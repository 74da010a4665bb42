"""Sleep: tidy memory, stay efficient; and the dream that comes of what is forgotten (the M0, M1, M2 system).

Each step is committed by itself and told as a `Slept` event, so a sleep can be broken off anywhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from mindstream import chance
from mindstream.errors import Conflict, InputError, ModelError
from mindstream.log.events import Logged, Remembered, Slept
from mindstream.memory import duplicates, importance
from mindstream.memory.columns import KIND_CODES, OPEN
from mindstream.memory.dream import Dream
from mindstream.memory.record import FADING, New, Record, common_data
from mindstream.memory.store import Entry, Revision
from mindstream.memory.strength import after_sleep
from mindstream.memory.touch import revision, state_in
from mindstream.models.ask import ask
from mindstream.models.rules import Rules

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream
    from mindstream.models.model import Model

DRAWN, BATCH = 20, 256
LONGEST, MOST = 1000, 100
"""So many characters of a fragment, and so many fragments, are given to who dreams."""
LATELY = 500
"""So many rows of the log back the end of the last sleep is looked for."""
LAST = "compaction"
CODES = [KIND_CODES[kind] for kind in FADING]


async def sleep(stream: Stream, model: Model | None = None, n: int = DRAWN, rater: Model | None = None) -> str:
    """Let n random records fade, dream of what is forgotten, keep house; return the dream, or "".

    A model that fails costs its step only: what is forgotten stays forgotten, and no dream is written.

    Raises:
        InputError: n is below 0.
    """
    if n < 0:
        raise InputError(f"n says how many records a sleep draws, at least 0, not {n}")
    model = model or Rules()
    forgotten = await _fade(stream, n)
    dream = await _dream(stream, forgotten, model) if forgotten else ""
    await _rate(stream, rater or model)
    await _merge(stream)
    await _expire(stream)
    await stream.store.compact()
    await _tell(stream, Slept(step="compaction"))
    return dream


async def _tell(stream: Stream, event: Slept) -> None:
    await stream.commit(Entry(event, "sleep"))


async def _finished(stream: Stream) -> Logged | None:
    """Return the end of the last sleep that came to its end; None: not lately, so that everything is looked at."""
    newest = await stream.store.last(stream.name, "slept")
    if newest is None:
        return None
    steps = await stream.store.events(stream.name, after=max(0, newest.seq - LATELY), kinds=["slept"])
    return next((each for each in reversed(steps) if isinstance(each.event, Slept) and each.event.step == LAST), None)


async def _fade(stream: Stream, n: int) -> list[Record]:
    """Apply the law of sleep to n random records; return those that are forgotten by it."""
    while True:
        columns, now, laws = await stream.columns(), stream.clock.now(), stream.strength
        there = np.isin(columns.kind.values, CODES) & (columns.forgotten.values == OPEN)
        there &= columns.valid_until.values > now
        rows = np.flatnonzero(there).tolist() if laws else []
        drawn = [columns.ids[at] for at in chance.sample(rows, n, stream.name, "sleep", now)]
        revisions: list[Revision] = []
        for id_ in drawn:
            held = state_in(columns, id_)
            if laws and held and (after := after_sleep(held, now, laws)) != held:
                revisions.append(revision(id_, held, after, now))
        gone = [each.id for each in revisions if each.forgotten is not None]
        event = Slept(step="fading", looked_at=len(drawn), changed=len(revisions), records=tuple(gone))
        try:
            await stream.commit(Entry(event, "sleep"), revisions=revisions)
        except Conflict:
            await asyncio.sleep(0)  # touched meanwhile: draw again
            continue
        return await stream.store.records(stream.name, gone)


async def _dream(stream: Stream, forgotten: list[Record], model: Model) -> str:
    ids = tuple(record.id for record in forgotten)
    try:
        told = await ask(model, Dream(fragments=tuple(record.text[:LONGEST] for record in forgotten[:MOST])))
        new = New(text=told, kind="dream", by=stream.name, evidence=ids, data=common_data(forgotten))
        record = (await stream.build_records([new]))[0]
    except (ModelError, InputError) as error:
        await _tell(stream, Slept(step="dream", looked_at=len(ids), model=model.name, error=str(error)))
        return ""
    event = Slept(step="dream", looked_at=len(ids), changed=1, records=(record.id,), text=record.text, model=model.name)
    await stream.commit(Entry(event, "sleep", (record,)))
    return record.text


async def _rate(stream: Stream, model: Model) -> None:
    """Rate what has no importance yet."""
    done, error = 0, ""
    try:
        async for ratings in importance.rate(stream, model):
            await stream.commit(revisions=ratings)
            done += len(ratings)
    except ModelError as failure:
        error = str(failure)
    await _tell(stream, Slept(step="importance", looked_at=done, changed=done, model=model.name, error=error))


async def _merge(stream: Stream) -> None:
    """Let one record take the place of near-duplicates, its evidence what it replaces."""
    last = await _finished(stream)
    kept: list[str] = []
    gone = 0
    async for group in duplicates.near(stream, last.seq if last else 0):
        now = stream.clock.now()
        record = duplicates.merged(group, now)
        ending = [Revision(id=each.id, valid_until=now, superseded_by=record.id, holds=True) for each in group]
        written = Remembered(count=1, kinds={record.kind: 1})
        try:
            await stream.commit(Entry(written, "sleep", (record,), distinct=True), revisions=ending)
        except Conflict:
            continue  # one of them was changed meanwhile: next time
        kept.append(record.id)
        gone += len(group)
    await _tell(stream, Slept(step="duplicates", looked_at=gone, changed=gone, records=tuple(kept)))


async def _expire(stream: Stream) -> None:
    """Archive what was written to hold until a time that has passed by now."""
    columns, now, last = await stream.columns(), stream.clock.now(), await _finished(stream)
    ended = (columns.valid_until.values <= now) & (columns.valid_until.values > (last.at if last else -OPEN))
    ended &= (columns.forgotten.values == OPEN) & np.isin(columns.kind.values, CODES)
    rows = [columns.ids[at] for at in np.flatnonzero(ended)]
    records: list[Record] = []
    for start in range(0, len(rows), BATCH):
        records += await stream.store.records(stream.name, rows[start : start + BATCH])
        await asyncio.sleep(0)
    ids = tuple(record.id for record in records if record.superseded_by is None)
    revisions = [Revision(id=id_, forgotten=now) for id_ in ids]
    event = Slept(step="expiry", looked_at=len(records), changed=len(ids), records=ids)
    await stream.commit(Entry(event, "sleep"), revisions=revisions)
