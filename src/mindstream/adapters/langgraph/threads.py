"""A graph's threads as records: one a checkpoint, one a value of a channel, one a write that is pending.

A value is written once, with its version. Checkpoints and values of a thread are its episode; writes,
an episode of their checkpoint, are drawn from it, so that they go with it where it is forgotten.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import RunnableConfig

from mindstream.errors import Conflict
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record, new_id
from mindstream.memory.store.store import Entry

BY = "langgraph"
CHECKPOINT: Kind = "document"
VALUE: Kind = "evidence"
WRITE: Kind = "feedback"
ALL = 2**31
LONGEST = 400


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint is; `id` "": the newest."""

    thread: str
    namespace: str
    id: str

    def key(self, kind: Kind, *more: str) -> str:
        """Return the id of the record of this checkpoint, or of a value in its thread and namespace."""
        whole = (kind, self.thread, self.namespace, *(more or (self.id,)))
        return hashlib.blake2b("\0".join(whole).encode(), digest_size=20).hexdigest()

    @property
    def writes(self) -> str:
        """The episode of what is written after it."""
        return f"after {self.key(CHECKPOINT)}"


def place_in(config: RunnableConfig) -> Place:
    """Return the checkpoint that a config names."""
    named = config["configurable"]
    return Place(str(named["thread_id"]), named.get("checkpoint_ns", ""), named.get("checkpoint_id") or "")


def config_of(place: Place) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    return {
        "configurable": {"thread_id": place.thread, "checkpoint_ns": place.namespace, "checkpoint_id": place.id}
    }  # fmt: skip


def place_of(record: Record) -> Place:
    """Return which checkpoint a record is, or belongs to."""
    return Place(str(record.data["thread"]), str(record.data["namespace"]), id_of(record))


def id_of(record: Record) -> str:
    """Return a checkpoint's id, which grows with time."""
    return str(record.data["id"])


def record(memory: Memory, kind: Kind, place: Place, key: str, text: str, data: Mapping[str, Any]) -> Record:
    """Make a record; `key` "": a new one each time."""
    now, episode = memory.clock.now(), place.writes if kind == WRITE else _episode(place.thread)
    whole = {"thread": place.thread, "namespace": place.namespace, "id": place.id, **data}
    return Record(
        id=key or new_id(now), stream=memory.key, kind=kind, text=text, created=now, accessed=now, by=BY,
        episode=episode, data=whole, evidence=(place.key(CHECKPOINT),) if kind == WRITE else (),
    )  # fmt: skip


async def write(memory: Memory, records: Sequence[Record]) -> None:
    """Write records in one commit. A value that is there stays; a checkpoint takes the place of the one that is."""
    while records:
        event = Remembered(count=len(records), kinds=dict(Counter(each.kind for each in records)))
        try:
            await memory.commit(Entry(event, BY, tuple(records)))
            return
        except Conflict:
            known = {each.id: each for each in await memory.store.records(memory.key, [each.id for each in records])}
            if not known:
                raise
            if old := [each.id for each in known.values() if each.kind == CHECKPOINT]:
                await memory.store.erase(memory.key, old)
            records = [each for each in records if each.kind == CHECKPOINT or each.id not in known]


async def latest(memory: Memory, kind: Kind, episode: str, n: int) -> list[Record]:
    """Return the newest records of a kind, oldest first: of a thread, or of what `Place.writes` names."""
    return await memory.store.latest(memory.key, [kind], n, now=memory.clock.now(), episode=_episode(episode))


async def find(memory: Memory, config: RunnableConfig | None, before: RunnableConfig | None) -> list[Record]:
    """Return the checkpoints that a config names in part, or all, the newest first."""
    named, last = config["configurable"] if config else {}, place_in(before).id if before else ""
    records = (
        await latest(memory, CHECKPOINT, str(named["thread_id"]), ALL) if config
        else [each async for each in walk(memory) if each.kind == CHECKPOINT]
    )  # fmt: skip
    return [
        each for each in sorted(records, key=id_of, reverse=True)
        if named.get("checkpoint_ns") in (None, each.data["namespace"])
        and named.get("checkpoint_id") in (None, "", id_of(each)) and (not last or id_of(each) < last)
    ]  # fmt: skip


async def walk(memory: Memory) -> AsyncIterator[Record]:
    """Yield all records that stand for threads, a few in memory at a time."""
    async with memory.store.walk(memory.key) as (_, records):
        async for each in records:
            if each.by == BY and "thread" in each.data:
                yield each


def in_order(writes: Iterable[Record]) -> list[Record]:
    """Return writes in the order in which they were made; what a task wrote twice once: an error or the like anew."""
    first: dict[tuple[str, int], Record] = {}
    for each in writes:
        at = int(str(each.data["at"]))
        if at < 0 or (each.data["task"], at) not in first:
            first[str(each.data["task"]), at] = each
    return sorted(first.values(), key=lambda each: (each.data["path"], each.data["task"], each.data["at"]))


async def delete(thread: str, memory: Memory) -> None:
    """Erase a thread for good, with its words in the log."""
    records = await memory.store.latest(memory.key, None, ALL, now=memory.clock.now(), episode=_episode(thread))
    await _erase(memory, [each for each in records if each.data.get("thread") == thread])


async def delete_runs(runs: Collection[str], memory: Memory) -> None:
    """Erase the checkpoints that some runs have made, and the values that no other checkpoint of their threads has."""
    found = [each async for each in walk(memory) if each.kind != WRITE]
    gone = [each for each in found if each.data.get("run") in set(runs) and each.kind == CHECKPOINT]
    threads, ids = {each.data["thread"] for each in gone}, {each.id for each in gone}
    kept = {
        key for each in found if each.kind == CHECKPOINT and each.id not in ids
        for key in each.data["values"]  # type: ignore[union-attr]
    }  # fmt: skip
    values = [each for each in found if each.kind == VALUE and each.data["thread"] in threads and each.id not in kept]
    await _erase(memory, [*gone, *values])


async def copy(source: str, target: str, memory: Memory) -> None:
    """Write a thread down once more under another name, with all that was written after its checkpoints."""
    found = await memory.store.latest(memory.key, None, ALL, now=memory.clock.now(), episode=_episode(source))
    checkpoints = [each for each in found if each.kind == CHECKPOINT]
    writes = [each for one in checkpoints for each in await latest(memory, WRITE, place_of(one).writes, ALL)]
    keys = {each.id: _copied_key(each, target) for each in found}
    copies = []
    for each in (*found, *writes):
        place = replace(place_of(each), thread=target)
        data = dict(each.data) | {"thread": target}
        if each.kind == CHECKPOINT:
            data["values"] = [keys.get(str(key), str(key)) for key in each.data["values"]]  # type: ignore[union-attr]
        copies.append(record(memory, each.kind, place, keys.get(each.id, ""), each.text, data))
    await write(memory, copies)


def _copied_key(each: Record, target: str) -> str:
    place = replace(place_of(each), thread=target)
    return place.key(CHECKPOINT) if each.kind == CHECKPOINT else place.key(VALUE, "copy", each.id)


async def _erase(memory: Memory, records: Sequence[Record]) -> None:
    ids = [each.id for each in records]
    for each in records:
        if each.kind == CHECKPOINT:
            ids += [one.id for one in await latest(memory, WRITE, place_of(each).writes, ALL)]
    if ids:
        await memory.store.erase(memory.key, ids)


def _episode(name: str) -> str:
    """Return a name as it may stand in a record; another one, the same each time, where it could not."""
    plain = name.strip() == name and 0 < len(name) <= LONGEST and name.isprintable()
    return name if plain else hashlib.blake2b(name.encode(), digest_size=20).hexdigest()
