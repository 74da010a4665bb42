"""A stream: the records and the log of one name, with writing, recall and beliefs (Park 2023, 4.1).

`Memory` (memory/memory) extends it by sleep, corrections and forgetting.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Self, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, JsonValue, ValidationError

from mindstream import caches, redaction, tracing
from mindstream.clock import EARLIEST, LATEST, Clock, Moment, SystemClock, Time, moment, moment_or_none, period
from mindstream.errors import Conflict, InputError, LeaseLost
from mindstream.guidance import awaited, opens
from mindstream.identifiers import StreamName
from mindstream.json_values import JsonObject
from mindstream.log import erasures
from mindstream.log.events import BeliefChanged, Event, Feed, Logged, Remembered
from mindstream.memory.forgetting_curve import KEEP, Strength
from mindstream.memory.opening import AnyStore, clock_of, opened_store
from mindstream.memory.policy import DRAWN, AnyPolicy, adopt_policy
from mindstream.memory.recall.embedding import MissingVectors, choose_embedder, other_embedder
from mindstream.memory.recall.ranking import Filters, Policy
from mindstream.memory.recall.recall import RecentTexts, Recollection, Touch, Touches, list_revisions, recaller_of
from mindstream.memory.recall.rerank import SecondStage
from mindstream.memory.recall.selection import LONG
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.columns import KIND_CODES, Columns
from mindstream.memory.store.record import (
    MAX_COUNT,
    MAX_DEPTH,
    TAINTED,
    UNIQUE,
    Ids,
    Kind,
    Record,
    RecordDraft,
    Triple,
    Vector,
    check_interval,
    check_whole,
    checked_fields,
    checked_kinds,
    checked_moment,
    checked_text,
    fitted_text,
    is_tainted,
    legible_record,
    normalised,
    session_names,
    shortened,
)
from mindstream.memory.store.store import (
    Commit,
    Entry,
    Fence,
    NewWork,
    Revision,
    Store,
    WorkDone,
    WorkKept,
    WorkReleased,
    read_log,
)
from mindstream.models.embedders.embedder import Embedder, EmbedderChoice
from mindstream.tracing import tell_believed, tell_found, tell_written

Shape = TypeVar("Shape", bound=BaseModel)
P = ParamSpec("P")
R = TypeVar("R")
MOST, LONGEST = 40, 500
"""MOST: maximum number of items of a list; the newest are kept. Items that a new version drops remain in the older
versions, which are records that a recall with `as_of` finds. LONGEST: maximum number of characters of a text or of an
item of a list; the rest of a longer one is not stored."""
Patch: TypeAlias = Mapping[str, JsonValue]
"""A change of a belief, by field. A value replaces the old value; null restores the field's default. If the field is a
list, a single value is added to the old list, and so is each item of a new list; {"add": […], "remove": […]} adds and
removes items."""


@dataclass(frozen=True, slots=True)
class Belief(Generic[Shape]):
    """One version of a belief.

    Attributes:
        version: the number of the version; 0: no version has been written yet, and the value is empty.
        evidence: ids of the records that this version was derived from.
    """

    slot: str
    version: int
    value: Shape
    evidence: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from mindstream.html_tables import table

        fields = self.value.model_dump(mode="json").items()
        rows = [(name.replace("_", " "), _in_words(held)) for name, held in fields if held not in (None, [], {}, "")]
        return table(self.slot, ("believed", ""), rows, f"version {self.version}")


def _in_words(held: object) -> str:
    return "\n".join(map(str, held)) if isinstance(held, list) else str(held)


def read_belief(slot: str, record: Record | None, shape: type[Shape]) -> Belief[Shape]:
    """Read a belief from the record of its latest version; return an empty belief if `record` is None.

    Stored fields that the shape no longer has, or whose values no longer fit, are ignored. So a belief stays readable
    when its shape changes.

    Raises:
        InputError: the shape requires a field that is not stored, or whose stored value is ignored.
    """
    if record is None:
        return Belief(slot, 0, shape())
    value = record.data.get("value")
    kept = {k: v for k, v in value.items() if k in shape.model_fields} if isinstance(value, dict) else {}
    while True:
        try:
            return Belief(slot, record.version or 0, shape.model_validate(kept), record.evidence)
        except ValidationError as error:
            misfits = {str(found["loc"][0]) for found in error.errors() if found["loc"]} & kept.keys()
            if not misfits:
                raise InputError(f"the belief {slot!r} does not fit {shape.__name__}: {error}") from None
            kept = {k: v for k, v in kept.items() if k not in misfits}


def render_fields(slot: str, fields: Mapping[str, JsonValue]) -> str:
    """Return the non-empty fields of a belief as the text of its record, which recall searches."""
    lines = []
    for name, held in fields.items():
        if held not in (None, [], ""):
            lines.append(f"{name.replace('_', ' ')}: {', '.join(map(str, held)) if isinstance(held, list) else held}")
    return f"{slot}: " + "; ".join(lines)


def merged(belief: Belief[Shape], patch: Patch) -> tuple[Shape, JsonObject]:
    """Apply a patch to a belief, without writing it.

    Returns:
        The new value, with lists and texts cut to their limits; and the new values of the changed fields. For the first
        version of a belief, all fields in the patch count as changed.

    Raises:
        InputError: a field is unknown, or its value does not fit.
    """
    old = belief.value.model_dump(mode="json")
    new: dict[str, Any] = dict(old)
    for name, value in patch.items():
        if name not in old:
            raise InputError(f"the belief {belief.slot!r} has no field {name!r}; it has {', '.join(old)}")
        new[name] = _changed(old[name], value)
    empty = type(belief.value)().model_dump(mode="json")
    new = {name: empty[name] if value is None else value for name, value in new.items()}
    try:
        after = belief.value.model_validate(new)
    except ValidationError as error:
        found = error.errors()[0]
        raise InputError(f"the belief {belief.slot!r}: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None
    now = after.model_dump(mode="json")
    first = set(patch) if belief.version == 0 else set()
    return after, {name: now[name] for name in now if now[name] != old[name] or name in first}


def _changed(old: Any, new: JsonValue) -> Any:
    if not isinstance(old, list) or new is None:
        return _short(new)
    add = _items(new.get("add") if isinstance(new, dict) else new)
    gone = {_folded(item) for item in _items(new.get("remove") if isinstance(new, dict) else None)}
    kept: dict[str, Any] = {}
    for item in [*_items(old), *add]:
        if _folded(item) not in gone:
            kept.setdefault(_folded(item), item)
    return list(kept.values())[-MOST:]


def _items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return [_short(item) for item in value] if isinstance(value, list) else [_short(value)]


def _short(value: JsonValue) -> JsonValue:
    return shortened(value, LONGEST) if isinstance(value, str) else value


def _folded(item: object) -> str:
    return str(item).strip().casefold()


REAL = SystemClock()


def traced(
    operation: str, argument: str, describe: Callable[[tracing.Asked, Any], Mapping[str, tracing.Value]]
) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Callable[P, Coroutine[Any, Any, R]]]:
    """Return a decorator that runs a function of a stream in a span.

    Args:
        operation: the kind of operation, for the span.
        argument: the name of the function's second parameter.
        describe: computes the attributes of the span from that parameter's argument and the result.
    """

    def decorate(do: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        async def in_span(*args: P.args, **kwargs: P.kwargs) -> R:
            stream: Any = args[0]
            with tracing.span(operation, "", {tracing.STORE: stream.name}) as begun:
                result = await do(*args, **kwargs)
                tracing.tell(begun, describe(args[1] if len(args) > 1 else kwargs.get(argument), result))
                return result

        @wraps(do)
        def begin(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
            return in_span(*args, **kwargs) if tracing.is_on else do(*args, **kwargs)

        return begin

    return decorate


@awaited
@traced(tracing.CREATE_MEMORY, "news", tell_written)
async def retain_all(stream: Stream, news: Sequence[RecordDraft]) -> list[Record]:
    """Write records in one transaction and return them.

    A record that repeats a known record (see `Stream.find_same`) is not written; the known record is returned instead.

    Raises:
        InputError: a text is too long or empty.
    """
    for new in news:
        checked_text(new.text)
    records = await build_records(stream, news)
    while True:
        known, timed = await _known(stream, records)
        fresh = [record for record in records if record.id not in known]
        if fresh:
            # Records in `timed` have the words of another record, but hold at another time: they need not be unique.
            groups = [[each for each in fresh if (each.id in timed) is is_timed] for is_timed in (False, True)]
            entries = [
                Entry(
                    Remembered(count=len(group), kinds=dict(Counter[str](record.kind for record in group))),
                    group[0].by or stream.name,
                    tuple(group),
                    distinct=group is groups[0],
                )
                for group in groups
                if group
            ]
            try:
                await stream.commit(*entries)
            except Conflict:
                if (await _known(stream, fresh))[0]:  # another writer stored the same words first
                    continue
                raise
        return [known.get(record.id, record) for record in records]


async def _known(stream: Stream, records: Sequence[Record]) -> tuple[dict[str, Record], set[str]]:
    """Find records whose words are known.

    Returns:
        Two results. First, a mapping from the id of each repeated record to the known record that takes its place.
        Second, the ids of records with known words that must be written nevertheless, because they are valid at
        another time than the known record.
    """
    found: dict[str, Record] = {}
    timed: set[str] = set()
    for kind in {record.kind for record in records} & UNIQUE:
        ours = [record for record in records if record.kind == kind]
        texts = [record.text for record in ours]
        said, echoes = await stream.find_same(kind, texts), stream._lately.same(texts, stream.clock.now())
        for record in ours:
            first = said.setdefault(normalised(record.text), record)
            if first is record:
                continue
            own, other = (record.valid_from, record.valid_until), (first.valid_from, first.valid_until)
            is_open = own == (None, None)
            if own == other or (is_open and (other[1] is None or normalised(record.text) in echoes)):
                found[record.id] = first
                continue
            lasting = await stream.store.find_same(stream.key, kind, [record.text], now=LATEST) if is_open else {}
            if there := lasting.get(normalised(record.text)):
                found[record.id] = there
            else:
                timed.add(record.id)
    return found, timed


async def build_records(stream: Stream, news: Sequence[RecordDraft], unwritten: Collection[str] = ()) -> list[Record]:
    """Build records from drafts, with the vectors that the embedder returns in time.

    The records are not written; `commit` validates them. A text that is too long is shortened, not rejected: it may be
    the answer of a model, whose run must not fail.

    Args:
        unwritten: ids of evidence that is not in the store and is not read.
    """
    stream.require_own_vectors()
    texts = [fitted_text((await redaction.cleaned(new.text)).text if redaction.is_on() else new.text) for new in news]
    vectors = await stream.embedding.at_once(texts)
    now = stream.clock.now()
    drawn = await _depths_and_taints(stream, [new.evidence for new in news], unwritten)
    records = [
        _record(stream, new, text, vector, now, depth, tainted)
        for new, text, vector, (depth, tainted) in zip(news, texts, vectors, drawn, strict=True)
    ]
    stream.missing.owe(record.id for record in records if record.vector is None)
    return records


def _record(
    stream: Stream, new: RecordDraft, text: str, vector: Vector | None, now: Moment, depth: int, tainted: bool
) -> Record:
    created = now if new.created is None else moment(new.created, "created")
    since, until = moment_or_none(new.valid_from, "valid_from"), moment_or_none(new.valid_until, "valid_until")
    for name, at in (("valid_from", since), ("valid_until", until)):
        if at is not None:
            checked_moment(at, name, EARLIEST)
    check_interval(since, until)
    record = Record(
        id=stream.ids.make(checked_moment(created, "created"), new.kind, text),
        stream=stream.key,
        kind=new.kind,
        text=text,
        created=created,
        accessed=now,
        by=new.by,
        episode=new.episode,
        importance=new.importance,
        valid_from=since,
        valid_until=until,
        about=new.about,
        keywords=new.keywords,
        evidence=new.evidence,
        depth=depth if new.depth is None else new.depth,
        slot=new.slot,
        version=new.version,
        data={**new.data, TAINTED: True} if tainted else new.data,
        vector=vector,
        embedder="" if vector is None else stream.embedder.name,
    )
    return legible_record(record)


async def _depths_and_taints(
    stream: Stream, evidence: Sequence[Sequence[str]], unwritten: Collection[str]
) -> list[tuple[int, bool]]:
    """Return for each list of evidence the depth of a record derived from it, and whether that record is tainted.

    The depth is 1 + that of the deepest evidence, at most MAX_DEPTH, or 0 without evidence. A record is tainted
    (contains untrusted text) if any of its evidence is tainted. The mark is stored with the record, and stays when the
    evidence is erased.
    """
    cited = dict.fromkeys(id_ for some in evidence for id_ in some if isinstance(id_, str))
    ids = [id_ for id_ in cited if id_ not in unwritten]
    known = {record.id: record for record in await stream.records(ids)} if ids else {}
    found: list[tuple[int, bool]] = []
    for some in evidence:
        there = [known[id_] for id_ in some if isinstance(id_, str) and id_ in known]
        deepest = max((record.depth for record in there), default=0)
        found.append((min(MAX_DEPTH, 1 + deepest) if some else 0, any(map(is_tainted, there))))
    return found


class _SlotEviction:
    """Drops the cached versions of a stream's slots when something of the stream is erased."""

    def __init__(self, stream: str, held: dict[str, Record | None]) -> None:
        self._stream, self._held = stream, held
        caches.watch(self)

    def forget(self, stream: str) -> None:
        if stream == self._stream:
            self._held.clear()


class Stream:
    """The records and log of one name in a store. Names are isolated: no other stream is read or written.

    Close the stream (or leave its `async with`) before the store is closed. Until then, touches (effects of recalls) of
    the last second may not have been written, and a background task may be requesting vectors.

    Attributes:
        name: the name as users write it.
        key: the name in the store.
        drawn: number of random records that a sleep draws, unless its caller gives another number.

    Args:
        name: a plain string is the name of a user.
        strength: the rules by which records strengthen and decay. `KEEP`: records strengthen, and none is archived.
            None: the strength of records never changes.
        second: the reranker of recalls; None: no second stage (memory/recall/rerank).
        seed: seed of the record ids; with a seed, the same run writes the same log. None: random ids.

    Raises (from every method): StorageError; InputError for invalid arguments.
    """

    def __init__(
        self,
        store: Store,
        name: StreamName | str,
        embedder: Embedder,
        clock: Clock,
        feed: Feed | None = None,
        *,
        strength: Strength | None = KEEP,
        second: SecondStage | None = None,
        seed: int | str | None = None,
    ) -> None:
        self.store = store
        named = name if isinstance(name, StreamName) else StreamName("user", name)
        self.name, self.key = named.normal, store.key(named)
        self.embedder = embedder
        self.clock = clock
        self.feed = feed or Feed()
        self.strength, self.drawn = strength, DRAWN
        self.second = second
        self.ids = Ids(self.name, seed)
        self._recaller = recaller_of(store, embedder)
        self._recaller.shelf.use(self.key, self)
        self.embedding = self._recaller.embedding
        self.missing = MissingVectors(self, self.embedding)
        self._touches = Touches(store, self._columns_of, self.key, clock, strength)
        self._lately = RecentTexts(self.key)
        self.beside: list[Entry] = []
        """Entries that are written with the next commit that has entries of its own. Code that adds entries here must
        itself commit those that are still here when it ends."""
        self._held: dict[str, Record | None] = {}
        self.vectors_of = ""
        """The name of the embedder that made the stored vectors, if it is another one than `embedder`; otherwise ""."""
        self._since: int | None = None
        self._eviction = _SlotEviction(self.key, self._held)
        caches.note(self.key)

    @property
    def keeps_all(self) -> bool:
        """Whether the policy is `keep`: nothing is merged, and nothing is archived unless the user asks."""
        return self.strength is not None and self.strength.keeps_all

    @property
    def decays(self) -> bool:
        """Whether the policy is `decay`: records that are not used are archived."""
        return self.strength is not None and not self.strength.keeps_all

    def require_own_vectors(self) -> None:
        """Raise an error if the stored vectors are of another embedder, because they cannot be compared or mixed.

        Raises:
            InputError: the stream was opened with another embedder than the one that made its vectors.
        """
        if self.vectors_of:
            raise InputError(other_embedder(self.name, self.vectors_of, self.embedder.name))

    def follow(self, strength: Strength) -> None:
        """Use these rules of strengthening and decay from now on."""
        self.strength = self._touches.laws = strength

    async def begin(self) -> None:
        """Record the number of the last erasure, once, so that erased data is not written back.

        Every commit contains this number, and the store refuses the commit (ErasedMeanwhile) if the whole stream was
        erased later. `Mind` calls `begin` before its first read. Otherwise the first commit calls `begin`; data that
        was read before the first commit is then not protected.
        """
        if self._since is None:
            since = await self.store.last_erasure()
            if self._since is None:  # no other task has set it in the meantime
                self._since = since
                caches.note(self.key, since)

    def was_opened_before(self, erasure: int) -> bool:
        """Return whether this object may still hold data that this erasure removed."""
        return self._since is None or self._since < erasure

    @classmethod
    @opens
    async def open(
        cls,
        data: AnyStore,
        name: StreamName | str,
        *,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        seed: int | str | None = None,
        policy: AnyPolicy = MappingProxyType({}),
    ) -> AsyncIterator[Self]:
        """Open a stream of a folder (created if missing), a database or a store.

        A store that is opened here is closed when the block ends.

        Args:
            embed: an embedder or its name; None: the embedder that made the stream's vectors, or wordllama for a new
                stream. If another embedder made the vectors, recall and writing are refused until `reembed()` is
                called.
            policy: `keep` (nothing is archived) or `decay` (unused records are archived); this policy is recorded for
                the stream. Values by name (memory/policy) apply while the stream is open. Empty: the recorded policy,
                or `keep` for a new stream.

        Raises:
            InputError: there is no such policy.
            SettingsError: there is no such embedder.
        """
        named, time = name if isinstance(name, StreamName) else StreamName("user", name), clock or clock_of(data)
        async with opened_store(data) as store:
            vectors, of_another = await choose_embedder(store, store.key(named), embed)
            kept = await adopt_policy(store, store.key(named), time.now(), policy)
            async with cls(store, named, vectors, time, seed=seed, strength=kept.laws) as stream:
                stream.vectors_of, stream.drawn = of_another, kept.drawn
                yield stream

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Write the changes of strength by recalls that are not stored yet, and stop this stream's background tasks;
        the store stays open."""
        await self.missing.close()
        await self._touches.close()
        await self._recaller.shelf.leave(self.key, self)

    async def touched(self, touches: Sequence[Touch]) -> list[Revision]:
        """Return the changes of records that these recalls cause; the caller writes them with a commit of its own."""
        found = [id_ for touch in touches for id_ in (*touch.returned, *touch.passed_over)]
        return list_revisions(await self._columns_of(found), touches, self.strength)

    async def settle(self) -> None:
        """Write pending touches (effects of recalls) now."""
        await self._touches.settle()

    async def columns(self) -> Columns:
        """Return the stream's records as arrays, including the latest writes of all processes. Other tasks can run
        while many changes are read."""
        return await self._recaller.shelf.columns(self.key)

    async def columns_at_hand(self) -> Columns | None:
        """Return the stream's columns (its records as arrays), complete and up to date.

        If the columns cannot be brought up to date at once, return None and load them in the background.
        """
        columns = await self._recaller.shelf.at_hand(self.key)
        return None if columns is None or columns.behind else columns

    def columns_held(self) -> Columns | None:
        """Return the stream's columns if this process has loaded all of them, otherwise None.

        Changes since the last read may be missing.
        """
        return self._recaller.shelf.whole(self.key)

    async def _columns_of(self, ids: list[str]) -> Columns:
        return await self._recaller.shelf.of(self.key, ids)

    @awaited
    async def retain(
        self,
        text: str,
        kind: Kind = "note",
        *,
        by: str = "",
        episode: str = "",
        importance: float | None = None,
        about: Triple | None = None,
        keywords: Sequence[str] = (),
        evidence: Sequence[str] = (),
        data: Mapping[str, JsonValue] | None = None,
        created: Time | None = None,
        valid_from: Time | None = None,
        valid_until: Time | None = None,
    ) -> Record:
        """Write one record and return it once it is on disk. No language model is called.

        If the stream already has a note with the same words that is valid at the same time, nothing is written, and the
        known note is returned. The same applies to thoughts and exemplars.

        Args:
            kind: `note` (a fact), `chat`, `observation`, `thought`, `document`, …; recall can filter by it.
            importance: 1 (mundane) to 10 (poignant); None: not rated.
            evidence: ids of the records that the new record is derived from.
            data: custom fields; `recall(where=…)` filters by them.
            created: when the statement or observation was made; None: now.
            valid_from, valid_until: the period in which the statement is true, from `valid_from` (included) until
                `valid_until` (excluded); None: unlimited.
        """
        new = RecordDraft(
            text=text,
            kind=checked_kinds([kind])[0],
            by=by,
            episode=session_names(episode)[0],
            importance=importance,
            about=about,
            keywords=tuple(keywords),
            evidence=tuple(evidence),
            data=checked_fields(data, "data"),
            created=created,
            valid_from=valid_from,
            valid_until=valid_until,
        )
        return (await self.retain_all([new]))[0]

    async def find_same(self, kind: Kind, texts: Sequence[str]) -> dict[str, Record]:
        """Return the known records with the same words as these texts, by normalised text.

        Known records are the current records of this kind, and records of any kind that a recall returned recently. The
        result is {} unless the kind is note, thought or exemplar: a second "yes" is a new message.
        """
        if kind not in UNIQUE:
            return {}
        now = self.clock.now()
        echoes = self._lately.same(texts, now)
        returned = {each.id: each for each in await self.store.records(self.key, [*echoes.values()])} if echoes else {}
        known = {text: returned[id_] for text, id_ in echoes.items() if id_ in returned}
        return known | await self.store.find_same(self.key, kind, texts, now=now)

    @awaited
    @traced(tracing.SEARCH_MEMORY, "query", tell_found)
    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
        where: Mapping[str, JsonValue] | None = None,
        policy: Policy | None = None,
        asked_in: str = "",
        touch: bool = True,
        floor: float = 0.0,
        rerank: bool = True,
        confidence: bool = True,
    ) -> Recollection:
        """Return the k best records, best first, with the certainty that the stream has an answer to the query.

        Each hit has `text`, `created`, `confidence` (0 to 1, calibrated), `score` with its `parts`, and the `record`.

        Args:
            limit: another name of `k`.
            since, until: bounds of `created`, both included: seconds since 1970, a datetime, a date or ISO 8601 text,
                in UTC unless the text names a zone. A date alone is a whole day.
            as_of: a moment: search the records that had been written and were valid then. Such a recall has no effect
                on records. Without `as_of`, records that become valid in the future are found, too.
            where: required values of `by`, `episode`, `slot` or entries of `data`.
            touch: True: returned records strengthen, and records found but not returned may decay
                (memory/forgetting_curve). This effect is written about a second later. False: the recall changes
                nothing, as needed for pages, searches, interviews and benchmarks. To write the effect in one commit
                with your own entries, recall with False and call `commit(…, touch=found.touch)`.
            asked_in: id of the record that contains the question itself; this record is excluded.
            floor: minimum certainty (0 to 1); below it, nothing is returned. By default everything is returned, and
                `low_confidence` marks uncertain results.
            rerank: whether to use the second stage, if there is one.
            confidence: False: compute only the order and the scores of the hits, in a seventh less time. Hits then have
                no `confidence` and no `parts`, and the result has no `certainty`.
        """
        self.require_own_vectors()
        if limit is not None:
            check_whole(limit, "limit, the number of records to return", 1, MAX_COUNT)
        k = k if limit is None else limit
        if touch and as_of is None:
            await self._touches.overdue()
        first, last = period(since, until)
        filters = Filters(
            kinds=kinds,
            since=first,
            until=last,
            as_of=moment_or_none(as_of, "as_of", whole_day=True),
            where=where or {},
            asked_in=asked_in,
        )
        found = await self._recaller.recall(
            self.key,
            query,
            k,
            now=self.clock.now(),
            filters=filters,
            policy=policy,
            floor=floor,
            second=self.second if rerank else None,
            confidence=confidence,
        )
        now, touched = self.clock.now(), None
        self._lately.add(now, [each.record for each in found.returned])
        if as_of is None and found.returned:
            touched = Touch(now, [each.record.id for each in found.returned], found.passed_over)
            if touch:
                self._touches.add(touched)
        told = await self.missing.tell(found.without_vectors)
        return Recollection(found.returned, found.certainty, touched, found.not_reranked, found.by_candidates, told)

    async def commit(
        self,
        *entries: Entry | Event,
        revisions: Sequence[Revision] = (),
        wake: NewWork | None = None,
        finish: WorkDone | None = None,
        put_back: WorkReleased | None = None,
        kept: WorkKept | None = None,
        fence: Fence | None = None,
        touch: Touch | None = None,
        checkpoint: Checkpoint | None = None,
        unique: str = "",
        words_read: int | None = None,
    ) -> list[Logged]:
        """Write events, records, revisions and work in one durable transaction, then publish the events to the feed.

        Args:
            wake, finish, put_back, kept: work to create, to end, to release, or to keep under a longer lease.
            fence: work whose lease the owner must still hold. The commit does not end this work; `finish` does.
            touch: the effect of a recall with `touch=False` (`Recollection.touch`), to be written with the rest.
            checkpoint: the next version of data derived from the stream.
            unique: a key that can be used only once in the stream.
            words_read: the number of the last erasure when the words in this commit were read. None: the number that
                the current task has recorded (log/erasures `reading`).

        Raises:
            LeaseLost: the owner of `fence` or `finish` does not hold the lease any more, or the work has ended.
            Conflict: the version of a belief or plan exists already, `checkpoint` is not the next version, `unique` was
                used before, or a condition of an entry or revision (`distinct`, `was`, `holds`) is not met.
            ErasedMeanwhile: words of the stream were erased after `words_read`; or the whole stream was erased after
                this object opened it.
        """
        await self.begin()
        if words_read is None and entries and (reading := erasures.READING.get()) is not None:
            words_read = reading.upto
        made = tuple(entry if isinstance(entry, Entry) else Entry(entry, self.name) for entry in entries)
        commit = Commit(
            mind=self.key,
            at=self.clock.now(),
            entries=made,
            revisions=tuple(revisions),
            wake=wake,
            finish=finish,
            put_back=put_back,
            kept=kept,
            fence=fence,
            checkpoint=checkpoint,
            unique=unique,
            since=self._since,
            words_read=words_read,
        )
        writing = asyncio.ensure_future(self._published(commit, touch))
        # Retrieve the exception, so that asyncio does not log it if the caller was cancelled.
        writing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(writing)  # committed events are published even if the caller is cancelled

    async def _published(self, commit: Commit, touch: Touch | None) -> list[Logged]:
        beside = self.beside[:] if commit.entries else []
        del self.beside[: len(beside)]
        before = len(beside) if commit.wake is None else 0  # its first row is stored as the cause of `wake`
        ordered = (*beside, *commit.entries) if before else (*commit.entries, *beside)
        whole = replace(commit, entries=ordered) if beside else commit
        try:
            logged = await (self._touches.commit(whole, touch) if touch else self._touches.commit_all(whole))
        except BaseException:
            self.beside[:0] = beside
            raise
        for entry in commit.entries:
            self.missing.watch(record.id for record in entry.records)
            for record in entry.records:
                if record.slot is not None:
                    self._held[record.slot] = record
        for each in logged:
            self.feed.publish(each)
        ours = logged[len(logged) - len(whole.entries) :] if touch else logged  # rows that `touch` adds come first
        return ours[before : before + len(commit.entries)]

    def show(self, event: Event, by: str = "") -> Logged:
        """Publish an event to the feed without storing it."""
        logged = Logged(0, self.key, self.clock.now(), by or self.name, event)
        self.feed.publish(logged)
        return logged

    async def find(
        self,
        n: int | None = None,
        *,
        kinds: Sequence[Kind] | None = None,
        since: Time | None = None,
        until: Time | None = None,
        where: Mapping[str, JsonValue] | None = None,
        over: bool = False,
    ) -> list[Record]:
        """Return at most n current records (None: all) that match the filters, newest first. They are not ranked, and
        their strength does not change.

        Args:
            since, until, where: as in `recall`.
            over: include superseded, expired and archived records.

        Raises:
            InputError: n is negative or not a whole number, or a filter is invalid.
        """
        if n is not None:
            check_whole(n, "the number of records", 0, MAX_COUNT)
        first, last = period(since, until)
        filters = Filters(
            kinds=kinds,
            since=first,
            until=last,
            where=where or {},
            over=over,
        )
        return await self._recaller.find(self.key, n, now=self.clock.now(), filters=filters)

    async def records(self, ids: Sequence[str]) -> list[Record]:
        """Return the records with these ids, in the given order. Archived and superseded records are included; unknown
        ids are left out."""
        return await self.store.records(self.key, ids)

    async def latest(self, kind: Kind, n: int = 1, *, episode: str | None = None) -> list[Record]:
        """Return the n newest current records of a kind, oldest first.

        If this process holds the stream's columns, only the changes since the columns were last read are read from the
        store.
        """
        now, (kind,) = self.clock.now(), checked_kinds([kind])
        if (columns := await self._caught_up()) is None:
            return await self.store.latest(self.key, [kind], n, now=now, episode=episode)
        return await self._recaller.records_at(columns, columns.newest(kind, n, now, episode))

    async def messages(self, session: str, n: int) -> list[Record]:
        """Return the n newest messages of a conversation, including those that are no longer valid, oldest first."""
        columns, rows = await self.message_rows(session, n)
        return await self.records_at(columns, rows)

    async def message_rows(self, session: str, n: int) -> tuple[Columns, list[int]]:
        """Return the stream's columns, and in them the rows of the records that `messages` returns."""
        columns = await self.columns()
        if (episode := columns.episodes.get(session)) is None:
            return columns, []
        rows = np.flatnonzero((columns.episode.values == episode) & (columns.kind.values == KIND_CODES["chat"]))
        return columns, rows[-n:].tolist()

    async def records_at(self, columns: Columns, rows: Sequence[int]) -> list[Record]:
        """Return the records in these rows of the stream's columns, without their vectors."""
        return await self._recaller.records_at(columns, rows)

    async def _caught_up(self) -> Columns | None:
        """Return the stream's columns, including the latest writes of all processes.

        The result is None if this process has not loaded the columns, or if the stream has more than LONG records.
        """
        held = self.columns_held()
        return None if held is None or len(held) > LONG else await self.columns_at_hand()

    def log(self, after: int = 0, kinds: Sequence[str] | None = None) -> AsyncIterator[Logged]:
        """Yield rows of the stream's log after a seq, oldest first; `kinds`: only events of these kinds."""
        return read_log(self.store, self.key, after, kinds)

    async def belief(self, slot: str, shape: type[Shape]) -> Belief[Shape]:
        """Return the latest version of a belief; if none was written yet, an empty value with version 0."""
        return read_belief(slot, await self.version(slot), shape)

    @traced(tracing.UPSERT_MEMORY, "slot", tell_believed)
    async def believe(
        self, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
    ) -> Belief[Shape]:
        """Merge a patch into a belief, write the new version, and return it.

        If the patch changes nothing, nothing is written. If another writer was first, the patch is merged into the
        version of the other writer.
        """
        while True:
            entry = await self.revision(slot, patch, shape, evidence=evidence, by=by)
            if entry is None:
                return await self.belief(slot, shape)
            try:
                await self.commit(entry)
            except LeaseLost:
                raise
            except Conflict:
                await asyncio.sleep(0)  # another writer was first: merge into its version
                continue
            return await self.belief(slot, shape)

    async def revision(
        self, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
    ) -> Entry | None:
        """Build the entry that writes a belief's next version; None if the patch changes nothing."""
        belief = await self.belief(slot, shape)
        value, changed = merged(belief, patch)
        if not changed:
            return None
        event = BeliefChanged(slot=slot, version=belief.version + 1, patch=changed)
        before, fields = self.last_version(slot), value.model_dump(mode="json")
        # the new version contains the old one's text, too
        taint = {TAINTED: True} if before and is_tainted(before) else {}
        new = RecordDraft(
            text=render_fields(slot, fields),
            kind="belief",
            by=by,
            evidence=tuple(evidence),
            slot=slot,
            version=event.version,
            data={"value": fields, "patch": changed, **taint},
        )
        return Entry(event, by, tuple(await self.build_records([new])))

    def last_version(self, slot: str) -> Record | None:
        """Return the record of a slot's latest version that was read or written through this object; None: there is
        none.

        A newer version of another process is only seen after the next call of `version` or `belief`.
        """
        return self._held.get(slot)

    async def version(self, slot: str) -> Record | None:
        """Return the record of a slot's latest version, and keep it for `last_version`; None if no version was written
        yet."""
        held, found = self._held.get(slot), None
        columns = await self._caught_up()
        rows = None if columns is None else columns.rows_of_slot(slot)
        if columns is not None and rows:
            found = next(iter(await self._recaller.records_at(columns, rows[-1:])), None)
        if rows is None or (rows and (found is None or found.valid_until is not None or not found.version)):
            found = next(iter(await self.store.latest(self.key, now=self.clock.now(), slot=slot)), None)
        if self._held.get(slot) is held:  # no newer version was written in the meantime
            self._held[slot] = found
        return found

    # These methods are functions of this module with the stream as first argument.
    retain_all, build_records = retain_all, build_records
