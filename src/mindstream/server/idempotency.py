"""Idempotency-Key: a write that is sent again is answered as the first time, and done once.

Answers are kept in memory; on disk only what holds no words and no names: a sequence number, an id. After a restart,
and after words were erased that may stand in it, the key of another one is known to be done, and said to be.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import BaseModel

from mindstream.errors import InputError, MindstreamError
from mindstream.log.names import StreamKey
from mindstream.server.ledger import Ledger
from mindstream.server.problems import Refusal
from mindstream.service.operations.minds import ONCE
from mindstream.service.operations.principal import Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.table import Operation

LONGEST = 200
MOST = 10_000


LOOK_S, PATIENCE_S = 0.2, 10.0
"""How often, and how long, it is looked whether another server of these data has done it."""


SHARED = ("pools", "towns")
"""Rooms whose answers hold words of several users: those go where words of anybody were erased."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """An answer; `stream`: whose words may stand in it (None: anybody's), with erasures known up to `upto`."""

    answer: BaseModel
    tenant_key: str
    stream: StreamKey | None
    upto: int


class Writes:
    """The writes that came with a key.

    Args:
        patience_s: so long another server may be at what was begun under a key; 0: there is none.
    """

    def __init__(self, runtime: Runtime, ledger: Ledger, patience_s: float = 0.0) -> None:
        self._runtime, self._ledger, self._patience_s = runtime, ledger, patience_s
        self._answers: OrderedDict[str, _Answered] = OrderedDict()
        self._going_on: dict[str, tuple[str, asyncio.Event]] = {}

    async def once(
        self,
        key: str,
        principal: Principal,
        operation: Operation,
        ask: BaseModel,
        do: Callable[[], Awaitable[BaseModel]],
    ) -> BaseModel:
        """Do it, unless it was done under this key: then return what came of it.

        Raises:
            InputError: it is no key.
            Refusal: the key was used for another request, or what came of it is not known any more.
        """
        if not (0 < len(key) <= LONGEST and key.isprintable()):
            raise InputError(f"an Idempotency-Key has 1 to {LONGEST} characters")
        place = await self._digest(principal.tenant_key, principal.key, principal.user, operation.name, key)
        request = await self._digest(operation.name, ask.model_dump_json())
        while (going := self._going_on.get(place)) is not None:
            _check_same(going[0], request)
            await going[1].wait()
        ended = asyncio.Event()
        self._going_on[place] = (request, ended)
        try:
            return await self._once(place, request, principal, operation, do)
        finally:
            del self._going_on[place]
            ended.set()

    async def _once(
        self,
        place: str,
        request: str,
        principal: Principal,
        operation: Operation,
        do: Callable[[], Awaitable[BaseModel]],
    ) -> BaseModel:
        found = await self._begin(place, request, operation)
        if found is not None:
            return await self._first(place, principal, operation, found[1], found[2])
        store = self._runtime.tenant(principal).store
        upto, once = await store.last_erasure(), ONCE.set(place)
        try:
            answer = await do()
        except MindstreamError:
            await self._ledger.drop(place)  # nothing was done; it may be tried again
            raise
        finally:
            ONCE.reset(once)
        await self._ledger.done(place, operation.status, _kept(operation, answer))
        stream = store.key(principal.name) if principal.user and operation.room not in SHARED else None
        self._answers[place] = _Answered(answer, principal.tenant_key, stream, upto)
        if len(self._answers) > MOST:
            self._answers.popitem(last=False)
        return answer

    async def _begin(self, place: str, request: str, operation: Operation) -> tuple[str, int, str] | None:
        """Take the key, or return what stands there; another server may be at it, which is waited for.

        What is done once by itself may be begun by several: whoever is second is told what the first has done.
        """
        for _ in range(int(self._patience_s / LOOK_S) + 1):
            found = await self._ledger.begin(place, request)
            if found is None:
                return None
            _check_same(found[0], request)
            if found[1]:
                break
            if operation.is_once:
                return None
            await asyncio.sleep(LOOK_S if self._patience_s else 0)
        return found

    async def _first(self, place: str, principal: Principal, operation: Operation, status: int, kept: str) -> BaseModel:
        if place in self._answers and not await self._is_lost(place):
            return self._answers[place].answer
        if kept:
            answer = operation.reply.model_validate(json.loads(kept))
            return await operation.complete(self._runtime, principal, answer) if operation.complete else answer
        what = "was done" if status else "may have been done when the server ended"
        raise Refusal("conflict", f"this {what}; its answer is not kept: look before you send it under another key")

    async def _digest(self, *parts: str) -> str:
        """Return what the ledger knows parts by: keyed, for names and words could be tried."""
        return await self._runtime.server_store().digest(json.dumps(parts))

    async def check(self, stream: StreamKey) -> None:
        """Let go of the answers in which words of a stream may stand that were erased since."""
        for place, each in list(self._answers.items()):
            if each.stream in (None, stream):
                await self._is_lost(place)

    async def _is_lost(self, place: str) -> bool:
        """Let go of an answer where words that may stand in it were erased since, and tell whether that is so."""
        if (each := self._answers.get(place)) is None:
            return True
        store = self._runtime.store_of(each.tenant_key)
        if each.stream is None:
            is_lost = await store.last_erasure() > each.upto
        else:
            is_lost = await store.lost_since(each.stream, each.upto) is not None
        if is_lost:
            self._answers.pop(place, None)
        return is_lost


def _kept(operation: Operation, answer: BaseModel) -> str:
    """Return what the ledger keeps of an answer; "" where it holds words."""
    if not operation.wordless:
        return ""
    bare = {name: type(getattr(answer, name))() for name in operation.leaves_out}
    return answer.model_copy(update=bare).model_dump_json()


def _check_same(before: str, request: str) -> None:
    if before != request:
        raise Refusal("conflict", "this Idempotency-Key was used for another request")
