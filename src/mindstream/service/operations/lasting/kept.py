"""Results of long operations in the store, so that a restart of the server loses none: kept for a day.

Each row belongs to its user's stream. A forget or an erase of that user deletes it in its own transaction (see
memory/store/erasure), and the store refuses to write words back that were read before that (`words_read`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Protocol

from pydantic import BaseModel, ValidationError

from mindstream import chance
from mindstream.clock import DAY_S, Moment
from mindstream.errors import ErasedMeanwhile, StorageError
from mindstream.location import Location
from mindstream.log.kept import RESULT
from mindstream.log.names import StreamKey, tenant_of
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.store import KeptStore, PrivacyStore
from mindstream.service.operations.lasting.shape import OperationShape

KEPT_S = DAY_S
MOST = 1_000
"""So many are kept of a tenant."""
LONGEST = 1_000_000
"""Bytes; of a longer result only that it was done."""
FORGOTTEN = "words of this user were forgotten while it went on, so what it found is not kept: "
TOO_LONG = "it is done; what came of it is too long to be kept over a restart of the server"


class KeptOperation(BaseModel):
    """An operation as it is kept, and whose it is.

    Attributes:
        seen: when its server last said how it stands.
        words_read: the number of the last erasure when it began to read its user's words.
    """

    wall: str
    shape: OperationShape
    seen: Moment = 0.0
    words_read: int = 0


class OperationStore(KeptStore, PrivacyStore, Protocol):
    """What is asked of a store."""


class KeptOperations:
    """What is kept of operations in the data; each is written whole, in the order in which it changed.

    Args:
        store: gives a tenant's store.
    """

    def __init__(self, data: Location, store: Callable[[str], OperationStore]) -> None:
        self._data, self._store = data, store
        self._writing: asyncio.Task[None] | None = None

    async def last_erasure(self, wall: str) -> int:
        """Return the number of the last erasure."""
        return await self._store(wall).last_erasure()

    async def lost_since(self, wall: str, stream: StreamKey, number: int) -> bool | None:
        """Tell whether all of a stream was erased after an erasure (True), or a part of it (False); None: nothing."""
        return await self._store(wall).lost_since(stream, number)

    def keep(self, kept: KeptOperation, stream: StreamKey, lost: Callable[[bool], None]) -> asyncio.Task[None]:
        """Begin to write down how an operation stands. Where that fails it is known until the server ends.

        Args:
            lost: called where words of the user were erased meanwhile: `True` where all of them were, and nothing is
                written; else the operation is written without its words.
        """
        shape = kept.shape
        text = kept.model_dump_json()
        if len(text.encode()) > LONGEST:
            text = _without_words(kept, TOO_LONG).model_dump_json()

        async def put(store: OperationStore, name: str, at: Moment) -> None:
            try:
                await store.keep(stream, name, at, lambda _: text, kept.words_read)
            except ErasedMeanwhile as erased:
                lost(erased.whole)
                while not erased.whole:
                    bare = _without_words(kept, told_forgotten(shape.run), await store.last_erasure())
                    try:
                        await store.keep(stream, name, at, lambda _: bare.model_dump_json(), bare.words_read)  # noqa: B023
                    except ErasedMeanwhile as again:
                        lost(again.whole)
                        erased = again
                    else:
                        return

        return self._write(kept.wall, shape.id, shape.ended or shape.began, put)

    def drop(self, wall: str, stream: StreamKey, id_: str) -> None:
        """Let go of one."""

        async def put(store: OperationStore, name: str, at: Moment) -> None:
            await store.keep(stream, name, at, lambda _: None)

        self._write(wall, id_, 0.0, put)

    def _write(
        self, wall: str, id_: str, at: Moment, put: Callable[[OperationStore, str, Moment], Awaitable[None]]
    ) -> asyncio.Task[None]:
        before = self._writing

        async def write() -> None:
            if before is not None:
                await asyncio.wait({before})
            with contextlib.suppress(StorageError):
                await put(self._store(wall), f"{RESULT}{id_}", at)

        self._writing = asyncio.ensure_future(write())
        return self._writing

    async def settle(self) -> None:
        """Wait until all is written."""
        if self._writing is not None:
            await asyncio.wait({self._writing})

    async def of(self, wall: str, id_: str = "") -> list[KeptOperation]:
        """Return all of a tenant, or the one of an id; what was forgotten or erased is none, whoever did it."""
        found = list[KeptOperation]()
        for each in await self._store(wall).kept(None, f"{RESULT}{id_}"):
            with contextlib.suppress(ValidationError):
                found.append(KeptOperation.model_validate_json(each.value))
        return found

    async def each(self, now: Moment) -> AsyncGenerator[KeptOperation]:
        """Give those of all tenants, some in memory at a time; what is of more than a day ago is deleted, and odd."""
        async with open_everyone(self._data) as everyone:
            for first in chance.LETTERS:
                for each in await everyone.kept(None, f"{RESULT}{first}"):
                    try:
                        kept = KeptOperation.model_validate_json(each.value)
                        is_old = now - (kept.shape.ended or kept.shape.began) > KEPT_S
                    except ValidationError:
                        is_old = True
                    if is_old:
                        self.drop(tenant_of(each.stream), each.stream, each.name.removeprefix(RESULT))
                    else:
                        yield kept


def _without_words(kept: KeptOperation, why: str, words_read: int | None = None) -> KeptOperation:
    """Return an operation without its result, its progress and its questions."""
    bare = kept.shape.model_copy(update={"result": None, "progress": [], "waits_for": [], "problem": why})
    return kept.model_copy(update={"shape": bare} | ({} if words_read is None else {"words_read": words_read}))


def told_forgotten(run: str) -> str:
    """Say why nothing is kept of an operation, and what to do."""
    return FORGOTTEN + (f"resume the run {run!r}" if run else "ask for it again")
