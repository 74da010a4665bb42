"""Read the history of a town up to a step, once; nothing is written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

from mindstream.clock import Moment
from mindstream.identifiers import StreamName
from mindstream.log.events import Event, Logged
from mindstream.memory.opening import AnyStore, opened_store
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store, read_all
from mindstream_town.events import Talked, TownEvent
from mindstream_town.journal import is_of_town, read_setting, resident_of, rows_after
from mindstream_town.residents.turn import Resident
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState, applied
from mindstream_town.world.tree import Address, Spot

E = TypeVar("E", bound=Event)


@runtime_checkable
class OpenTown(Protocol):
    """A town that this process has open, such as `Town`."""

    @property
    def store(self) -> Store: ...
    @property
    def residents(self) -> Mapping[str, Resident]: ...


Source = AnyStore | OpenTown
"""Where to read a town from: its folder, its store, or an open town."""


@dataclass(frozen=True)
class History:
    """A town's rows and records up to a step.

    Attributes:
        step: the last step.
        rows: rows by resident, and under "" those of the town itself, in the order of writing.
        records: memories by resident, in the order of writing.
    """

    setting: Setting
    step: int
    rows: Mapping[str, tuple[Logged, ...]]
    records: Mapping[str, tuple[Record, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the residents, sorted."""
        return tuple(sorted(self.setting.people))

    def step_of(self, moment: Moment) -> int:
        return step_of(self.setting, moment)

    def events(self, name: str, kind: type[E]) -> Iterator[tuple[int, E]]:
        """Yield a resident's events of a kind, with their steps."""
        for row in self.rows.get(name, ()):
            if isinstance(row.event, kind):
                yield self.step_of(row.at), row.event

    def events_at(self, name: str, kind: type[E], step: int) -> list[E]:
        """Return a resident's events of a kind at a step."""
        return [event for at, event in self.events(name, kind) if at == step]

    def state(self, name: str, step: int) -> ResidentState:
        """Return a resident's state after a step."""
        steps, states = self._states[name]
        at = bisect_right(steps, step)
        return states[at - 1] if at else ResidentState(name=name)

    def states(self, name: str) -> Iterator[tuple[int, ResidentState]]:
        """Yield a resident's states in order, one for each step at which something changed."""
        yield from zip(*self._states[name], strict=True)

    def spot(self, name: str, step: int) -> Spot:
        return self.state(name, step).spot(step)

    def place(self, name: str, step: int) -> Address:
        """Return the narrowest place around a resident at a step."""
        return self.setting.world.address_at(self.spot(name, step))

    def talks(self) -> Iterator[tuple[str, Talked]]:
        """Yield each conversation once, with the name of the resident who began it, in the order of steps."""
        begun = [
            (event.step, name, event)
            for name in self.names
            for _, event in self.events(name, Talked)
            if event.lines and event.lines[0].by == name
        ]
        yield from ((name, event) for _, name, event in sorted(begun, key=lambda each: each[:2]))

    def clock(self, step: int) -> str:
        """Return the time of a step to the minute: `Tue Feb 14 17:05`."""
        when = self.setting.when(step)
        return f"{when:%a %b} {when.day} {when:%H:%M}"

    @cached_property
    def by_id(self) -> Mapping[str, Mapping[str, Record]]:
        """Records by resident and id."""
        return {name: {record.id: record for record in records} for name, records in self.records.items()}

    @cached_property
    def talk_at(self) -> Mapping[tuple[str, int], Talked]:
        """Conversations by resident and `Talked.step`, which is the first step of a conversation, or the last step of a
        scene or of a talk with a user."""
        return {(name, talk.step): talk for name in self.names for _, talk in self.events(name, Talked)}

    @cached_property
    def _states(self) -> Mapping[str, tuple[list[int], list[ResidentState]]]:
        found = {}
        for name in self.names:
            state = ResidentState(name=name, currently=self.setting.people[name].currently)
            steps, states = list[int](), list[ResidentState]()
            for row in self.rows.get(name, ()):
                after = applied(state, row.event, self.setting.profile)
                if after is not state:
                    steps.append(self.step_of(row.at))
                    states.append(after)
                    state = after
            found[name] = steps, states
        return found


def step_of(setting: Setting, moment: Moment) -> int:
    """Return the first step at or after a moment; fractions of a second are ignored."""
    return -(-int(moment - setting.start) // setting.profile.step_s)


async def read_history(source: Source, upto: int | None = None) -> History:
    """Read a town's history up to a step; None: up to the last step.

    Raises:
        InputError: there is no town.
        StorageError: the data cannot be read.
    """
    async with open_store(source) as store:
        setting = await read_setting(store)
        rows: dict[str, list[Logged]] = {name: [] for name in ("", *setting.people)}
        last = -1
        async for row in rows_after(store):
            if is_of_town(row, setting) and (upto is None or step_of(setting, row.at) <= upto):
                rows[resident_of(row)].append(row)
                last = max(last, row.event.step if isinstance(row.event, TownEvent) else -1)
        records = {}
        for name in setting.people:
            kept = [each async for part in read_all(store, store.key(StreamName("resident", name))) for each in part]
            records[name] = tuple(each for each in kept if upto is None or step_of(setting, each.created) <= upto)
    step = last if upto is None else upto
    return History(setting, step, {name: tuple(each) for name, each in rows.items()}, records)


@asynccontextmanager
async def open_store(source: Source) -> AsyncIterator[Store]:
    """Open the store of a town for reading. If the source is an open town, wait first until it has written all its
    rows."""
    if isinstance(source, OpenTown):
        for resident in source.residents.values():
            await resident.written()
        yield source.store
    else:
        async with opened_store(source) as store:
            yield store
