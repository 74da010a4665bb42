"""LangGraph's checkpoints, the values of their channels, and pending writes, each as a record of a memory.

Each call fills an `InMemorySaver` of LangGraph with the rows that it needs, and stores the new rows. Checkpoints and
values belong to the episode of their thread. Writes belong to an episode of their checkpoint and are derived from the
checkpoint, so that they are erased with it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from mindstream.adapters.loop import Data, Handle, both
from mindstream.adapters.storing import ALL
from mindstream.errors import Conflict
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.store.store import Entry

Place: TypeAlias = tuple[Any, ...]
CHECKPOINT: Kind = "document"
"""Kind of the records of checkpoints. Their place (the key of a row): thread, namespace, id."""
VALUE: Kind = "evidence"
"""Kind of the records of values. Their place: thread, namespace, channel, version."""
WRITE: Kind = "feedback"
"""Kind of the records of pending writes. Their place: thread, namespace, id of the checkpoint, task, number.

The number is negative for LangGraph's special writes, such as errors; a new one replaces the earlier one.
"""
BY, MAX_NAME = "langgraph", 400


class MindstreamSaver(BaseCheckpointSaver[str]):
    """Keeps a graph's threads in a memory: `builder.compile(checkpointer=MindstreamSaver("data"))`.

    Args:
        data: a folder, a database's URL, or a store (of a tenant: only that tenant's data is visible).
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
            for n in (4, 64, ALL):  # more, if the newest are checkpoints of subgraphs (other namespaces)
                latest = await memory.latest(CHECKPOINT, n, episode=_episode(thread))
                if found := [each for each in latest if _place(each)[1] == namespace]:
                    break
        if not found:
            return None
        newest = max(found, key=_place)
        versions = self.serde.loads_typed(_row(newest)[0])["channel_versions"]
        keys = [_key(VALUE, thread, namespace, channel, version) for channel, version in versions.items()]
        values = await memory.records(keys)
        return self._sheet([newest, *values, *await _writes(memory, [newest])]).get_tuple(config)

    async def _find(
        self, config: RunnableConfig | None, memory: Memory, limit: int | None = None, **asked: Any
    ) -> Sequence[RunnableConfig]:
        """Return the configurations of the checkpoints that match, newest first."""
        episode = _episode(config["configurable"]["thread_id"]) if config else None
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
        episode = _episode(thread_id)
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


def _rows(sheet: InMemorySaver) -> Iterator[tuple[Kind, Place, Any]]:
    """Yield the rows of a saver of LangGraph."""
    for thread, spaces in sheet.storage.items():
        for name, checkpoints in spaces.items():
            yield from ((CHECKPOINT, (thread, name, id_), row) for id_, row in checkpoints.items())
    yield from ((VALUE, place, row) for place, row in sheet.blobs.items())
    yield from ((WRITE, (*place, *at), row) for place, there in sheet.writes.items() for at, row in there.items())


def _record(memory: Memory, kind: Kind, place: Place, row: Any) -> Record:
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
        episode=f"after {checkpoint}" if kind == WRITE else _episode(place[0]),
        evidence=(checkpoint,) if kind == WRITE else (),
    )


async def _write(memory: Memory, rows: Iterable[tuple[Kind, Place, Any]]) -> None:
    """Store rows in one commit. Existing values and writes are kept; existing checkpoints are replaced."""
    records = [_record(memory, *row) for row in rows]
    while records:
        event = Remembered(count=len(records), kinds=dict(Counter(each.kind for each in records)))
        try:
            await memory.commit(Entry(event, BY, tuple(records)))
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


def _place(record: Record) -> Place:
    return tuple(record.data["place"])  # type: ignore[arg-type]


def _key(kind: Kind, *place: Any) -> str:
    """Return the id of a row's record."""
    return hashlib.blake2b(json.dumps([kind, *place]).encode(), digest_size=20).hexdigest()


def _row(record: Record) -> Any:
    return ormsgpack.unpackb(base64.b64decode(str(record.data["row"])))


def _episode(thread: str) -> str:
    """Return a thread's name, or a hash of it if it is not valid as the episode of a record."""
    name = str(thread)
    plain = name.strip() == name and 0 < len(name) <= MAX_NAME and name.isprintable()
    return name if plain else _key(CHECKPOINT, name)
