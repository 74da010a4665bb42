"""A second listener: a small model hears, beside the Talker, danger that code hears as a hint or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from mindstream.coach.alarms import Alarms, Verdict
from mindstream.coach.gates.gate import Situation
from mindstream.coach.moves.moves import FILLING, SOCIAL
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.packs.safety import find_hint
from mindstream.coach.suggests_danger import SuggestsDanger
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import StorageError
from mindstream.log.events import FollowUp
from mindstream.memory.record import New
from mindstream.memory.store import Entry
from mindstream.models.decide import decide
from mindstream.models.model import Model

LISTENS_S = 8.0
"""How long the model may take; after that it has heard nothing."""
SURE = 0.5
"""The probability of yes above which it is believed."""
SMALL = 60
"""Small talk is no longer than this, in characters."""


class SecondListener:
    """Asks a model of each utterance whether it suggests danger to life; delays no word.

    Where the words hint at it too, the alarm is sure; else its careful question is asked. What is heard in time is part
    of the answer; what is heard later follows it at once.

    Args:
        floor: held while the Talker speaks.
        model: None: nobody listens.
        log: told of a failure, which is all that comes of it.
    """

    def __init__(
        self,
        talker: Talker,
        alarms: Alarms,
        floor: asyncio.Lock,
        model: Model | None,
        log: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        self._talker, self._alarms, self._floor, self._model, self._log = talker, alarms, floor, model, log
        self._alarm = next((each for each in talker.pack.alarms if each.recogniser == "danger"), None)
        self._listening: dict[int, asyncio.Task[bool]] = {}
        self._following: set[asyncio.Task[None]] = set()

    def begin(self, situation: Situation, heard: int, turn: asyncio.Task[None]) -> None:
        """Listen to an utterance that is being answered, small talk aside."""
        if self._model is None or self._alarm is None or self._is_small_talk(situation.text):
            return
        self._listening[heard] = asyncio.ensure_future(self._hears_danger(self._model, situation))
        following = asyncio.ensure_future(self._follow(situation, heard, turn))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    def verdict(self, heard: int, text: str) -> Verdict | None:
        """Return, once, what is to be said if it has heard danger by now."""
        listening = self._listening.get(heard)
        if self._alarm is None or listening is None or not listening.done() or not listening.result():
            return None
        del self._listening[heard]
        return self._alarms.agree(self._alarm, text)

    async def until_sure(self, heard: int, other: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, but no longer than until danger is heard."""
        waited = asyncio.ensure_future(other)
        try:
            if listening := self._listening.get(heard):
                await asyncio.wait({waited, listening}, return_when=asyncio.FIRST_COMPLETED)
                if listening.done() and listening.result():
                    return
            await waited
        finally:
            waited.cancel()

    async def close(self) -> None:
        """Stop listening."""
        tasks = [*self._listening.values(), *self._following]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _hears_danger(self, model: Model, situation: Situation) -> bool:
        try:
            async with asyncio.timeout(LISTENS_S):
                found = await decide(model, SuggestsDanger(utterance=situation.text, said=situation.said))
        except Exception as error:  # noqa: BLE001 (the outermost edge of a task that nobody waits for: it is logged)
            await self._log(error)
            return False
        return found["yes"] > SURE

    async def _follow(self, situation: Situation, heard: int, turn: asyncio.Task[None]) -> None:
        """Say, after the answer, what was heard too late for it."""
        try:
            await asyncio.wait({turn, self._listening[heard]})
            async with self._floor:
                if verdict := self.verdict(heard, situation.text):
                    self._alarms.keep(verdict, situation)
                    await self._commit(verdict, heard)
        except StorageError as error:
            await self._log(error)
        finally:
            self._listening.pop(heard, None)

    async def _commit(self, verdict: Verdict, heard: int) -> None:
        stream, session = self._talker.stream, self._talker.session
        text = verdict.whole or verdict.ask
        new = New(text=text, kind="chat", by=AGENT, episode=session, data={"by_user": False})
        (record,) = await stream.build_records([new])
        raised = [Entry(each, AGENT) for each in verdict.events(session, heard)]
        follow_up = FollowUp(text=text, answers=heard, record=record.id)
        await stream.commit(Entry(follow_up, AGENT, (record,)), *raised)

    def _is_small_talk(self, text: str) -> bool:
        pack = self._talker.pack
        reading = read_utterance(pack, text)
        small = len(text) <= SMALL and not reading.mentions and reading.moves and reading.moves <= SOCIAL | FILLING
        return bool(small) and find_hint(pack, text) is None
