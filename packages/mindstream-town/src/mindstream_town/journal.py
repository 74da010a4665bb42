"""The journal of a town: its log in canonical order; and the state derived from the log.

The canonical order is by step, stream and row, with changes of objects last in a step. It does not depend on speed or
on crashes. Rows that describe a process (`OF_PROCESS`) are excluded.

Each line ends with a checksum of all lines up to it, and a journal file only grows: when it is written again after more
steps, its existing lines stay. So a copy of the last checksum suffices to verify every line.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import BaseModel

from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey, StreamName, id_of
from mindstream.log.events import Event, Failed, Heard, Logged, ModelCalled, Opened, Said, SetAside, Thought, Unknown
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Commit, Fence, Store, read_all, read_log
from mindstream.private_files import write_private
from mindstream.text.words import count_of
from mindstream_town.events import (
    JOURNAL,
    ActFinished,
    MovedIn,
    ObjectChanged,
    Overheard,
    Perceived,
    Talked,
    TownBegan,
    TownEvent,
    TownForked,
    TownReached,
    TownRested,
    TownSaved,
    VisitorCame,
)
from mindstream_town.events import TOWN as TOWN
from mindstream_town.profile import Profile
from mindstream_town.residents.person import Person
from mindstream_town.setting import Setting
from mindstream_town.source import load_source
from mindstream_town.state import ResidentState, applied
from mindstream_town.world.whereabouts import Change, Condition, set_condition

OF_PROCESS = (Unknown, TownSaved, TownRested, TownReached, TownForked, ModelCalled, Opened, Failed)
"""Events that describe the process and not the town:

- starts, model calls and failures;
- saved states, steps without other rows, and forks;
- events that this version does not know.
"""
DIGEST = 16
"""Size of a checksum in bytes."""
OF_RECORD = ("id", "kind", "text", "by", "episode", "importance", "keywords", "evidence", "depth")


class Saved(BaseModel):
    """The complete state of a town after a step, as stored in `TownSaved`.

    Attributes:
        changed: objects that changed in the step; only in states that earlier versions saved.
        changes, reached, marked, entered: the fields of `TownState` with these names.
    """

    step: int
    states: dict[str, ResidentState]
    conditions: dict[str, tuple[str, int, bool] | tuple[str, int]]
    changed: tuple[str, ...] = ()
    changes: tuple[tuple[int, str, tuple[str, int, bool] | None], ...] = ()
    reached: dict[str, int] = {}
    marked: frozenset[str] = frozenset()
    entered: frozenset[str] = frozenset()


@dataclass
class TownState:
    """The state of a town, derived from its rows.

    Attributes:
        step: the last step that all residents have finished; -1: none.
        changes: changes of objects in the step `step` or later.
        reached: the last finished step of each resident; empty: all residents are at the same step.
        marked: residents who may see something new; used only with `reached`.
        entered: residents who have not looked around in their arena yet; used only with `reached`.
    """

    profile: Profile
    states: dict[str, ResidentState] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    step: int = -1
    changes: list[Change] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)
    entered: set[str] = field(default_factory=set)

    @property
    def latest(self) -> int:
        """The last step that any resident has finished."""
        return max(self.reached.values(), default=self.step)

    def apply(self, row: Logged) -> None:
        """Update the state by a row of the log of the town or of a resident."""
        event = row.event
        if isinstance(event, TownReached):
            self.reached |= event.reached
            self._finished(min(self.reached.values()))
            self.marked = (self.marked - event.reached.keys()) | set(event.marked)
            self.entered = (self.entered - event.reached.keys()) | set(event.entered)
        elif isinstance(event, TownEvent) and not isinstance(event, MovedIn | TownBegan) and not self.reached:
            self._finished(max(event.step, self.step))
        if isinstance(event, ObjectChanged):
            self.changes.append(set_condition(self.conditions, event))
        elif name := resident_of(row):
            before = self.states.get(name)
            if before is None and isinstance(event, MovedIn):
                before = ResidentState(name=name)
            if before is not None:
                self.states[name] = applied(before, event, self.profile)

    def _finished(self, step: int) -> None:
        self.step = step
        self.changes = [each for each in self.changes if each[0] >= step]

    def saved(self) -> TownSaved:
        """Return the state as an event."""
        conditions: dict[str, tuple[str, int, bool] | tuple[str, int]] = dict(sorted(self.conditions.items()))
        state = Saved(
            step=self.latest,
            states=dict(sorted(self.states.items())),
            conditions=conditions,
            changes=tuple(self.changes),
            reached=self.reached,
            marked=frozenset(self.marked),
            entered=frozenset(self.entered),
        )
        return TownSaved(step=self.latest, state=state.model_dump_json())


def resident_of(row: Logged) -> str:
    """Return the name of the resident of a row; "": the row has none."""
    return id_of(row.mind, "resident")


def is_of_town(row: Logged, setting: Setting) -> bool:
    """Return whether a row belongs to a resident or to the town itself."""
    return resident_of(row) in setting.people or bool(id_of(row.mind, "town"))


async def read_town(store: Store, profile: Profile, upto: int | None = None) -> TownState:
    """Return the state of a town after a step; None: after the last one."""
    town, after, until = TownState(profile), 0, math.inf
    if upto is not None and (began := await store.last(store.key(JOURNAL), TownBegan.kind)) is not None:
        until = began.at + upto * profile.step_s
    last = await store.last(store.key(JOURNAL), TownSaved.kind)
    if last is not None and isinstance(last.event, TownSaved) and (upto is None or last.event.step <= upto):
        saved, after = Saved.model_validate_json(last.event.state), last.seq
        town.states, town.step = saved.states, min(saved.reached.values(), default=saved.step)
        town.conditions = {place: Condition(*each) for place, each in saved.conditions.items()}
        town.changes = [(step, place, was and Condition(*was)) for step, place, was in saved.changes]
        town.changes += ((saved.step, place, None) for place in saved.changed)
        town.reached, town.marked, town.entered = dict(saved.reached), set(saved.marked), set(saved.entered)
        if upto is not None:
            town.reached, town.step = {}, saved.step
    async for row in rows_after(store, after):
        event = row.event
        is_past = upto is None or (not isinstance(event, TownReached) and getattr(event, "step", upto) <= upto)
        if row.at <= until and is_past:
            town.apply(row)
    return town


async def read_setting(store: Store) -> Setting:
    """Return the setting of the town in a store.

    Raises:
        InputError: the store has no town.
    """
    began = await store.last(store.key(JOURNAL), TownBegan.kind)
    if began is None or not isinstance(began.event, TownBegan):
        raise InputError("there is no town in these data: begin one with `mindstream town new`")
    event = began.event
    profile = Profile.model_validate_json(event.profile)
    forked = await store.last(store.key(JOURNAL), TownForked.kind)
    setting = load_source(event.source, seed=event.seed, profile=profile, start=event.start)
    if forked is not None and isinstance(forked.event, TownForked):
        setting = replace(setting, seed=forked.event.seed, withheld=forked.event.withheld)
    came = await store.last(store.key(JOURNAL), VisitorCame.kind)
    if came is None or not isinstance(came.event, VisitorCame):
        return setting
    return setting.with_people(*map(Person.model_validate_json, came.event.visitors))


def rows_after(store: Store, after: int = 0) -> AsyncIterator[Logged]:
    """Yield the rows of a log after the row number `after`, in the order of writing."""
    return read_log(store, None, after)


async def journal(store: Store, setting: Setting) -> AsyncIterator[bytes]:
    """Yield the lines of the journal in canonical order; each is JSON with a row and the records of that row.

    Each line ends with a checksum of itself and of all lines before it.
    """
    remembered: dict[tuple[str, int], list[Record]] = {}
    for name in setting.people:
        async for records in read_all(store, store.key(StreamName("resident", name))):
            for record in records:
                remembered.setdefault((name, record.seq), []).append(record)
    lines, heard = [], dict[int, str]()
    async for row in rows_after(store):
        if isinstance(row.event, OF_PROCESS) or not is_of_town(row, setting):
            continue
        name = resident_of(row)
        if isinstance(row.event, Heard):
            heard[row.seq] = row.event.record
        step = -(-int(row.at - setting.start) // setting.profile.step_s)
        late = _rated_later(row.event)
        of_row = [_line_of(record, late) for record in remembered.get((name, row.seq), ())]
        kind, payload = row.event.kind, _payload(row.event, heard)
        is_after = isinstance(row.event, ObjectChanged)  # objects change after all turns of a step
        mind = name or TOWN
        lines.append((step, is_after, mind, bool(name), row.seq, [step, mind, kind, row.by, payload, of_row]))
    chain = hashlib.blake2b(digest_size=DIGEST)
    for *_, line in sorted(lines, key=lambda each: each[:5]):
        said = json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        chain.update(said)
        yield said[:-1] + b',"' + chain.hexdigest().encode() + b'"]\n'


def _payload(event: Event, heard: Mapping[int, str]) -> dict[str, object]:
    """Return a row's content; utterances are named by record id, because row numbers depend on the process."""
    payload: dict[str, object] = json.loads(event.entry()[1])
    if isinstance(event, Said):
        payload["answers"] = heard.get(event.answers, "")
    elif isinstance(event, Thought | SetAside):
        payload["about"] = [heard.get(each, "") for each in event.about]
    return payload


def _rated_later(event: Event) -> tuple[str, ...]:
    """Return the ids of the event's records whose importance is set by a later `MemoriesRated`; () for other kinds of
    events."""
    if isinstance(event, Perceived | Talked):
        return event.unrated
    if isinstance(event, Overheard):
        return () if event.said else event.records
    return event.records if isinstance(event, ActFinished) else ()


def _line_of(record: Record, late: Collection[str]) -> dict[str, object]:
    line = {name: value for name in OF_RECORD if (value := getattr(record, name)) not in (None, "", (), 0)}
    if record.id in late:
        line.pop("importance", None)
    return line | ({"data": dict(record.data)} if record.data else {})


async def digest(store: Store, setting: Setting) -> str:
    """Return a checksum of the journal; without a model, the same town, seed and steps always give the same
    checksum."""
    found = hashlib.blake2b(digest_size=DIGEST)
    async for line in journal(store, setting):
        found.update(line)
    return found.hexdigest()


TAIL = 2 * DIGEST + 5
"""Number of bytes at the end of a line that do not belong to the row: comma, quotes, checksum, bracket, newline."""


async def write_journal(store: Store, setting: Setting, path: Path) -> int:
    """Write the journal to a file; return the number of lines of the journal.

    If the file has an earlier journal of this town, only the missing lines are appended.

    Raises:
        InputError: the file has other content; the file is not changed.
        StorageError: the file cannot be written.
    """
    lines = [line async for line in journal(store, setting)]
    try:
        _grow(path, lines)
    except OSError as error:
        raise StorageError(f"the journal cannot be written to {path}: {error.strerror}") from error
    return len(lines)


def _grow(path: Path, lines: Sequence[bytes]) -> None:
    """Append the missing lines to a file, whose content must be the beginning of the journal."""
    there, at = path.read_bytes() if path.exists() else b"", 0
    for number, line in enumerate(lines, 1):
        if at + len(line) > len(there) or there[at : at + len(line)] != line:
            if not line.startswith(there[at:]):
                raise InputError(
                    f"line {number} of {path} belongs to another journal, or is damaged: name another file"
                )
            if not path.exists():
                write_private(path, b"")
            with path.open("r+b") as file:
                file.truncate(at)  # remove a last line that was written incompletely
                file.seek(at)
                file.writelines(lines[number - 1 :])
            return
        at += len(line)
    if at < len(there):
        raise InputError(f"{path} is longer than this journal ({count_of(len(lines), 'line')}): name another file")


def check_journal(path: Path) -> int:
    """Verify a journal file and return its number of lines.

    Raises:
        InputError: a line is damaged; the message names the first one.
        StorageError: the file cannot be read.
    """
    number = 0
    try:
        with path.open("rb") as file:
            for number, fault in enumerate(_faults(file), 1):
                if fault:
                    raise InputError(f"line {number} of {path} is damaged: {fault}")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    return number


def _faults(lines: Iterator[bytes]) -> Iterator[str]:
    """Yield the fault of each line of a journal; "": the line is valid."""
    chain = hashlib.blake2b(digest_size=DIGEST)
    for line in lines:
        row, told = line[:-TAIL] + b"]", line[-TAIL:]
        chain.update(row)
        if told != b',"' + chain.hexdigest().encode() + b'"]\n':
            yield (
                "its checksum does not match the lines up to it" if line.endswith(b"]\n") else "the line is incomplete"
            )
        else:
            yield "" if _is_json(row) else "it is not JSON"


def _is_json(row: bytes) -> bool:
    try:
        return isinstance(json.loads(row), list)
    except ValueError:
        return False


class Writing:
    """Writes the commits of complete steps in order while the town runs; readers wait for it with `written`.

    After an error nothing more is written, and the town must be opened again.

    Args:
        fence: the lease that this process must still hold when it writes.
    """

    def __init__(self, store: Store, fence: Fence | None = None) -> None:
        self.store, self.fence = store, fence
        self._journal = store.key(JOURNAL)
        self._waiting: list[Commit] = []
        self._in_flight: list[Commit] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, commits: Sequence[Commit]) -> None:
        """Schedule the commits of a step, which are written together or not at all.

        Raises:
            StorageError: an earlier step could not be written.
        """
        if self._task is not None and self._task.done():
            self._task.result()
        self._waiting += commits
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._waiting:
            self._in_flight, self._waiting = self._waiting, []
            commits = self._in_flight
            held = [Commit(mind=self._journal, at=commits[0].at, fence=self.fence)] if self.fence else []
            await self.store.commit(*held, *commits)
            self._in_flight = []

    async def written(self, stream: StreamKey | None = None) -> None:
        """Wait until all commits are written, or all commits to one stream; cancellation does not stop the writing.

        Raises:
            StorageError: a step could not be written.
        """
        task = self._task
        if task is not None and (stream is None or task.done() or self._is_pending(stream)):
            await asyncio.shield(task)

    def _is_pending(self, stream: StreamKey) -> bool:
        return any(commit.mind == stream for commits in (self._in_flight, self._waiting) for commit in commits)
