"""A second listener: a model hears, beside the Talker, danger that code hears as a hint or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from mindstream.coach.alarms import Alarms, Verdict
from mindstream.coach.gates.gate import Situation
from mindstream.coach.packs.safety import find_hint
from mindstream.coach.suggests_danger import DANGER, SuggestsDanger
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import StorageError
from mindstream.foreign_code import ForeignFailure, ForeignTask
from mindstream.log.events import FollowUp
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.models.decide import decide
from mindstream.models.model import Model

LISTENS_S = 120.0
"""How long the model may take beside an answer; after that it has heard nothing."""
HEAD_START_S = 0.1
"""So much later than the Talker it is asked, where it is in nobody's way: its words would come later else."""
IN_THE_WAY_S = 8.0
"""How long an answer waits for it where a question about danger is open, words hint at it, or nothing could follow."""

SURER = 2.0
"""An answer counts that is so many times as likely as the next; a very small model answers all there is by chance."""

SAID = 240
"""So much of what was said before it is shown, in characters: its end, where questions stand."""
DANGEROUS = ("yes", DANGER)
IN_THIS_PROCESS = ("local", "gguf:")


class SecondListener:
    """Asks a model of each utterance whether it suggests danger to life, or answers what was asked about it.

    It delays no word but where such a question is open, or words hint at danger: then it is heard first. Where both do,
    the alarm is sure; where only the model hears it, its careful question is asked; what a recogniser alone thinks to
    hear, and the model does not, is not asked about. What is heard late follows the answer at once.

    Args:
        floor: held while the Talker speaks.
        model: None: nobody listens. One in this process is asked when the answer is out: it would slow down the
            Talker's.
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
        self._listening: dict[int, asyncio.Task[str]] = {}
        self._following: set[asyncio.Task[None]] = set()

    def begin(self, situation: Situation, heard: int, turn: asyncio.Task[None], one_answer: bool) -> None:
        """Listen to an utterance that is being answered."""
        if self._model is None or self._alarm is None:
            return
        hinted = find_hint(self._talker.pack, situation.text) is not None
        at_once = self._alarms.is_open or one_answer or hinted
        head_start_s = 0.0 if at_once else None if self._model.name.startswith(IN_THIS_PROCESS) else HEAD_START_S
        asked = SuggestsDanger(
            utterance=situation.text, said=situation.said[-SAID:], open_question=self._alarms.question
        )
        self._listening[heard] = asyncio.ensure_future(self._read(self._model, asked, turn, head_start_s))
        following = asyncio.ensure_future(self._follow(situation, heard, turn))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def hear_out(self, heard: int) -> None:
        """Wait for it, but not for long."""
        if listening := self._listening.get(heard):
            await asyncio.wait({listening}, timeout=IN_THE_WAY_S)

    def verdict(self, heard: int, situation: Situation) -> Verdict | None:
        """Return, once, what an utterance comes to as it has read it; None while it has not, or has failed."""
        if self._alarm is None or not (read := self._has_read(heard)):
            return None
        del self._listening[heard]
        sure = self._alarms.agree(self._alarm, situation.text) if read in DANGEROUS else None
        return sure or self._alarms.judge(situation, read)

    async def until_sure(self, heard: int, other: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, but no longer than until danger is heard."""
        waited = asyncio.ensure_future(other)
        try:
            if listening := self._listening.get(heard):
                await asyncio.wait({waited, listening}, return_when=asyncio.FIRST_COMPLETED)
                if self._has_read(heard) in DANGEROUS:
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

    def _has_read(self, heard: int) -> str:
        listening = self._listening.get(heard)
        return listening.result() if listening and listening.done() else ""

    async def _read(
        self, model: Model, asked: SuggestsDanger, turn: asyncio.Task[None], head_start_s: float | None
    ) -> str:
        """Return the likeliest answer; "" where it failed, or guesses. The turn goes first, by so much or whole."""
        await asyncio.wait({turn}, timeout=head_start_s)
        try:
            found = await ForeignTask(partial(decide, model, asked)).result(LISTENS_S)
        except ForeignFailure as error:
            await self._log(error.cause or error)
            return ""
        likeliest, next_one = sorted((p for _, p in found.weights), reverse=True)[:2]
        return found.best if likeliest >= SURER * next_one else ""

    async def _follow(self, situation: Situation, heard: int, turn: asyncio.Task[None]) -> None:
        """Say, after the answer, what was heard too late for it."""
        try:
            await asyncio.wait({turn, self._listening[heard]})
            async with self._floor:
                verdict = self.verdict(heard, situation)
                if verdict and verdict.alarm and verdict.basis in ("model", "answer"):
                    self._alarms.keep(verdict)
                    await self._commit(verdict, heard)
        except StorageError as error:
            await self._log(error)
        finally:
            self._listening.pop(heard, None)

    async def _commit(self, verdict: Verdict, heard: int) -> None:
        stream, session = self._talker.stream, self._talker.session
        raised = [Entry(each, AGENT) for each in verdict.events(session, heard)]
        if not (text := verdict.whole or verdict.ask):  # it was taken back, and the answer is out
            await stream.commit(*raised)
            return
        new = RecordDraft(text=text, kind="chat", by=AGENT, episode=session, data={"by_user": False})
        (record,) = await stream.build_records([new])
        follow_up = FollowUp(text=text, answers=heard, record=record.id)
        await stream.commit(Entry(follow_up, AGENT, (record,)), *raised)
