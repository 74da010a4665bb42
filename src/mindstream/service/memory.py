"""A user's memory and log, for commands outside a conversation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import get_args

from pydantic import JsonValue

from mindstream.clock import Clock, Moment, SystemClock
from mindstream.errors import InputError
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey, StreamName
from mindstream.memory.memory import Memory
from mindstream.memory.opening import finish_erasures, is_begun, open_store
from mindstream.memory.policy import MemoryPolicy, adopt_policy, open_policy
from mindstream.memory.recall.embedding import pick_embedder
from mindstream.memory.store.record import KINDS, Kind, Record
from mindstream.memory.store.store import Store, read_log
from mindstream.service.folders import refuse_town
from mindstream.settings import Settings

LOOK_S = 0.2
"""How often a log that is followed is looked at."""


@dataclass(frozen=True)
class UserMemory:
    """One user's memory in a data folder, whose embedder is loaded when it is needed.

    Attributes:
        embed: the embedder that is named; None: the one that made its vectors.
        recorded: the embedder that made its vectors; "": it has none.
        policy: how it recalls, and whether it decays.
    """

    store: Store
    user: str
    embed: str | None
    clock: Clock
    policy: MemoryPolicy = field(default_factory=MemoryPolicy)
    recorded: str = ""

    @cached_property
    def key(self) -> StreamKey:
        """By which the store keeps it."""
        return self.store.key(StreamName("user", self.user))

    @cached_property
    def memory(self) -> Memory:
        """The memory; loads the embedder."""
        vectors, of_another = pick_embedder(self.recorded, self.embed)
        memory = Memory(self.store, self.user, vectors, self.clock, strength=self.policy.laws)
        memory.vectors_of = of_another
        return memory

    async def beliefs_and_plans(self) -> list[Record]:
        """Return the latest version of each belief and plan."""
        return await read_slots(self.store, self.key, self.clock.now())

    async def all(self) -> list[Record]:
        """Return every record, superseded and forgotten ones too, in the order of writing."""
        return (await self.store.changes(self.key, 0)).records

    async def is_known(self) -> bool:
        """Tell whether something was ever logged of that user."""
        return bool(await self.store.events(self.key, limit=1))

    async def require_known(self) -> UserMemory:
        """Return itself, sure that there is something to work on.

        Raises:
            InputError: nothing is known of that user.
        """
        if not await self.is_known():
            raise InputError(nobody(self.user))
        return self


async def read_slots(store: Store, key: StreamKey, now: Moment) -> list[Record]:
    """Return the latest version of each belief and plan, by slot."""
    records = await store.latest(key, ["belief", "plan"], 1000, now=now)
    latest = {record.slot: record for record in records if record.slot}  # oldest first, so the newest stays
    return sorted(latest.values(), key=lambda record: record.slot or "")


@contextlib.asynccontextmanager
async def open_user_memory(
    settings: Settings,
    *,
    new: bool = False,
    own: bool = False,
    known: bool = False,
    begins: str = "`mindstream chat`",
) -> AsyncIterator[UserMemory]:
    """Open a user's memory.

    Args:
        new: make the data folder where there is none; something of a user's own is to begin in it.
        own: something is to be written that belongs to no resident of a town.
        known: something of that user is to be there.
        begins: the command that begins what is not there.

    Raises:
        InputError: there is no memory in that folder, or a town's; the user's name cannot be used.
        StorageError: it cannot be read.
    """
    user = StreamName("user", settings.user)
    if not new:
        require_begun(settings, begins)
    await asyncio.to_thread(finish_erasures, settings.data, user.key)
    async with open_store(settings.data) as store:
        if new or own:
            await refuse_town(store, settings.data)
        key, clock, given = store.key(user), SystemClock(), policy_given(settings)
        writes = new or own
        policy = await (adopt_policy(store, key, clock.now(), given) if writes else open_policy(store, key, given))
        recorded = await store.recorded_embedder(key)
        opened = UserMemory(store, settings.user, settings.named_embedder, clock, policy, recorded)
        yield await opened.require_known() if known else opened


def policy_given(settings: Settings) -> dict[str, JsonValue]:
    """Return what the settings say of how a memory recalls and fades."""
    return {**settings.memory, **({"reranker": settings.reranker} if settings.reranker else {})}


async def following(store: Store, clock: Clock, user: StreamKey | None, after: int = 0) -> AsyncIterator[Logged]:
    """Yield the rows of the log after a seq, and then each new one as it is written, by whichever process."""
    while True:
        seen = await store.version()
        async for logged in read_log(store, user, after):
            after = logged.seq
            yield logged
        while await store.version() == seen:
            await clock.sleep(LOOK_S)


def require_begun(settings: Settings, begins: str) -> None:
    """Raise InputError if there is no memory in the data folder; `begins`: the command that begins one."""
    if not is_begun(settings.data):
        raise InputError(f"there is no memory in {settings.data} yet: {begins} begins one, --data names another folder")


def nobody(user: str) -> str:
    """Say that nothing is known of a user; not of whom something is: a folder may be shared, and names are private."""
    return f"nobody is called {user!r} here: choose another --user, or another folder with --data"


def parse_kinds(names: Sequence[str]) -> list[Kind]:
    """Read kinds of records by name; all of them where none is named.

    Raises:
        InputError: there is no such kind.
    """
    known: tuple[Kind, ...] = get_args(Kind)
    for name in names:
        if name not in known:
            raise InputError(f"there is no kind of record {name!r}; the kinds are {', '.join(known)}")
    return [kind for kind in KINDS if kind in names or not names]


def plain(record: Record) -> dict[str, JsonValue]:
    """Return a record as plain data: without its vector, and without what only this data folder knows of it."""
    told: dict[str, JsonValue] = {}
    for each in fields(Record):
        value = getattr(record, each.name)
        if each.name in ("vector", "embedder", "seq", "stream"):
            continue
        if each.name == "data":
            told["data"] = dict(value)
        else:
            told[each.name] = list(value) if isinstance(value, tuple) else value
    return told
