"""A stream: one mind's memory, to write to, to recall from, to believe in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from pydantic import BaseModel, JsonValue

from mindstream.clock import Clock, Moment
from mindstream.errors import Conflict, LeaseLost
from mindstream.log.events import BeliefChanged, Event, Logged, Remembered
from mindstream.log.feed import Feed
from mindstream.memory.belief import Belief, Patch, merged, read
from mindstream.memory.policies import Policy
from mindstream.memory.recall import Recalled, Recaller
from mindstream.memory.record import (
    UNIQUE,
    Kind,
    Record,
    Triple,
    checked_importance,
    checked_name,
    checked_text,
    new_id,
)
from mindstream.memory.store import Commit, Entry, Finish, Revision, Store, Wake
from mindstream.models.embedders.embedder import Embedder

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """What is to be remembered; the rest of a record is filled in when it is written."""

    text: str
    kind: Kind = "observation"
    by: str = ""
    episode: str = ""
    importance: float | None = None
    about: Triple | None = None
    keywords: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    depth: int = 0
    created: Moment | None = None
    valid_from: Moment | None = None
    slot: str | None = None
    version: int | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)


class Stream:
    """One mind's memory in a store. The name is a wall: no other stream is ever read or written.

    Raises (from every method): StorageError; InputError for what cannot be kept or asked.
    """

    def __init__(self, store: Store, name: str, embedder: Embedder, clock: Clock, feed: Feed | None = None) -> None:
        self.store = store
        self.name = checked_name(name, "stream")
        self.embedder = embedder
        self.clock = clock
        self.feed = feed or Feed()
        self._recaller = Recaller(store, embedder)

    async def remember(
        self,
        text: str,
        kind: Kind = "observation",
        *,
        by: str = "",
        episode: str = "",
        importance: float | None = None,
        about: Triple | None = None,
        keywords: Sequence[str] = (),
        evidence: Sequence[str] = (),
    ) -> Record:
        """Write one record and return it once it is on disk; no model is called."""
        new = New(
            text=text, kind=kind, by=by, episode=episode, importance=importance, about=about,
            keywords=tuple(keywords), evidence=tuple(evidence),
        )  # fmt: skip
        return (await self.remember_all([new]))[0]

    async def remember_all(self, news: Sequence[New]) -> list[Record]:
        """Write many records in one transaction.

        A note, thought or exemplar whose words are there already is not written again; the one there is returned.
        """
        records = await self.made(news)
        known = self._known(records)
        fresh = [record for record in records if record.id not in known]
        if fresh:
            kinds: dict[str, int] = dict(Counter(record.kind for record in fresh))
            event = Remembered(count=len(fresh), kinds=kinds)
            await self.commit(Entry(event, fresh[0].by or self.name, tuple(fresh)))
        return [known.get(record.id, record) for record in records]

    def _known(self, records: Sequence[Record]) -> dict[str, Record]:
        """Find those that say what is there already, in kinds where the same words are not kept twice."""
        known: dict[str, Record] = {}
        seen: dict[tuple[str, str], Record] = {}
        for kind in {record.kind for record in records} & UNIQUE:
            for old in self.store.latest(self.name, [kind], n=100_000):
                seen[kind, normalised(old.text)] = old
        for record in records:
            if record.kind in UNIQUE:
                first = seen.setdefault((record.kind, normalised(record.text)), record)
                if first is not record:
                    known[record.id] = first
        return known

    async def made(self, news: Sequence[New]) -> list[Record]:
        """Turn what is to be remembered into records, checked and embedded, not yet written."""
        texts = [checked_text(new.text) for new in news]
        vectors = (await self.embedder.embed(texts)).astype(np.float16) if texts else ()
        now = self.clock.now()
        return [
            Record(
                id=new_id(new.created or now), stream=self.name, kind=new.kind, text=text, created=new.created or now,
                accessed=new.created or now, by=new.by, episode=new.episode,
                importance=checked_importance(new.importance), valid_from=new.valid_from, about=new.about,
                keywords=new.keywords, evidence=new.evidence, depth=new.depth, slot=new.slot, version=new.version,
                data=new.data, embedder=self.embedder.name, vector=vector,
            )
            for new, text, vector in zip(news, texts, vectors, strict=True)
        ]  # fmt: skip

    async def recall(
        self,
        query: str,
        k: int = 10,
        *,
        kinds: Sequence[Kind] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        as_of: Moment | None = None,
        where: Mapping[str, JsonValue] | None = None,
        policy: Policy | None = None,
    ) -> list[Recalled]:
        """Return the k records that answer best, with the parts of their score.

        Args:
            since, until: when they were written, both included.
            as_of: read the stream as it stood at that moment.
            where: what `by`, `episode`, `slot` or entries of `data` must be.
        """
        found = await self._recaller.recall(
            self.name, query, k, now=self.clock.now(), kinds=kinds, since=since, until=until, as_of=as_of, where=where,
            policy=policy,
        )  # fmt: skip
        return found.returned

    async def commit(
        self,
        *entries: Entry | Event,
        revisions: Sequence[Revision] = (),
        wake: Wake | None = None,
        finish: Finish | None = None,
    ) -> list[Logged]:
        """Write events, records, revisions and work together, durably; hand the events to whoever listens."""
        made = tuple(entry if isinstance(entry, Entry) else Entry(entry, self.name) for entry in entries)
        logged = await self.store.commit(
            Commit(
                mind=self.name, at=self.clock.now(), entries=made, revisions=tuple(revisions), wake=wake, finish=finish
            )
        )
        for each in logged:
            self.feed.publish(each)
        return logged

    def show(self, event: Event, by: str = "") -> Logged:
        """Hand an event that is not kept to whoever listens."""
        logged = Logged(0, self.name, self.clock.now(), by or self.name, event)
        self.feed.publish(logged)
        return logged

    def latest(self, kind: Kind, n: int = 1, *, episode: str | None = None) -> list[Record]:
        """Return the newest records of a kind, oldest first."""
        return self.store.latest(self.name, [kind], n, episode=episode)

    def belief(self, slot: str, shape: type[Shape]) -> Belief[Shape]:
        """Return the latest version of a belief; version 0 before there is one."""
        return read(slot, next(iter(self.store.latest(self.name, slot=slot)), None), shape)

    async def believe(
        self, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
    ) -> Belief[Shape]:
        """Merge a patch into a belief and write the new version; an empty change writes nothing."""
        while True:
            revision = await self.revision(slot, patch, shape, evidence=evidence, by=by)
            if revision is None:
                return self.belief(slot, shape)
            try:
                await self.commit(revision)
            except LeaseLost:
                raise
            except Conflict:
                await asyncio.sleep(0)  # somebody was first: merge into what they wrote
                continue
            return self.belief(slot, shape)

    async def revision(
        self, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
    ) -> Entry | None:
        """Make the entry that writes a belief's next version; None where the patch changes nothing."""
        belief = self.belief(slot, shape)
        value, changed = merged(belief, patch)
        if not changed:
            return None
        event = BeliefChanged(slot=slot, version=belief.version + 1, patch=changed)
        new = New(
            text=_told(slot, value), kind="belief", by=by, evidence=tuple(evidence), slot=slot, version=event.version,
            data={"value": value.model_dump(mode="json"), "patch": changed},
        )  # fmt: skip
        return Entry(event, by, tuple(await self.made([new])))


def normalised(text: str) -> str:
    """Return a text as it counts for being the same: case, space and final marks aside."""
    return " ".join(text.casefold().split()).rstrip(".!。！ ")


def _told(slot: str, value: BaseModel) -> str:
    """Write a belief as words, so that it can be found and read."""
    lines = []
    for name, held in value.model_dump(mode="json").items():
        if held not in (None, [], ""):
            lines.append(f"{name.replace('_', ' ')}: {', '.join(map(str, held)) if isinstance(held, list) else held}")
    return f"{slot}: " + "; ".join(lines)
