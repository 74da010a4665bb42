"""Rules at a pace that a person can follow: the Talker's words come one by one, the Reasoner takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from mindstream.models.model import Model, Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds.

    Attributes:
        thought_s: before each answer to a Reasoner; a turn has two or three of them.
        word_s: before each word of the Talker.
        turn_s: before each utterance.
    """

    thought_s: float = 0.7
    word_s: float = 0.03
    turn_s: float = 0.6

    def faster(self, times: float) -> Pace:
        """Return a pace that is so many times as fast."""
        return Pace(self.thought_s / times, self.word_s / times, self.turn_s / times)

    def slow_down(self, models: Models) -> Models:
        """Return the same models with the rules among them slowed down; real models are slow enough."""
        slowed = {role: models.of(role) for role in models.names if role != "default"}
        for role, first_s, piece_s in (("talker", 0.0, self.word_s), ("reasoner", self.thought_s, 0.0)):
            model = models.of(role)
            slowed[role] = Slow(model, first_s, piece_s) if model.name == Rules.name else model
        return Models(models.of("default"), slowed)


class Slow:
    """A model that takes its time: before it begins, and before each piece."""

    def __init__(self, model: Model, first_s: float, piece_s: float) -> None:
        self.name = model.name
        self._model = model
        self._first_s, self._piece_s = first_s, piece_s

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await asyncio.sleep(self._first_s)
        async with aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                if isinstance(part, Piece):
                    await asyncio.sleep(self._piece_s)
                yield part
