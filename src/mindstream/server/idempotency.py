"""Idempotency-Key: a write that is sent again with the same key is executed once, and gets the first reply again.

Replies are kept in memory. Only replies without users' words and names (a row number, an id) are also stored on disk.
If a reply was lost, by a restart or because words that it may contain were erased, a repeated request gets a conflict.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass

from pydantic import BaseModel

from mindstream.errors import InputError, MindstreamError
from mindstream.identifiers import StreamKey
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.service.operations.minds import ONCE
from mindstream.service.operations.operation import Operation, Principal
from mindstream.service.operations.runtime import Runtime

MAX_KEY, MAX_ANSWERS = 200, 10_000
"""Maximum length of a key, and maximum number of replies in memory."""
POLL_S, PATIENCE_S = 0.2, 10.0
"""Seconds: while another server executes the same write, the poll interval, and the maximum wait."""
SHARED = ("pools", "towns")
"""Packages whose replies may contain words of several users. Such replies are dropped if words of any user are
erased."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """A reply in memory.

    Attributes:
        stream: the stream of the user whose words the reply may contain. None: it may contain words of any user of the
            tenant.
        upto: the number of the last erasure before the operation was executed.
    """

    answer: BaseModel
    tenant_key: str
    stream: StreamKey | None
    upto: int


class Writes:
    """Executes writes with an Idempotency-Key.

    Args:
        patience_s: maximum seconds to wait while another server executes the same write; 0: there is no other server.
    """

    def __init__(self, runtime: Runtime, state: ServerState, patience_s: float = 0.0) -> None:
        self._runtime, self._state, self._patience_s = runtime, state, patience_s
        self._answers: OrderedDict[str, _Answered] = OrderedDict()
        self._running: dict[str, tuple[str, asyncio.Event]] = {}

    async def once(self, key: str, principal: Principal, operation: Operation, asked: BaseModel) -> BaseModel:
        """Execute an operation, or return its first reply if it was already executed under this key.

        Raises:
            InputError: the key is not valid.
            Refusal: the key was used for another request, or the first reply was not kept.
        """
        if not (0 < len(key) <= MAX_KEY and key.isprintable()):
            raise InputError(f"an Idempotency-Key must have 1 to {MAX_KEY} printable characters")
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
            await self._state.drop(place)  # the operation failed, so the client may use its key again
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
        """Reserve the key and return None. If the key was reserved before, return the stored state of the write.

        If another server is executing the write, wait until that server has finished, at most `patience_s` seconds. If
        the operation itself ensures that it is executed only once (`is_once`), do not wait, but return None: several
        servers may begin such an operation.
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
        what = "was executed" if status else "may have been executed before the server ended"
        raise Refusal(
            "conflict",
            f"the request with this Idempotency-Key {what}, and its reply is not kept: check the result before you send"
            " the request with another key",
        )

    async def _digest(self, *parts: str) -> str:
        """Return a keyed digest; from a digest without a secret key, names and words could be guessed."""
        return await self._runtime.server_store().digest(json.dumps(parts))

    async def check(self, stream: StreamKey) -> None:
        """Drop each reply that may contain words of a stream that were erased after the reply was made."""
        for place, each in list(self._answers.items()):
            if each.stream in (None, stream):
                await self._is_lost(place, each)

    async def _is_lost(self, place: str, each: _Answered) -> bool:
        """Drop a reply if words that it may contain were erased after it was made. Return whether the reply was
        dropped."""
        store = self._runtime.store_of(each.tenant_key)
        if each.stream is None:
            is_lost = await store.last_erasure() > each.upto
        else:
            is_lost = await store.lost_since(each.stream, each.upto) is not None
        if is_lost:
            self._answers.pop(place, None)
        return is_lost


def _storable(operation: Operation, answer: BaseModel) -> str:
    """Return the JSON of a reply, to be stored. The fields in `operation.leaves_out` are emptied. "": other fields of
    this operation's replies may contain words of users, so the reply must not be stored."""
    if not operation.wordless:
        return ""
    bare = {name: type(getattr(answer, name))() for name in operation.leaves_out}
    return answer.model_copy(update=bare).model_dump_json()


def _check_same(before: str, request: str) -> None:
    if before != request:
        raise Refusal("conflict", "this Idempotency-Key was used for another request: use a new key for each request")
