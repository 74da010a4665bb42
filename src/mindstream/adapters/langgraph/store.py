"""LangGraph's `BaseStore` in a memory: an item is a record; what replaces it supersedes it; deleted, it is archived."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
)

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.langgraph.items import BY, Items, Place, fields_of, passes, value_of
from mindstream.adapters.loop import Handle
from mindstream.errors import Conflict, InputError
from mindstream.log.events import Corrected, Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision, Store
from mindstream.models.embedders.embedder import Embedder

PORTION, MORE = 64, 4
"""So many are looked at together; so many times as many are recalled where a filter has let too few pass."""


class MindstreamStore(BaseStore):
    """A long-term store for LangGraph that is a memory: `builder.compile(store=MindstreamStore("data"))`.

    Args:
        data: a folder, a database's URL, or a store (a tenant's sees that tenant's alone).
        user: whose memory; nothing is shared between two.
        embed: an embedder of ours, its name, a LangChain `Embeddings`, or a function from texts to vectors.
        index: as other stores take it; its `embed` goes before, its `fields` say what is searched ("$": all).
        ttl: as other stores take it; what is expired is not returned any more, swept or not.
    """

    supports_ttl = True

    def __init__(
        self, data: str | Path | Store, user: str = BY, *, embed: Embedder | Any = "wordllama",
        index: IndexConfig | None = None, ttl: TTLConfig | None = None,
    ) -> None:  # fmt: skip
        config: Mapping[str, Any] = index or {}
        self.handle = Handle(data, user, as_embedder(config.get("embed") or embed))
        self.ttl_config = ttl
        self._fields = config.get("fields") or ["$"]
        self._items = Items()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several things, in one commit: first all that is read, then all that is written."""
        return self.handle.wait(partial(self._batch, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several things, in one commit: first all that is read, then all that is written."""
        return await self.handle.do(partial(self._batch, list(ops)))

    def sweep_ttl(self) -> int:
        """Put into the archive what is expired; return how many. Nothing depends on it: expired is not returned."""
        return self.handle.wait(self._sweep)

    def purge(self) -> int:
        """Erase for good what was deleted, replaced or swept, with its words in the log; return how many records."""
        return self.handle.wait(lambda memory: memory.purge())

    def close(self) -> None:
        """Let the memory go; whoever uses the store again opens it again."""
        self.handle.close()

    async def _batch(self, ops: list[Op], memory: Memory) -> list[Result]:
        await self._items.catch_up(memory)
        found: list[Result] = [None] * len(ops)
        refreshed: dict[str, Record] = {}
        puts: dict[Place, PutOp] = {}
        for at, op in enumerate(ops):
            if isinstance(op, GetOp):
                records = await self._get(memory, op)
                found[at] = Item(**fields_of(records[0])) if records else None
            elif isinstance(op, SearchOp):
                scored = await self._search(memory, op)
                records = [record for record, _ in scored]
                found[at] = [SearchItem(**fields_of(record), score=score) for record, score in scored]
            elif isinstance(op, ListNamespacesOp):
                now = memory.clock.now()
                names = self._items.namespaces(op.match_conditions or (), op.max_depth, now)
                found[at] = names[op.offset : op.offset + op.limit]
                continue
            elif isinstance(op, PutOp):
                puts[tuple(op.namespace), op.key] = op
                continue
            else:
                raise ValueError(f"there is no operation {type(op).__name__}")
            if op.refresh_ttl:
                refreshed |= {record.id: record for record in records if record.data.get("ttl")}
        await self._write(memory, puts, refreshed)
        return found

    async def _get(self, memory: Memory, op: GetOp) -> list[Record]:
        held = self._items.held((tuple(op.namespace), op.key))
        there = held is not None and held.holds(memory.clock.now())
        return await self._items.records(memory, [held.id]) if held and there else []

    async def _search(self, memory: Memory, op: SearchOp) -> list[tuple[Record, float | None]]:
        """Return what is below the namespace and passes the filter: by recall, or the newest first."""
        prefix, end = tuple(op.namespace_prefix), op.offset + op.limit
        if end <= 0 or op.limit <= 0:
            return []
        if op.query and op.query.strip():
            return (await self._recall(memory, op, prefix, end))[op.offset : end]
        ids, some = self._items.below(prefix, memory.clock.now()), list[tuple[Record, float | None]]()
        for start in range(0, len(ids), PORTION):
            records = await self._items.records(memory, ids[start : start + PORTION])
            some += [(record, None) for record in records if passes(value_of(record), op.filter)]
            if len(some) >= end:
                break
            await asyncio.sleep(0)
        return some[op.offset : end]

    async def _recall(
        self, memory: Memory, op: SearchOp, prefix: tuple[str, ...], end: int
    ) -> list[tuple[Record, float | None]]:
        """Return the best; where a filter compares, more are recalled until enough pass or there are no more."""
        where: dict[str, Any] = {f"in{at}": label for at, label in enumerate(prefix)} | {"indexed": True}
        where |= {f"={name}": each for name, each in (op.filter or {}).items() if isinstance(each, str | int | float)}
        k = end
        while True:
            found = await memory.recall(op.query or "", k, kinds=["document"], where=where, touch=False)
            fitting: list[tuple[Record, float | None]] = [
                (each.record, each.score) for each in found
                if self._items.is_current(each.record) and passes(value_of(each.record), op.filter)
            ]  # fmt: skip
            if len(fitting) >= end or len(found) < k:
                return fitting
            k *= MORE

    async def _write(self, memory: Memory, puts: Mapping[Place, PutOp], refreshed: Mapping[str, Record]) -> None:
        """Write what was put and what was read anew, in one commit; deleted goes to the archive."""
        while puts or refreshed:
            now = memory.clock.now()
            news = {place: op for place, op in puts.items() if op.value is not None}
            drafts = [await self._draft(memory, place, op) for place, op in news.items()]
            records = dict(zip(news, await memory.build_records(drafts), strict=True))
            revisions = [
                Revision(
                    id=held.id, forgotten=now, holds=held.holds(now),
                    superseded_by=records[place].id if place in records else None,
                )
                for place in puts for held in self._items.all_held(place)
            ]  # fmt: skip
            deleted = [Entry(Corrected(old=each.id, new=""), BY) for each in revisions if not each.superseded_by]
            ended = {each.id for each in revisions}
            revisions += [
                Revision(id=id_, valid_until=now + 60 * float(str(record.data["ttl"])))
                for id_, record in refreshed.items() if id_ not in ended
            ]  # fmt: skip
            event = Remembered(count=len(records), kinds={"document": len(records)} if records else {})
            entries = [Entry(event, BY, tuple(records.values()))] if records else []
            try:
                if entries or revisions:
                    await memory.commit(*entries, *deleted, revisions=revisions)
                return
            except Conflict:  # another process was first: what it wrote is replaced
                await self._items.catch_up(memory)

    async def _draft(self, memory: Memory, place: Place, op: PutOp) -> RecordDraft:
        (namespace, key), value, held = place, dict(op.value or {}), self._items.held(place)
        fields = [] if op.index is False else op.index or self._fields
        try:
            text = "\n".join(each for path in fields for each in get_text_at_path(value, path)).strip()
        except TypeError as error:
            raise InputError(f"the item {key!r} can hold what JSON can, and no more: {error}") from None
        before, now = await self._items.records(memory, [held.id]) if held else [], memory.clock.now()
        data: dict[str, Any] = {"namespace": list(namespace), "key": key, "indexed": bool(text)}
        data |= {f"in{at}": label for at, label in enumerate(namespace)}
        data |= {f"={name}": each for name, each in value.items()}
        data |= {"first": before[0].data.get("first", now) if before else now} | ({"ttl": op.ttl} if op.ttl else {})
        until, text = now + 60 * op.ttl if op.ttl else None, text or key or "-"
        return RecordDraft(text=text, kind="document", by=BY, data=data, created=now, valid_until=until)

    async def _sweep(self, memory: Memory) -> int:
        await self._items.catch_up(memory)
        now = memory.clock.now()
        expired = self._items.expired(now)
        if expired:
            told = [Entry(Corrected(old=id_, new=""), BY) for id_ in expired]
            await memory.commit(*told, revisions=[Revision(id=id_, forgotten=now) for id_ in expired])
        return len(expired)
