"""Conversations for tests: a turn and its events, a gate that always waits, a model that falls silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from mindstream import Mind
from mindstream.coach.talker import Decision, Situation
from mindstream.log.events import Logged, Said
from mindstream.models.model import Part, Piece, Request


class Waits:
    """A gate that always waits."""

    name = "waits"

    def decide(self, situation: Situation) -> Decision:
        return Decision(True, why=situation.phase.name)


class Silent:
    """A model that sends its first text, and continues only when it is released."""

    name = "silent"

    def __init__(self, *first: str) -> None:
        self._first, self.let, self.asked = first, asyncio.Event(), asyncio.Event()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.set()
        for words in self._first:
            yield Piece(words)
        await self.let.wait()
        yield Piece("the rest")


async def turn(mind: Mind, text: str) -> list[Logged]:
    return [logged async for logged in mind.hear(text)]


def said(events: Sequence[Logged]) -> Said:
    (found,) = (row.event for row in events if isinstance(row.event, Said))
    return found
