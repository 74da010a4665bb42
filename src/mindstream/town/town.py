"""A town that is open: begin one, let it live, look in.

async with Town.open("data", source=smallville) as town:
    await town.run(until=town.setting.step_at(day=2, minute=0))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.log.events import Remembered
from mindstream.memory.rate_importance import RateImportance
from mindstream.memory.record import New
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Commit, Entry, Store
from mindstream.memory.stream import Stream
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder
from mindstream.models.ask import ask
from mindstream.models.roles import Models
from mindstream.town import rules as rules  # they stand in for models
from mindstream.town.clockwork import Clockwork
from mindstream.town.events import MovedIn, ObjectChanged, TownBegan
from mindstream.town.journal import TOWN, TownState, digest, journal, read_town
from mindstream.town.places import find_home
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
from mindstream.town.turn import Resident

SAVE_EVERY = 2_000
"""So many rows of the log at most lie between two saved states."""


class Background:
    """Steps are written one after the other while the town goes on; whoever reads waits for them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[Sequence[Commit]] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, commits: Sequence[Commit]) -> None:
        """Let what happened in one step be written: all of it or nothing."""
        if self._task is not None and self._task.done():
            self._task.result()  # what could not be written ends the run
        self._waiting.append(tuple(commits))
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._waiting:
            await self._store.commit(*self._waiting.pop(0))

    async def written(self) -> None:
        """Return when all of it is written.

        Raises:
            StorageError: it could not be.
        """
        if self._task is not None:
            await self._task


class Town:
    """A town with its residents' minds. Make one with `Town.open`.

    Attributes:
        setting: its world, people, constants, seed.
        residents: by name.
        step: the last step that is done; -1: none.
    """

    def __init__(
        self, setting: Setting, store: Store, residents: dict[str, Resident], state: TownState, background: Background
    ) -> None:
        self.setting, self.store, self.residents = setting, store, residents
        self._clockwork = Clockwork(setting, residents, state.conditions, state.step)
        self._background = background
        self._rows = 0

    @property
    def step(self) -> int:
        return self._clockwork.step

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, data: str | Path | Store, setting: Setting, *, models: Models | str = "rules",
        embed: Embedder | str = "wordllama",
    ) -> AsyncIterator[Town]:  # fmt: skip
        """Open a town in a data folder; it begins there where it has not begun.

        Raises:
            InputError: another town lives in that folder.
            StorageError: the folder cannot be used.
        """
        store: Store = SqliteStore(data) if isinstance(data, str | Path) else data
        vectors = embedder(embed) if isinstance(embed, str) else embed
        shared = models if isinstance(models, Models) else Models.named({"default": models})
        streams: list[Stream] = []
        background = Background(store)
        try:
            state = await read_town(store, setting.profile)
            fresh = not state.states
            residents = {}
            for name, person in sorted(setting.people.items()):
                clock = ManualClock(setting.moment(max(state.step, 0)))
                stream = Stream(store, name, vectors, clock, strength=None, seed=f"{setting.seed} {name}")
                streams.append(stream)
                held = state.states.get(name, ResidentState(name=name, currently=person.currently))
                residents[name] = Resident(person, stream, clock, shared, held, background.written)
            if fresh:
                await _move_in(store, setting, residents)
            yield cls(setting, store, residents, state, background)
        finally:
            for stream in streams:
                await stream.close()
            if not isinstance(models, Models):
                await shared.aclose()
            if store is not data:
                await store.close()

    async def run(self, until: int, on_step: Callable[[int], None] = lambda _: None) -> None:
        """Let it live up to a step, that one included; whatever stops it, what is done is kept.

        Raises:
            ModelError: a model could not be had; run it again, it goes on where it was.
            StorageError: it could not be kept.
        """
        try:
            while (step := self._clockwork.next_step()) <= until:
                commits = await self._clockwork.advance(step)
                if commits:
                    self._background.add(commits)
                    self._rows += sum(len(commit.entries) for commit in commits)
                    if self._rows >= SAVE_EVERY:
                        await self.save()
                on_step(step)
            self._clockwork.step = max(self._clockwork.step, until)
        finally:
            await self.save()

    async def save(self) -> None:
        """Write the state of all, so that opening it again is quick."""
        await self._background.written()
        if self.step < 0:
            return
        states = {name: each.state for name, each in self.residents.items()}
        saved = TownState(self.setting.profile, states, self._clockwork.conditions).saved(self.step)
        await self.store.commit(Commit(mind=TOWN, at=self.setting.moment(self.step), entries=(Entry(saved, TOWN),)))
        self._rows = 0

    async def set_object(self, place: str, condition: str, by: str = "") -> None:
        """Put an object into a condition, in words ("leaking"); "" for as it should be. From the next step on.

        Raises:
            InputError: there is no such object.
        """
        if place not in self.setting.addresses:
            raise InputError(f"there is no {place!r} in {self.setting.name}")
        change = ObjectChanged(step=max(self.step, 0), place=place, condition=condition, by=by)
        await self.store.commit(self._clockwork.change_objects(change))

    async def digest(self) -> str:
        """Return the checksum of its journal."""
        return await digest(self.store, self.setting)

    def journal(self) -> AsyncIterator[bytes]:
        """Yield its journal, line by line (see town/journal)."""
        return journal(self.store, self.setting)


async def _move_in(store: Store, setting: Setting, residents: dict[str, Resident]) -> None:
    """Write who lives here, where each stands and what each knows: one commit."""
    began = TownBegan(
        step=0, seed=setting.seed, start=setting.start, profile=setting.profile.model_dump_json(), source=""
    )
    commits = [Commit(mind=TOWN, at=setting.start, entries=(Entry(began, TOWN),))]
    for name, resident in residents.items():
        spot, knows = find_home(setting, resident.person)
        moved = MovedIn(step=0, spot=spot, knows=knows)
        texts = resident.person.first_memories()
        rated = await ask(resident.models.of("importance"), RateImportance(who=name, memories=texts))
        news = [
            New(text=text, kind="note", by=name, importance=float(rating), keywords=(name.lower(),))
            for text, rating in zip(texts, rated.ratings, strict=True)
        ]
        records = tuple(await resident.stream.build_records(news))
        told = Remembered(count=len(records), kinds={"note": len(records)})
        entries = (Entry(moved, name), Entry(told, name, records))
        commits.append(Commit(mind=name, at=setting.start, entries=entries))
        resident.state = resident.state.model_copy(update={"home": spot, "knows": frozenset(knows)})
    await store.commit(*commits)
