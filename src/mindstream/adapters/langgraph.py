"""LangGraph's long-term store and its checkpoints, in a memory (docs/adapters/langgraph.md).

In the store, an item is a record; a new version supersedes it; deleted items are archived. Checkpoints, the values of
their channels, and pending writes are records, too. Each call of the saver fills an `InMemorySaver` of LangGraph with
the rows that it needs, and stores the new rows. Checkpoints and values belong to the episode of their thread. The
pending writes of a checkpoint belong to an episode of their own. They are derived from the checkpoint: erasing the
checkpoint also erases the writes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import eq, ge, gt, le, lt, ne
from typing import Any, TypeAlias

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store import base
from langgraph.store.memory import InMemoryStore

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.loop import Data, Handle, both
from mindstream.adapters.storing import ALL, fit_text
from mindstream.errors import Conflict, InputError
from mindstream.log.events import Corrected
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.untrusted import SURROGATE

Place: TypeAlias = tuple[tuple[str, ...], str]
BY, MAX_VERSIONS, MORE = "langgraph", 1_000, 4
"""BY: the author of the store's records. MAX_VERSIONS: maximum number of records of an item that are read. MORE: the
factor by which the number of recalled candidates grows if a filter leaves too few of them."""
COMPARISONS = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


class MindstreamStore(base.BaseStore):
    """A long-term store for LangGraph, backed by a memory: `builder.compile(store=MindstreamStore("data"))`.

    Args:
        data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
        user: the owner of the memory; memories of different users are isolated from one another.
        embed: an embedder of mindstream, its name, a LangChain `Embeddings`, or a function from texts to vectors.
        index: as for LangGraph's other stores. `index["embed"]` takes precedence over `embed`; `index["fields"]` are
            searched ("$": all).
        ttl: as for LangGraph's other stores. Expired items are not returned, even before they are swept.
    """

    supports_ttl = True

    def __init__(
        self,
        data: Data,
        user: str = BY,
        *,
        embed: Embedder | Any = None,
        index: base.IndexConfig | None = None,
        ttl: base.TTLConfig | None = None,
    ) -> None:
        config: Mapping[str, Any] = index or {}
        self.handle = Handle(data, user, as_embedder(config.get("embed") or embed))
        self.ttl_config = ttl
        self._fields = config.get("fields") or ["$"]

    def purge(self) -> int:
        """Erase deleted and replaced items, with their texts in the log; return the number of records."""
        return self.handle.wait(lambda memory: memory.purge())

    def close(self) -> None:
        """Close the memory; the next use opens it again."""
        self.handle.close()

    async def _batch(self, ops: Iterable[base.Op], memory: Memory) -> list[base.Result]:
        """Perform operations in this order: all reads, the renewal of the lifetimes of items that were read, all
        writes.

        The writes are one commit.
        """
        found: list[base.Result] = []
        read: list[Record] = []
        puts: dict[Place, base.PutOp] = {}
        for op in ops:
            if isinstance(op, base.PutOp):
                puts[tuple(op.namespace), op.key] = op
                found.append(None)
            elif isinstance(op, base.ListNamespacesOp):
                found.append(await _namespaces(memory, op))
            elif isinstance(op, base.GetOp):
                held = await _held(memory, (tuple(op.namespace), op.key))
                found.append(base.Item(**_fields_of(held[-1])) if held else None)
                read += held if op.refresh_ttl else []
            else:
                scored = await _search(memory, op)
                found.append([base.SearchItem(**_fields_of(record), score=score) for record, score in scored])
                read += [record for record, _ in scored] if op.refresh_ttl else []
        lives = {each.id: float(str(each.data["ttl"])) for each in read if each.data.get("ttl")}
        if lives:
            now = memory.clock.now()
            await memory.commit(revisions=[Revision(id=id_, valid_until=now + 60 * ttl) for id_, ttl in lives.items()])
        await self._write(memory, puts)
        return found

    async def _write(self, memory: Memory, puts: Mapping[Place, base.PutOp]) -> None:
        """Store items in one commit, and archive the stored items that they replace.

        An item with the value None only archives the stored item.
        """
        while puts:
            now, held = memory.clock.now(), {place: await _held(memory, place) for place in puts}
            news = {place: op for place, op in puts.items() if op.value is not None}
            drafts = [self._draft(place, op, held[place], now) for place, op in news.items()]
            records = dict(zip(news, await memory.build_records(drafts), strict=True))
            endings = [_ending(each, records.get(place), now) for place, there in held.items() for each in there]
            deleted = [Entry(Corrected(old=each.id, new=""), BY) for each in endings if not each.superseded_by]
            entries = [Entry.remembered(records.values(), BY)] if records else []
            with contextlib.suppress(Conflict):  # another process was faster: the next try replaces what it wrote
                if entries or endings:
                    await memory.commit(*entries, *deleted, revisions=endings)
                fresh = [(place, op) for place, op in news.items() if not held[place]]
                # if two processes added the same item, the next try replaces both
                puts = {place: op for place, op in fresh if len(await _held(memory, place)) > 1}

    def _draft(self, place: Place, op: base.PutOp, held: list[Record], now: float) -> RecordDraft:
        (namespace, key), value = place, _with_whole_texts(dict(op.value or {}))
        namespace, key = _with_whole_texts([*namespace]), _with_whole_texts(key)
        fields = [] if op.index is False else op.index or self._fields
        try:
            text = "\n".join(each for path in fields for each in base.get_text_at_path(value, path)).strip()
        except TypeError as error:
            raise InputError(f"the item {key!r} must be JSON: {error}") from None
        data: dict[str, Any] = {"namespace": namespace, "key": key, "indexed": bool(text), "ttl": op.ttl}
        data["first"] = held[-1].data["first"] if held else now
        data |= {f"in{at}": label for at, label in enumerate(namespace)}
        data |= {f"={name}": each for name, each in value.items()}
        until, text = now + 60 * op.ttl if op.ttl else None, fit_text(text or key, "-")
        return RecordDraft(
            text=text, kind="document", by=BY, episode=_episode(place), data=data, created=now, valid_until=until
        )

    async def _sweep_ttl(self, memory: Memory) -> int:
        """Erase expired items; return their number. Optional, since expired items are never returned."""
        now, found = memory.clock.now(), await memory.find(kinds=["document"], where={"by": BY}, over=True)
        expired = [each.id for each in found if each.data.get("ttl") and (each.valid_until or now + 1) <= now]
        return (await memory.forget(*expired)).records if expired else 0

    batch, abatch = both(_batch)
    sweep_ttl = both(_sweep_ttl)[0]


async def _held(memory: Memory, place: Place) -> list[Record]:
    """Return the records of an item, the newest one last.

    There are several records if two processes added the item at the same time.
    """
    return await memory.latest("document", MAX_VERSIONS, episode=_episode(place))


def _ending(record: Record, by: Record | None, now: float) -> Revision:
    return Revision(id=record.id, forgotten=now, holds=True, superseded_by=by.id if by else None)


async def _search(memory: Memory, op: base.SearchOp) -> list[tuple[Record, float | None]]:
    """Return the items below a namespace that pass the filter: by recall, or without a query the newest first."""
    where: dict[str, Any] = {"by": BY} | {f"in{at}": label for at, label in enumerate(op.namespace_prefix)}
    where |= {f"={name}": each for name, each in (op.filter or {}).items() if isinstance(each, str | int | float)}
    k = end = op.offset + op.limit
    while op.limit > 0 and k > 0:
        found: list[tuple[Record, float | None]]
        if op.query and op.query.strip():
            asked = {**where, "indexed": True}
            recalled = await memory.recall(op.query, k, kinds=["document"], where=asked, touch=False)
            found = [(each.record, each.score) for each in recalled]
        else:
            found = [(each, None) for each in await memory.find(k, kinds=["document"], where=where)]
        fitting = [pair for pair in found if _passes(_fields_of(pair[0])["value"], op.filter or {})]
        if len(fitting) >= end or len(found) < k:
            return fitting[op.offset : end]
        k *= MORE
    return []


async def _namespaces(memory: Memory, op: base.ListNamespacesOp) -> Any:
    """Return the namespaces with items, as LangGraph's `InMemoryStore` lists them."""
    found = {_fields_of(each)["namespace"] for each in await memory.find(kinds=["document"], where={"by": BY})}
    sheet = InMemoryStore()
    sheet.batch([base.PutOp(namespace, "there", {}) for namespace in found])
    return sheet.batch([op])[0]


def _with_whole_texts(value: Any) -> Any:
    """Return a JSON value in which U+FFFD replaces each unpaired surrogate.

    Models sometimes write unpaired surrogates, and no file can store them.
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return value  # storing it will fail with an error
    if text.isascii() or not SURROGATE.search(text):
        return value
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _episode(place: Place) -> str:
    return hashlib.blake2b(json.dumps(place).encode(), digest_size=16).hexdigest()


def _fields_of(record: Record) -> dict[str, Any]:
    """Return the arguments of LangGraph's `Item` for a stored record."""
    data: Mapping[str, Any] = record.data
    first, changed = (datetime.fromtimestamp(at, UTC) for at in (data["first"], record.created))
    namespace = tuple(data["namespace"])
    value = {name[1:]: each for name, each in data.items() if name.startswith("=")}
    return {"namespace": namespace, "key": data["key"], "value": value, "created_at": first, "updated_at": changed}


def _passes(value: Any, wanted: Any) -> bool:
    """Return whether a value passes a filter, field by field; values that cannot be compared do not."""
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_passes(value.get(name), each) for name, each in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_passes, value, wanted))
    return bool(value == wanted)


def _compares(value: Any, name: str, other: Any) -> bool:
    if name not in COMPARISONS:
        raise ValueError(f"there is no operator {name!r}; the operators are {', '.join(COMPARISONS)}")
    with contextlib.suppress(TypeError):
        return bool(COMPARISONS[name](value, other))
    return False


RowPlace: TypeAlias = tuple[Any, ...]
CHECKPOINT: Kind = "document"
"""Kind of the records of checkpoints. Thread, namespace and id identify a checkpoint (its `RowPlace`)."""
VALUE: Kind = "evidence"
"""Kind of the records of values. Thread, namespace, channel and version identify a value."""
WRITE: Kind = "feedback"
"""Kind of the records of pending writes. Thread, namespace, checkpoint id, task and number identify a write.

The number is negative for LangGraph's special writes, such as errors; a new special write replaces the earlier one.
"""
MAX_NAME = 400


class MindstreamSaver(BaseCheckpointSaver[str]):
    """Keeps a graph's threads in a memory: `builder.compile(checkpointer=MindstreamSaver("data"))`.

    Args:
        data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
        user: the owner of the memory; use this memory for nothing else, because checkpoints are useless for recall.
        serde: see LangGraph's other savers.
    """

    def __init__(self, data: Data, user: str = "langgraph threads", *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self.handle = Handle(data, user)

    def list(self, config: RunnableConfig | None, **asked: Any) -> Iterator[CheckpointTuple]:
        for each in self.handle.wait(lambda memory: self._find(config, memory, **asked)):
            if found := self.get_tuple(each):
                yield found

    async def alist(self, config: RunnableConfig | None, **asked: Any) -> AsyncIterator[CheckpointTuple]:
        for each in await self.handle.do(lambda memory: self._find(config, memory, **asked)):
            if found := await self.aget_tuple(each):
                yield found

    def purge(self) -> None:
        """Rewrite the file after erasures, so that it contains no old bytes of a thread."""
        self.handle.wait(lambda memory: memory.store.compact())

    def close(self) -> None:
        """Close the memory; the next use opens it again."""
        self.handle.close()

    async def _get(self, config: RunnableConfig, memory: Memory) -> CheckpointTuple | None:
        named = config["configurable"]
        thread, namespace, id_ = named["thread_id"], named.get("checkpoint_ns", ""), named.get("checkpoint_id")
        if id_:
            found = await memory.records([_key(CHECKPOINT, thread, namespace, id_)])
        else:
            for n in (4, 64, ALL):  # read more if the newest are all of other namespaces (subgraphs)
                latest = await memory.latest(CHECKPOINT, n, episode=_thread_episode(thread))
                if found := [each for each in latest if _place(each)[1] == namespace]:
                    break
        if not found:
            return None
        newest = max(found, key=_place)
        versions = self.serde.loads_typed(_row(newest)[0])["channel_versions"]
        keys = [_key(VALUE, thread, namespace, channel, version) for channel, version in versions.items()]
        return self._sheet([newest, *await memory.records(keys), *await _writes(memory, [newest])]).get_tuple(config)

    async def _find(
        self, config: RunnableConfig | None, memory: Memory, limit: int | None = None, **asked: Any
    ) -> Sequence[RunnableConfig]:
        """Return the configurations of the checkpoints that match, newest first."""
        episode = _thread_episode(config["configurable"]["thread_id"]) if config else None
        records = [each for each in await memory.latest(CHECKPOINT, ALL, episode=episode) if each.by == BY]
        found = [each.config for each in self._sheet(records).list(config, **asked)]
        found.sort(key=lambda each: str(each["configurable"]["checkpoint_id"]), reverse=True)
        return found if limit is None else found[: max(0, limit)]

    async def _put(self, config: RunnableConfig, *rest: Any, memory: Memory, **more: Any) -> RunnableConfig:
        sheet = self._sheet()
        new = sheet.put(config, *rest, **more)
        await _write(memory, _rows(sheet))
        return new

    async def _put_writes(self, config: RunnableConfig, *rest: Any, memory: Memory, **more: Any) -> None:
        sheet = self._sheet()
        sheet.put_writes(config, *rest, **more)
        await _write(memory, _rows(sheet))

    async def _delete_thread(self, thread_id: str, memory: Memory) -> None:
        """Erase a thread, with its texts in the log."""
        episode = _thread_episode(thread_id)
        found = [each for kind in (CHECKPOINT, VALUE) for each in await memory.latest(kind, ALL, episode=episode)]
        found = [each for each in found if each.by == BY and _place(each)[0] == thread_id]
        if found:
            await memory.store.erase(memory.key, [each.id for each in [*found, *await _writes(memory, found)]])

    def _sheet(self, records: Iterable[Record] = ()) -> InMemorySaver:
        """Return a saver of LangGraph with the rows of some records."""
        sheet = InMemorySaver(serde=self.serde)
        for each in records:
            place, row = _place(each), _row(each)
            if each.kind == CHECKPOINT:
                sheet.storage[place[0]][place[1]][place[2]] = row
            elif each.kind == VALUE:
                sheet.blobs[place] = row  # type: ignore[index]
            else:
                sheet.writes[place[:3]][place[3:]] = row  # type: ignore[index]
        return sheet

    get_next_version = InMemorySaver.get_next_version  # type: ignore[assignment]
    get_tuple, aget_tuple = both(_get)
    put, aput = both(_put)
    put_writes, aput_writes = both(_put_writes)
    delete_thread, adelete_thread = both(_delete_thread)


def _rows(sheet: InMemorySaver) -> Iterator[tuple[Kind, RowPlace, Any]]:
    """Yield the rows of a saver of LangGraph."""
    for thread, spaces in sheet.storage.items():
        for name, checkpoints in spaces.items():
            yield from ((CHECKPOINT, (thread, name, id_), row) for id_, row in checkpoints.items())
    yield from ((VALUE, place, row) for place, row in sheet.blobs.items())
    yield from ((WRITE, (*place, *at), row) for place, there in sheet.writes.items() for at, row in there.items())


def _record(memory: Memory, kind: Kind, place: RowPlace, row: Any) -> Record:
    checkpoint, now = _key(CHECKPOINT, *place[:3]), memory.clock.now()
    return Record(
        id=_key(kind, *place),
        stream=memory.key,
        kind=kind,
        created=now,
        accessed=now,
        by=BY,
        text=" ".join(map(str, place[2:])),
        data={"place": list(place), "row": base64.b64encode(ormsgpack.packb(row)).decode()},
        episode=f"after {checkpoint}" if kind == WRITE else _thread_episode(place[0]),
        evidence=(checkpoint,) if kind == WRITE else (),
    )


async def _write(memory: Memory, rows: Iterable[tuple[Kind, RowPlace, Any]]) -> None:
    """Store rows in one commit. Existing values and ordinary writes are kept; existing checkpoints and special writes
    (see WRITE) are replaced."""
    records = [_record(memory, *row) for row in rows]
    while records:
        try:
            await memory.commit(Entry.remembered(records, BY))
            return
        except Conflict:
            there = await memory.records([each.id for each in records])
            if not there:
                raise
            stay = {each.id for each in there if each.kind == VALUE or (each.kind == WRITE and _place(each)[4] >= 0)}
            if anew := [each.id for each in there if each.id not in stay]:
                await memory.store.erase(memory.key, anew)
            records = [each for each in records if each.id not in stay]


async def _writes(memory: Memory, after: Iterable[Record]) -> list[Record]:
    return [one for each in after for one in await memory.latest(WRITE, ALL, episode=f"after {each.id}")]


def _place(record: Record) -> RowPlace:
    return tuple(record.data["place"])  # type: ignore[arg-type]


def _key(kind: Kind, *place: Any) -> str:
    """Return the id of a row's record."""
    return hashlib.blake2b(json.dumps([kind, *place]).encode(), digest_size=20).hexdigest()


def _row(record: Record) -> Any:
    return ormsgpack.unpackb(base64.b64decode(str(record.data["row"])))


def _thread_episode(thread: str) -> str:
    """Return a thread's name as the episode of a record. If the name is not valid as an episode, return a hash of
    it."""
    name = str(thread)
    plain = name.strip() == name and 0 < len(name) <= MAX_NAME and name.isprintable()
    return name if plain else _key(CHECKPOINT, name)
