"""Recall: find the records that answer a question. The ranking is the same code for every store.

Relevance is a sum of: matching words (BM25), the similarity of vectors, and, in conversations, the words of
neighbouring records and of the whole episode. A policy then ranks the records that pass the filters (of a long stream,
a selection of them). The best FOUND_PER_RETURNED * k of these are found. The first k are returned, and the others are
"passed over" (found but not returned).
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from mindstream import caches
from mindstream.arrays import Doubles, Floats
from mindstream.clock import MINUTE_S, Clock, Moment, format_iso
from mindstream.errors import Conflict, InputError, ReadOnlyData
from mindstream.guidance import Explained
from mindstream.identifiers import StreamKey
from mindstream.log.events import Logged, RecallMade
from mindstream.memory.forgetting_curve import Strength, StrengthState, after_passing_over, after_return
from mindstream.memory.recall.embedding import Embedding
from mindstream.memory.recall.ranking import (
    ALL,
    LOW_CERTAINTY,
    LOW_CONFIDENCE,
    Bounded,
    Candidates,
    Filters,
    Policy,
    Ranking,
    Rows,
    Scored,
    Signals,
    Weights,
    allowed_mask,
    certainty,
    compare_large,
    confidences,
    relevance,
    understood,
    weights_for,
)
from mindstream.memory.recall.rerank import SecondStage
from mindstream.memory.recall.selection import BY_WORDS, LONG, Part, select
from mindstream.memory.store.columns import OPEN, Columns
from mindstream.memory.store.index_cache import IndexCache
from mindstream.memory.store.record import (
    FADING,
    KINDS,
    MAX_COUNT,
    Kind,
    Record,
    check_whole,
    checked_words,
    normalised,
    same_words,
    without_vectors,
)
from mindstream.memory.store.store import Commit, Entry, Revision, Store
from mindstream.memory.store.vectors import EXACT_UP_TO
from mindstream.models.embedders.embedder import Embedder
from mindstream.text.dates import spans
from mindstream.text.words import terms

LATER_S = 1.0
"""Delay, in seconds, before a touch (the effect of a recall on the strength of records) is written. A crash loses the
touches that still wait.
"""
AT_ONCE = 20
"""Maximum number of recalls whose touches (their effects on the strength of records) are written in one commit.

The next recall must read the records that the commit changed, which takes 16 us per record.
"""
ATTEMPTS = 100


class Touch(NamedTuple):
    """The effect of one recall: time, ids of the returned records, and ids of the records that were found but not
    returned."""

    at: Moment
    returned: Sequence[str]
    passed_over: Sequence[str]


class Touches:
    """The touches (effects of recalls on the strength of records) of one stream that are not written yet.

    Args:
        columns: a function that returns columns with at least the records of the given ids, in their current state.
        laws: the rules of strength (memory/forgetting_curve). None: strength does not change, and a touch only sets the
            time at which a recall last returned the record.
    """

    def __init__(
        self,
        store: Store,
        columns: Callable[[list[str]], Awaitable[Columns]],
        stream: StreamKey,
        clock: Clock,
        laws: Strength | None,
    ) -> None:
        self._store = store
        self._columns = columns
        self._stream = stream
        self._clock = clock
        self.laws = laws
        self._waiting: list[Touch] = []
        self._writing = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    def add(self, touch: Touch) -> None:
        """Add a recall's touch (its effect on the strength of records).

        The touch is written after LATER_S seconds, or with an earlier commit.
        """
        self._waiting.append(touch)
        if self._timer is None or self._timer.done():
            self._timer = asyncio.ensure_future(self._later())

    async def overdue(self) -> None:
        """Write all touches (effects of recalls) if the oldest touch has waited for at least twice LATER_S.

        This happens with a manual clock. If a write is in progress, do nothing.
        """
        late = self._waiting and self._clock.now() - self._waiting[0].at >= 2 * LATER_S
        if late and not self._writing.locked():
            await self.settle()

    async def settle(self) -> None:
        """Write all touches (effects of recalls). If the caller is cancelled, the write continues.

        Raises:
            StorageError: some touches could not be written. They stay in the queue.
        """
        await asyncio.shield(asyncio.ensure_future(self._settle()))

    async def _settle(self) -> None:
        async with self._writing:
            while self._waiting:
                some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                try:
                    await self._write(some, Commit(mind=self._stream, at=self._clock.now()))
                except ReadOnlyData:
                    return  # a recall in read-only data changes nothing
                except Exception:
                    self._waiting = some + self._waiting
                    raise

    async def commit(self, commit: Commit, touch: Touch) -> list[Logged]:
        """Write all waiting touches (effects of recalls); then write a commit together with the touch of one recall.

        Raises:
            Conflict: a condition of the commit itself is not met. (If a condition of the touch is not met, the write is
                repeated.)
        """
        await self.settle()
        return await self._write([touch], commit)

    async def commit_all(self, commit: Commit) -> list[Logged]:
        """Write a commit together with up to AT_ONCE waiting touches (effects of recalls), whose log rows come last. A
        commit without entries, or during another write of touches, is written alone.
        """
        if not self._waiting or not commit.entries or self._writing.locked():
            return await self._store.commit(commit)
        async with self._writing:
            some, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
            try:
                return await self._write(some, commit, are_last=True)
            except BaseException:
                self._waiting = some + self._waiting
                raise

    async def close(self) -> None:
        """Write all touches (effects of recalls) and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        await self.settle()

    async def _later(self) -> None:
        await self._clock.sleep(LATER_S)
        if self._waiting:  # otherwise a commit has already written the touches
            with contextlib.suppress(Exception):  # the touches stay in the queue; `close` raises the error
                await self.settle()

    async def _write(self, touches: Sequence[Touch], commit: Commit, *, are_last: bool = False) -> list[Logged]:
        refused: list[Revision] | None = None
        for attempt in itertools.count(1):
            columns = await self._columns([id_ for touch in touches for id_ in (*touch.returned, *touch.passed_over)])
            revisions = list_revisions(columns, touches, self.laws)
            told = self._tell(columns, touches, revisions)
            if not (revisions or told or commit.entries or commit.revisions):
                return []
            if attempt > ATTEMPTS or revisions == refused:
                break  # the same changes were refused before: the conflict is with the commit, not with the touches
            entries = (*commit.entries, *told) if are_last else (*told, *commit.entries)
            whole = replace(commit, entries=entries, revisions=(*commit.revisions, *revisions))
            try:
                return await self._store.commit(whole)
            except Conflict as conflict:
                # without its traceback, which refers to this frame: only the garbage collector would free both
                refused, error = revisions, conflict.with_traceback(None)
                await asyncio.sleep(0)
        raise error

    def _tell(self, columns: Columns, touches: Sequence[Touch], revisions: Sequence[Revision]) -> list[Entry]:
        """Return a log entry for each recall: the records of decaying kinds that it found, and the records that it
        archived.

        Return [] if nothing decays here.
        """
        if self.laws is None:
            return []
        gone, told = {each.id for each in revisions if each.forgotten is not None}, list[Entry]()
        for touch in touches:
            returned, passed_over = (tuple(fading(columns, ids)) for ids in (touch.returned, touch.passed_over))
            if returned or passed_over:
                forgotten = tuple(id_ for id_ in passed_over if id_ in gone)
                gone -= set(forgotten)
                made = RecallMade(moment=touch.at, returned=returned, passed_over=passed_over, forgotten=forgotten)
                told.append(Entry(made, "recall", system=True))
        return told


def list_revisions(columns: Columns, touches: Sequence[Touch], laws: Strength | None) -> list[Revision]:
    """Apply the effects of recalls, one recall after the other, to the current state of the records. Return the
    changes."""
    before: dict[str, StrengthState] = {}
    after: dict[str, tuple[StrengthState, Moment]] = {}
    for touch in touches:
        # without laws of decay, only records that were returned change
        passed_over = () if laws is None else fading(columns, touch.passed_over)
        for ids, law in ((touch.returned, after_return), (passed_over, after_passing_over)):
            for id_ in ids:
                if id_ not in before:
                    held = state_in(columns, id_)
                    if held is None:
                        continue
                    before[id_] = held
                    after[id_] = held, touch.at
                held = after[id_][0]
                if laws is not None and (law is after_passing_over or fading(columns, [id_])):
                    new = law(held, touch.at, laws)
                else:
                    new = held._replace(time=max(held.time, touch.at))
                if new != held:
                    after[id_] = new, touch.at
    return [revision(id_, before[id_], held, at) for id_, (held, at) in after.items() if held != before[id_]]


def state_in(columns: Columns, id_: str) -> StrengthState | None:
    """Return a record's strength; None if it is archived, erased or unknown."""
    at = columns.position.get(id_)
    if at is None or columns.forgotten.values[at] < OPEN:
        return None
    return StrengthState(
        int(columns.level.values[at]), bool(columns.lasting.values[at]), float(columns.accessed.values[at])
    )


def fading(columns: Columns, ids: Sequence[str]) -> list[str]:
    """Return those ids whose records are of a kind that strengthens and decays; ids of unknown records are left out."""
    position, kind = columns.position, columns.kind.values
    return [id_ for id_ in ids if (at := position.get(id_)) is not None and FADING_CODES[kind[at]]]


def revision(id_: str, before: StrengthState, after: StrengthState, at: Moment) -> Revision:
    """Return the change of a record's strength from `before` to `after`. The store refuses it unless the record still
    has the strength `before`."""
    return Revision(
        id=id_,
        level=after.level,
        lasting=after.lasting,
        accessed=after.time,
        forgotten=at if after.faded else None,
        was=before,
    )


RECORDS = 1_000
"""Maximum number of remembered records per stream. If there are more, the records returned longest ago are dropped."""
FOR_S = 10 * MINUTE_S
HASH_BITS = 64
HASH = (1 << HASH_BITS) - 1


class RecentTexts:
    """The ids of the records that recent recalls of this process returned, each with a hash of its words.

    If a model repeats the words of such a record, they are not stored again. Without this check a memory fills with
    copies of itself: in a memory that stored the recalled text, 97.8 % of the records were junk after a month (mem0,
    issue 4573).
    """

    def __init__(self, stream: StreamKey) -> None:
        self._stream = stream
        caches.watch(self)
        self._returned: dict[str, int] = {}
        """By id, in the order of the last return: its time in milliseconds, then HASH_BITS bits of the words' hash. A
        server remembers thousands of records, and one number takes a third of a tuple's memory."""

    def __len__(self) -> int:
        return len(self._returned)

    def add(self, now: Moment, records: Iterable[Record]) -> None:
        """Add the records that a recall returned."""
        returned_at = int(now * 1000) << HASH_BITS
        for record in records:
            before = self._returned.pop(record.id, None)
            words = same_words(record.text) if before is None else before
            self._returned[record.id] = returned_at | (words & HASH)
        self._drop_old(now)

    def forget(self, stream: str) -> None:
        """Drop all records if they belong to this stream, in which something was erased."""
        if stream == self._stream:
            self._returned.clear()

    def same(self, texts: Iterable[str], now: Moment) -> dict[str, str]:
        """Return the id of the recently recalled record with the same words, by normalised text.

        Texts without such a record are missing.
        """
        self._drop_old(now)
        wanted = {same_words(text) & HASH: normalised(text) for text in texts}
        return {wanted[words]: id_ for id_, each in self._returned.items() if (words := each & HASH) in wanted}

    def _drop_old(self, now: Moment) -> None:
        while self._returned:
            id_, oldest = next(iter(self._returned.items()))
            if len(self._returned) <= RECORDS and 1000 * now - (oldest >> HASH_BITS) <= 1000 * FOR_S:
                break
            self._returned.pop(id_, None)


FOUND_PER_RETURNED = 4
"""Number of records that a recall finds for each record that it returns.

Records that are found but not returned are passed over, which can weaken them (memory/forgetting_curve).
"""
HELD_AT_ONCE = 64
"""Maximum number of records in one read from the store that are cached for later recalls. The records of a larger read
are not cached, because they would displace too many others."""
SELECTS_UP_TO = BY_WORDS // (2 * FOUND_PER_RETURNED)
"""Maximum k (number of records to return) for which only a selection of a long stream is ranked. For a larger k, all
records of the stream are ranked."""
CANDIDATES = 1_000
"""Number of possible results that each criterion (words, vectors and so on) requests from the store.

It applies while a stream's columns (its index in memory) are not available.
"""


@dataclass(frozen=True, slots=True)
class Recalled(Explained):
    """A hit: a record that a recall returned.

    Attributes:
        record: the record, without its vector (`store.records` returns it with the vector).
        score: ranks the hits of one question. It has no fixed range, and cannot be compared between questions.
        parts: the parts of the score, by name.
        confidence: calibrated probability, 0 to 1, that this record answers the question.
    """

    record: Record
    score: float
    parts: Mapping[str, float]
    confidence: float = 0.0

    def __repr__(self) -> str:
        return f"Recalled({self.text!r}, confidence={self.confidence:.2f}, score={self.score:.2f}, id={self.id!r})"

    @property
    def id(self) -> str:
        """The id of the record, for `correct`, `forget` and `get`."""
        return self.record.id

    @property
    def text(self) -> str:
        """The text of the record."""
        return self.record.text

    @property
    def created(self) -> datetime:
        """When the record was created: when it was said or observed, in UTC."""
        return datetime.fromtimestamp(self.record.created, UTC)


@dataclass(frozen=True, slots=True)
class Recall:
    """The result of a recall from any stream (see also Recollection).

    Attributes:
        returned: the returned records, best first.
        passed_over: ids of records that were found but not returned.
        without_vectors: why only words were compared; "": vectors were compared, too.
        not_reranked: why the second stage could not rank; "": it ranked, or there is no second stage.
        by_candidates: whether only a part of the stream was searched, because its columns (its index in memory) are
            still being filled.
        certainty: the probability, 0 to 1, that any of the records that pass the filters answers the question
            (memory/recall/ranking).
    """

    returned: list[Recalled] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    without_vectors: str = ""
    not_reranked: str = ""
    by_candidates: bool = False
    certainty: float = 0.0


class Recollection(list[Recalled]):
    """The records that the recall of a stream returns, best first.

    Attributes:
        certainty: the probability, 0 to 1, that any of the records that pass the filters answers the question.
        without_vectors: why only words were compared, for all or some records; "": all vectors were compared.
        touch: the effect of this recall on the records that it found; None: no effect. After `recall(touch=False)` the
            effect is not written. The caller can write the effect together with other entries (`Stream.commit`).
        not_reranked: why the second stage could not rank; "": it ranked, or there is no second stage.
        by_candidates: whether only a part of the stream was searched, because the stream is long and its columns (its
            index in memory) are still being filled.
    """

    def __init__(
        self,
        returned: Iterable[Recalled] = (),
        certainty: float = 0.0,
        touch: Touch | None = None,
        not_reranked: str = "",
        by_candidates: bool = False,
        without_vectors: str = "",
    ) -> None:
        super().__init__(returned)
        self.certainty, self.touch, self.not_reranked = certainty, touch, not_reranked
        self.by_candidates, self.without_vectors = by_candidates, without_vectors

    @property
    def low_confidence(self) -> bool:
        """Whether the certainty and all confidences are low; every interface marks such results."""
        return self.certainty < LOW_CERTAINTY and all(each.confidence < LOW_CONFIDENCE for each in self)

    def _repr_html_(self) -> str:
        from mindstream.html_tables import Share, table

        rows = [(each.record.text, each.record.kind, format_iso(each.record.created)[:10], each.score) for each in self]
        best = max((score for *_, score in rows), default=0.0) or 1.0
        shown = [(*row, Share(score / best)) for *row, score in rows]
        note = f"certainty {self.certainty:.0%}{', low confidence' * self.low_confidence}"
        return table("recalled", ("record", "kind", "of", "score, of the best"), shown, note, self.not_reranked)


class Recaller:
    """Recalls from any stream of a store.

    Attributes:
        scanned: the maximum number of records of a stream that is scored completely. Of a longer stream, only a
            selection is scored, unless more than SELECTS_UP_TO records are requested or the policy needs all records.
    """

    def __init__(
        self, store: Store, embedder: Embedder, *, policy: Policy | None = None, weights: Weights | None = None
    ) -> None:
        self.store = store
        self.embedding = Embedding(embedder)
        self.policy = policy or Bounded()
        self.weights = weights or weights_for(embedder.name)
        self.shelf = IndexCache(store, embedder.name, embedder.width)
        self.scanned = LONG

    async def recall(
        self,
        stream: StreamKey,
        query: str,
        k: int = 10,
        *,
        now: Moment,
        filters: Filters = ALL,
        policy: Policy | None = None,
        floor: float = 0.0,
        second: SecondStage | None = None,
        confidence: bool = True,
    ) -> Recall:
        """Return the records that answer `query` best, at most k. This changes no record.

        Args:
            floor: minimum certainty. The certainty is the estimated probability that one of the records answers the
                query. If it is lower, no records are returned.
            second: reranks the best of the found records; None: the records keep the order of the policy.
            confidence: whether to compute the certainty, confidences and parts of scores. False saves a seventh of the
                time.

        Raises:
            InputError: the query is empty, or k is not a whole number of at least 1.
        """
        if not checked_words(query, "query").strip():
            raise InputError("the query is empty: expected the words of a question")
        check_whole(k, "k, the number of records to return", 1, MAX_COUNT)
        policy = policy or self.policy
        with self.shelf.answering():
            columns = await self._columns(stream, query, now, filters, policy)
            if not len(columns):
                return Recall(by_candidates=columns.behind)
            return await self._ranked(columns, query, k, now, filters, policy, floor, second, confidence)

    async def _ranked(
        self,
        columns: Columns,
        query: str,
        k: int,
        now: Moment,
        filters: Filters,
        policy: Policy,
        floor: float,
        second: SecondStage | None,
        confidence: bool,
    ) -> Recall:
        by_candidates = columns.behind
        question = understood(query, columns, now)
        embedded = await self.embedding.soon(question.wordings)
        vectors = np.zeros((1, columns.width), np.float32) if embedded is None else embedded
        alike = await compare_large(self.store, columns, filters)
        held = columns.held_at(now if filters.as_of is None else filters.as_of)
        passing = allowed_mask(columns, filters, now, alike, held)
        written_down = filters.asked_in in columns.position
        size = len(columns.lexical) - len(held) + int(np.count_nonzero(held))
        valid = None
        selects = getattr(policy, "by_relevance", False) and not isinstance(columns, Part)
        if selects and len(columns) > self.scanned and k <= SELECTS_UP_TO:
            columns, passing = select(columns, question, vectors, passing, self.weights)
        elif size < len(columns.lexical) and len(columns) <= EXACT_UP_TO:
            valid = np.flatnonzero(held)  # superseded and archived records must not count in the average similarity
        scored = relevance(columns, question, vectors, passing, self.weights, valid)
        certain = None
        if confidence or floor > 0:
            certain = certainty(columns, question, scored, passing, embedded is None, written_down)
        without = "" if embedded is not None else self._without_vectors()
        if certain is not None and certain < floor:
            return Recall(without_vectors=without, by_candidates=by_candidates, certainty=certain)
        candidates = _candidates(columns, scored, vectors[-1], now)
        ranking = policy.rank(candidates, FOUND_PER_RETURNED * k)
        looked_at = max(k, min(second.most, FOUND_PER_RETURNED * k)) if second else k
        found = await self._recalled(columns, scored, ranking, looked_at, certain, size)
        if written_down:
            found = _without_repetitions(found, query)
        if second and len(found.returned) > 1:
            found = await _reranked(found, second, query, k)
        return Recall(found.returned, found.passed_over, without, found.not_reranked, by_candidates, certain or 0.0)

    async def _columns(self, stream: StreamKey, query: str, now: Moment, filters: Filters, policy: Policy) -> Columns:
        """Return a stream's columns (its index in memory).

        If the policy needs all records, wait until the columns are available. Otherwise, until then, return columns of
        only the records that the store finds for the question.
        """
        if not getattr(policy, "by_relevance", False):
            return await self.shelf.columns(stream)
        if (columns := await self.shelf.at_hand(stream)) is not None:
            return columns
        embedded = await self.embedding.soon([query])
        vector = None if embedded is None else embedded[0].astype(np.float16)
        found = await self.store.candidates(
            stream, vector, terms(query), CANDIDATES, kinds=filters.kinds, spans=spans(query, now)
        )
        return Part(stream, self.embedding.embedder.name, self.embedding.embedder.width, found)

    def _without_vectors(self) -> str:
        failing = self.embedding
        return f"{failing.embedder.name} gives no vectors ({failing.failure}): until it does, words alone are compared"

    async def _recalled(
        self, columns: Columns, scored: Scored, ranking: Ranking, k: int, certain: float | None, size: int
    ) -> Recall:
        """Return the k best records, read from the store if necessary, and the ids of the records that were passed
        over.

        If `certain` is None, confidences and parts of the scores are left out.
        """
        ids = columns.ids_at(ranking.rows)
        records = {record.id: record for record in await self._records(columns, ids[:k])}
        scores = ranking.scores[:k].tolist()
        if certain is None:
            hits = zip(ids[:k], scores, strict=True)
            return Recall([Recalled(records[id_], score, {}) for id_, score in hits if id_ in records], ids[k:])
        parts = scored.parts(ranking.rows[:k])
        parts |= {name: each[:k].tolist() for name, each in ranking.parts.items()}
        sure = confidences(certain, size, scored.total[ranking.rows].tolist(), parts["vector"])
        returned = [
            Recalled(records[id_], score, dict(zip(parts, values, strict=True)), confidence)
            for id_, score, confidence, *values in zip(ids[:k], scores, sure, *parts.values(), strict=True)
            if id_ in records
        ]
        return Recall(returned, ids[k:])

    async def records_at(self, columns: Columns, rows: Sequence[int]) -> list[Record]:
        """Return the records of these rows, but without their vectors. Records that are not in memory are read from the
        store."""
        return await self._records(columns, columns.ids.at(np.asarray(rows, np.int64)))

    async def _records(self, columns: Columns, ids: Sequence[str]) -> list[Record]:
        records = columns.entire.held(ids)
        if missing := [id_ for id_ in ids if id_ not in records]:
            entire, taken = columns.entire, columns.entire.taken
            read = list(without_vectors(await self.store.records(columns.stream, missing)))
            records |= {record.id: record for record in read}
            same = self.shelf.whole(columns.stream) is entire and entire.taken == taken  # nothing was erased meanwhile
            if same and len(read) <= HELD_AT_ONCE:
                for record in read:
                    entire.hold(record)
                self.shelf.bound_texts(entire)
        return [records[id_] for id_ in ids if id_ in records]

    async def find(self, stream: StreamKey, n: int | None, *, now: Moment, filters: Filters) -> list[Record]:
        """Return the n newest records that pass the filters, newest first; n None: all of them."""
        columns = await self.shelf.columns(stream)
        alike = await compare_large(self.store, columns, filters)
        rows = np.flatnonzero(allowed_mask(columns, filters, now, alike))[::-1][:n]
        return await self.records_at(columns, rows.tolist())

    async def about(
        self,
        stream: StreamKey,
        keywords: Sequence[str],
        n: int = 10,
        *,
        now: Moment,
        kinds: Sequence[Kind] | None = None,
    ) -> list[Record]:
        """Return the n newest records that have any of these keywords, newest first.

        Source: Park 2023, whose agents also find memories by keywords.
        """
        columns = await self.shelf.columns(stream)
        holding = [columns.keywords.of(word.lower()) for word in keywords]
        if not any(map(len, holding)):
            return []
        found = np.zeros(len(columns), np.bool_)  # np.unique would import numpy.ma
        found[np.concatenate(holding)] = True
        positions = np.flatnonzero(found & allowed_mask(columns, Filters(kinds=kinds), now, {}))[::-1][:n]
        return await self.records_at(columns, positions.tolist())


def _without_repetitions(found: Recall, query: str) -> Recall:
    """Move messages with the same words as the question to the records passed over: the same question, asked earlier,
    answers nothing."""
    words = normalised(query)
    same = [each.id for each in found.returned if each.record.kind == "chat" and normalised(each.text) == words]
    returned = [each for each in found.returned if each.id not in same]
    return replace(found, returned=returned, passed_over=[*same, *found.passed_over])


async def _reranked(found: Recall, second: SecondStage, query: str, k: int) -> Recall:
    """Return the `k` records that the second stage ranks first.

    The other found records count as passed over (found but not returned).
    """
    places, why = await second.best(query, [each.record for each in found.returned], k)
    parts = [{} if why else {"first_stage": at + 1.0} for at in range(len(found.returned))]
    returned = [replace(found.returned[at], parts={**found.returned[at].parts, **parts[at]}) for at in places]
    left = [each.record.id for at, each in enumerate(found.returned) if at not in places]
    return replace(found, returned=returned, passed_over=[*left, *found.passed_over], not_reranked=why)


def recaller_of(store: Store, embedder: Embedder) -> Recaller:
    """Return the recaller of a store and an embedder. All open streams that use this store and this embedder share it.

    The recaller exists as long as one of these streams does.
    """
    held: WeakValueDictionary[int, Recaller] = vars(store).setdefault("_recallers", WeakValueDictionary())
    found = held.get(id(embedder))  # the id cannot be reused, because the recaller keeps the embedder alive
    if found is None:
        found = held[id(embedder)] = Recaller(store, embedder)
    return found


FADING_CODES = np.array([kind in FADING for kind in KINDS])


def _candidates(columns: Columns, scored: Scored, vector: Floats, now: Moment) -> Candidates:
    """Return the scores of the records to be ranked, and functions by which a policy reads their other properties."""

    def signals(rows: Rows) -> Signals:
        whole, at = columns.entire, columns.in_entire(rows)
        strength = np.full(len(at), 0.5)
        if len(fading := np.flatnonzero(FADING_CODES[whole.kind.values[at]])):
            level = whole.level.values[at[fading]].astype(np.float64)
            lasting = whole.lasting.values[at[fading]]
            strength[fading] = np.where(lasting, 1.0, 1 - 0.5 ** np.maximum(level + 1, 0))
        return Signals(
            scored.total[rows].astype(np.float64),
            whole.accessed.values[at],
            whole.importance.values[at].astype(np.float64),
            strength,
        )

    def cosines(rows: Rows) -> Doubles:
        if len(vector) != columns.width or not np.any(vector):
            return np.zeros(len(rows))
        return columns.vectors.cosines(vector, rows).astype(np.float64)

    return Candidates(scored.total, now, signals, cosines, vector, columns.vectors.units)
