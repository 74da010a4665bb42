"""A stream's records as arrays: what ranking reads, without the texts.

A process holds the columns of the streams that it used last (store/index_cache), fills them from `store.changes` in
portions and asks for what is new before each recall, so that another process's writes are seen at once.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindstream.clock import Moment
from mindstream.log.names import StreamKey
from mindstream.memory.recall.speakers import Speakers
from mindstream.memory.store.kept.fields import Fields
from mindstream.memory.store.kept.fields import keys as field_keys
from mindstream.memory.store.kept.ids import RecordIds
from mindstream.memory.store.record import KINDS, Kind, Record, Vector
from mindstream.memory.store.store import Changes, Store
from mindstream.memory.store.validation import is_finite
from mindstream.memory.store.vectors import Vectors
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import GrowingArray, Lexical, Postings
from mindstream.text.words import plain_words, terms

EPISODIC = frozenset({"chat", "observation"})
"""Kinds whose neighbours in the same episode are their context."""
KIND_CODES = {kind: code for code, kind in enumerate(KINDS)}
ASKS_WITHIN = 80
PORTION = 128
"""So many records are taken over at once: some milliseconds."""
WHOLE, WHOLE_OF_STREAM = 16_384, 1_024
"""Maximum number of records held with their texts, without vectors: of all streams (some 10 MB), and of one stream."""
OPEN = float("inf")
NEWEST_AT_ONCE = 256
"""Number of rows, from the end, in which the newest records are looked for first."""


class Columns:
    """One stream's records, in the order in which they were written.

    Attributes:
        ids, position: the records' ids, and where each stands that was not erased.
        names, episodes: what the numbers in the columns `by` and `episode` stand for.
        named: for each word that a name begins with, the names.
        kind: the code of KIND_CODES.
        group: the episode, in episodic kinds only; -1: in none. `before`, `after`: the neighbours in it; -1: none.
        asks: a question stands in its last 80 characters; ends_asking: it ends with one.
        importance: NaN where it is not rated. valid_from, valid_until, forgotten: infinite where they are open.
        open: neither the end of its validity nor of its being held is known.
        group_of, last: for each episode its group, and for each group the record that stands last in it; -1: none.
        keywords: for each keyword in lower case, the positions of the records that have it.
        compared: its vector is of this embedder; where it is of another, or missing, words alone find it.
        fields: what is in the records' data, and their slots.
        speakers: who talks, and how much each says.
        only_talk: all records are of the kind chat.
        whole: the records themselves, as they are now but for their vectors, by id: of this stream and of others, those
            that were written or changed last.
        ahead: so many records, or fewer, are to be taken over yet, where that is being done.
        upto: the change up to which they are caught up with the store.
        complete: they were caught up with the store once. behind: since then much has come that is taken over behind.
        kept: so many of the records come from a file that is mapped.
        traces: something was erased that had been taken over: it is not found, but its neighbours still show it.
    """

    def __init__(
        self, stream: StreamKey, embedder: str = "", width: int = 0, whole: OrderedDict[str, Record] | None = None
    ) -> None:
        self.stream = stream
        self.whole = OrderedDict[str, Record]() if whole is None else whole
        self._own_whole = OrderedDict[str, None]()
        self.embedder = embedder
        self.width = width
        self.upto, self.ahead, self._reaching, self._left = 0, 0, 0, 0
        self.traces = self.complete = self.behind = False
        self.kept = 0
        self.ids = RecordIds()
        self.position = self.ids.position
        self.names: dict[str, int] = {}
        self.named: dict[str, list[str]] = {}
        self.episodes: dict[str, int] = {}
        self.kind = GrowingArray(np.int8)
        self.by = GrowingArray(np.int32)
        self.episode = GrowingArray(np.int32)
        self.group = GrowingArray(np.int32)
        self.before = GrowingArray(np.int32)
        self.after = GrowingArray(np.int32)
        self.asks = GrowingArray(np.bool_)
        self.ends_asking = GrowingArray(np.bool_)
        self.level = GrowingArray(np.int16)
        self.lasting = GrowingArray(np.bool_)
        self.importance = GrowingArray(np.float32)
        self.created = GrowingArray(np.float64)
        self.accessed = GrowingArray(np.float64)
        self.valid_from = GrowingArray(np.float64)
        self.valid_until = GrowingArray(np.float64)
        self.forgotten = GrowingArray(np.float64)
        self.open = GrowingArray(np.bool_)
        self.compared = GrowingArray(np.bool_)
        self.keywords = Postings()
        self.fields = Fields()
        self.speakers = Speakers()
        self.only_talk = True
        self.lexical = Lexical()
        self.vectors = Vectors(self.width)
        self.group_of = GrowingArray(np.int32)
        self.last = GrowingArray(np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def entire(self) -> Columns:
        """Return the columns of the whole stream, where these are a selection."""
        return self

    def in_entire(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where some of these records stand in the whole stream."""
        return rows

    def id_at(self, row: int) -> str:
        """Return the id of the record that stands there."""
        return self.ids[row]

    def begin_with(self, width: int) -> None:
        """Take vectors of so many numbers, before there are any."""
        self.width, self.vectors = width, Vectors(width)

    async def reading(self, store: Store) -> AsyncIterator[None]:
        """Take over what anybody has written, a portion a step."""
        while await self.take_portion(store):
            yield

    async def take_portion(self, store: Store) -> bool:
        """Take over a portion of what anybody has written since the last time; tell whether there may be more.

        Whatever is done to the stream between two portions comes with a later one, or is asked for after the last.
        """
        begins = not self._left
        changes = await store.changes(self.stream, self.upto, self._left, PORTION)
        if begins:
            self._reaching, self.ahead = changes.upto, changes.ahead + len(changes.records)
            self._reserve(changes.ahead)
        self.take(changes)
        self._left, self.ahead = changes.left, max(0, self.ahead - len(changes.records))
        if not self._left:
            self.upto = self._reaching
        return not (begins and not self._left)

    def _reserve(self, ahead: int) -> None:
        """Make room for what is to come, and a little more."""
        if ahead:
            count = len(self) + ahead + ahead // 32
            for column in self._columns():
                column.reserve(count)
            self.vectors.reserve(count)

    def _columns(self) -> list[GrowingArray[Any]]:
        return [each for each in vars(self).values() if isinstance(each, GrowingArray)]

    def take(self, changes: Changes) -> None:
        """Take over new and changed records, and lose what was erased."""
        for id_ in changes.gone:
            self.whole.pop(id_, None)
            self._own_whole.pop(id_, None)
            if (at := self.position.erase(id_)) is not None:
                self.forgotten.values[at] = -OPEN
                self.open.values[at] = False
                self.importance.values[at] = np.nan
                self.traces = True
        for record in changes.records:
            if self.ahead <= WHOLE:  # others are about to take its place
                self._hold(replace(record, vector=None))
            at = self.position.get(record.id)
            if at is None:
                self._append(record)
            else:
                self._revise(at, record)
                if not self.compared.values[at]:
                    self._give(at, record)

    def _hold(self, record: Record) -> None:
        """Hold a record as a whole; the ones written or changed longest ago are dropped."""
        self.whole.pop(record.id, None)
        self._own_whole.pop(record.id, None)
        self.whole[record.id], self._own_whole[record.id] = record, None
        if len(self._own_whole) > WHOLE_OF_STREAM:
            self.whole.pop(self._own_whole.popitem(last=False)[0], None)
        if len(self.whole) > WHOLE:
            self.whole.popitem(last=False)

    def around(self, ids: Iterable[str]) -> list[str]:
        """Return the ids of some records and of those that are one and two before and after them in their episodes."""
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
        """Return columns as if some records had never been written, and others with other words; None: make them anew.

        These are left as they are: whoever reads them goes on.

        Args:
            gone: records as they were; `changed`: others, as they were and as they are.
            near: all records around them (`around`) that are left, as they are.
        """
        dropped = {at: record for record in gone if (at := self.position.get(record.id)) is not None}
        reworded = {at: pair for pair in changed if (at := self.position.get(pair[0].id)) is not None}
        removed = np.array(sorted(dropped), np.int64)
        is_gone = np.zeros(len(self) + 1, np.bool_)
        is_gone[removed] = True
        by_left = self.by.values[~is_gone[:-1]]
        if {int(self.by.values[at]) for at in dropped} - {-1, *np.unique(by_left).tolist()}:
            return None  # a name that nobody has any more
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
        keywords = _without(self.keywords, dropped, reworded, below, _keywords)
        fields = _without(self.fields.postings, dropped, reworded, below, field_keys)
        if lexical is None or keywords is None or fields is None:
            return None
        moved = np.append(np.arange(len(self), dtype=np.int32) - below[:-1].astype(np.int32), np.int32(-1))
        own = {at: self._own(near.get(self.ids[at])) for at in touched}
        lent = {
            at: [self._own(near.get(self.ids[int(column[at])])) for column in (before, after) if column[at] >= 0]
            for at in touched
        }
        fresh = copy.copy(self)
        fresh.kept, fresh.ids, fresh.lexical, fresh.keywords = 0, self.ids.without(removed), lexical, keywords
        fresh.position, fresh.fields = fresh.ids.position, Fields()
        fresh.fields.postings = fields
        fresh.vectors = self.vectors.without(
            removed,
            {int(moved[at]): [own[at], *lent[at]] for at in touched},
            {int(moved[at]): own[at] for at in touched if after[at] < 0 and self.group.values[at] >= 0},
        )
        for name, column in vars(self).items():
            if isinstance(column, GrowingArray) and name not in ("group_of", "last"):
                setattr(fresh, name, column.without(removed))
        fresh.before.values[:], fresh.after.values[:] = (
            moved[np.delete(column, removed)] for column in (before, after)
        )
        fresh.last, fresh.group_of = self.last.without(removed[:0]), self.group_of.without(removed[:0])
        fresh.last.values[:] = moved[last]
        fresh.names, fresh.episodes = dict(self.names), dict(self.episodes)
        fresh.named = {word: list(names) for word, names in self.named.items()}
        fresh._reword(reworded, moved)
        fresh.speakers = self.speakers.without(self._said(dropped, reworded))
        fresh.only_talk = bool(np.all(fresh.kind.values == KIND_CODES["chat"]))
        fresh._drop_episodes({int(self.episode.values[at]) for at in dropped} - {-1})
        return fresh

    def _reword(self, reworded: Mapping[int, tuple[Record, Record]], moved: NDArray[np.int32]) -> None:
        for was, (_, record) in reworded.items():
            at = int(moved[was])
            self._revise(at, record)
            self.asks.values[at] = is_asking(record.text)
            self.ends_asking.values[at] = _ending(record.text).endswith(("?", "？"))
            self.compared.values[at] = self._comparable(record) is not None
            for keyword in _keywords(record):
                self.keywords.add(keyword, at)
            for key in field_keys(record):
                self.fields.postings.add(key, at)

    def _said(
        self, dropped: Mapping[int, Record], reworded: Mapping[int, tuple[Record, Record]]
    ) -> Iterator[tuple[int, int, int]]:
        for at, record in dropped.items():
            if record.by and record.kind == "chat":
                yield int(self.by.values[at]), -1, -len(_terms(record))
        for at, (old, new) in reworded.items():
            if old.by and old.kind == "chat":
                yield int(self.by.values[at]), 0, len(_terms(new)) - len(_terms(old))

    def _drop_episodes(self, emptied: Iterable[int]) -> None:
        """Remove those of some episodes, and their groups, that have no records left; numbers behind them move up."""
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

    def _own(self, record: Record | None) -> NDArray[np.float32]:
        vector = None if record is None else self._comparable(record)
        return np.zeros(self.width, np.float32) if vector is None else vector.astype(np.float32)

    def _append(self, record: Record) -> None:
        at = self.ids.append(record.id)
        by = self.number(record.by) if record.by else -1
        episode, group, before = self._episode(record.episode), -1, -1
        if episode >= 0 and record.kind in EPISODIC:
            group = self._group(episode)
            before = int(self.last.values[group])
            self.last.values[group] = at
        if before >= 0:
            self.after.values[before] = at
        ending = _ending(record.text)
        self.kind.append(KIND_CODES[record.kind])
        self.only_talk &= record.kind == "chat"
        self.by.append(by)
        self.episode.append(episode)
        self.group.append(group)
        self.before.append(before)
        self.after.append(-1)
        self.asks.append(is_asking(record.text))
        self.ends_asking.append(ending.endswith(("?", "？")))
        self.created.append(record.created)
        for column in (self.level, self.lasting, self.importance, self.accessed, self.open):
            column.append(0)
        for column in (self.valid_from, self.valid_until, self.forgotten):
            column.append(0)
        self._revise(at, record)
        for keyword in record.keywords:
            self.keywords.add(keyword.lower(), at)
        self.fields.add(at, record)
        words = _terms(record)
        self.lexical.add(words, group)
        if by >= 0 and record.kind == "chat":
            self.speakers.add(by, len(words), record.data.get("by_user"))
        vector = self._comparable(record)
        self.compared.append(vector is not None)
        self.vectors.append(vector, before)

    def number(self, name: str) -> int:
        """Return the number of a name."""
        if name not in self.names:
            self.names[name] = len(self.names)
            for word in plain_words(name)[:1]:
                self.named.setdefault(word, []).append(name)
        return self.names[name]

    def _episode(self, name: str) -> int:
        """Return the number of an episode, -1 for none."""
        if not name:
            return -1
        if name not in self.episodes:
            self.episodes[name] = len(self.episodes)
            self.group_of.append(-1)
        return self.episodes[name]

    def _group(self, episode: int) -> int:
        """Return the number of an episode among those that have records of episodic kinds."""
        if self.group_of.values[episode] < 0:
            self.group_of.values[episode] = len(self.last)
            self.last.append(-1)
        return int(self.group_of.values[episode])

    def _comparable(self, record: Record) -> Vector | None:
        """Return a record's vector where it is of this stream's embedder, whose width the first one tells."""
        vector = record.vector if record.embedder == self.embedder else None
        if vector is not None and not is_finite(vector):  # it would spoil its neighbours and the mean
            return None
        if vector is not None and not self.width:
            self.width = len(vector)
            self.vectors = Vectors(self.width, self.before.values[: len(self.vectors)].tolist())
        return vector if vector is not None and len(vector) == self.width else None

    @property
    def foreign(self) -> int:
        """Return how many records have a vector of another embedder, or none."""
        return len(self) - int(np.count_nonzero(self.compared.values))

    def held_at(self, now: Moment) -> NDArray[np.bool_]:
        """Mark the records that hold at a moment and are not forgotten by then."""
        held = self.open.values.copy()
        ending = np.flatnonzero(~held)
        held[ending] = (self.valid_until.values[ending] > now) & (self.forgotten.values[ending] > now)
        return held

    def written_in(self, spans: Sequence[DateSpan]) -> int:
        """Return how many records were written in any of these stretches of time."""
        created, inside = self.created.values, np.zeros(len(self), np.bool_)
        for span in spans:
            inside |= (created >= span.since) & (created < span.until)
        return int(np.count_nonzero(inside))

    def holding(self, kinds: Collection[Kind], now: Moment) -> NDArray[np.bool_]:
        """Mark the records of these kinds that hold and are not forgotten; `now` LATEST: that hold for good."""
        held = np.zeros(len(self), np.bool_)
        for kind in kinds:  # a few comparisons of bytes take a tenth of what np.isin does
            held |= self.kind.values == KIND_CODES[kind]
        held &= (self.valid_until.values > now) & (self.forgotten.values == OPEN)
        return held

    def newest(self, kind: Kind, n: int, now: Moment, episode: str | None = None) -> list[int]:
        """Return the rows of the newest n records of a kind that hold and are not forgotten, the oldest first."""
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
        """Return the rows of a slot's versions, in the order of writing; None: the store has to be asked."""
        return self.fields.rows("slot", slot)

    def holds(self, id_: str, now: Moment) -> bool:
        """Tell whether a record is there, holds and is not forgotten."""
        at = self.position.get(id_)
        return at is not None and self.valid_until.values[at] > now and self.forgotten.values[at] == OPEN

    def _give(self, at: int, record: Record) -> None:
        """Take over the vector of a record that was embedded anew."""
        vector = self._comparable(record)
        if vector is not None:
            around = (int(self.before.values[at]), int(self.after.values[at]))
            self.vectors.give(at, vector, [near for near in around if near >= 0])
            self.compared.values[at] = True

    def _revise(self, at: int, record: Record) -> None:
        """Set what may change after a record was written."""
        self.level.values[at] = record.level
        self.lasting.values[at] = record.lasting
        self.importance.values[at] = np.nan if record.importance is None else record.importance
        self.accessed.values[at] = record.accessed
        self.valid_from.values[at] = -OPEN if record.valid_from is None else record.valid_from
        self.valid_until.values[at] = OPEN if record.valid_until is None else record.valid_until
        self.forgotten.values[at] = OPEN if record.forgotten is None else record.forgotten
        self.open.values[at] = record.valid_until is None and record.forgotten is None


def _keywords(record: Record) -> list[str]:
    return [keyword.lower() for keyword in record.keywords]


def _without(
    postings: Postings,
    dropped: Mapping[int, Record],
    reworded: Mapping[int, tuple[Record, Record]],
    below: NDArray[np.uint32],
    keys: Callable[[Record], Iterable[str]],
) -> Postings | None:
    old: dict[str, list[int]] = {}
    for at, record in (*dropped.items(), *((at, before) for at, (before, _) in reworded.items())):
        for key in keys(record):
            old.setdefault(key, []).append(at)
    return postings.without(old, below)


def is_asking(text: str) -> bool:
    """Tell whether a question stands in the last characters of a text."""
    ending = _ending(text)
    return "?" in ending or "？" in ending


def _ending(text: str) -> str:
    return text[-ASKS_WITHIN:].rstrip()


def _terms(record: Record) -> list[str]:
    """Return what a record is found by: its words, its keywords, what it is about."""
    words = terms(record.text)
    if record.keywords or record.about:
        there, more = set(words), (*record.keywords, *(record.about or ()))
        words += [each for each in dict.fromkeys(terms(" ".join(more))) if each not in there]
    return words
