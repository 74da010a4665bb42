"""The versions of a pool's retriever: a line in the pool's log, and beside it the weights of the newest."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace

from mindstream.errors import InputError
from mindstream.memory.memory import Memory
from mindstream.memory.recall.policies import Policy
from mindstream.memory.store.checkpoints import Checkpoint
from mindstream.memory.store.store import Entry
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.retriever.ranking import AboutMean, ByHead
from mindstream.sharing.retriever.version import Version

NAME = "retriever"


@dataclass(frozen=True)
class Newest:
    """The newest version of a pool, as this process can use it.

    Attributes:
        number: its place in the line; 0: there is none.
        version: None: the pool is ranked untrained.
        fault: why, where there is one; foreign: it is of another embedder.
    """

    number: int = 0
    version: Version | None = None
    policy: Policy = field(default_factory=AboutMean)
    fault: str = ""
    foreign: bool = False


async def read_newest(stream: Memory, number: int) -> Newest:
    """Read the newest version, which the log says is this one, or a later one."""
    kept = await stream.store.checkpoint(stream.key, NAME)
    if kept is None:
        return Newest(number, fault=f"the weights of version {number} are lost or damaged; it learns anew")
    number = max(number, kept.version)
    try:
        version = await asyncio.to_thread(_read, kept)
    except InputError as error:
        return Newest(number, fault=f"version {number} cannot be read ({error}); it learns anew")
    if version.embedder != stream.embedder.name:
        fault = f"version {number} was learned with the embedder {version.embedder}, and this is {stream.embedder.name}"
        return Newest(number, fault=fault, foreign=True)
    return Newest(number, version, ByHead(version.head))


def _read(kept: Checkpoint) -> Version:
    try:
        data = json.loads(kept.data)
    except (ValueError, RecursionError) as error:
        raise InputError(str(error)) from None
    return Version.from_data(data if isinstance(data, dict) else {})


async def publish(stream: Memory, version: Version, row: RetrieverTrained) -> None:
    """Write a version at the end of the line.

    Raises:
        Conflict: another process has written one: go on from that one, and learn again.
    """
    named = replace(version, number=row.number, parent=row.parent)
    data = await asyncio.to_thread(lambda: json.dumps(named.as_data()).encode())
    await stream.commit(Entry(row, NAME), checkpoint=Checkpoint(NAME, row.number, data))
