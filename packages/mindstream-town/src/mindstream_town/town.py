"""A town: begin it, run it, and change it from outside.

async with Town(residents=[Resident(name="Ada Brook", home="Mill House", work="Bakery")]) as town:
    await town.run(until="12:00")
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

from mindstream import redaction
from mindstream.clock import ManualClock, SystemClock
from mindstream.errors import Conflict, InputError
from mindstream.guidance import awaited, explain_attribute, explained, opens
from mindstream.identifiers import StreamName, checked_name, normal_name
from mindstream.log.events import Opened, Remembered
from mindstream.memory import lease
from mindstream.memory.lease import LEASE_S
from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore, opened_store
from mindstream.memory.store.record import MAX_UTTERANCE, Record, RecordDraft, checked_text
from mindstream.memory.store.store import Commit, Entry, Fence, Store
from mindstream.models.decide import decide
from mindstream.models.embedders.embedder import Embedder, embedder
from mindstream.models.prompt import ask
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.models.rules import Rules
from mindstream.moved import renamed_keywords
from mindstream_town.clockwork import Clockwork
from mindstream_town.embody.embodied import Embodied, find_entrance, visitor
from mindstream_town.embody.living import Begin, Deed, Leave, is_here
from mindstream_town.events import JOURNAL, MovedIn, ObjectChanged, TownBegan, TownEvent, TownRested, VisitorCame
from mindstream_town.formats import town_file
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.lookup import find_resident, find_step
from mindstream_town.inspect.timeline import timeline
from mindstream_town.journal import TOWN, TownState, Writing, digest, journal, read_setting, read_town
from mindstream_town.profile import Profile
from mindstream_town.prompts.conduct import IsDanger
from mindstream_town.residents.keep_visit import KeepVisit, finish_visit
from mindstream_town.residents.moving_in import move_in
from mindstream_town.residents.person import Person, ResidentMemory, policy_of
from mindstream_town.residents.places import words_of
from mindstream_town.residents.turn import Resident
from mindstream_town.scheduler import Queued, Slots
from mindstream_town.setting import Setting
from mindstream_town.source import dump_source, setting_of
from mindstream_town.state import ResidentState, applied
from mindstream_town.world.tree import OBJECT
from mindstream_town.world.whereabouts import Condition

if TYPE_CHECKING:
    from mindstream_town.metrics import Knower

TAKEN = "the folder already contains a town: resume that town, or begin the new one in another folder"
ANYBODY = "a person"
"""Name of a user who controls a resident and gives no name."""
SAVE_EVERY = 2_000
"""Number of rows in the log since the last saved state after which a run saves the state again."""
Order: TypeAlias = Literal["lockstep", "free"]
"""Order of the residents' steps. Both orders give the same journal.

- `lockstep`: all residents take each step together.
- `free`: a resident takes its next step as soon as no other resident can affect this step.
"""
SLOT, LIVING = "living", "letting this town live"
"""Slot of the lease that a process holds while it has the town open, and its description."""


class Town:
    """A town with its residents (Park 2023).

    The constructor describes a town by residents and places; the map is drawn from the list of places. `async with`
    begins the town, or continues the town if the data folder contains it. `Town.open` opens the town of a data folder,
    or begins a town from a town file (`open_setting`).

        async with Town(residents=[Resident(name="Ada Brook", home="Mill House", work="Bakery")]) as town:
            await town.run(until="12:00")
            print(*await town.timeline("Ada Brook"), sep="\n")

    Attributes:
        setting: world, people, constants and seed.
        residents: by name.
        step: the last step that all residents have finished; -1: none.
        order: the order of the residents' steps.
    """

    setting: Setting
    store: Store
    residents: dict[str, Resident]
    order: Order
    _settle: Callable[[Person], Awaitable[Resident]]
    _clockwork: Clockwork
    _writing: Writing
    _rows: int
    _is_uneven: bool
    """Whether residents may have been at different steps since the last saved state in the log."""

    @renamed_keywords(models="model")
    @explained
    def __init__(
        self,
        residents: Iterable[town_file.Resident],
        places: Iterable[town_file.Place] = (),
        *,
        data: AnyStore | None = None,
        name: str = "Town",
        start: datetime | None = None,
        seed: int = 0,
        profile: Profile | None = None,
        model: AnyModels = "rules",
        embed: Embedder | str = "wordllama",
        order: Order | None = None,
    ) -> None:
        """Describe a town; `async with` opens it.

        Args:
            places: rules and objects of places; homes and places of work are added.
            data: a folder for this town alone, a database URL, or a store; None: a temporary folder.
            start: the time of the first step; None: Monday, February 13, 2023, midnight.
            seed: seed of all random draws; without a model, the same town with the same seed has the same days.
            model: the residents' models, as for `Town.open`.
            embed: the embedder of memories, or the embedder's name.
            order: order of the residents' steps, as for `Town.open`.

        Raises:
            InputError: the description is invalid; the message has all faults, one per line.
        """
        self.setting = setting_of(town_file.build_town(name, residents, places, start), seed=seed, profile=profile)
        self._data, self._models, self._embed, self._order = data, model, embed, order
        self._opened = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Town:
        """Begin the town in its data folder, or continue it.

        Raises:
            InputError: the data contain another town, or other data.
            HeldElsewhere: another process has the town open.
            StorageError: the data cannot be read or written.
        """
        async with contextlib.AsyncExitStack() as opened:
            data = self._data
            if data is None:
                data = opened.enter_context(tempfile.TemporaryDirectory(prefix="mindstream-town-"))
            store = await opened.enter_async_context(opened_store(data))
            is_new = await store.last(store.key(JOURNAL), TownBegan.kind) is None
            if not is_new and dump_source(await read_setting(store)) != dump_source(self.setting):
                raise InputError(
                    "the town in this folder has another description: continue it with Town.open(data), "
                    "or begin this one in another folder"
                )
            new = self.setting if is_new else None
            town = await opened.enter_async_context(
                Town.open(store, new, model=self._models, embed=self._embed, order=self._order)
            )
            town._opened = self._opened = opened.pop_all()
        return town

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._opened.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that explains `async with` if the name exists only on an open town."""
            known = name in Town.__annotations__ or hasattr(Town, name)
            if not known:
                explain_attribute(self, name)
            hint = "open the town first, with `async with Town(…) as town`"
            raise AttributeError(f"this town has no {name!r}: {hint}", name=name, obj=self)

        def __enter__(self) -> NoReturn:
            raise InputError("open the town with `async with Town(…) as town:`; towns have no version without asyncio")

        def __exit__(self, *_: object) -> None: ...

    @property
    def step(self) -> int:
        return self._clockwork.step

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """Conditions of the objects that are not in order, by address."""
        return self._clockwork.conditions

    def is_here(self, name: str) -> bool:
        """Return whether a resident is in the town; a visitor is there only while a user controls it."""
        return is_here(self.residents[name])

    @classmethod
    @renamed_keywords(models="model")
    @opens
    async def open(
        cls,
        data: AnyStore,
        new: Setting | None = None,
        *,
        model: AnyModels = "rules",
        embed: Embedder | str = "wordllama",
        order: Order | None = None,
        slots: int = 0,
        lease_s: float = LEASE_S,
    ) -> AsyncIterator[Town]:
        """Open the town of a data folder, or begin one there.

        Args:
            new: the town to begin; None: open the existing one.
            model: the residents' models: `rules`, a name, a model, or a mapping by role (planner, decider, talker,
                reasoner, importance).
            order: order of the residents' steps; None: `free` if a model is configured, else `lockstep`.
            slots: maximum number of simultaneous model calls; 0: no limit. Calls on which most residents wait go first.
            lease_s: seconds after which another process may open the town if this process has crashed.

        Raises:
            SettingsError: a role has no model.
            HeldElsewhere: another process has the town open.
            InputError: there is no town; or `new` is given, and there is a town or other data already.
            StorageError: the data cannot be read or written.
        """
        async with contextlib.AsyncExitStack() as opened:
            bare = Models(Rules()) if model == Rules.name else model  # rules need no wrappers
            shared = await opened.enter_async_context(open_models(bare))
            shared.check("planner", "decider", "talker", "reasoner", "importance")
            if slots:
                queue = Slots(slots)
                shared = shared.each(lambda model: model if isinstance(model, Rules) else Queued(model, queue))
            vectors = embedder(embed) if isinstance(embed, str) else embed
            store = await opened.enter_async_context(opened_store(data))
            setting = await _setting_of(store, new)
            if new is not None:
                async with _residents(
                    setting, TownState(setting.profile), Writing(store), vectors, shared
                ) as residents:
                    try:
                        await move_in(store, setting, residents)
                    except Conflict:
                        raise InputError(TAKEN) from None
            async with _hold(Memory(store, JOURNAL, vectors, SystemClock(), strength=None), setting, lease_s) as fence:
                state, writing = await read_town(store, setting.profile), Writing(store, fence)
                async with _residents(setting, state, writing, vectors, shared) as residents:

                    async def settle(person: Person) -> Resident:
                        new = replace(setting, people={person.name: person})
                        one = await opened.enter_async_context(_residents(new, state, writing, vectors, shared))
                        return one[person.name]

                    town = cls.__new__(cls)
                    town.setting, town.store, town.residents = setting, store, residents
                    town.order = order or ("lockstep" if shared.only_rules else "free")
                    town._clockwork = Clockwork(store.key(JOURNAL), setting, residents, state)
                    town._settle, town._writing, town._rows, town._is_uneven = settle, writing, 0, bool(state.reached)
                    yield town

    @awaited
    async def run(
        self,
        until: int | str,
        on_step: Callable[[int], None] = lambda _: None,
        on_commits: Callable[[Sequence[Commit]], None] = lambda _: None,
    ) -> None:
        """Run up to and including a step; finished steps are stored even if an error ends the run.

        An interrupted step has no effect; it is repeated as a whole when the town continues. If users control residents
        (see `embody`), they give up control in the first step of the run.

        Args:
            until: a step, or a time in the town: "12:00" (today), "tomorrow noon", "day 2 19:00", "Feb 14 19:00".
            on_step: called with the last step that all residents have finished.
            on_commits: called when a group of residents has finished a step with commits, with these commits.

        Raises:
            InputError: the text is not a time, or the time is before the town's first step.
            ModelError: a model is not available, or its budget is spent; call `run` again to continue.
            StorageError: rows could not be written; open the town again to continue after the last written step.
        """
        until = find_step(self.setting, until, self.step) if isinstance(until, str) else until
        try:
            await self.finish_visits()
            controlled = {name: Leave() for name, one in self.residents.items() if one.state.embodied}
            if controlled and until > self.step:
                self._clockwork.deeds = dict(controlled)
                await self._live(self.step + 1, on_step, on_commits)
            await self._live(until, on_step, on_commits)
        finally:
            await self.save()

    async def _live(
        self,
        until: int,
        on_step: Callable[[int], None],
        on_commits: Callable[[Sequence[Commit]], None],
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run up to the step `until`, or until `stop` returns True. `stop` is called each time a group of residents has
        finished a step."""
        order, before = self._clockwork.scheduler(self.order == "free"), self.step
        if self._is_uneven and not (order.is_free or self._clockwork.state().reached):
            await self.save()
        self._is_uneven |= order.is_free
        async with contextlib.aclosing(self._clockwork.run(order, until)) as steps:
            async for commits in steps:
                if commits:
                    on_commits(commits)
                    self._write(commits)
                if self._rows >= SAVE_EVERY:
                    await self.save()
                if (step := self.step) > before:
                    on_step(before := step)
                if stop():
                    return

    def _write(self, commits: Sequence[Commit]) -> None:
        """Schedule the commits of a step. If some residents may be ahead of others, add an event with the residents'
        finished steps."""
        if self._is_uneven:
            commits = [*commits, self._own(self._clockwork.take_reached(), None)]
        self._writing.add(commits)
        self._rows += sum(len(commit.entries) for commit in commits)

    async def embody(self, name: str, by: str = "", *, as_visitor: bool = False, at: str = "") -> Embodied:
        """Let a user control a resident, or a visitor, from the next step on. A user who is already in control
        continues.

        Args:
            by: name of the user. "": for a visitor, the user has the visitor's name; else the user has no name.
            at: address where a visitor enters; "": an open public place.

        Raises:
            InputError: there is no such resident or place; the visitor has a resident's name; or another user has
                control.
            ModelError: a model is not available, or its budget is spent.
            StorageError: rows could not be written.
        """
        name = self.resident_name(name)
        person = checked_name(by or (name if as_visitor else ANYBODY), "a person's name")
        place = ""
        if as_visitor and (name not in self.residents or not self.is_here(name)):
            coming = self._visitor(name)
            place = find_entrance(self, coming, at)
            if name not in self.residents:
                await self._let_in(coming)
        resident = self._resident(name)
        if as_visitor != resident.person.visits:
            why = "is already a resident" if as_visitor else "is a visitor (enter as one), not a resident"
            raise InputError(f"{name} {why} of {self.setting.name}")
        if resident.state.embodied not in ("", person):
            raise InputError(f"{resident.state.embodied} already controls {name}")
        await self.finish_visits()
        embodied = Embodied(self, resident)
        if not resident.state.embodied:
            await embodied.perform(Begin(person=person, place=place))
        return embodied

    async def live_with(
        self, deeds: Mapping[str, Deed], until: int, stop: Callable[[], bool], on_step: Callable[[int], None]
    ) -> None:
        """Run the next step with actions of users; then run up to a step, or until `stop` returns True.

        Everything is written when this returns. Raise ModelError if a model is not available or its budget is spent,
        and StorageError if rows could not be written.
        """
        await self._live(self._clockwork.state().latest, on_step, lambda _: None)
        self._clockwork.deeds = dict(deeds)
        await self._live(until, on_step, lambda _: None, stop)
        await self._writing.written()
        await self.store.commit(self._own(TownRested(step=self.step), self._writing.fence))

    def _own(self, event: TownEvent, fence: Fence | None) -> Commit:
        """Return a commit of an event to the town's own stream, at the current step."""
        at = self.setting.moment(max(self.step, 0))
        return Commit(mind=self.store.key(JOURNAL), at=at, entries=(Entry(event, TOWN),), fence=fence)

    def resident_name(self, typed: str) -> str:
        """Return the name of the resident whose normal form (see `normal_name`) is that of the given name.

        If there is no such resident, return the normal form of the given name.
        """
        normal = normal_name(typed)
        return next(
            (
                each
                for each in (typed, normal, *self.residents)
                if each in self.residents and normal_name(each) == normal
            ),
            normal,
        )

    def _resident(self, name: str) -> Resident:
        if name not in self.residents:
            raise InputError(f"{self.setting.name} has no resident {name!r}; residents: {', '.join(self.residents)}")
        return self.residents[name]

    def _visitor(self, name: str) -> Person:
        """Return the description of a visitor, who may have visited before.

        Raises:
            InputError: a resident has the same name in different case.
        """
        if name in self.residents:
            return self.residents[name].person
        if name.casefold() in {each.casefold() for each in self.residents}:
            raise InputError(f"{name!r} is the name of a resident: choose another name")
        return visitor(self.setting, name)

    async def _let_in(self, person: Person) -> None:
        """Add a visitor to the town, without a position yet."""
        visitors = (*(each for each in self.setting.people.values() if each.visits), person)
        came = VisitorCame(step=self.step, visitors=tuple(each.model_dump_json() for each in visitors))
        moved = MovedIn(step=self.step, spot=(0, 0), knows=person.knows)
        await self._writing.written()
        resident = await self._settle(person)
        own = self._own(came, self._writing.fence)
        entries = (Entry(moved, person.name),)
        await self.store.commit(own, Commit(mind=resident.memory.key, at=own.at, entries=entries))
        resident.state = applied(resident.state, moved, self.setting.profile)
        self.setting, self.residents[person.name] = self.setting.with_people(person), resident
        before = self._clockwork
        self._clockwork = Clockwork(before.journal, self.setting, self.residents, before.state())

    async def save(self) -> None:
        """Write the state of all residents, so that the town can be opened quickly."""
        await self._writing.written()
        if self.step < 0:
            return
        state = self._clockwork.state()
        state.states = {name: each.state for name, each in self.residents.items()}
        await self.store.commit(self._own(state.saved(), self._writing.fence))
        self._rows, self._is_uneven = 0, bool(state.reached)

    async def set_object(self, place: str, condition: str, by: str = "", danger: bool | None = None) -> bool:
        """Change the condition of an object from the next step on.

        The condition is given in words, such as "leaking"; "" means that nothing is wrong with the object.

        Args:
            danger: whether the condition wakes sleepers in the room and has priority; None: the model of the decider
                decides.

        Returns:
            Whether the condition is a danger.

        Raises:
            InputError: there is no such object.
            ModelError: the model of the decider is not available.
        """
        address = self.setting.addresses.get(place)
        if address is None or address.level != OBJECT:
            raise InputError(f"{self.setting.name} has no object {place!r}")
        if danger is None:
            danger = bool(condition) and await self._is_danger(place, condition)
        step = self._clockwork.state().latest
        change = ObjectChanged(step=step, place=place, condition=condition, danger=danger, by=by)
        await self._writing.written()
        await self.store.commit(replace(self._clockwork.change_objects(change), fence=self._writing.fence))
        return danger

    async def _is_danger(self, place: str, condition: str) -> bool:
        """Ask a model whether a condition is a danger; all residents have the same decider."""
        decider = next(iter(self.residents.values())).models.of(IsDanger.role)
        asked = IsDanger(thing=words_of(place), condition=condition, dangers=self.setting.conditions.danger)
        return (await decide(decider, asked))["yes"] > 0.5

    async def whisper(self, name: str, text: str) -> Record:
        """Add a thought to a resident's memory; it has an effect from the next step on.

        Raises:
            InputError: there is no such resident, or the text is empty or too long.
            ModelError: the importance of the thought could not be rated.
        """
        name = self.resident_name(name)
        resident, said = self._resident(name), redaction.clean(checked_text(text, MAX_UTTERANCE)).text
        now = self.setting.moment(self._step_of(name))
        await self.finish_visits()
        rated = await ask(resident.models.of("importance"), RateImportance(who=name, memories=(said,)))
        new = RecordDraft(text=said, kind="note", by=name, importance=float(rated.ratings[0]), keywords=(name.lower(),))
        called, key = StreamName("resident", name), resident.memory.key
        count = await self.store.count(key, Remembered.kind)
        seed, embedder = f"{self.setting.seed} {name} whisper {count}", resident.memory.embedder
        async with Memory(self.store, called, embedder, ManualClock(now), strength=None, seed=seed) as stream:
            records = tuple(await stream.build_records([new]))
        entry = Entry(Remembered(count=1, kinds={"note": 1}), "whisper", records, system=True)
        await self.store.commit(Commit(mind=key, at=now, entries=(entry,)))
        return records[0]

    def _step_of(self, name: str) -> int:
        """Return the last step that a resident has finished; 0 before the first."""
        return max(0, self._clockwork.whereabouts.steps.get(name, self.step))

    async def finish_visits(self) -> None:
        """Write the memories of visits that are not written yet, for example after a crash.

        Raises:
            ModelError: a model is not available.
        """
        await self._writing.written()
        for resident in self.residents.values():
            await finish_visit(KeepVisit(resident, self.setting, self._step_of(resident.name)))

    @awaited
    async def timeline(self, name: str, about: str = "") -> list[str]:
        """Return a resident's acts, utterances and thoughts as lines with times, below their dates.

        Args:
            name: the resident's name, or a word of it that no other resident has.
            about: only lines that contain this text, such as a name.

        Raises:
            InputError: there is no such resident, or several match.
        """
        return timeline(await read_history(self), find_resident(self.setting, name), about=about)

    @awaited
    async def knowers(self, fact: str) -> tuple[Knower, ...]:
        """Return the residents who know a fact, the first knower first, as `mindstream town metrics --fact` prints
        them.

        Each has `name`, `time` (since when), `by` (the resident who told the fact; "": none), `chain` and `text`.

        Memories that residents had when the town began, or that users added (`whisper`), are searched for the words of
        the fact. The memory with most of these words stands for the fact. A resident knows the fact if one of the
        resident's memories is, or is derived from, this memory.

        Raises:
            InputError: none of the searched memories has at least half of the words.
        """
        from mindstream_town.metrics import find_fact, trace_fact

        history = await read_history(self)
        return trace_fact(history, find_fact(fact, history)).knowers

    async def digest(self) -> str:
        """Return the checksum of the journal."""
        return await digest(self.store, self.setting)

    def journal(self) -> AsyncIterator[bytes]:
        """Yield the lines of the journal (journal.py)."""
        return journal(self.store, self.setting)


@contextlib.asynccontextmanager
async def _hold(stream: Memory, setting: Setting, lease_s: float) -> AsyncIterator[Fence]:
    """Hold the lease of the town; if a process has crashed, wait first until its lease expires."""
    await lease.outlast(stream, SLOT, LIVING)
    if not await lease.is_open(stream, SLOT):
        opened = (Entry(Opened(session=TOWN, models={}), TOWN),)
        work = lease.for_anybody(SLOT)
        await stream.store.commit(Commit(mind=stream.key, at=setting.start, entries=opened, wake=work))
    async with lease.hold(stream, SLOT, LIVING, lease_s) as fence:
        yield fence


@contextlib.asynccontextmanager
async def _residents(
    setting: Setting, state: TownState, writing: Writing, vectors: Embedder, models: Models
) -> AsyncIterator[dict[str, Resident]]:
    """Open the residents of a town in their state after the last step."""
    async with contextlib.AsyncExitStack() as opened:
        residents = {}
        for name, person in sorted(setting.people.items()):
            clock = ManualClock(setting.moment(max(state.step, 0)))
            stream = ResidentMemory(
                writing.store,
                StreamName("resident", name),
                vectors,
                clock,
                strength=None,
                seed=f"{setting.seed} {name}",
            )
            await opened.enter_async_context(stream)
            stream.policy = policy_of(setting.profile)
            held = state.states.get(name, ResidentState(name=name, currently=person.currently))
            residents[name] = Resident(person, stream, clock, models, held, partial(writing.written, stream.key))
        try:
            yield residents
        finally:
            calls = [call for each in residents.values() for call in each.later.values()]
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


async def _setting_of(store: Store, new: Setting | None) -> Setting:
    """Return the new setting, after checking that the store is empty; None: return the stored setting."""
    if new is None:
        return await read_setting(store)
    if await store.last(store.key(JOURNAL), TownBegan.kind) is not None:
        raise InputError(TAKEN)
    if await store.events(None, limit=1):
        raise InputError("the folder or database contains other data than a town: choose another one for the town")
    return new
