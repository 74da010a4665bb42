"""A mind that answers for a voice agent: the talker answers at once, follow-ups of the reasoners come later.

A question that is repeated in the same words, without another one in between, counts as the same question: its result
was lost, or the user interrupted the answer. The mind hears it only once, so that no reasoner acts on it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TypeAlias

from mindstream.log.events import FollowUp, Heard, Logged, Piece, Said, Waiting
from mindstream.minds.mind import Mind

Spoken: TypeAlias = Waiting | Piece | Said | FollowUp
ROUNDS, PAUSE_S = 100, 0.02
"""Maximum number of attempts to cancel, and their interval in seconds. One attempt may come too early, because
reasoners start a moment after an utterance."""


class MindDelegate:
    """Asks a mind and yields the texts to speak as they arrive.

    Args:
        mind: a mind with a responder; it stays open while the delegate is used, on the same event loop.
    """

    def __init__(self, mind: Mind) -> None:
        self.mind = mind
        self._words, self._answered = "", False
        self._heard: Logged | None = None

    async def ask(self, question: str) -> AsyncGenerator[Spoken]:
        """Yield fillers, pieces, the answer and its follow-ups, until the reasoners have finished.

        The newest question may be asked again:
        - If its answer was interrupted, the question is answered again.
        - Otherwise the answer and its earlier follow-ups are yielded as one text, and then later follow-ups.

        Closing the generator interrupts the answer, but not the reasoners: `call_off` stops them.
        """
        words = " ".join(question.casefold().split())
        if self._heard is not None and words == self._words:
            coming = self._again(self._heard)
        else:
            self._words, self._heard, self._answered = words, None, False
            coming = self._anew(question)
        async with aclosing(coming):
            async for event in coming:
                yield event

    async def call_off(self) -> None:
        """Cancel the reasoners' running work until none on the newest question is left, at most ROUNDS times."""
        memory, heard = self.mind.memory, self._heard
        for _ in range(ROUNDS if heard else 0):
            work = await memory.store.open_work(memory.key)
            if heard is None or self._heard is not heard or all(each.cause != heard.seq for each in work):
                return  # the work has ended, or there is a newer question
            await self.mind.cancel()
            await asyncio.sleep(PAUSE_S)

    async def _anew(self, question: str) -> AsyncGenerator[Spoken]:
        memory = self.mind.memory
        async with aclosing(self.mind.stream(question, to_the_end=True)) as events:
            async for event in events:
                if isinstance(event, Heard):
                    row = await memory.store.last(memory.key, Heard.kind)
                    self._heard = row if row and row.event == event else None
                elif isinstance(event, Spoken):
                    self._answered = self._answered or isinstance(event, Said)
                    yield event

    async def _again(self, heard: Logged) -> AsyncGenerator[Spoken]:
        """Yield the earlier answer together with its follow-ups until now, then later follow-ups.

        If the earlier answer was interrupted, answer again instead.
        """
        given = set[int]()
        if self._answered:
            rows = await self._said_of(heard)
            given = {row.seq for row in rows}
            # the newest answer, because an interrupted one may come before it
            said = [row.event for row in rows if isinstance(row.event, Said)][-1]
            more = [row.event.text for row in rows if isinstance(row.event, FollowUp)]
            yield said.model_copy(update={"text": "\n".join([said.text, *more])})
        else:
            async with aclosing(self.mind.answer_again(heard)) as answer:
                async for row in answer:
                    if isinstance(row.event, Waiting | Piece | Said):
                        self._answered = self._answered or isinstance(row.event, Said)
                        yield row.event
        await self.mind.settled()
        for row in await self._said_of(heard):
            if row.seq not in given and isinstance(row.event, FollowUp):
                yield row.event

    async def _said_of(self, heard: Logged) -> list[Logged]:
        """Return the answers and follow-ups to an utterance."""
        rows = [row async for row in self.mind.memory.log(heard.seq, [Said.kind, FollowUp.kind])]
        return [row for row in rows if isinstance(row.event, Said | FollowUp) and row.event.answers == heard.seq]
