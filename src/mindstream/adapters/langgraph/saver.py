"""LangGraph's checkpoints in a memory (what stands in its records: threads)."""

from __future__ import annotations

import base64
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from mindstream.adapters.langgraph import threads
from mindstream.adapters.langgraph.threads import ALL, CHECKPOINT, VALUE, WRITE, Place, config_of, id_of, place_in
from mindstream.adapters.loop import Handle
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store


class MindstreamSaver(BaseCheckpointSaver[str]):
    """Keeps a graph's threads in a memory: `builder.compile(checkpointer=MindstreamSaver("data"))`.

    Args:
        data: a folder, a database's URL, or a store (a tenant's sees that tenant's alone).
        user: whose memory; it is to hold nothing else, since nobody wants to recall from checkpoints.
        serde: as other savers take it.
    """

    def __init__(
        self, data: str | Path | Store, user: str = "langgraph threads", *, serde: SerializerProtocol | None = None
    ) -> None:
        super().__init__(serde=serde)
        self.handle = Handle(data, user)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.handle.wait(partial(self._get, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.handle.do(partial(self._get, config))

    def list(self, config: RunnableConfig | None, **asked: Any) -> Iterator[CheckpointTuple]:
        for record in self.handle.wait(partial(self._find, config, **asked)):
            yield self.handle.wait(partial(self._tuple, record))

    async def alist(self, config: RunnableConfig | None, **asked: Any) -> AsyncIterator[CheckpointTuple]:
        for record in await self.handle.do(partial(self._find, config, **asked)):
            yield await self.handle.do(partial(self._tuple, record))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.handle.wait(partial(self._put, config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self.handle.do(partial(self._put, config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.handle.wait(partial(self._put_writes, config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self.handle.do(partial(self._put_writes, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self.handle.wait(partial(threads.delete, thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await self.handle.do(partial(threads.delete, thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.handle.wait(partial(threads.copy, source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.handle.do(partial(threads.copy, source_thread_id, target_thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self.handle.wait(partial(threads.delete_runs, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self.handle.do(partial(threads.delete_runs, run_ids))

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """Return a version that is later, and that no fork of the thread has too."""
        return f"{int(str(current or 0).split('.')[0]) + 1:032}.{random.random():016}"

    def purge(self) -> None:
        """Write the file anew where something was erased from it: else old bytes of a thread may still be found."""
        self.handle.wait(lambda memory: memory.store.compact())

    def close(self) -> None:
        """Let the memory go; whoever uses the saver again opens it again."""
        self.handle.close()

    async def _get(self, config: RunnableConfig, memory: Memory) -> CheckpointTuple | None:
        place = place_in(config)
        if place.id:
            found = await memory.store.records(memory.key, [place.key(CHECKPOINT)])
            return await self._tuple(found[0], memory) if found else None
        for n in (4, 64, ALL):  # those of subgraphs stand between them
            records = await threads.latest(memory, CHECKPOINT, place.thread, n)
            if ours := [record for record in records if record.data["namespace"] == place.namespace]:
                break
        return await self._tuple(max(ours, key=id_of), memory) if ours else None

    async def _find(
        self, config: RunnableConfig | None, memory: Memory, *, filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None, limit: int | None = None,
    ) -> Sequence[Record]:  # fmt: skip
        """Return the records of checkpoints that are asked for, the newest first."""
        found = await threads.find(memory, config, before)
        if filter:
            said = [(record, self._load(record.data["metadata"])) for record in found]
            found = [record for record, each in said if all(each.get(name) == it for name, it in filter.items())]
        return found if limit is None else found[: max(0, limit)]

    async def _tuple(self, record: Record, memory: Memory) -> CheckpointTuple:
        """Return a checkpoint with the values of its channels, and what was written after it."""
        place, parent = threads.place_of(record), str(record.data["parent"])
        values = await memory.store.records(memory.key, record.data["values"])  # type: ignore[arg-type]
        return CheckpointTuple(
            config=config_of(place),
            checkpoint={  # type: ignore[typeddict-item]
                **self._load(record.data["checkpoint"]),
                "channel_values": {
                    each.data["channel"]: self._load(each.data["value"]) for each in values if each.data["value"]
                },
            },
            metadata=self._load(record.data["metadata"]),
            parent_config=config_of(Place(place.thread, place.namespace, parent)) if parent else None,
            pending_writes=[
                (str(each.data["task"]), str(each.data["channel"]), self._load(each.data["value"]))
                for each in threads.in_order(await threads.latest(memory, WRITE, place.writes, ALL))
            ],
        )

    async def _put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata,
        new_versions: ChannelVersions, memory: Memory,
    ) -> RunnableConfig:  # fmt: skip
        before, id_, values = place_in(config), checkpoint["id"], checkpoint["channel_values"]
        place = Place(before.thread, before.namespace, id_)
        bare = {name: each for name, each in checkpoint.items() if name != "channel_values"}
        whole = get_checkpoint_metadata(config, metadata)
        key = {channel: place.key(VALUE, channel, str(it)) for channel, it in checkpoint["channel_versions"].items()}
        records = [
            threads.record(memory, VALUE, place, place.key(VALUE, channel, str(it)), f"value of {channel} at {id_}", {
                "channel": channel, "value": self._dump(values[channel]) if channel in values else [],
            })
            for channel, it in new_versions.items()
        ]  # fmt: skip
        records.append(threads.record(memory, CHECKPOINT, place, place.key(CHECKPOINT), f"checkpoint {id_}", {
            "parent": before.id, "checkpoint": self._dump(bare), "metadata": self._dump(whole),
            "run": str(whole.get("run_id", "")), "values": list(key.values()),
        }))  # fmt: skip
        await threads.write(memory, records)
        return config_of(place)

    async def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, memory: Memory
    ) -> None:
        place = place_in(config)
        await threads.write(memory, [
            threads.record(memory, WRITE, place, "", f"write to {channel} after {place.id}", {
                "task": task_id, "path": task_path, "at": WRITES_IDX_MAP.get(channel, at), "channel": channel,
                "value": self._dump(value),
            })
            for at, (channel, value) in enumerate(writes)
        ])  # fmt: skip

    def _dump(self, value: Any) -> Any:
        kind, packed = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(packed).decode()]

    def _load(self, dumped: Any) -> Any:
        return self.serde.loads_typed((dumped[0], base64.b64decode(dumped[1])))
