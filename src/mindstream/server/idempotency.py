"""Idempotency-Key: a write that is sent again is answered as the first time, and done once.

Answers are kept in memory for a day; on disk only those that hold no words: a sequence number, an id. After a restart
the key of another one is known to be done, and said to be.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from mindstream.errors import InputError, MindstreamError
from mindstream.server.ledger import Ledger
from mindstream.server.problems import Refusal
from mindstream.service.operations.minds import ONCE
from mindstream.service.operations.table import Operation
from mindstream.service.operations.who import Who

LONGEST = 200
MOST = 10_000


LOOK_S, PATIENCE_S = 0.2, 10.0
"""How often, and how long, it is looked whether another server of these data has done it."""


class Writes:
    """The writes that came with a key.

    Args:
        patience_s: so long another server may be at what was begun under a key; 0: there is none.
    """

    def __init__(self, ledger: Ledger, patience_s: float = 0.0) -> None:
        self._ledger, self._patience_s = ledger, patience_s
        self._answers: OrderedDict[str, BaseModel] = OrderedDict()
        self._going_on: dict[str, tuple[str, asyncio.Event]] = {}

    async def once(
        self, key: str, who: Who, operation: Operation, ask: BaseModel, do: Callable[[], Awaitable[BaseModel]]
    ) -> BaseModel:
        """Do it, unless it was done under this key: then return what came of it.

        Raises:
            InputError: it is no key.
            Refusal: the key was used for another request, or what came of it is not known any more.
        """
        if not (0 < len(key) <= LONGEST and key.isprintable()):
            raise InputError(f"an Idempotency-Key has 1 to {LONGEST} characters")
        place = _digest(who.wall, who.key, who.user, operation.name, key)
        request = _digest(operation.name, ask.model_dump_json())
        while (going := self._going_on.get(place)) is not None:
            _check_same(going[0], request)
            await going[1].wait()
        ended = asyncio.Event()
        self._going_on[place] = (request, ended)
        try:
            return await self._once(place, request, operation, do)
        finally:
            del self._going_on[place]
            ended.set()

    async def _once(
        self, place: str, request: str, operation: Operation, do: Callable[[], Awaitable[BaseModel]]
    ) -> BaseModel:
        found = await self._begin(place, request, operation)
        if found is not None:
            return self._first(place, operation, found[1], found[2])
        once = ONCE.set(place)
        try:
            answer = await do()
        except MindstreamError:
            await self._ledger.drop(place)  # nothing was done; it may be tried again
            raise
        finally:
            ONCE.reset(once)
        await self._ledger.done(place, operation.status, answer.model_dump_json() if operation.wordless else "")
        self._answers[place] = answer
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

    def _first(self, place: str, operation: Operation, status: int, kept: str) -> BaseModel:
        if place in self._answers:
            return self._answers[place]
        if kept:
            return operation.reply.model_validate(json.loads(kept))
        what = "was done" if status else "may have been done when the server ended"
        raise Refusal("conflict", f"this {what}; its answer is not kept: look before you send it under another key")

    def forget(self) -> None:
        """Let go of all answers: words that were forgotten may stand in them."""
        self._answers.clear()


def _check_same(before: str, request: str) -> None:
    if before != request:
        raise Refusal("conflict", "this Idempotency-Key was used for another request")


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()
