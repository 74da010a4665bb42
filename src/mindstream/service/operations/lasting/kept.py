"""Results of long operations in the store, so that a restart of the server loses none: kept for a day.

Each is kept of its user's stream: whoever forgets or erases deletes it (see memory/store/erasure).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from pydantic import BaseModel, ValidationError

from mindstream import chance
from mindstream.clock import DAY_S, Moment
from mindstream.errors import StorageError
from mindstream.location import Location
from mindstream.log.kept import RESULT
from mindstream.log.names import StreamKey, tenant_of
from mindstream.memory.opening import open_everyone
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.lasting.shape import OperationShape

KEPT_S = DAY_S
MOST = 1_000
"""So many are kept of a tenant."""
LONGEST = 1_000_000
"""Bytes; of a longer result only that it was done."""
TOO_LONG = "it is done; what came of it is too long to be kept over a restart of the server"


class KeptOperation(BaseModel):
    """An operation as it is kept, and whose it is; `seen`: when its server last said how it stands."""

    wall: str
    shape: OperationShape
    seen: Moment = 0.0


class KeptOperations:
    """What is kept of operations in the data; each is written whole, in the order in which it changed.

    Args:
        store: gives a tenant's store.
    """

    def __init__(self, data: Location, store: Callable[[str], KeptStore]) -> None:
        self._data, self._store = data, store
        self._writing: asyncio.Task[None] | None = None

    def keep(self, wall: str, stream: StreamKey, shape: OperationShape, now: Moment) -> asyncio.Task[None]:
        """Begin to write down how an operation stands. Where that fails it is known until the server ends."""
        text = KeptOperation(wall=wall, shape=shape, seen=now).model_dump_json()
        if len(text.encode()) > LONGEST:
            less = shape.model_copy(update={"result": None, "progress": [], "waits_for": [], "problem": TOO_LONG})
            text = KeptOperation(wall=wall, shape=less, seen=now).model_dump_json()
        return self._write(wall, stream, shape.id, shape.ended or shape.began, text)

    def drop(self, wall: str, stream: StreamKey, id_: str) -> None:
        """Let go of one."""
        self._write(wall, stream, id_, 0.0, None)

    def _write(self, wall: str, stream: StreamKey, id_: str, at: Moment, text: str | None) -> asyncio.Task[None]:
        before = self._writing

        async def write() -> None:
            if before is not None:
                await asyncio.wait({before})
            with contextlib.suppress(StorageError):
                await self._store(wall).keep(stream, f"{RESULT}{id_}", at, lambda _: text)

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
