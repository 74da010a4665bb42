"""Idempotency-Key: a write that is sent again is executed once and gets the first answer again.

Answers are kept in memory; on disk only those without users' words and names: a sequence number, an id. After a
restart, or after words were erased that an answer may contain, its key is answered with a conflict.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass

from pydantic import BaseModel

from mindstream.errors import InputError, MindstreamError
from mindstream.log.names import StreamKey
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.service.operations.minds import ONCE
from mindstream.service.operations.principal import Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.table import Operation

MAX_KEY, MAX_ANSWERS = 200, 10_000
POLL_S, PATIENCE_S = 0.2, 10.0
"""Seconds: the interval of checks whether another server of these data has finished a write, and how long they last."""
SHARED = ("pools", "towns")
"""Packages whose answers contain words of several users: these are dropped when any user's words are erased."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """An answer; `stream`: whose words it may contain (None: anyone's); `upto`: the last erasure before it was made."""

    answer: BaseModel
    tenant_key: str
    stream: StreamKey | None
    upto: int


class Writes:
    """The writes that came with a key.

    Args:
        patience_s: how long to wait for another server that is executing the same write; 0: there is none.
    """

    def __init__(self, runtime: Runtime, state: ServerState, patience_s: float = 0.0) -> None:
        self._runtime, self._state, self._patience_s = runtime, state, patience_s
        self._answers: OrderedDict[str, _Answered] = OrderedDict()
        self._running: dict[str, tuple[str, asyncio.Event]] = {}

    async def once(self, key: str, principal: Principal, operation: Operation, asked: BaseModel) -> BaseModel:
        """Execute an operation, unless it was executed under this key: then return its answer.

        Raises:
            InputError: the key cannot be used.
            Refusal: the key was used for another request, or the answer is no longer known.
        """
        if not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise InputError(f"an Idempotency-Key has 1 to {MAX_KEY} printable characters")
        place = await self._digest(principal.tenant_key, principal.key, principal.user, operation.name, key)
        request = await self._digest(operation.name, asked.model_dump_json())
        while (running := self._running.get(place)) is not None:
            _check_same(running[0], request)
            await running[1].wait()
        ended = asyncio.Event()
        self._running[place] = (request, ended)
        try:
            return await self._once(place, request, principal, operation, asked)
        finally:
            del self._running[place]
            ended.set()

    async def _once(
        self, place: str, request: str, principal: Principal, operation: Operation, asked: BaseModel
    ) -> BaseModel:
        found = await self._begin(place, request, operation)
        if found is not None:
            return await self._first(place, principal, operation, found[1], found[2])
        store = self._runtime.tenant(principal).store
        upto, once = await store.last_erasure(), ONCE.set(place)
        try:
            answer: BaseModel = await operation.call(self._runtime, principal, asked)
        except MindstreamError:
            await self._state.drop(place)  # nothing was done; it may be tried again
            raise
        finally:
            ONCE.reset(once)
        await self._state.done(place, operation.status, _storable(operation, answer))
        stream = store.key(principal.name) if principal.user and operation.package not in SHARED else None
        self._answers[place] = _Answered(answer, principal.tenant_key, stream, upto)
        if len(self._answers) > MAX_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    async def _begin(self, place: str, request: str, operation: Operation) -> tuple[str, int, str] | None:
        """Reserve the key (None), or return its state; a write that another server is executing is waited for.

        An operation that is itself executed once under a key may be begun by several servers.
        """
        for _ in range(int(self._patience_s / POLL_S) + 1):
            found = await self._state.begin(place, request)
            if found is None:
                return None
            _check_same(found[0], request)
            if found[1]:
                break
            if operation.is_once:
                return None
            await asyncio.sleep(POLL_S if self._patience_s else 0)
        return found

    async def _first(self, place: str, principal: Principal, operation: Operation, status: int, kept: str) -> BaseModel:
        if (held := self._answers.get(place)) is not None and not await self._is_lost(place, held):
            return held.answer
        if kept:
            answer = operation.reply.model_validate_json(kept)
            return await operation.complete(self._runtime, principal, answer) if operation.complete else answer
        what = "was executed" if status else "may have been executed when the server ended"
        raise Refusal("conflict", f"this {what}; its answer is not kept: check before you send it under another key")

    async def _digest(self, *parts: str) -> str:
        """Return a keyed digest, since names and words could be guessed from a plain one."""
        return await self._runtime.server_store().digest(json.dumps(parts))

    async def check(self, stream: StreamKey) -> None:
        """Drop the answers that may contain words of a stream that were erased since."""
        for place, each in list(self._answers.items()):
            if each.stream in (None, stream):
                await self._is_lost(place, each)

    async def _is_lost(self, place: str, each: _Answered) -> bool:
        """Drop an answer if words that it may contain were erased since; return whether that is so."""
        store = self._runtime.store_of(each.tenant_key)
        if each.stream is None:
            is_lost = await store.last_erasure() > each.upto
        else:
            is_lost = await store.lost_since(each.stream, each.upto) is not None
        if is_lost:
            self._answers.pop(place, None)
        return is_lost


def _storable(operation: Operation, answer: BaseModel) -> str:
    """Return the JSON to store for an answer; "" if it contains words."""
    if not operation.wordless:
        return ""
    bare = {name: type(getattr(answer, name))() for name in operation.leaves_out}
    return answer.model_copy(update=bare).model_dump_json()


def _check_same(before: str, request: str) -> None:
    if before != request:
        raise Refusal("conflict", "this Idempotency-Key was used for another request")
