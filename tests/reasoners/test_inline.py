"""Reasoners in step with a caller, and occasions that are not talk, in step and beside a conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mindstream import Conclusion, ManualClock, Mind, New, Occasion, Remembered, SqliteStore, Stream, Trigger
from mindstream.log.events import Corrected, Event, Failed, Heard, SetAside, Thought, register
from mindstream.memory.store import Entry
from mindstream.reasoners.inline import Inline
from mindstream.reasoners.trigger import Turn


class Percept(Event):
    """Something was seen."""

    kind = "percept_of_a_test"
    text: str


register(Percept)
SEEN = (Percept.kind,)


class Diarist:
    """Writes down what it saw; fails as often as it is told to."""

    patience_s = 5.0

    def __init__(self, slot: str = "diary", trigger: Trigger = Trigger(on=SEEN), failing: int = 0) -> None:  # noqa: B008
        self.slot, self.trigger, self.failing = slot, trigger, failing
        self.occasions: list[Occasion] = []

    async def think(self, occasion: Occasion) -> Conclusion:
        self.occasions.append(occasion)
        if self.failing:
            self.failing -= 1
            raise KeyError("no ink")
        seen = [row.event.text for row in occasion.events if isinstance(row.event, Percept | Heard)]

        async def write() -> Any:
            record = await occasion.stream.build_records([New(text=f"{self.slot}: {', '.join(seen)}", kind="thought")])
            return [Entry(Remembered(count=1, kinds={"thought": 1}), self.slot, tuple(record))], []

        return Conclusion("written", "no model", write)


async def thoughts(stream: Stream) -> list[str]:
    return [record.text for record in await stream.latest("thought", 20)]


async def kinds(stream: Stream) -> list[str]:
    return [row.event.kind for row in await stream.store.events(stream.name)]


async def test_what_happens_is_thought_about_before_the_call_returns(folder: Path) -> None:
    first, second = Diarist(), Diarist("second", Trigger(on=SEEN, every=2))
    async with Stream.open(folder, "isabella", clock=ManualClock(1_000_000.0)) as stream:
        runner = Inline(stream, [first, second])
        (seen,) = await runner.happen(
            Percept(text="The stove is on."), await stream.build_records([New(text="The stove is on.")])
        )
        assert await thoughts(stream) == ["diary: The stove is on."]
        await runner.happen(Percept(text="Maria is here."))
        assert await thoughts(stream) == ["diary: The stove is on.", "diary: Maria is here.", "second: Maria is here."]
        assert [row.seq for row in first.occasions[0].events] == [seen.seq]
        assert await runner.work() == [] and first.occasions[0].utterances == []
        assert (await stream.recall("stove"))[0].record.kind in ("observation", "thought")


@pytest.mark.parametrize(("seeds", "same"), [((7, 7), True), ((7, 8), False), ((None, None), False)])
async def test_the_same_calls_and_seed_give_the_same_journal(
    tmp_path: Path, seeds: tuple[int | None, ...], same: bool
) -> None:
    journals = []
    for name, seed in zip(("one", "other"), seeds, strict=True):
        async with Stream.open(tmp_path / name, "klaus", clock=ManualClock(1_000_000.0), seed=seed) as stream:
            runner = Inline(stream, [Diarist(), Diarist("b", failing=1)])
            for n in range(5):
                await runner.happen(Percept(text=f"thing {n}"))
            await runner.happen(Percept(text="thing 4"))
            exported = list((await stream.store.changes("klaus", 0)).records)
            rows = [(row.seq, row.at, row.by, row.event.entry()) for row in await stream.store.events("klaus")]
            journals.append(repr((rows, [(r.id, r.text, r.created, r.seq) for r in exported])))
    assert (journals[0] == journals[1]) == same


@pytest.mark.parametrize("failing", [1, 2, 99])
async def test_what_fails_is_tried_again_and_set_aside(folder: Path, failing: int) -> None:
    async with Stream.open(folder, "ann") as stream:
        runner = Inline(stream, [Diarist(failing=failing), Diarist("calm")])
        await runner.happen(Percept(text="a"))
        events = [row.event for row in await stream.store.events("ann")]
        assert sum(isinstance(event, Failed) for event in events) == min(failing, 2)
        assert any(isinstance(event, SetAside) for event in events) == (failing > 2)
        assert "calm: a" in await thoughts(stream) and await runner.work() == []
        assert ("diary: a" in await thoughts(stream)) == (failing <= 2)


async def test_what_a_dead_process_left_is_taken_up(folder: Path) -> None:
    clock = ManualClock(1_000_000.0)
    async with Stream.open(folder, "ann", clock=clock) as stream:
        left = Inline(stream, [Diarist()])
        for text in ("a", "b"):
            await stream.commit(Percept(text=text), wake=left.claims(Turn(1, "", "", Percept.kind)))
    store = SqliteStore(folder)
    async with Stream.open(store, "ann", clock=clock) as stream:
        await Inline(stream, [Diarist()]).catch_up()
        assert await thoughts(stream) == [], "it may be alive: its lease has not run out"
        clock.advance(20)
        await Inline(stream, [Diarist()]).catch_up()
        assert await thoughts(stream) == ["diary: a, b"]
        assert (await kinds(stream)).count("thought") == 1
    await store.close()


async def test_a_correction_wakes_whoever_waits_for_one(folder: Path) -> None:
    diarist = Diarist(trigger=Trigger(on=("corrected",)))
    async with Mind.open(folder, user="ann", speaker=None, reasoners=[diarist]) as mind:
        note = await mind.stream.remember("Wakes at three", "note")
        done = await mind.correct(note.id, "Wakes at four")
        await mind.settled()
        (row,) = diarist.occasions[0].events
        assert row.event == Corrected(old=note.id, new=done.record.id)


async def test_a_mind_notices_what_is_not_talk(folder: Path) -> None:
    diarist, listener = Diarist(), Diarist("listener", Trigger())
    async with Mind.open(folder, user="ann", speaker=None, reasoners=[diarist, listener]) as mind:
        logged = await mind.notice(Percept(text="The bell rings."), [New(text="The bell rings.")], by="door")
        await mind.settled()
        assert (logged.by, logged.event.kind) == ("door", Percept.kind)
        assert await thoughts(mind.stream) == ["diary: The bell rings."] and listener.occasions == []
        async for _ in mind.hear("Who is it?"):
            pass
        await mind.settled()
        assert (await thoughts(mind.stream))[1:] == ["listener: Who is it?"]
        about = [row.event.about for row in await mind.stream.store.events("ann") if isinstance(row.event, Thought)]
        assert about[0] == (logged.seq,)
