"""The answer to an utterance of a chat page: words as they come, and the tokens they took."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from mindstream.errors import InputError, ModelUnavailable
from mindstream.life import commands, opened
from mindstream.life.events import Questioned, TurnEnded
from mindstream.life.state import LifeState, read_state
from mindstream.log.events import Piece, Said
from mindstream.memory.memory import Memory
from mindstream.minds.chat_bot import ChatResponder, answer_page, answer_pieces
from mindstream.models.ask import speak
from mindstream.models.model import Usage, estimate_tokens
from mindstream.models.prompt import Prompt
from mindstream.models.wrappers.meter import Metered
from mindstream.server.chat.turns import COMPANION, LIFE, Turn
from mindstream.server.problems import model_refusal
from mindstream.server.streams import BackgroundItems
from mindstream.service.chat.branches import Followed, find_talk, follow
from mindstream.service.chat.companion import PageTask
from mindstream.service.operations.open_minds import OpenMind
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

BEGINS_S = 10.0
"""Seconds to wait for the first words before the response's head is sent: until then an error has its own status."""
PATIENCE_S, POLL_S = 120.0, 0.5
"""Seconds: how long to wait for a life's reply, and the poll interval."""
SESSION = "life"


@dataclass
class Spent:
    """The tokens of an answer: as the endpoint counts them, else estimated."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def add(self, role: str, usage: Usage | None) -> None:
        """Count a call of the talker, or for a page's task."""
        if usage is not None and role in ("talker", PageTask.role):
            self.input += usage.input_tokens
            self.output += usage.output_tokens
            self.cached += usage.cached_tokens

    def add_call(self, call: Metered) -> None:
        """Count a call."""
        self.add(call.role, call.usage)


class PageAnswer:
    """An answer that is being given; it ends when its client disconnects, and before the runtime is closed.

    Attributes:
        said: the words so far.
        spent: the tokens it took; complete when it has ended.
    """

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self.turn, self.said, self.spent = turn, "", Spent()
        broken_off = ModelUnavailable("the answer was broken off")
        self._words = BackgroundItems(runtime, _words(runtime, turn, self.spent), broken_off)

    async def next(self, within_s: float | None = None) -> str | None:
        """Return the words that have come since; "" if none came in time, None at the end.

        Raises:
            MindstreamError, Refusal: the answer failed.
        """
        try:
            pieces = await self._words.next(within_s)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is raised in the form that clients act on)
            raise model_refusal(error) from None
        if pieces is None:
            self._estimate()
            if not self.said.strip():
                raise model_refusal(ModelUnavailable("the model answered with no words"))
            return None
        words = "".join(pieces)
        self.said += words
        return words

    async def first(self) -> str | None:
        """Return the first words, before the head of a stream is sent.

        Raises:
            MindstreamError, Refusal: the answer failed.
        """
        try:
            return await self.next(BEGINS_S)
        except BaseException:
            self.close()
            raise

    async def whole(self) -> str:
        """Return all words.

        Raises:
            MindstreamError, Refusal: the answer failed.
        """
        try:
            while await self.next() is not None:
                pass
        finally:
            self.close()
        return self.said

    def close(self) -> None:
        """Break the answer off if it has not ended; what was said is kept."""
        self._words.task.cancel()

    def _estimate(self) -> None:
        """Estimate the tokens that no endpoint has reported."""
        page = self.turn.page
        shown = (page.instructions, page.beside, *(line.text for line in page.lines), self.turn.text)
        self.spent.input = self.spent.input or sum(estimate_tokens(text) for text in shown if text)
        self.spent.output = self.spent.output or estimate_tokens(self.said)

    @property
    def finish(self) -> str:
        """Why it ended: `stop`, or `length`."""
        longest = self.turn.page.longest_reply
        return "length" if longest and self.spent.output >= longest else "stop"


async def begin(runtime: Runtime, turn: Turn) -> PageAnswer:
    """Begin to answer an utterance, in the conversation that it belongs to.

    Raises:
        Forbidden: the caller may not talk to minds.
        InputError: the model needs memory, and the page wants nothing to be kept.
        StorageError: the conversation cannot be read.
    """
    turn.principal.require("minds", "write")
    if not (turn.is_named or turn.continues or turn.is_task):
        memory = await runtime.memory(turn.principal)
        turn = replace(turn, session=await find_talk(memory, turn.session, turn.page.lines))
    return PageAnswer(runtime, turn)


def _words(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    """Answer an utterance in pieces."""

    def unremembered(prompt: Prompt[str]) -> AsyncGenerator[str]:
        return speak(runtime.models_of(turn.principal, spent.add_call).of(prompt.role), prompt)

    if turn.is_task:
        return unremembered(PageTask(text=turn.text))
    if turn.model == LIFE:
        return _of_life(runtime, turn.principal, turn.text)
    if turn.is_kept:
        return _of_mind(runtime, turn, spent)
    if turn.model != COMPANION:
        raise InputError(f"nothing of this chat is to be kept, and {turn.model!r} needs what it keeps: use {COMPANION}")
    question = answer_page(turn.page, turn.text)
    return answer_pieces(question, unremembered(question))


_locks: WeakKeyDictionary[OpenMind, asyncio.Lock] = WeakKeyDictionary()
"""One utterance of a conversation at a time: what the next one is compared with is complete."""


async def _of_mind(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    """Pass on to a mind what it has not heard yet, and yield its answer."""
    async with (
        runtime.mind(turn.principal, turn.session, turn.model) as opened_mind,
        _locks.setdefault(opened_mind, asyncio.Lock()),
    ):
        mind, page = opened_mind.mind, turn.page
        followed = Followed(None, all_heard=True)
        if not turn.continues:
            followed = await follow(mind.memory, mind.session, page.lines, turn.text)
        opened_mind.zone.move(page.zone)
        opened_mind.on_usage = spent.add
        if isinstance(mind.responder, ChatResponder):
            unheard = () if followed.all_heard else page.lines
            mind.responder.page = replace(page, lines=unheard, zone=opened_mind.zone)
        if followed.again:
            events = mind.answer_again(followed.again, one_answer=True)
        else:
            events = mind.hear(turn.text, one_answer=True)
        said = False
        async with aclosing(events) as rows:
            async for row in rows:
                if isinstance(row.event, Piece) or (isinstance(row.event, Said) and not said):
                    said = True
                    if row.event.text:
                        yield row.event.text


async def _of_life(runtime: Runtime, principal: Principal, text: str) -> AsyncGenerator[str]:
    """Say something to a user's life, or answer its question; yield its reply, or its state.

    Raises:
        NotFound: it has no goal yet.
    """
    principal.require("life", "write")
    memory = await runtime.memory(principal)
    state = await read_state(memory)
    if not state.goal:
        raise NotFound("this user's life has no goal yet: set one by POST /api/v1/users/{user}/life/goal")
    last = await memory.store.last(memory.key, TurnEnded.kind)
    if _question(state):
        await commands.answer(memory, text, "", session=SESSION)
    else:
        await commands.say(memory, text)
    yield await _reply_of_life(runtime, memory, last.seq if last else 0)


async def _reply_of_life(runtime: Runtime, memory: Memory, after: int) -> str:
    until = runtime.clock.elapsed() + PATIENCE_S
    while await opened.is_lived(memory) and runtime.clock.elapsed() < until:
        for row in await memory.store.events(memory.key, after, [TurnEnded.kind, Questioned.kind]):
            if isinstance(row.event, TurnEnded) and row.event.words.strip():
                return row.event.words
        if question := _question(await read_state(memory)):
            return question
        await runtime.clock.sleep(POLL_S)
    state = await read_state(memory)
    tasks = [f"- {task.text} ({task.standing})" for task in state.ledger.ordered()]
    running = (
        "It is at work." if await opened.is_lived(memory) else "Noted. The life is not running: it reads this next."
    )
    question = _question(state)
    return "\n".join(filter(None, [running, f"Goal: {state.goal}", *tasks, f"It asks: {question}" if question else ""]))


def _question(state: LifeState) -> str:
    """Return the question that it waits to be answered; "" if there is none."""
    return next((each.tip for id_, each in state.questions.items() if id_ not in state.answers), "")
