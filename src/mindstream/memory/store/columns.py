"""Columns: a stream's records as arrays with everything that ranking reads, but without the texts.

A process keeps the columns of the streams that it used last (store/index_cache). It fills them from `store.changes` in
portions, and reads new changes before each recall, so that writes of other processes are visible at once.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.arrays import Array, Doubles, Floats, Ints, Mask
from mindstream.clock import Moment
from mindstream.identifiers import StreamKey
from mindstream.memory.store.held_records import Compact, HeldRecords
from mindstream.memory.store.record import (
    KINDS,
    Kind,
    Record,
    Vector,
    copied,
    filled_record,
    is_finite,
    without_vectors,
)
from mindstream.memory.store.store import Changes, Revision, Store
from mindstream.memory.store.vectors import Vectors
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import GrowingArray, Lexical, Postings, without_rows
from mindstream.text.words import plain_words, sentences, terms

LONGEST = 100
"""Maximum length, in characters, of a text that `Fields` can look up. For a longer text or a nested value, the stored
records themselves are compared."""
IS, IS_SOMETHING, IS_LARGE = "\0=", "\0+", "\0#"
TAKES_PART = 0.1
"""A speaker who has written more than this share of all messages counts as taking part in the conversation. Only such a
speaker can be the tersest one.
"""
MAX_FOUND = 2_048
"""Maximum number of ids whose row is remembered after a lookup."""
DOUBTED = 5
"""Weight of the average message length of all speakers in the estimate of one speaker's usual length: it counts like
this many messages."""


class RecordIds:
    """The ids of a stream's records, in the order of writing.

    An array from a file has the first ids, and a list has all later ids.

    Attributes:
        position: finds the row of an id. Ids of erased records are unknown.
    """

    def __init__(self) -> None:
        self._kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self._new: list[str] = []
        self.position = Positions()

    def __len__(self) -> int:
        return len(self._kept) + len(self._new)

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        row, kept = index(at), len(self._kept)
        row += len(self) if row < 0 else 0
        return self._new[row - kept] if row >= kept else str(self._kept.item(row), "utf-8")

    def at(self, rows: Ints) -> list[str]:
        """Return the ids in some rows."""
        if not (kept := len(self._kept)):
            return [self._new[at] for at in rows.tolist()]
        found = self._kept[np.minimum(rows, kept - 1)].tolist()
        return [
            str(id_, "utf-8") if at < kept else self._new[at - kept]
            for at, id_ in zip(rows.tolist(), found, strict=True)
        ]

    def __iter__(self) -> Iterator[str]:
        yield from (bytes(id_).decode() for id_ in self._kept)
        yield from self._new

    def append(self, id_: str) -> int:
        """Add an id; return its row."""
        at = self.position.new[id_] = len(self)
        self._new.append(id_)
        return at

    def among(self, ids: Sequence[str]) -> Mask:
        """Mark the records that have one of these ids."""
        mask = np.zeros(len(self), np.bool_)
        mask[[at for id_ in ids if (at := self.position.get(id_)) is not None]] = True
        return mask

    def without(self, rows: Ints) -> RecordIds:
        """Return a copy without some rows; `rows` must be sorted."""
        fresh, count = RecordIds(), len(self._kept)
        kept_rows, gone = rows[rows < count], set((rows[rows >= count] - count).tolist())
        fresh._kept = fresh.position.kept = without_rows(self._kept, kept_rows.tolist())
        order = self.position.order[~np.isin(self.position.order, kept_rows)]
        fresh.position.order = (order - np.searchsorted(kept_rows, order)).astype(np.int32)
        fresh._new = [id_ for at, id_ in enumerate(self._new) if at not in gone]
        fresh.position.new = {id_: at for at, id_ in enumerate(fresh._new, len(fresh._kept))}
        return fresh

    def copying(self, count: int, found: dict[str, Array]) -> Callable[[], None]:
        """Return a function that puts the first `count` ids as arrays into `found`; it may be called in any thread."""
        kept, new = self._kept[:count], self._new[: max(0, count - len(self._kept))]

        def gather() -> None:
            ids = np.concatenate((kept, np.array([id_.encode() for id_ in new], "S"))) if new else kept
            found["ids"], found["order"] = ids, np.argsort(ids, kind="stable").astype(np.int32)

        return gather

    def adopt(self, arrays: Mapping[str, Array]) -> None:
        """Start with the arrays that the function returned by `copying` made; there must be no ids yet."""
        self._kept = self.position.kept = arrays["ids"]
        self.position.order = arrays["order"]


class Positions:
    """Rows of records by id."""

    def __init__(self) -> None:
        self.new: dict[str, int] = {}
        self.kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self.order: NDArray[np.int32] = np.empty(0, np.int32)
        self._erased: set[str] = set()
        self._found: dict[str, int] = {}
        """Rows that earlier lookups found in `kept`: a recall, and the update of its records, look up the same ids."""

    def get(self, id_: str) -> int | None:
        """Return the row of a record; None: it is unknown or erased."""
        at = self.new.get(id_)
        if at is not None or not len(self.kept):
            return at
        if (at := self._found.get(id_)) is not None:
            return at
        wanted, kept, order = id_.encode("utf-8", "surrogatepass"), self.kept, self.order
        place = bisect_left(range(len(order)), wanted, key=lambda each: bytes(kept[order[each]]))
        if place == len(order) or kept[row := int(order[place])] != wanted or id_ in self._erased:
            return None
        if len(self._found) >= MAX_FOUND:
            self._found.clear()
        self._found[id_] = row
        return row

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    def __getitem__(self, id_: str) -> int:
        at = self.get(id_)
        if at is None:
            raise KeyError(id_)
        return at

    def erase(self, id_: str) -> int | None:
        """Remove a record; return its row, or None if the record is unknown."""
        at = self.get(id_)
        self._found.pop(id_, None)
        if self.new.pop(id_, None) is None:
            self._erased.add(id_)
        return at


class Fields:
    """Finds the rows whose records have a given slot, or a given value in a field of their `data`."""

    def __init__(self, postings: Postings | None = None) -> None:
        self.postings = postings or Postings()

    def add(self, at: int, record: Record) -> None:
        """Add a record."""
        for key in field_keys(record):
            self.postings.add(key, at)

    def having(self, name: str, value: JsonValue, count: int) -> Mask:
        """Mark which of the first `count` records have this value in a field. The value must be plain (`is_plain`).

        The value None marks the records whose field is missing or null.
        """
        mask = np.zeros(count, np.bool_)
        mask[self.postings.of(name + IS_SOMETHING if value is None else _key(name, value))] = True
        return ~mask if value is None else mask

    def rows(self, name: str, value: str) -> list[int] | None:
        """Return the rows that have this text in a field; None: the text is too long for these lookups."""
        return self.postings.of(_key(name, value)).tolist() if is_plain(value) else None

    def large(self, name: str) -> list[int]:
        """Return the rows whose value in a field is too large for these lookups: the store must compare them."""
        return [int(at) for at in self.postings.of(name + IS_LARGE)]


def field_keys(record: Record) -> Iterator[str]:
    """Yield the keys under which the fields of a record's data and its slot are looked up; fields with None are left
    out."""
    if record.data or record.slot is not None:
        for name, value in entries(record):
            if value is not None:
                yield _key(name, value) if is_plain(value) else name + IS_LARGE
                yield name + IS_SOMETHING


def entries(record: Record) -> Iterator[tuple[str, JsonValue]]:
    """Yield the names and values of the fields that the filter `where` can name, except `by` and `episode`."""
    if record.slot is not None:
        yield "slot", record.slot
    for name, value in record.data.items():
        if name != "slot":
            yield name, value


def is_plain(value: JsonValue) -> bool:
    """Return whether `Fields` can look up a value: it is no list, no object, and no text longer than LONGEST."""
    return len(value) <= LONGEST if isinstance(value, str) else not isinstance(value, list | dict)


def _key(name: str, value: JsonValue) -> str:
    """Return the key of a plain value; equal values (1, 1.0 and true) have the same key."""
    if isinstance(value, str):
        return f"{name}{IS}s{value}"
    whole = int(value) if isinstance(value, int | float) and value == value // 1 else value
    return f"{name}{IS}{whole}"


class Speakers:
    """How much each speaker of a stream says, and which speaker is the user and which the agent.

    Speakers are identified by their numbers in the column `by`. Recall compares the length of a message with the usual
    length of its speaker's messages. It compares the usual length of a verbose speaker with that of the tersest one.
    """

    def __init__(self) -> None:
        self._messages: list[int] = []
        self._words: list[int] = []
        self._users: set[int] = set()
        self._agents: set[int] = set()
        self._usual: Doubles | None = None

    def add(self, by: int, words: int, by_user: object) -> None:
        """Count a message, and the number of its words, for the speaker with the number `by`.

        `by_user`: the field `by_user` in the data of the message; None: the field is missing.
        """
        missing = by + 1 - len(self._messages)
        self._messages += [0] * missing
        self._words += [0] * missing
        self._messages[by] += 1
        self._words[by] += words
        if isinstance(by_user, bool):
            (self._users if by_user else self._agents).add(by)
        self._usual = None

    def without(self, said: Iterable[tuple[int, int, int]]) -> Speakers:
        """Return a copy with changed counts.

        Args:
            said: for each change: a speaker's number, the number to add to the speaker's messages, and the number to
                add to the speaker's words.
        """
        fresh = Speakers()
        fresh.begin_with([list(each) for each in self.state()])
        for by, messages, words in said:
            fresh._messages[by] += messages
            fresh._words[by] += words
        return fresh

    def state(self) -> list[list[int]]:
        """Return all data, for `begin_with`."""
        return [self._messages, self._words, sorted(self._users), sorted(self._agents)]

    def begin_with(self, state: list[list[int]]) -> None:
        """Start with data that `state` returned."""
        self._messages, self._words, users, agents = state
        self._users, self._agents, self._usual = set(users), set(agents), None

    @property
    def user(self) -> int:
        """The number of the only speaker whose messages are marked as the user's; -1: there is none, or several."""
        return _only(self._users)

    @property
    def agent(self) -> int:
        """The number of the only speaker whose messages are marked as not the user's; -1: there is none, or several."""
        return _only(self._agents)

    def usual_lengths(self) -> Doubles:
        """Return each speaker's usual number of words per message.

        It is the geometric mean of the speaker's average and the average of all messages, weighted by the speaker's
        number of messages and by DOUBTED. A speaker without messages gets the average of all messages.
        """
        if self._usual is None:
            messages, words = np.array(self._messages, np.float64), np.array(self._words, np.float64)
            everybody = np.log(max(1.0, words.sum() / max(1.0, messages.sum())))
            own = np.log(np.maximum(1, words / np.maximum(1, messages)))
            self._usual = np.exp((messages * own + DOUBTED * everybody) / (messages + DOUBTED))
        return self._usual

    def taking_part(self) -> list[int]:
        """Return the numbers of the speakers who wrote more than the share TAKES_PART of all messages."""
        least = TAKES_PART * sum(self._messages)
        return [by for by, messages in enumerate(self._messages) if messages > least]

    def tersest(self) -> float:
        """Return the usual message length of the tersest speaker in `taking_part`; 0 if there is none."""
        usual = self.usual_lengths()
        return min((float(usual[by]) for by in self.taking_part()), default=0.0)


def _only(numbers: set[int]) -> int:
    return next(iter(numbers)) if len(numbers) == 1 else -1


T = TypeVar("T", bound=np.generic)
EPISODIC = frozenset({"chat", "observation"})
"""Kinds of records whose context is the records before and after them in the same episode."""
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
ASKS_WITHIN = 80
QUESTION_CHARS = 300
"""Maximum length, in characters, of a text for which `only_asks` can be true."""
PORTION = 128
"""Number of records that are read at once; this takes some milliseconds."""
WHOLE, WHOLE_OF_STREAM = 16_384, 1_024
"""Maximum number of records that are held with their texts, without vectors. WHOLE: of all streams together (about
5 MB). WHOLE_OF_STREAM: of one stream. An answer reads up to 120 records; WHOLE is enough for 130 conversations."""
OPEN = float("inf")
NEWEST_AT_ONCE = 256
"""Number of a stream's last rows that a search for the newest records of a kind reads first. If these are not enough,
the search continues with earlier rows."""
REVISED: Mapping[str, Callable[[Any], Any]] = {
    "accessed": float, "importance": float, "level": int, "lasting": bool, "valid_until": float, "superseded_by": str,
    "forgotten": float,
}  # fmt: skip
"""Fields of a `Revision` that columns can change in place, each with the type in which the database returns it."""
UNSHARED = frozenset({"importance", "superseded_by"})
"""Fields of REVISED that the compact form of a held record (store/held_records) neither contains nor takes from the
columns: the column `importance` has only 32 bits. A record with one of them is held itself."""
MAX_BUILT = 64
"""Maximum number of records that were built from their compact form and are remembered: a turn of a conversation reads
its newest messages some ten times."""
Reworded = Mapping[int, tuple[Record, Record]]
"""Records with changed words by row, each in its old and its new form."""


class Columns:
    """The columns of one stream; a row is a record, in the order of writing.

    Attributes:
        ids: the ids of the records.
        position: finds the row of an id, unless the record was erased.
        names: the number in the column `by` for each name.
        episodes: the number in the column `episode` for each episode.
        named: the names that begin with a word, by this word.
        kind: the code of the kind (KIND_CODES).
        group: the number of the record's group: the records of one episode whose kinds are in EPISODIC; -1: none.
        before, after: the rows of the neighbours in the group; -1: none.
        asks: whether the last ASKS_WITHIN characters contain a question mark.
        only_asks: whether each sentence of a text of at most QUESTION_CHARS characters is a question.
        importance: NaN: not rated.
        valid_from, valid_until, forgotten: as in the record. Not set: minus infinity for `valid_from`, plus infinity
            for the other two. `forgotten` is minus infinity for an erased record.
        open: whether neither `valid_until` nor `forgotten` is set.
        group_of: the group of each episode; -1: none.
        last: the row of the last record of each group; -1: none.
        keywords: the rows of the records with a keyword, by the keyword in lower case.
        compared: whether the record has a vector of this embedder; otherwise only words find the record.
        fields: the values in the records' data, and their slots.
        speakers: who speaks in messages, and how much each speaker says.
        only_talk: whether all records are of the kind chat.
        whole: the records that were written, changed or read last, without vectors; `held` returns them.
        taken: number of times that changes were read into these columns.
        ahead: maximum number of records that are still to be read while columns are filled.
        upto: the number of the last change that has been read.
        complete: whether all changes that existed at some earlier time have been read.
        behind: whether many newer changes are being read in the background.
        kept: number of the records that come from a mapped file.
        shortened: whether records were removed from these columns.
        traces: whether a record was erased after it had been read. No recall finds the erased record, but the vectors
            of its neighbours still contain a part of it.
    """

    def __init__(self, stream: StreamKey, embedder: str = "", width: int = 0) -> None:
        self.stream = stream
        self.whole = HeldRecords()
        self._built: dict[str, tuple[Compact, Record]] = {}
        self.embedder, self.width = embedder, width
        self.upto, self.taken, self.ahead, self._reaching, self._left = 0, 0, 0, 0, 0
        self.traces = self.complete = self.behind = self.shortened = False
        self.kept = 0
        self.ids = RecordIds()
        self.position = self.ids.position
        self.names: dict[str, int] = {}
        self.named: dict[str, list[str]] = {}
        self.episodes: dict[str, int] = {}
        self.kind, self.level = GrowingArray(np.int8), GrowingArray(np.int16)
        self.by, self.episode, self.group, self.before, self.after = _growing(np.int32, 5)
        self.asks, self.only_asks, self.lasting, self.open, self.compared = _growing(np.bool_, 5)
        self.importance = GrowingArray(np.float32)
        self.created, self.accessed, self.valid_from, self.valid_until, self.forgotten = _growing(np.float64, 5)
        self.group_of, self.last = _growing(np.int32, 2)
        self.keywords, self.fields, self.speakers = Postings(), Fields(), Speakers()
        self.only_talk = True
        self.lexical, self.vectors = Lexical(), Vectors(width)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def entire(self) -> Columns:
        """The columns of the whole stream: these columns, unless they contain only a selection of its records."""
        return self

    def in_entire(self, rows: Ints) -> Ints:
        """Return the rows that some records of these columns have in `entire`, the columns of the whole stream."""
        return rows

    def ids_at(self, rows: Ints) -> list[str]:
        """Return the ids of the records in some rows."""
        return self.ids.at(rows)

    def begin_with(self, width: int) -> None:
        """Set the width of vectors, before any vector is added."""
        self.width, self.vectors = width, Vectors(width)

    async def reading(self, store: Store) -> AsyncIterator[None]:
        """Read all new changes, one portion per iteration."""
        while await self.take_portion(store):
            yield

    async def take_portion(self, store: Store) -> bool:
        """Read a portion of the changes since the last call; return whether there may be more.

        A change that is made while portions are read is in a later portion, or is read when the columns are next
        brought up to date. If this process has made all the changes and still knows them (store/sqlite), nothing
        is read.
        """
        begins = not self._left
        own = getattr(store, "own_changes", None)
        if self.complete and begins and own and (found := await own(self.stream, self.upto)) is not None:
            self._take_own(*found)
            return False
        changes = await store.changes(self.stream, self.upto, self._left, PORTION)
        if begins:
            self._reaching, self.ahead = changes.upto, changes.ahead + len(changes.records)
            if changes.ahead:  # reserve space for the remaining records, and 3 % more
                count = len(self) + changes.ahead + changes.ahead // 32
                for each in vars(self).values():
                    if isinstance(each, GrowingArray | Vectors):
                        each.reserve(count)
        self.take(changes)
        self._left, self.ahead = changes.left, max(0, self.ahead - len(changes.records))
        if not self._left:
            self.upto = self._reaching
        return not (begins and not self._left)

    def take(self, changes: Changes) -> None:
        """Add new records, update changed ones and mark erased ones; no other code may use the records afterwards."""
        self.taken += 1
        for id_ in changes.gone:
            self.whole.drop(id_)
            self._built.pop(id_, None)
            if (at := self.position.erase(id_)) is not None:
                self.forgotten.values[at] = -OPEN
                self.open.values[at] = False
                self.importance.values[at] = np.nan
                self.traces = True
        for record in changes.records:
            at = self.position.get(record.id)
            if at is None:
                self._append(record)
                continue
            self._revise(at, record)
            self._built.pop(record.id, None)
            vector = None if self.compared.values[at] else self._comparable(record)
            if vector is not None:  # the record got its vector after it was written
                around = (int(self.before.values[at]), int(self.after.values[at]))
                self.vectors.give(at, vector, [near for near in around if near >= 0])
                self.compared.values[at] = True
        if self.ahead <= WHOLE:  # hold the records, unless so many are still to be read that they would displace these
            for record in without_vectors(changes.records):
                if record.slot is None or record.valid_until is None:
                    self.hold(record)
                else:  # a version of a slot that has ended: recalls do not return it, and its data can be large
                    self.whole.drop(record.id)

    def _take_own(self, changes: Sequence[Record | Revision], upto: int) -> None:
        """Take changes that this process has made itself: new records, and changed values of known ones."""
        self.taken += 1
        self.upto = upto
        for change in changes:
            if isinstance(change, Record):
                self._append(change)
                self.hold(*without_vectors([change]))
            elif (at := self.position.get(change.id)) is not None:
                new = {name: of(value) for name, of in REVISED.items() if (value := getattr(change, name)) is not None}
                if change.id in self.whole:
                    self._revise_held(change.id, new)
                for name in new.keys() - {"superseded_by"}:
                    getattr(self, name).values[at] = new[name]
                if change.forgotten is not None or change.valid_until is not None:
                    self.open.values[at] = False

    def _revise_held(self, id_: str, new: Mapping[str, float | str]) -> None:
        """Change values of a held record, before they are changed in the columns."""
        if new.keys().isdisjoint(UNSHARED) and not isinstance(self.whole.get(id_), Record):
            self.whole[id_] = self.whole.pop(id_)  # only its place changes: the compact form has none of these values
            self._built.pop(id_, None)
            return
        held = copied(self.held([id_])[id_])
        for name, value in new.items():
            object.__setattr__(held, name, value)  # the class is frozen
        self.hold(held)

    def hold(self, record: Record) -> None:
        """Hold a record with its text. If more than WHOLE_OF_STREAM are held, drop the record held longest ago.

        Each time a record is written, changed or read, it is held anew.
        """
        if (at := self.position.get(record.id)) is not None:
            self.whole.hold(self.ids[at], record)
        if len(self.whole) > WHOLE_OF_STREAM:
            self.whole.drop_oldest()

    def hold_less(self) -> None:
        """Drop the quarter of the held records that were held longest ago."""
        self.whole.drop_oldest((len(self.whole) + 3) // 4)

    def held(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return those records that are held, by id, in their current state and without vectors."""
        found = dict[str, Record]()
        created, accessed, level = self.created.values.item, self.accessed.values.item, self.level.values.item
        lasting, valid_from, is_open = self.lasting.values.item, self.valid_from.values.item, self.open.values.item
        for id_ in ids:
            kept = self.whole.get(id_)
            if isinstance(kept, Record):
                found[id_] = kept
            elif kept is not None and (record := self._built_before(id_, kept)) is not None:
                found[id_] = record
            elif kept is not None and (at := self.position.get(id_)) is not None:
                (kind, by, episode, depth, embedder, data), text, seq = kept
                since = valid_from(at)
                until, forgotten = (None, None) if is_open(at) else self._ends(at)
                found[id_] = record = filled_record((
                    id_, self.stream, kind, text, created(at), accessed(at), by, episode, None, level(at), lasting(at),
                    None if since == -OPEN else since, until, None, forgotten, None, (), (), depth, None, None,
                    dict(data), seq, embedder, None,
                ))  # fmt: skip
                if len(self._built) >= MAX_BUILT:
                    del self._built[next(iter(self._built))]
                self._built[id_] = kept, record
        return found

    def _built_before(self, id_: str, compact: Compact) -> Record | None:
        """Return the record that these columns have built from this compact form before; None if it is not remembered,
        or if a caller has changed its data."""
        form, record = self._built.get(id_, (None, None))
        is_same = form is compact and record is not None and tuple(record.data.items()) == compact[0][-1]
        return record if is_same else None

    def _ends(self, at: int) -> tuple[Moment | None, Moment | None]:
        """Return `valid_until` and `forgotten` of a row; None: not set."""
        until, forgotten = self.valid_until.values.item(at), self.forgotten.values.item(at)
        return None if until == OPEN else until, None if forgotten == OPEN else forgotten

    def around(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of some records and of their neighbours, in the order of the rows.

        The neighbours of a record are the two records before it and the two records after it in its episode. Unknown
        ids are left out.
        """
        rows = {at for id_ in ids if (at := self.position.get(id_)) is not None}
        for column in (self.before.values, self.after.values):
            reached = set(rows)
            for _ in range(2):
                reached = {int(column[at]) for at in reached} - {-1}
                rows |= reached
        return [self.ids[at] for at in sorted(rows)]

    def without(
        self, gone: Sequence[Record], changed: Sequence[tuple[Record, Record]], near: Mapping[str, Record]
    ) -> Columns | None:
        """Return new columns without some records, and with changed words of other records.

        The result is as if the removed records had never been written. These columns themselves stay unchanged, because
        a recall may be reading them.

        Args:
            gone: the erased records, with their content before the erasure.
            changed: records with changed words, each in its old and new form.
            near: the existing records among `gone`, `changed` and their neighbours (see `around`), in their current
                form.

        Returns:
            The new columns; None if the columns must be rebuilt from the store instead.
        """
        dropped = {at: record for record in gone if (at := self.position.get(record.id)) is not None}
        reworded = {at: pair for pair in changed if (at := self.position.get(pair[0].id)) is not None}
        removed = np.array(sorted(dropped), np.int64)
        is_gone = np.zeros(len(self) + 1, np.bool_)
        is_gone[removed] = True
        by_left = self.by.values[~is_gone[:-1]]
        if {int(self.by.values[at]) for at in dropped} - {-1, *np.unique(by_left).tolist()}:
            return None  # the list of authors would have a name without records: rebuild the columns
        below: NDArray[np.uint32] = (np.cumsum(is_gone) - is_gone).astype(np.uint32)
        before, after, last = self.before.values.copy(), self.after.values.copy(), self.last.values.copy()
        touched = set(reworded)
        for at in removed.tolist():
            earlier, later, group = int(before[at]), int(after[at]), int(self.group.values[at])
            if earlier >= 0:
                after[earlier] = later
            if later >= 0:
                before[later] = earlier
            if group >= 0 and last[group] == at:
                last[group] = earlier
            touched |= {earlier, later}
        touched |= {int(column[at]) for at in reworded for column in (before, after)}
        touched -= {-1, *dropped}
        lexical = self.lexical.without(
            {at: _terms(record) for at, record in dropped.items()},
            {at: (_terms(old), _terms(new)) for at, (old, new) in reworded.items()},
            removed,
            below,
        )
        old = [*dropped.items(), *((at, before_) for at, (before_, _) in reworded.items())]
        keywords = _without(self.keywords, old, below, _keywords)
        fields = _without(self.fields.postings, old, below, field_keys)
        if lexical is None or keywords is None or fields is None:
            return None
        moved = np.append(np.arange(len(self), dtype=np.int32) - below[:-1].astype(np.int32), np.int32(-1))
        own = {at: self._own(near.get(self.ids[at])) for at in touched}
        lent = {
            at: [self._own(near.get(self.ids[int(column[at])])) for column in (before, after) if column[at] >= 0]
            for at in touched
        }
        fresh = copy.copy(self)
        fresh._built = {}
        fresh.kept, fresh.shortened = 0, True
        fresh.ids, fresh.lexical, fresh.keywords = self.ids.without(removed), lexical, keywords
        fresh.position, fresh.fields = fresh.ids.position, Fields(fields)
        fresh.vectors = self.vectors.without(
            removed,
            {int(moved[at]): [own[at], *lent[at]] for at in touched},
            {int(moved[at]): own[at] for at in touched if after[at] < 0 and self.group.values[at] >= 0},
        )
        for name, column in vars(self).items():
            if isinstance(column, GrowingArray):
                setattr(fresh, name, column.without(removed[:0] if name in ("group_of", "last") else removed))
        fresh.before.values[:], fresh.after.values[:] = (
            moved[without_rows(column, removed.tolist())] for column in (before, after)
        )
        fresh.last.values[:] = moved[last]
        fresh.names, fresh.episodes = dict(self.names), dict(self.episodes)
        fresh.named = {word: list(names) for word, names in self.named.items()}
        for was, (_, record) in reworded.items():
            fresh._reword(int(moved[was]), record)
        fresh.speakers = self.speakers.without(self._less_said(dropped, reworded))
        fresh.only_talk = bool(np.all(fresh.kind.values == KIND_CODES["chat"]))
        fresh._drop_episodes({int(self.episode.values[at]) for at in dropped} - {-1})
        return fresh

    def _reword(self, at: int, record: Record) -> None:
        self._revise(at, record)
        self.asks.values[at], self.only_asks.values[at] = _asking(record.text)
        self.compared.values[at] = self._comparable(record) is not None
        for keyword in _keywords(record):
            self.keywords.add(keyword, at)
        self.fields.add(at, record)

    def _less_said(self, dropped: Mapping[int, Record], reworded: Reworded) -> Iterator[tuple[int, int, int]]:
        """Yield the changes of speakers' counts by dropped or reworded chat messages.

        Each change has the speaker's number in the column `by`, the change of the number of messages, and the change of
        the number of words.
        """
        for at, record in dropped.items():
            if record.by and record.kind == "chat":
                yield int(self.by.values[at]), -1, -len(_terms(record))
        for at, (old, new) in reworded.items():
            if old.by and old.kind == "chat":
                yield int(self.by.values[at]), 0, len(_terms(new)) - len(_terms(old))

    def _drop_episodes(self, emptied: Iterable[int]) -> None:
        """Remove the given episodes, and their groups, if they have no records left.

        The remaining episodes and groups are renumbered without gaps.
        """
        for episode in sorted(emptied, reverse=True):
            group = int(self.group_of.values[episode])
            if group >= 0 and not np.any(self.group.values == group):
                one = np.array([group], np.int64)
                self.last, self.lexical.group_sizes = self.last.without(one), self.lexical.group_sizes.without(one)
                self.group_of.values[episode] = -1
                for column in (self.group, self.lexical.group, self.group_of):
                    column.values[column.values > group] -= 1
            if not np.any(self.episode.values == episode):
                self.group_of = self.group_of.without(np.array([episode], np.int64))
                self.episode.values[self.episode.values > episode] -= 1
                names = [name for name, number in self.episodes.items() if number != episode]
                self.episodes = {name: number for number, name in enumerate(names)}

    def _own(self, record: Record | None) -> Floats:
        vector = None if record is None else self._comparable(record)
        return np.zeros(self.width, np.float32) if vector is None else vector.astype(np.float32)

    def _append(self, record: Record) -> None:
        at = self.ids.append(record.id)
        by = self.number(record.by) if record.by else -1
        episode, group, before = -1, -1, -1
        if record.episode:
            if record.episode not in self.episodes:
                self.episodes[record.episode] = len(self.episodes)
                self.group_of.append(-1)
            episode = self.episodes[record.episode]
        if episode >= 0 and record.kind in EPISODIC:
            if self.group_of.values[episode] < 0:
                self.group_of.values[episode] = len(self.last)
                self.last.append(-1)
            group = int(self.group_of.values[episode])
            before = int(self.last.values[group])
            self.last.values[group] = at
        if before >= 0:
            self.after.values[before] = at
        self.only_talk &= record.kind == "chat"
        self.kind.append(KIND_CODES[record.kind])
        self.by.append(by)
        self.episode.append(episode)
        self.group.append(group)
        self.before.append(before)
        self.after.append(-1)
        asks, only_asks = _asking(record.text)
        self.asks.append(asks)
        self.only_asks.append(only_asks)
        self.created.append(record.created)
        for name, value in _revisable(record):
            getattr(self, name).append(value)
        for keyword in _keywords(record):
            self.keywords.add(keyword, at)
        self.fields.add(at, record)
        words = _terms(record)
        self.lexical.add(words, group)
        if by >= 0 and record.kind == "chat":
            self.speakers.add(by, len(words), record.data.get("by_user"))
        vector = self._comparable(record)
        self.compared.append(vector is not None)
        self.vectors.append(vector, before, may_be_followed=group >= 0)

    def number(self, name: str) -> int:
        """Return a name's number in the column `by`; a new name gets the next number."""
        if name not in self.names:
            self.names[name] = len(self.names)
            for word in plain_words(name)[:1]:
                self.named.setdefault(word, []).append(name)
        return self.names[name]

    def _comparable(self, record: Record) -> Vector | None:
        """Return a record's vector if it is finite, of this stream's embedder and of the stream's width, else None. The
        first such vector sets the width."""
        vector = record.vector if record.embedder == self.embedder else None
        if vector is None or not is_finite(vector):  # infinite numbers would spoil the neighbours' vectors and the mean
            return None
        if not self.width:
            self.width = len(vector)
            self.vectors = Vectors(self.width, self.before.values[: len(self.vectors)].tolist())
        return vector if len(vector) == self.width else None

    @property
    def foreign(self) -> int:
        """The number of records without a vector of this stream's embedder."""
        return len(self) - int(np.count_nonzero(self.compared.values))

    def held_at(self, now: Moment) -> Mask:
        """Mark the records whose validity has not ended, and that are not archived, at a moment."""
        held = self.open.values.copy()
        if not held.all():
            ending = np.flatnonzero(~held)
            held[ending] = (self.valid_until.values[ending] > now) & (self.forgotten.values[ending] > now)
        return held

    def inside(self, spans: Sequence[DateSpan]) -> Mask:
        """Mark the records that were written in any of these periods."""
        created, inside = self.created.values, np.zeros(len(self), np.bool_)
        for span in spans:
            inside |= (created >= span.since) & (created < span.until)
        return inside

    def written_in(self, spans: Sequence[DateSpan]) -> int:
        """Return how many records of the stream were written in any of these periods."""
        return int(np.count_nonzero(self.inside(spans)))

    def holding(self, kinds: Collection[Kind], now: Moment) -> Mask:
        """Mark the records of these kinds that are not archived and whose validity has not ended at the moment `now`.

        `now` LATEST marks the records whose validity has no end.
        """
        held = np.zeros(len(self), np.bool_)
        for kind in kinds:  # comparing the bytes takes a tenth of the time of np.isin
            held |= self.kind.values == KIND_CODES[kind]
        held &= (self.valid_until.values > now) & (self.forgotten.values == OPEN)
        return held

    def newest(self, kind: Kind, n: int, now: Moment, episode: str | None = None) -> list[int]:
        """Return the rows of the n newest records of a kind, oldest first.

        Archived records and records whose validity has ended are left out.

        Args:
            episode: only records of this episode; "": only records without an episode; None: all records.
        """
        found, end, size = list[int](), len(self), NEWEST_AT_ONCE
        number = -1 if episode == "" else self.episodes.get(episode or "", -2)
        while end and len(found) < n:
            some = slice(max(0, end - size), end)
            mask = (self.kind.values[some] == KIND_CODES[kind]) & (self.forgotten.values[some] == OPEN)
            mask &= self.valid_until.values[some] > now
            if episode is not None:
                mask &= self.episode.values[some] == number
            found += (np.flatnonzero(mask)[::-1] + some.start).tolist()
            end, size = some.start, 4 * size
        return found[:n][::-1]

    def rows_of_slot(self, slot: str) -> list[int] | None:
        """Return the rows of a slot's versions, in the order of writing.

        The result is None if the slot's name is longer than LONGEST; then only the store can find the versions.
        """
        return self.fields.rows("slot", slot)

    def holds(self, id_: str, now: Moment) -> bool:
        """Return whether a record exists, is valid at a moment and not archived."""
        at = self.position.get(id_)
        return at is not None and self.valid_until.values[at] > now and self.forgotten.values[at] == OPEN

    def _revise(self, at: int, record: Record) -> None:
        """Set the columns of `_revisable` to a record's values."""
        for name, value in _revisable(record):
            getattr(self, name).values[at] = value


def _revisable(record: Record) -> tuple[tuple[str, float], ...]:
    """Return the columns of a record's strength, importance and times, each with the record's value."""
    return (
        ("level", record.level),
        ("lasting", record.lasting),
        ("importance", np.nan if record.importance is None else record.importance),
        ("accessed", record.accessed),
        ("valid_from", -OPEN if record.valid_from is None else record.valid_from),
        ("valid_until", OPEN if record.valid_until is None else record.valid_until),
        ("forgotten", OPEN if record.forgotten is None else record.forgotten),
        ("open", record.valid_until is None and record.forgotten is None),
    )


def _growing(dtype: type[T], count: int) -> Iterator[GrowingArray[T]]:
    return (GrowingArray(dtype) for _ in range(count))


def _keywords(record: Record) -> list[str]:
    return [keyword.lower() for keyword in record.keywords]


def _without(
    postings: Postings,
    records: Iterable[tuple[int, Record]],
    below: NDArray[np.uint32],
    keys: Callable[[Record], Iterable[str]],
) -> Postings | None:
    gone: dict[str, list[int]] = {}
    for at, record in records:
        for key in keys(record):
            gone.setdefault(key, []).append(at)
    return postings.without(gone, below)


def is_asking(text: str) -> bool:
    """Return whether the last ASKS_WITHIN characters of a text contain a question mark."""
    return _asking(text)[0]


def _asking(text: str) -> tuple[bool, bool]:
    """Return whether a text asks something, and whether it only asks.

    It asks if its last ASKS_WITHIN characters contain a question mark. It only asks if each sentence is a question, and
    if it has at most QUESTION_CHARS characters.
    """
    ending = text[-ASKS_WITHIN:].rstrip()
    asks = "?" in ending or "？" in ending
    if not asks or not ending.endswith(("?", "？")) or len(text) > QUESTION_CHARS:
        return asks, False
    return True, all(sentence.endswith(("?", "？")) for sentence in sentences(text))


def _terms(record: Record) -> list[str]:
    """Return the terms by which a record is found: the terms of its text, of its keywords, and of its triple."""
    words = terms(record.text)
    if record.keywords or record.about:
        there, more = set(words), (*record.keywords, *(record.about or ()))
        words += [each for each in dict.fromkeys(terms(" ".join(more))) if each not in there]
    return words
