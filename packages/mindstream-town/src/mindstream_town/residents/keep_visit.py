"""What a resident remembers of a visit: computed while the visitor still talks, written when the visit is over.

The memories are written at the end, in the order of the utterances. So the same words at the same step give the same
rows, however slow the model is. If the process ends earlier, the next process writes them before the town continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mindstream import chance
from mindstream.clock import ManualClock
from mindstream.errors import ModelError
from mindstream.identifiers import StreamName
from mindstream.log.events import Feed, Heard, Logged, Remembered
from mindstream.log.work import LONGEST_LEASE_S
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.reasoners.background import conclude, silent
from mindstream.reasoners.reasoner import (
    EVERY_TURN,
    RunContext,
    RunResult,
    Trigger,
    Writing,
    build_context,
    nothing_newer,
    rows_of,
)
from mindstream_town.prompts.conduct import TakeFromTalk, Taken
from mindstream_town.residents.converse import IMPORTANCE, Kept, keep, meeting_places
from mindstream_town.residents.places import words_of
from mindstream_town.residents.plan import take_up
from mindstream_town.residents.turn import Resident, ResidentTurn
from mindstream_town.setting import Setting
from mindstream_town.state import applied

LINES = 1_000
"""Maximum lines of a visit that are read to find an utterance and the lines around it."""


class KeepVisit:
    """Reasoner that notes what a visitor said, and adds agreements to the day's plan."""

    slot = "visit"
    trigger: Trigger = EVERY_TURN
    timeout_s = 180.0

    def __init__(self, resident: Resident, setting: Setting, step: int) -> None:
        self.resident, self.setting, self.step = resident, setting, step
        self._early: dict[int, asyncio.Future[Taken]] = {}

    def begin(self, heard: Logged, stream: Memory) -> None:
        """Start a background task that derives memories from an utterance and its answer."""
        self._early[heard.seq] = asyncio.ensure_future(self._take(heard, stream))

    def close(self) -> None:
        """Cancel unfinished background tasks."""
        for thinking in self._early.values():
            thinking.cancel()

    async def think(self, context: RunContext) -> RunResult:
        """Collect what the resident remembers of each utterance and its answer, in order, and return it to be
        written."""
        heard = [row for row in context.events if isinstance(row.event, Heard)]
        taken = [(row, await self._thought(row, context.memory)) for row in heard]
        model = self.resident.models.of(TakeFromTalk.role)

        async def write() -> Writing:
            return await self._entries(context.memory, taken), ()

        return RunResult("; ".join(each.about for _, each in taken), model.name, write=write)

    async def _thought(self, heard: Logged, stream: Memory) -> Taken:
        early = self._early.pop(heard.seq, None)
        if early is not None:
            with suppress(ModelError):  # after an error `_take` asks the model again
                return await early
        return await self._take(heard, stream)

    async def _take(self, heard: Logged, stream: Memory) -> Taken:
        """Ask the model what the resident remembers of an utterance and its answer."""
        turn = ResidentTurn(self.resident, self.step, self.setting, self.resident.state)
        prompt = TakeFromTalk(
            who=turn.name,
            other=heard.by,
            identity=turn.identity,
            date=turn.date,
            lines=await _lines_around(heard, stream),
            places=tuple(map(words_of, meeting_places(turn))),
            day=turn.state.broad,
        )
        return await turn.ask(prompt)

    async def _entries(self, stream: Memory, heard: Sequence[tuple[Logged, Taken]]) -> Sequence[Entry]:
        """Return the rows to write: what the resident learned from the visitor, each thing once, and the changes of the
        day's plan."""
        day = ResidentTurn(self.resident, self.step, self.setting, self.resident.state)
        news: dict[tuple[str, Kind], RecordDraft] = {}
        agreed: list[Kept] = []
        for row, taken in heard:
            kept = keep(day, row.by, taken, (), meeting_places(day))
            agreed += (each for each in kept if each.comes)
            for new in await self._news(day, row, taken.about, kept, stream):
                news.setdefault((normalised(new.text), new.kind), new)
        records = tuple(await stream.build_records(list(news.values())))
        count = {kind: sum(record.kind == kind for record in records) for kind in ("observation", "thought")}
        day.write(Remembered(count=len(records), kinds=count), records)
        for each in agreed:
            if each.appointment:
                take_up(day, each.appointment, each.text)
        return day.rows

    async def _news(
        self, turn: ResidentTurn, heard: Logged, about: str, kept: Sequence[Kept], stream: Memory
    ) -> list[RecordDraft]:
        learned = [each.text for each in kept]
        known = await stream.store.find_same(stream.key, "thought", learned, now=stream.clock.now()) if learned else {}
        evidence = (heard.event.record,) if isinstance(heard.event, Heard) else ()
        met = RecordDraft(
            text=f"{turn.name} talked with {heard.by} about {about}",
            by=turn.name,
            importance=IMPORTANCE,
            evidence=evidence,
            keywords=(heard.by.lower(),),
        )
        return [
            met,
            *(each.as_thought(turn, heard.by, evidence) for each in kept if normalised(each.text) not in known),
        ]


async def _lines_around(heard: Logged, stream: Memory) -> tuple[str, ...]:
    """Return a visitor's utterance with the resident's lines around it, each as `name: words`.

    The lines are the resident's line before the utterance, if any, and the resident's lines after it. If the utterance
    is not among the last LINES lines of the talk, return it alone.
    """
    assert isinstance(heard.event, Heard)
    talk = await stream.latest("chat", LINES, episode=heard.event.session)
    at = next((n for n, each in enumerate(talk) if each.id == heard.event.record), None)
    if at is None:
        return (f"{heard.by}: {heard.event.text}",)
    first, last = at - 1 if at and not _is_visitors(talk[at - 1]) else at, at + 1
    while last < len(talk) and not _is_visitors(talk[last]):
        last += 1
    return tuple(f"{each.by}: {each.text}" for each in talk[first:last])


def _is_visitors(record: Record) -> bool:
    return bool(record.data.get("by_user"))


async def finish_visit(keep: KeepVisit, feed: Feed | None = None) -> None:
    """Write the memories of visits that are not written yet, from this process or an earlier one.

    Raises:
        ModelError: a model is not available; nothing is lost, and the next call tries again.
    """
    resident, setting, owner = keep.resident, keep.setting, chance.token()
    store, key, now = resident.memory.store, resident.memory.key, setting.moment(keep.step)
    name, called = resident.name, StreamName("resident", resident.name)
    if not any(work.slot == keep.slot for work in await store.open_work(key)):
        return
    # the town's clock is stopped, so leases do not expire by it; the process that held the lease has ended
    late = now + LONGEST_LEASE_S + 1
    work = await store.claim(key, keep.slot, owner, late, late)
    async with Memory(store, called, resident.memory.embedder, ManualClock(now), feed, strength=None) as stream:
        rows = await rows_of(stream, work)
        stream.ids = replace(stream.ids, seed=f"{setting.seed} {name} visit {_first_record(rows)}")
        context = await build_context(stream, keep.slot, rows, nothing_newer)
        result, days = await keep.think(context), resident.state
        about, ids = tuple(each.cause for each in work), tuple(each.id for each in work)
        logged = await conclude(context, result, silent, about, WorkDone(ids, owner))
    for row in logged:
        days = applied(days, row.event, setting.profile)
    resident.state = days


def _first_record(rows: Sequence[Logged]) -> str:
    return next((row.event.record for row in rows if isinstance(row.event, Heard)), "")
