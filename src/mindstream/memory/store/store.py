"""The interface of stores: commit, read, changes since. Ranking is done elsewhere (memory/recall).

A store keeps the log, the records and the work together, because they are committed together: an utterance's log row,
its record and the work it causes; a reasoner's thought, its belief and the end of its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import Moment
from mindstream.log.audit import AuditRow, Deed
from mindstream.log.erasures import Erased
from mindstream.log.events import Event, Logged
from mindstream.log.names import StreamKey, StreamName
from mindstream.log.work import Work
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.text.dates import DateSpan


@dataclass(frozen=True, slots=True)
class Entry:
    """An event for the log and the records that come from it; they get its seq.

    Attributes:
        distinct: Conflict if a current note, thought or exemplar has the same words as one of `records` (see
            `Store.find_same`): concurrent writers cannot both pass this check.
        system: mindstream wrote it, whatever `by` says; set for kinds of rows that people write, too.
    """

    event: Event
    by: str
    records: tuple[Record, ...] = ()
    distinct: bool = False
    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A change to an existing record; None leaves a field as it is.

    Attributes:
        was: Conflict unless the record's strength is still this one.
        holds: Conflict unless the record is current and not archived at the time of the commit.
        emptied: fields that are set to NULL, so that an ended record is current again.
    """

    id: str
    accessed: Moment | None = None
    importance: float | None = None
    level: int | None = None
    lasting: bool | None = None
    valid_until: Moment | None = None
    superseded_by: str | None = None
    forgotten: Moment | None = None
    embedder: str | None = None
    vector: Vector | None = None
    was: StrengthState | None = None
    holds: bool = False
    emptied: tuple[Literal["forgotten", "valid_until", "superseded_by"], ...] = ()


@dataclass(frozen=True, slots=True)
class NewWork:
    """Work for these slots, caused by the commit's first entry.

    Attributes:
        occasion: its cause if no entry is (see log/work); the same occasion opens work only once. 0: the entry
            is the cause.
    """

    slots: tuple[str, ...]
    owner: str
    lease: Moment
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The end of work, by the commit's first entry, if any. `begun` False: it ends before a run has claimed it."""

    work: tuple[int, ...]
    owner: str
    begun: bool = True


@dataclass(frozen=True, slots=True)
class WorkReleased:
    """Work that a run gives back, and why; it is tried again. `counts`: as a failure of the run."""

    work: tuple[int, ...]
    owner: str
    error: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Fence:
    """Work that must still be open, running and its owner's at the time of the commit; it stays open."""

    work: tuple[int, ...]
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What is written in one transaction.

    Attributes:
        unique: a name of which the stream can have one: Conflict if an earlier commit has taken it.
        since: the number of the last erasure when the stream was opened (`PrivacyStore.last_erasure`): Erased
            if the whole
            stream was erased later, so that erased data is not written back. None: no check.
        words_read: the number of the last erasure when the words in it were read: refused if any words of the
            stream were
            erased later (a part of it, or all). None: no check.
    """

    mind: StreamKey
    at: Moment
    entries: tuple[Entry, ...] = ()
    revisions: tuple[Revision, ...] = ()
    wake: NewWork | None = None
    finish: WorkDone | None = None
    put_back: WorkReleased | None = None
    fence: Fence | None = None
    checkpoint: Checkpoint | None = None
    unique: str = ""
    since: int | None = None
    words_read: int | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a stream's records since a point.

    Attributes:
        records: new and changed ones as they are now, in the order of writing; archived and superseded ones, too.
        gone: ids of erased records.
        upto: the point to ask from next time.
        left: of a portion: the argument `after` of the next one; 0: it was the last.
        ahead: in the first portion: the maximum number of records still to come.
    """

    records: list[Record] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    upto: int = 0
    left: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class Closure:
    """Everything that is forgotten together with some records.

    Attributes:
        asked: those records, and earlier wordings of them; gone: also all that was derived from them alone.
        below: records derived from `gone`, and from other records, too.
        rows: rows of the log that lose all words.
        answered: the mind's own messages that are derived from `asked`.
        order: the numbers of the records in `gone` or `below`, in the order of writing.
        versions: by slot all versions, oldest first, of each slot with a version in `gone` or `below` (or of
            all slots).
    """

    asked: frozenset[str]
    gone: frozenset[str]
    below: frozenset[str]
    rows: frozenset[int]
    answered: frozenset[str]
    order: dict[str, int]
    versions: dict[str, list[Record]]


def erases_no_name(_: str) -> bool:
    """Match no text: only the words of the erased records are removed."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A permanent deletion from a stream.

    Attributes:
        ids: the records.
        rows: rows of the log that lose all words, and whose open work ends.
        rewritten: records that stay, with their new text and data (versions of beliefs and plans).
        is_meant: returns whether a text loses all its words: in rows of the log without a record, and in typed history.
        deed: a row for the audit, written in the same transaction with the number of deleted records; at: its time.
    """

    ids: tuple[str, ...]
    rows: frozenset[int] = frozenset()
    rewritten: tuple[Record, ...] = ()
    is_meant: Callable[[str], bool] = erases_no_name
    deed: Deed | None = None
    at: Moment = 0.0


async def read_all(store: Store, stream: StreamKey) -> AsyncIterator[list[Record]]:
    """Yield all records of a stream in portions, in the order of writing; other tasks run between them."""
    after = 0
    while True:
        changes = await store.changes(stream, 0, after, 256)
        yield changes.records
        if not (after := changes.left):
            return
        await asyncio.sleep(0)


class LogStore(Protocol):
    """The log: append-only rows, written by commits."""

    async def commit(self, *commits: Commit) -> list[Logged]:
        """Write commits of one or several minds in one transaction; return the log rows once they are durable.

        Raises:
            InputError: a value is invalid (memory/store/validation).
            InputError: the name of a new stream looks like that of another stream of its kind.
            Conflict: the version of a belief or plan exists, a checkpoint is not the next version, or a
                condition (`distinct`,
                `was`, `holds`, `unique`) is not met.
            LeaseLost: work of `finish` or `fence` was taken over by another process, or has ended.
        """

    async def events(
        self, mind: StreamKey | None = None, after: int = 0, kinds: Sequence[str] | None = None, limit: int = 1000
    ) -> list[Logged]:
        """Return rows of the log after the seq `after`, oldest first."""

    async def last(self, mind: StreamKey, kind: str) -> Logged | None:
        """Return the newest row of a mind's log of that kind."""

    async def count(self, mind: StreamKey, kind: str) -> int:
        """Return how many events of a kind the mind's log holds."""

    async def checkpoint(self, mind: StreamKey, name: str) -> Checkpoint | None:
        """Return the newest checkpoint of a name; None: there is none, or it is damaged."""

    async def taken_by(self, mind: StreamKey, unique: str) -> int | None:
        """Return the row whose commit took a unique name; None: it is free."""


async def read_log(
    store: LogStore, mind: StreamKey | None, after: int = 0, kinds: Sequence[str] | None = None
) -> AsyncIterator[Logged]:
    """Yield the rows of the log after a seq, oldest first; of all minds if `mind` is None."""
    while rows := await store.events(mind, after, kinds):
        for row in rows:
            yield row
        after = rows[-1].seq


class RecordStore(Protocol):
    """The records of streams; a stream is never read or written by the name of another."""

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        """Return these records of the stream, in the given order; unknown ids are left out."""

    async def latest(
        self,
        stream: StreamKey,
        kinds: Sequence[Kind] | None = None,
        n: int = 1,
        *,
        now: Moment,
        episode: str | None = None,
        slot: str | None = None,
    ) -> list[Record]:
        """Return the newest current records that are not archived, oldest first."""

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        """Return the current records of a kind (of UNIQUE) with the same words as these texts, by normalised text."""

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        """Return the changes of a stream after the point `since` (0: all), as of one moment.

        Args:
            most: maximum number of records of a portion, which also ends at a maximum size; the next one has
                the same `since`
                and the last one's `left` as `after`. Changes between two portions come with a later
                portion, or after the first
                portion's `upto`; `gone` comes with the first portion.
        """

    def walk(self, stream: StreamKey) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[Record]]]:
        """Return the number of a stream's records and an iterator over them, as of one moment, with few in memory at a
        time.

        They come in the order of writing, with superseded and archived ones.
        """

    async def recorded_embedder(self, stream: StreamKey) -> str:
        """Return the embedder of most of the stream's newest vectors; "": there are none."""

    async def closure(
        self, stream: StreamKey, ids: Sequence[str], *, all_slots: bool = False, slots_below: Sequence[str] = ()
    ) -> Closure:
        """Return everything that is forgotten together with these records (see memory/store/lineage)."""

    async def answers(self, stream: StreamKey, after: int, ids: Sequence[str] | None = None) -> list[str]:
        """Return the ids of the mind's own messages after a row of the log.

        Args:
            ids: only of these records; None: of all.
        """

    async def unembedded(self, stream: StreamKey) -> list[str]:
        """Return the ids of the records without a vector, in the order of writing."""

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        """Return the stream of each of these records, by id; unknown ids are left out."""


@dataclass(frozen=True, slots=True)
class Told:
    """Statistics of a whole stream, by which some of its records are scored as they would be among all.

    Attributes:
        records, terms: number of records, and of all their terms.
        holding: for each queried word, the number of records that contain it.
        groups: approximate number of episodes.
        episodes: for each episode, the BM25 of each of these words in the episode as one text.
        written: number of records written in the queried periods.
        said: for each speaker, the number of messages and of all their terms.
        sample: indexes of some of the candidates that are an even sample of the stream, for its average.
    """

    records: int
    terms: int
    holding: Mapping[str, int]
    groups: int
    episodes: Mapping[str, NDArray[np.float32]]
    written: int
    said: Mapping[str, tuple[int, int]]
    sample: Sequence[int]


class Candidates(list[Record]):
    """Records that may answer. `told`: statistics of the whole stream; None: unknown."""

    def __init__(self, records: Iterable[Record] = (), told: Told | None = None) -> None:
        super().__init__(records)
        self.told = told


class CandidateStore(Protocol):
    """Finds records that may answer in the store, for processes that do not hold the whole stream."""

    async def candidates(
        self,
        stream: StreamKey,
        vector: Vector | None,
        words: Sequence[str],
        n: int,
        *,
        kinds: Sequence[Kind] | None = None,
        spans: Sequence[DateSpan] = (),
    ) -> Candidates:
        """Return records that may answer, in the order of writing, each once, without ranking them.

        At most n by each of the store's ways of finding: the newest, the strongest, and, if it has an index, the
        nearest to the
        vector and those with most of the words. Archived and superseded records may be among them.

        Args:
            vector: of the question, of length 1; None: there is none.
            words: of the question, as the lexical index has them (text/words.terms).
            kinds: only of these kinds; None: of any.
            spans: periods that the question names: with an index, more records of these periods are returned.
        """


class WorkStore(Protocol):
    """The work of reasoners, held by leases (see log/work)."""

    async def open_work(self, mind: StreamKey) -> list[Work]:
        """Return the mind's unfinished work, oldest first."""

    async def claim(
        self, mind: StreamKey, slot: str, owner: str, now: Moment, lease: Moment, before: int | None = None
    ) -> list[Work]:
        """Claim a slot's open work (see log/work); `before` (a seq): only work caused before that row."""

    async def renew(self, work: Sequence[int], owner: str, lease: Moment) -> None:
        """Extend the lease of running work."""

    async def give_up(self, owner: str) -> None:
        """Release everything that `owner` holds."""

    async def release_work(self, mind: StreamKey, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
        """Release the work of an utterance that `owner` holds and has not begun, for the first process that claims it.

        The work of the slots `ended` is finished instead.
        """

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `told` in the event loop after commits to a stream (None: to any stream), until the block ends.

        Not every store is notified of all commits: callers must also poll at intervals.
        """


@dataclass(frozen=True, slots=True)
class Kept:
    """A named value of a stream, and when it was written."""

    stream: StreamKey
    name: str
    at: Moment
    value: str


class KeptStore(Protocol):
    """Values that programs keep for a stream outside of its log, such as results; they are deleted with the stream."""

    async def kept(self, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        """Return the values whose names have this prefix, oldest first; None: of all streams of the tenant."""

    async def keep(
        self,
        stream: StreamKey,
        name: str,
        at: Moment,
        change: Callable[[str | None], str | None],
        words_read: int | None = None,
    ) -> str | None:
        """Replace a value by the result of `change`, atomically.

        Args:
            words_read: the number of the last erasure when the words in it were read. None: it contains no words.

        Returns:
            The value before.

        Raises:
            ErasedMeanwhile: words of the stream were erased since `words_read`; nothing is changed.
        """

    async def drop_kept(self, stream: StreamKey, prefix: str, before: Moment) -> None:
        """Delete values written before a moment whose names have this prefix."""


class MaintenanceStore(Protocol):
    """Operations on one tenant's data as a whole."""

    def key(self, name: StreamName) -> StreamKey:
        """Return the key of a stream; called once, when it is opened.

        Raises:
            InputError: it is another tenant's.
        """

    async def version(self) -> int:
        """Return a number that changes with each commit of any process."""

    async def streams(self) -> list[StreamKey]:
        """Return the streams that have records."""

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        """Delete records (ids) permanently and return how many; None: the whole stream with its log and work.

        Their words are also removed from rows of the log, and from records derived from them: a mark replaces them (see
        memory/store/erasure for the exceptions). It is one transaction; the bytes are gone after `compact`.
        An `Erasure`
        removes more, also from files next to the log.
        """

    async def compact(self) -> None:
        """Free unused space; after it, no erased byte is left in the files."""

    async def close(self) -> None:
        """Finish waiting writes and close the store."""


class PrivacyStore(Protocol):
    """Erasures (log/erasures) and the audit (log/audit)."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure of any stream; 0: there was none."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return the salt of the digests, and the erasures after a number, at least of this tenant's streams."""

    async def lost_since(self, stream: StreamKey, number: int) -> bool | None:
        """Return whether a whole stream (True) or a part of it (False) was erased after an erasure; None: neither."""

    async def note(self, at: Moment, deed: Deed) -> None:
        """Add a row to the audit."""

    async def audit(self, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
        """Return the newest rows of the audit, oldest first; none for a tenant's store."""


class Store(LogStore, RecordStore, CandidateStore, WorkStore, KeptStore, MaintenanceStore, PrivacyStore, Protocol):
    """Stores the log, records and work of a data folder or database: of one tenant, or of no tenant.

    All methods raise StorageError; those that take a key raise InputError if it is another tenant's.
    """
