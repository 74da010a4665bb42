"""Operations on a user's mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pydantic import Field

from mindstream.log.events import Heard, Logged, Waiting
from mindstream.service.operations.house import House
from mindstream.service.operations.shapes import Ask, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who


class SendRequest(Ask):
    """Something that is said to a mind; `session`: the conversation to go on with; none: the one that went on last."""

    text: str = Field(min_length=1, max_length=100_000)
    session: str | None = Field(None, min_length=1, max_length=100)


class Sent(Reply):
    """It is on disk: `seq` is the row of the log that holds it; what comes of it are events after that."""

    seq: int
    session: str


async def answer(house: House, who: Who, ask: SendRequest) -> AsyncGenerator[Logged]:
    """Say something to a mind and give the rows that come of it: heard, perhaps waiting, pieces, said.

    Where another answer goes on in the same conversation, a `waiting` without a seq says so.
    Closing the generator breaks the answer off, not what was heard.
    """
    async with house.mind(who, ask.session) as opened:
        is_busy = opened.answers > 0
        opened.answers += 1
        try:
            async with aclosing(opened.mind.hear(ask.text)) as rows:
                async for row in rows:
                    yield row
                    if is_busy and isinstance(row.event, Heard):
                        queued = Waiting(text="", slots=("talker",), answers=row.seq, belief_version=0)
                        yield Logged(0, row.mind, row.at, "mindstream", queued)
        finally:
            opened.answers -= 1


@operation(
    "minds.send", "write", "POST /users/{user}/send", cli="chat", status=202, streams=answer
)  # fmt: skip
async def send(house: House, who: Who, ask: SendRequest) -> Sent:
    """Say something to a mind. Answered when it is on disk; to who accepts text/event-stream, by the answer's events.

    What was said while an answer goes on waits for its turn. What a mind says is an event of the log.
    """
    heard: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
    task = house.begin(_hear(house, who, ask, heard))
    waited: set[asyncio.Future[Any]] = {heard, task}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if not heard.done():
        await task  # which says why
    return await heard


async def _hear(house: House, who: Who, ask: SendRequest, heard: asyncio.Future[Sent]) -> None:
    """Let a mind hear something and answer, whoever still waits for it."""
    async with aclosing(answer(house, who, ask)) as rows:
        async for row in rows:
            if isinstance(row.event, Heard) and not heard.done():
                heard.set_result(Sent(seq=row.seq, session=row.event.session))
