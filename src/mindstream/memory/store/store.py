"""The protocols of stores: they commit, and read what was committed. Ranking is done elsewhere (memory/recall).

A store contains the log, the records and the work, because one transaction changes all three. For a message, it writes
a log row, a record, and the work of the reasoners. For a reasoner's result, it writes a thought, a belief, and the end
of that work.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from mindstream.arrays import Floats
from mindstream.clock import Moment
from mindstream.identifiers import StreamKey, StreamName
from mindstream.log.audit import AuditRow, Deed
from mindstream.log.erasures import Erased
from mindstream.log.events import Event, Logged, Remembered
from mindstream.log.work import Work
from mindstream.memory.forgetting_curve import StrengthState
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.text.dates import DateSpan


@dataclass(frozen=True, slots=True)
class Entry:
    """An event for the log, and the records that are written with it.

    The records' `seq` is the number of the event's row.

    Attributes:
        distinct: raise Conflict if a current note, thought or exemplar has the same words as one of `records` (see
            `Store.find_same`). The check is part of the transaction, so concurrent writers cannot both pass.
        system: mindstream itself wrote the event, even if `by` is the name of a user.
    """

    event: Event
    by: str
    records: tuple[Record, ...] = ()
    distinct: bool = False
    system: bool = False

    @classmethod
    def remembered(cls, records: Iterable[Record], by: str) -> Entry:
        """Return an entry that writes records, with an event that counts them by kind."""
        kept = tuple(records)
        return cls(Remembered(count=len(kept), kinds=dict(Counter[str](each.kind for each in kept))), by, kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A change of an existing record; a field that is None is not changed.

    Attributes:
        was: raise Conflict unless the record still has this strength.
        holds: raise Conflict unless the record is valid and not archived at the time of the commit.
        emptied: fields that are set to NULL, so that a record that had ended is current again.
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
    """Work to create for these slots.

    Attributes:
        occasion: the number of the silence or of the time that causes the work (from `silence_after` or `hour` of
            `log/work.py`). Work is created only once for each number. 0: the commit's first entry causes the work.
    """

    slots: tuple[str, ...]
    owner: str
    lease: Moment
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class WorkDone:
    """Work that the commit marks as done. The log row of the commit's first entry, if any, is stored as the result.

    Attributes:
        begun: whether a run has claimed the work.
    """

    work: tuple[int, ...]
    owner: str
    begun: bool = True


@dataclass(frozen=True, slots=True)
class WorkReleased:
    """Work that a run gives back so that the work is tried again.

    Attributes:
        error: the reason.
        counts: whether the run counts as a failed attempt.
    """

    work: tuple[int, ...]
    owner: str
    error: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class WorkKept:
    """Work that `owner` has not started and keeps for the next run of the slot; the commit extends its lease.

    Attributes:
        causes: the log rows that caused the work.
        lease: the new end of the lease.
    """

    slot: str
    causes: tuple[int, ...]
    owner: str
    lease: Moment


@dataclass(frozen=True, slots=True)
class Fence:
    """Work that must be unfinished, running and held by `owner` when the commit happens.

    Otherwise LeaseLost is raised. The commit does not end the work.
    """

    work: tuple[int, ...]
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The content of one transaction.

    Attributes:
        unique: a name that can be used once in the stream; Conflict if an earlier commit has used it.
        since: the number of the last erasure when the stream was opened (`PrivacyStore.last_erasure`). If the whole
            stream was erased later, ErasedMeanwhile is raised. None: no check.
        words_read: the number of the last erasure when the words in this commit were read. If any words of the stream
            were erased later, ErasedMeanwhile is raised. None: no check.
    """

    mind: StreamKey
    at: Moment
    entries: tuple[Entry, ...] = ()
    revisions: tuple[Revision, ...] = ()
    wake: NewWork | None = None
    finish: WorkDone | None = None
    put_back: WorkReleased | None = None
    kept: WorkKept | None = None
    fence: Fence | None = None
    checkpoint: Checkpoint | None = None
    unique: str = ""
    since: int | None = None
    words_read: int | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a stream's records since a point in the sequence of changes.

    Attributes:
        records: new and changed records in their current state, in the order of writing, including archived and
            superseded ones.
        gone: ids of erased records.
        upto: the point to pass as `since` next time.
        left: the argument `after` for the next portion; 0: there are no more portions.
        ahead: maximum number of records in later portions; set only in the first portion.
    """

    records: list[Record] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    upto: int = 0
    left: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class Closure:
    """Everything that is forgotten together with the requested records.

    Attributes:
        asked: ids of the requested records and of their earlier wordings.
        gone: ids in `asked`, and ids of all records that were derived only from records in `gone`.
        below: ids of records that were derived, directly or indirectly, from records in `gone`, but stay, because they
            were also derived from other records.
        rows: rows of the log that lose all their words.
        answered: ids of the mind's own messages in `gone` that were not requested themselves. Such a message answers,
            or was derived from, another record in `gone`.
        order: for each record in `gone` and `below`, its number in the order of writing.
        versions: for each slot with a version in `gone` or `below` (or for all slots, if requested), all its versions,
            oldest first.
    """

    asked: frozenset[str]
    gone: frozenset[str]
    below: frozenset[str]
    rows: frozenset[int]
    answered: frozenset[str]
    order: dict[str, int]
    versions: dict[str, list[Record]]


def erases_no_name(_: str) -> bool:
    """Return False, the default of `Erasure.is_meant`: no text must be removed completely.

    Only the words of the erased records are removed.
    """
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A permanent deletion from a stream.

    Attributes:
        ids: ids of the records to delete.
        rows: rows of the log that lose all their words, and whose open work ends.
        rewritten: records that stay with a new text and new data: versions of beliefs and plans, and answers that
            repeated deleted text.
        is_meant: returns whether a text must be removed completely. The function is called for texts in rows of the log
            and in the terminal's input history.
        deed: an entry for the audit log, which is written in the same transaction with the number of deleted records.
        at: the time of the entry in the audit log.
    """

    ids: tuple[str, ...]
    rows: frozenset[int] = frozenset()
    rewritten: tuple[Record, ...] = ()
    is_meant: Callable[[str], bool] = erases_no_name
    deed: Deed | None = None
    at: Moment = 0.0


async def read_all(store: Store, stream: StreamKey) -> AsyncIterator[list[Record]]:
    """Yield all records of a stream in portions, in the order of writing; other tasks can run between two portions."""
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
            InputError: a value is invalid (memory/store/record), or the name of a new stream looks like that of
                another stream of its kind.
            Conflict: the version of a belief or plan exists already, a checkpoint is not the next version, or a
                condition (`distinct`, `was`, `holds`, `unique`) is not met.
            LeaseLost: work of `finish` or `fence` was taken over by another process, or has ended.
            ErasedMeanwhile: words were erased after `since` or `words_read` (see Commit).
        """

    async def events(
        self, mind: StreamKey | None = None, after: int = 0, kinds: Sequence[str] | None = None, limit: int = 1000
    ) -> list[Logged]:
        """Return rows of the log with a seq above `after`, oldest first. `mind` None: the rows of all minds of the
        tenant."""

    async def last(self, mind: StreamKey, kind: str) -> Logged | None:
        """Return the newest row of a kind in a mind's log; None if there is none."""

    async def count(self, mind: StreamKey, kind: str) -> int:
        """Return the number of events of a kind in a mind's log."""

    async def checkpoint(self, mind: StreamKey, name: str) -> Checkpoint | None:
        """Return the newest version of a checkpoint; None if there is none or it is damaged."""

    async def taken_by(self, mind: StreamKey, unique: str) -> int | None:
        """Return the row of the log whose commit used a unique name; None if no commit has used it."""


async def read_log(
    store: LogStore, mind: StreamKey | None, after: int = 0, kinds: Sequence[str] | None = None
) -> AsyncIterator[Logged]:
    """Yield the rows of the log after a seq, oldest first; of all minds if `mind` is None."""
    while rows := await store.events(mind, after, kinds):
        for row in rows:
            yield row
        after = rows[-1].seq


class RecordStore(Protocol):
    """The records of streams. A method that names a stream reads and writes no records of other streams."""

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        """Return the records with these ids, in the given order; ids that are unknown in the stream are left out."""

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
        """Return the n newest records that are not archived and whose validity has not ended at `now`, oldest first.

        With `slot`, return only the newest version of that slot, even if its validity has ended.
        """

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        """Return the current records of a kind that have the same words as one of these texts, by normalised text.

        The kind must be one of those in `UNIQUE` (memory/store/record).
        """

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        """Return the changes of a stream after the point `since` (0: all), as of one moment.

        Args:
            after: for a further portion: the `left` of the portion before, with the same `since`; 0: the first portion.
            most: maximum number of records in a portion. A portion may be smaller, because its size in memory is also
                limited.

        Only the first portion has `gone`. A change that is made between two portions is in a later portion. If it is
        not, it is returned by a later call whose `since` is the first portion's `upto`.
        """

    def walk(self, stream: StreamKey) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[Record]]]:
        """Return the number of a stream's records and an iterator over them, as of one moment.

        The iterator yields the records in the order of writing, including superseded and archived ones, and holds only
        a few in memory at a time.
        """

    async def recorded_embedder(self, stream: StreamKey) -> str:
        """Return the name of the embedder that made most of the stream's newest vectors; "" if there are no vectors."""

    async def closure(
        self, stream: StreamKey, ids: Sequence[str], *, all_slots: bool = False, slots_below: Sequence[str] = ()
    ) -> Closure:
        """Return everything that is forgotten together with these records, and the versions of the affected slots.

        See memory/store/lineage.find_closure.

        Args:
            all_slots: whether to return the versions of all slots (beliefs and plans), not only of affected slots.
            slots_below: ids of further records. Slots with a version derived from one of these records are returned,
                too.
        """

    async def answers(self, stream: StreamKey, after: int, ids: Sequence[str] | None = None) -> list[str]:
        """Return the ids of the mind's own messages after a row of the log.

        Args:
            ids: consider only these records; None: all.
        """

    async def unembedded(self, stream: StreamKey) -> list[str]:
        """Return the ids of the records without a vector, in the order of writing."""

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        """Return the stream of each of these records, by id; unknown ids are left out."""


@dataclass(frozen=True, slots=True)
class Told:
    """Statistics of a whole stream. With them, selected records get the same scores as if all records were scored.

    Attributes:
        records: number of records.
        terms: number of terms in all records.
        holding: for each word of the question, the number of records that contain it.
        groups: approximate number of episodes.
        episodes: for each episode, the BM25 score of each word of the question, with the episode as one text.
        written: number of records written in the periods that the question names.
        said: for each speaker, the number of messages, and the number of terms in these messages.
        sample: the indexes of candidates that are an even sample of the stream. The stream's average vector is computed
            from these candidates.
    """

    records: int
    terms: int
    holding: Mapping[str, int]
    groups: int
    episodes: Mapping[str, Floats]
    written: int
    said: Mapping[str, tuple[int, int]]
    sample: Sequence[int]


class Candidates(list[Record]):
    """Records that may answer a question. `told`: statistics of the whole stream; None: unknown."""

    def __init__(self, records: Iterable[Record] = (), told: Told | None = None) -> None:
        super().__init__(records)
        self.told = told


class CandidateStore(Protocol):
    """Finds records that may answer a question, for processes that do not hold the columns of the whole stream."""

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
        """Return records that may answer a question, in the order of writing, each once, without ranking them.

        - Up to n of the newest and n of the strongest records are returned.
        - As far as the index permits, these are returned, too: up to n records with the most similar vectors, up to n
          records that match the words best, and the neighbours of both in their episodes.
        - Archived and superseded records may be among the results.

        Args:
            vector: the question's vector, of length 1; None: there is none.
            words: the question's terms, in the form of the lexical index (text/words.terms).
            kinds: only records of these kinds; None: of all kinds.
            spans: periods that the question names. A store with an index returns more records of these periods.
        """


class WorkStore(Protocol):
    """The work of reasoners, held by leases (see log/work)."""

    async def open_work(self, *minds: StreamKey) -> list[Work]:
        """Return the unfinished work of these minds, oldest first."""

    async def claim(
        self, mind: StreamKey, slot: str, owner: str, now: Moment, lease: Moment, before: int | None = None
    ) -> list[Work]:
        """Claim a slot's open work (see log/work); `before`: only work whose cause is below this seq."""

    async def renew(self, work: Sequence[int], owner: str, lease: Moment) -> None:
        """Extend the lease of unfinished work that `owner` holds to the time `lease`."""

    async def give_up(self, owner: str) -> None:
        """Release all work of `owner`, so that other processes can claim it at once."""

    async def release_work(self, mind: StreamKey, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
        """Release the reasoners' work on an utterance that `owner` holds and has not started, so that any process can
        claim it.

        The work of answering the utterance is never released. Work of the slots in `ended` (which may contain the slot
        of the answer) is not released either, but marked as done.
        """

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Until the block ends, call `told` in the event loop after commits to a stream (None: to any stream).

        Some stores, such as the SQLite store, never call `told`. Therefore callers must also poll at intervals.
        """


@dataclass(frozen=True, slots=True)
class Kept:
    """A named value of a stream, and when it was written."""

    stream: StreamKey
    name: str
    at: Moment
    value: str


RESULT = "result:"
"""Prefix of the names of operations' results. They may contain users' words, so every erasure in a stream deletes all
results of the stream."""
AFTER = "\U0010ffff"
"""All names with a prefix are sorted before the prefix with this character."""


class KeptStore(Protocol):
    """Named values that programs keep for a stream outside of its log, such as cached answers to repeated requests,
    spending, and results of long operations.

    All processes share them. When a stream is deleted, its values are deleted, too.
    """

    async def kept(self, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        """Return the values whose names have this prefix, oldest first; stream None: of all streams of the tenant."""

    async def keep(
        self,
        stream: StreamKey,
        name: str,
        at: Moment,
        change: Callable[[str | None], str | None],
        words_read: int | None = None,
    ) -> str | None:
        """Replace a value by the result of `change`, in one transaction; the result None deletes the value.

        Args:
            words_read: the number of the last erasure when the words in the value were read; None: the value contains
                no words.

        Returns:
            The value before; None if there was none.

        Raises:
            ErasedMeanwhile: words of the stream were erased since `words_read`; nothing was changed.
        """

    async def drop_kept(self, stream: StreamKey, prefix: str, before: Moment) -> None:
        """Delete values whose names have this prefix and that were written before a moment."""


class MaintenanceStore(Protocol):
    """Operations on the data of one tenant as a whole."""

    def key(self, name: StreamName) -> StreamKey:
        """Return the key of a stream; called once, when the stream is opened.

        Raises:
            InputError: the stream belongs to another tenant.
        """

    async def version(self) -> int:
        """Return a number that changes with each commit of any process."""

    async def streams(self) -> list[StreamKey]:
        """Return the streams that have records."""

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        """Delete records permanently and return their number. `what` None: delete the whole stream with its log and
        work.

        In rows of the log and in derived records, a mark replaces the words of the deleted records (see
        memory/store/erasure for the exceptions). This is one transaction; `compact` overwrites the bytes. An `Erasure`
        removes more, also from files next to the database.
        """

    async def compact(self) -> None:
        """Free unused space. Afterwards the data files contain no erased byte; PostgreSQL's write-ahead log may contain
        some."""

    async def close(self) -> None:
        """Complete the pending writes and close the store."""


class PrivacyStore(Protocol):
    """Erasures (log/erasures) and the audit log (log/audit)."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure of any stream; 0: there was none."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return the salt with which erasures hash the keys of streams, and the erasures with numbers above `number`.

        Of these erasures, all that concern this tenant's streams are returned. Erasures of other tenants may be among
        the results.
        """

    async def lost_since(self, stream: StreamKey, number: int) -> bool | None:
        """Return how much of a stream was erased after the erasure with this number.

        True means the whole stream, False a part of it, and None nothing.
        """

    async def note(self, at: Moment, deed: Deed) -> None:
        """Add a row to the audit log."""

    async def audit(self, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
        """Return the newest rows of the audit log, oldest first. The store of a tenant returns an empty list."""


class Store(LogStore, RecordStore, CandidateStore, WorkStore, KeptStore, MaintenanceStore, PrivacyStore, Protocol):
    """Stores the log, records and work of a data folder or database, for one tenant or for data without a tenant.

    Every method can raise StorageError. A method with a stream's key as an argument raises InputError if the key
    belongs to another tenant.
    """
