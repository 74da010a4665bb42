"""Store operations of an answer, counted: few reads before it, one commit with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keys import key_of
from pydantic import BaseModel

from mindstream import Coach, Mind, Said
from mindstream.clock import ManualClock
from mindstream.coach.talker import Decision, Situation
from mindstream.log.events import Logged, Piece
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit
from mindstream.models.embedders.embedder import WordLlama

READS = ("latest", "records", "changes", "events", "last", "open_work", "count", "find_same")


QUESTIONS: tuple[tuple[Kind, int, str | None], ...] = (
    ("chat", 1, None), ("chat", 60, None), ("chat", 40, "2"), ("chat", 5, "no such"), ("chat", 999, ""),
    ("note", 20, None), ("belief", 1, None), ("plan", 1, None),
)  # fmt: skip


class Shape(BaseModel):
    concerns: list[str] = []


class CountingStore(SqliteStore):
    """A store that counts the calls of its reading methods, and its commits by their first event."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls = Counter[str]()

    def __getattribute__(self, name: str) -> Any:
        found: Callable[..., Any] = super().__getattribute__(name)
        if name in READS:
            self.calls[name] += 1
        return found

    async def commit(self, *commits: Commit) -> list[Logged]:
        self.calls.update(f"commit {kind}" for one in commits for kind in {entry.event.kind for entry in one.entries})
        return await super().commit(*commits)


class NeverWaits:
    """A gate that never waits and never wakes the reasoner."""

    name = "never"

    def decide(self, situation: Situation) -> Decision:
        return Decision(waits=False, thinks=False, why=situation.phase.name)


async def test_an_answer_reads_only_new_rows_and_is_one_commit(tmp_path: Path) -> None:
    coach = Coach.using(gate=NeverWaits())
    async with CountingStore(tmp_path) as store, Mind.open(store, user="ann", responder=coach) as mind:
        for text in ("I sleep badly because of the street.", "It is the noise, most nights."):
            await mind.send(text)
            await mind.settled()
        store.calls.clear()
        begun = len(asyncio.all_tasks())
        async for logged in mind.hear("Thanks, that is kind of you."):
            if isinstance(logged.event, Piece):
                at_work = len(asyncio.all_tasks()) - begun
            if isinstance(logged.event, Said):
                answered = Counter(store.calls)
    assert not any(answered[each] for each in ("latest", "records", "events", "count"))  # the columns contain it
    assert answered["open_work"] <= 1 and answered["last"] <= 1  # whose turn it is; the last briefing
    assert answered["commit heard"] == answered["commit said"] == 1
    assert at_work <= 2  # the answer, and the logged call of its model


async def test_cached_records_and_versions_equal_those_of_the_store(folder: Path) -> None:
    async with CountingStore(folder) as store, SqliteStore(folder) as other:
        mine, theirs = (Memory(each, "ann", WordLlama(), ManualClock()) for each in (store, other))
        await mine.retain("The first note.", "note")
        await mine.recall("note", touch=False)  # from here on this process caches the columns
        for n in range(300):
            await (mine if n % 2 else theirs).retain(f"Line {n}.", "chat", episode=str(n % 3))
        gone = await theirs.retain("A note that is taken back.", "note")
        await theirs.correct(gone.id, "A note that holds.")
        until = await mine.retain("A note for an hour.", "note", valid_until=mine.clock.now() + 3600)
        for memory in (theirs, mine, theirs):
            await memory.believe("tea", {"concerns": [str(len(memory.name))]}, Shape)
            await memory.believe("tea", {"concerns": [memory.name]}, Shape)
        store.calls.clear()
        for kind, n, episode in QUESTIONS:
            newest = await other.latest(key_of("ann"), [kind], n, now=mine.clock.now(), episode=episode)
            found = await mine.latest(kind, n, episode=episode)
            assert [(each.id, each.seq, each.text) for each in found] == [(e.id, e.seq, e.text) for e in newest]
        assert until.id in {each.id for each in await mine.latest("note", 20)}
        assert await mine.version("tea") == await theirs.version("tea")
        assert await mine.version("tea.plan") is None
        assert not store.calls["latest"]
        await theirs.believe("tea", {"concerns": ["another process"]}, Shape)
        assert (await mine.belief("tea", Shape)).value.concerns[-1] == "another process"
