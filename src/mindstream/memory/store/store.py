"""The seam to storage: commit, read, changes since. Ranking is not its business.

A store keeps the log, the records and the work together, because what belongs together is committed together:
an utterance's log row, its record and the work it causes; a Reasoner's thought, its belief and the end of its work.
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
from mindstream.memory.fading import StrengthState
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.record import Kind, Record, Vector
from mindstream.text.dates import DateSpan


@dataclass(frozen=True, slots=True)
class Entry:
    """An event for the log and the records that come from it; they get its seq.

    Attributes:
        distinct: Conflict where a note, thought or exemplar that holds says the same as one of `records` already (see
            `Store.find_same`): the one check that a writer at the same moment cannot slip past.
        system: mindstream wrote it, of the kinds of rows that people write too; whatever name stands in `by`.
    """

    event: Event
    by: str
    records: tuple[Record, ...] = ()
    distinct: bool = False
    system: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A change to a record that is there; None leaves a field as it is.

    Attributes:
        was: Conflict unless its level and its time of access are still these.
        holds: Conflict unless it holds at the time of the commit and is not forgotten.
        emptied: what it has no more: with it, what had ended holds again.
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
        occasion: what calls for it where no entry does (see log/work): it is opened once. 0: an entry does.
    """

    slots: tuple[str, ...]
    owner: str
    lease: Moment
    occasion: int = 0


@dataclass(frozen=True, slots=True)
class WorkDone:
    """The end of work, by the commit's first entry, if any. `begun` False: it ends before anybody has taken it up."""

    work: tuple[int, ...]
    owner: str
    begun: bool = True


@dataclass(frozen=True, slots=True)
class WorkReleased:
    """Work that a run lets go of, and why; it is tried again. `counts`: the run failed at it."""

    work: tuple[int, ...]
    owner: str
    error: str
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Fence:
    """Work that must still be open, running and its owner's when something is written; it goes on."""

    work: tuple[int, ...]
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What is written together: all of it, or nothing.

    Attributes:
        unique: what there can be one of in the stream: Conflict where a commit has taken it already.
        since: how far erasures were known when the stream was opened (`PrivacyStore.last_erasure`): Erased where all of
            the stream was erased since, so that nobody writes back what they hold of it. None: it is not asked.
        words_read: how far erasures were known when the words in it were read: refused where any words of the stream
            were erased since (a part of it forgotten, or all of it). None: it is not asked.
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
    """What happened to a stream's records since a point.

    Attributes:
        records: new and changed ones as they are now, in the order of writing; forgotten and superseded too.
        gone: ids of records that were erased for good.
        upto: the point to ask from next time.
        left: of a portion: what to go on `after`; 0: that was all.
        ahead: with the first portion: how many more records there will be, or fewer.
    """

    records: list[Record] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    upto: int = 0
    left: int = 0
    ahead: int = 0


@dataclass(frozen=True)
class Closure:
    """All that goes with some records.

    Attributes:
        asked: those, and earlier wordings of them; gone: with all that was derived from them alone.
        below: what was derived from what goes, and from other things, too.
        rows: rows of the log of which no word may stay.
        answered: what the mind itself said that is derived from what is asked for.
        order: the numbers of the records that are `gone` or `below`, in the order of writing.
        versions: by slot all versions, oldest first, of each slot of which a version is `gone` or `below` (or of all).
    """

    asked: frozenset[str]
    gone: frozenset[str]
    below: frozenset[str]
    rows: frozenset[int]
    answered: frozenset[str]
    order: dict[str, int]
    versions: dict[str, list[Record]]


def erases_no_name(_: str) -> bool:
    """Mean no text: only the words of the erased records go."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What is deleted for good of a stream, and what goes with it.

    Attributes:
        ids: the records.
        rows: rows of the log of which no word stays, and whose open work is ended.
        rewritten: records that stay, with the text and the data that they are to have (versions of beliefs and plans).
        is_meant: which texts lose all their words: in the log where they have no record of their own, and in what was
            typed in a terminal.
        deed: written to the audit in the same transaction, with the number of records deleted; at: when.
    """

    ids: tuple[str, ...]
    rows: frozenset[int] = frozenset()
    rewritten: tuple[Record, ...] = ()
    is_meant: Callable[[str], bool] = erases_no_name
    deed: Deed | None = None
    at: Moment = 0.0


async def read_all(store: Store, stream: StreamKey) -> AsyncIterator[list[Record]]:
    """Yield all records of a stream in portions, in the order of writing; others run between them."""
    after = 0
    while True:
        changes = await store.changes(stream, 0, after, 256)
        yield changes.records
        if not (after := changes.left):
            return
        await asyncio.sleep(0)


class LogStore(Protocol):
    """The log: what happened, in order, and never changed. Rows are written by commits."""

    async def commit(self, *commits: Commit) -> list[Logged]:
        """Write them durably, of one mind or of several: all of them or nothing; return the log rows.

        Raises:
            InputError: something in it could not be read again (see memory/store/store).
            InputError: a stream begins whose name looks like another's of its kind.
            Conflict: a belief or plan of that version is there already, or a checkpoint of another than the one before;
                what `distinct`, `was`, `holds` or `unique` asks for is not so.
            LeaseLost: the work that it ends, or that `fence` names, was taken over by another process, or has ended.
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
        """Return the newest checkpoint of a name; None where there is none, or it is damaged."""

    async def taken_by(self, mind: StreamKey, unique: str) -> int | None:
        """Return by which row a commit's `unique` is taken; None: it is free."""


async def read_log(
    store: LogStore, mind: StreamKey | None, after: int = 0, kinds: Sequence[str] | None = None
) -> AsyncIterator[Logged]:
    """Yield the rows of the log after a seq, oldest first; of all minds where `mind` is None."""
    while rows := await store.events(mind, after, kinds):
        for row in rows:
            yield row
        after = rows[-1].seq


class RecordStore(Protocol):
    """The records of streams; a stream's name is a wall."""

    async def records(self, stream: StreamKey, ids: Sequence[str]) -> list[Record]:
        """Return those records of this stream, in the order asked for; unknown ids are left out."""

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
        """Return the newest records that hold now and are not forgotten, oldest first."""

    async def find_same(self, stream: StreamKey, kind: Kind, texts: Sequence[str], *, now: Moment) -> dict[str, Record]:
        """Return what of a kind (one of UNIQUE) holds now and says the same as these texts, by normalised text."""

    async def changes(self, stream: StreamKey, since: int, after: int = 0, most: int | None = None) -> Changes:
        """Return what changed in a stream after the point `since` (0: from the beginning), as of one moment.

        Args:
            most: a portion of at most so many records, and of no more than can be taken in at once; the next portion
                has the same `since` and is read `after` what the last one `left`. What changes meanwhile has come
                with a portion, or comes when asked from the first portion's `upto`; `gone` comes with the first.
        """

    def walk(self, stream: StreamKey) -> AbstractAsyncContextManager[tuple[int, AsyncIterator[Record]]]:
        """Give the number of a stream's records and each of them, as it all stands now, a few in memory at a time.

        In the order of writing; superseded and forgotten ones too.
        """

    async def recorded_embedder(self, stream: StreamKey) -> str:
        """Return the name of the embedder of most of the stream's newest vectors; "": there are none."""

    async def closure(
        self, stream: StreamKey, ids: Sequence[str], *, all_slots: bool = False, slots_below: Sequence[str] = ()
    ) -> Closure:
        """Return all that goes with records that are forgotten (see memory/store/lineage)."""

    async def answers(self, stream: StreamKey, after: int, ids: Sequence[str] | None = None) -> list[str]:
        """Return the ids of what the mind itself said after a row of the log.

        Args:
            ids: only of these records; None: of all.
        """

    async def unembedded(self, stream: StreamKey) -> list[str]:
        """Return the ids of the records that have no vector of any embedder, in the order of writing."""

    async def owners(self, ids: Sequence[str]) -> dict[str, StreamKey]:
        """Return whose stream each of these records is in, by id; unknown ids are left out."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a whole stream tells of some of its records, by which these are scored as they would be among all.

    Attributes:
        records, terms: how many records it has, and how many terms these have together.
        holding: how many records have each of the words that were asked for.
        groups: about how many episodes it has.
        episodes: for each episode how much each of these words counts in it (BM25 of the episode as one text).
        written: how many records were written in the stretches of time that were asked for.
        said: how many messages each one who talks has written, and how many terms these have together.
        sample: places of some of the candidates, drawn evenly from all: what is usual among them is in the stream.
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
    """Records that may answer. `told`: what the whole stream tells of them; None: that is not known."""

    def __init__(self, records: Iterable[Record] = (), told: Told | None = None) -> None:
        super().__init__(records)
        self.told = told


class CandidateStore(Protocol):
    """Records that may answer, found by the store itself, where a process does not hold the whole stream."""

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
        """Return records that may answer, in the order of writing, each once; ranking is not the store's business.

        At most n by each way of finding that the store has: the newest, the best held, and, where it has an index for
        it, the nearest to the vector and those with most of the words. Forgotten and superseded ones may be among them.

        Args:
            vector: the question's, of length 1; None: there is none.
            words: of the question, as the lexical index knows them (text/words.terms).
            kinds: of these kinds only; None: of any.
            spans: stretches of time that the question names: where there is an index, more of what was written then.
        """


class WorkStore(Protocol):
    """What reasoners have to do, by lease (see log/work)."""

    async def open_work(self, mind: StreamKey) -> list[Work]:
        """Return the mind's unfinished work, oldest first."""

    async def claim(
        self, mind: StreamKey, slot: str, owner: str, now: Moment, lease: Moment, before: int | None = None
    ) -> list[Work]:
        """Take up a slot's open work (see log/work); `before` (a seq): only what was caused before that row."""

    async def renew(self, work: Sequence[int], owner: str, lease: Moment) -> None:
        """Hold on to work that is still going on."""

    async def give_up(self, owner: str) -> None:
        """Let go of everything that `owner` holds."""

    async def release_work(self, mind: StreamKey, cause: int, owner: str, ended: Sequence[str] = ()) -> None:
        """Let go of what `owner` holds of an utterance's work and has not begun: whoever comes first takes it up.

        Of the slots `ended` it is ended.
        """

    def subscribe(self, stream: StreamKey | None, told: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `told` in the loop when anybody has written to a stream (None: to any), until the block ends.

        As far as the store is told of it: whoever waits for something looks now and then, too.
        """


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a stream by name, since when."""

    stream: StreamKey
    name: str
    at: Moment
    value: str


class KeptStore(Protocol):
    """What programs keep of a stream beside its log; it is no memory, and goes with the stream."""

    async def kept(self, stream: StreamKey | None = None, prefix: str = "") -> list[Kept]:
        """Return what is kept under names that begin so, the oldest first; None: of all streams of the tenant."""

    async def keep(
        self,
        stream: StreamKey,
        name: str,
        at: Moment,
        change: Callable[[str | None], str | None],
        words_read: int | None = None,
    ) -> str | None:
        """Put what `change` makes of what stands there in its place; nobody else changes it meanwhile.

        Args:
            words_read: how far erasures were known when the words in it were read. None: it holds no words.

        Returns:
            What stood there before.

        Raises:
            ErasedMeanwhile: words of the stream were erased since `words_read`; nothing is changed.
        """

    async def drop_kept(self, stream: StreamKey, prefix: str, before: Moment) -> None:
        """Delete what was kept under names that begin so before a moment."""


class MaintenanceStore(Protocol):
    """What is done to a data folder as a whole: to what one tenant has in it."""

    def key(self, name: StreamName) -> StreamKey:
        """Return by which key a stream is kept; asked once, where it is opened.

        Raises:
            InputError: it is another tenant's.
        """

    async def version(self) -> int:
        """Return a number that changes when anybody has committed."""

    async def streams(self) -> list[StreamKey]:
        """Name the streams that hold records."""

    async def erase(self, stream: StreamKey, what: Sequence[str] | Erasure | None = None) -> int:
        """Delete records (ids) for good and return how many; None: all of the stream with its log and work.

        The words of those records go from rows of the log, and from records that were drawn from them, too: a mark
        stands in their place (see memory/store/erasure for what stays). All of it is one transaction; their bytes are
        gone after `compact`. An `Erasure` takes more with it, also what lies beside the log and repeats it.
        """

    async def compact(self) -> None:
        """Give back the room that is not needed; after it, nothing that was erased can be found in the files."""

    async def close(self) -> None:
        """Write what is waiting and let go."""


class PrivacyStore(Protocol):
    """What is kept of erasures (log/erasures), and of who did what (log/audit)."""

    async def last_erasure(self) -> int:
        """Return the number of the last erasure, whosever it was; 0 before there was one."""

    async def erased_since(self, number: int) -> tuple[str, list[Erased]]:
        """Return what digests are made with, and the erasures after a number; of this tenant's streams at least."""

    async def lost_since(self, stream: StreamKey, number: int) -> bool | None:
        """Tell whether all of a stream was erased after an erasure (True), or a part of it (False); None: nothing."""

    async def note(self, at: Moment, deed: Deed) -> None:
        """Add a row to the audit."""

    async def audit(self, about: str = "", tenant: str = "", limit: int = 1000) -> list[AuditRow]:
        """Return the newest rows of the audit, oldest first; a store of a tenant's is shown none."""


class Store(LogStore, RecordStore, CandidateStore, WorkStore, KeptStore, MaintenanceStore, PrivacyStore, Protocol):
    """Where a data folder's log, records and work are kept: one tenant's, or what is no tenant's.

    All methods raise StorageError; those that take a key, InputError where it is another tenant's.
    """
