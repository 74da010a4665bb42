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
from mindstream.service.operations.table import Operation
from mindstream.service.operations.who import Who

LONGEST = 200
MOST = 10_000


class Writes:
    """The writes that came with a key."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
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
        found = await self._ledger.begin(place, request)
        if found is not None:
            _check_same(found[0], request)
            return self._first(place, operation, found[1], found[2])
        try:
            answer = await do()
        except MindstreamError:
            await self._ledger.drop(place)  # nothing was done; it may be tried again
            raise
        await self._ledger.done(place, operation.status, answer.model_dump_json() if operation.wordless else "")
        self._answers[place] = answer
        if len(self._answers) > MOST:
            self._answers.popitem(last=False)
        return answer

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
