"""The answer to a message from a chat page: its text as it is generated, and the tokens it took."""

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
from mindstream.models.model import Usage, estimate_tokens
from mindstream.models.prompt import Prompt, speak
from mindstream.server.chat.turns import COMPANION, LIFE, Turn
from mindstream.server.problems import model_refusal
from mindstream.server.streams import BackgroundItems
from mindstream.service.chat.companion import Followed, PageTask, find_talk, follow
from mindstream.service.operations.open_minds import OpenMind
from mindstream.service.operations.operation import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

BEGINS_S = 10.0
"""Maximum seconds to wait for the first words before the response headers are sent. An error within this time is
reported by the status of the response."""
PATIENCE_S, POLL_S = 120.0, 0.5
"""Seconds: the maximum wait for the reply of a user's life, and the poll interval."""
SESSION = "life"
"""The session under which answers to a life's questions are stored."""


@dataclass
class Spent:
    """The tokens of an answer: as reported by the model's endpoint, else estimated."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def add(self, role: str, usage: Usage | None) -> None:
        """Add the usage of a model call. Only calls of the talker, and calls for a task of the chat page itself (such
        as a title), count."""
        if usage is not None and role in ("talker", PageTask.role):
            self.input += usage.input_tokens
            self.output += usage.output_tokens
            self.cached += usage.cached_tokens


class PageAnswer:
    """An answer that is being generated. It ends at the latest when the runtime is closed.

    Attributes:
        turn: the message that is answered.
        said: the text so far.
        spent: the tokens that the answer took; complete when the answer has ended.
    """

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self.turn, self.said, self.spent = turn, "", Spent()
        broken_off = ModelUnavailable("the answer was interrupted: it was cancelled, or the server is shutting down")
        self._words = BackgroundItems(runtime, _words(runtime, turn, self.spent), broken_off)

    async def next(self, within_s: float | None = None) -> str | None:
        """Return the text that was generated since the last call, and add it to `said`.

        Args:
            within_s: seconds to wait for text; None: wait without a limit.

        Returns:
            The text; "" if there was none in time; None at the end.

        Raises:
            MindstreamError, Refusal: the answer failed, or is empty.
        """
        try:
            pieces = await self._words.next(within_s)
        except Exception as error:  # noqa: BLE001 (every error is raised in the form that clients can handle)
            raise model_refusal(error) from None
        if pieces is None:
            self._estimate()
            if not self.said.strip():
                raise model_refusal(ModelUnavailable("the model returned an empty answer"))
            return None
        words = "".join(pieces)
        self.said += words
        return words

    async def first(self) -> str | None:
        """Wait up to BEGINS_S seconds for the first text of the answer, so that an error can still be reported by the
        status of the response. Return the text; "" if none has arrived, None if the answer has ended. After an error,
        the answer is closed.

        Raises:
            MindstreamError, Refusal: the answer failed.
        """
        try:
            return await self.next(BEGINS_S)
        except BaseException:
            self.close()
            raise

    async def whole(self) -> str:
        """Return the whole text of the answer, and close it.

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
        """Cancel the answer if it has not ended; the text so far is kept."""
        self._words.task.cancel()

    def _estimate(self) -> None:
        """Estimate the numbers of tokens if the model's endpoint did not report them."""
        page = self.turn.page
        shown = (page.instructions, page.beside, *(line.text for line in page.lines), self.turn.text)
        self.spent.input = self.spent.input or sum(estimate_tokens(text) for text in shown if text)
        self.spent.output = self.spent.output or estimate_tokens(self.said)

    @property
    def finish(self) -> str:
        """The reason why the answer ended, as in OpenAI's API: `length` if it reached the limit, else `stop`."""
        longest = self.turn.page.longest_reply
        return "length" if longest and self.spent.output >= longest else "stop"


async def begin(runtime: Runtime, turn: Turn) -> PageAnswer:
    """Begin to answer a message, in the conversation that it belongs to.

    Raises:
        Forbidden: the caller does not have the scope `minds.write`.
        InputError: the model needs memory, but the chat page requests that nothing is stored.
        StorageError: the conversation cannot be read.
    """
    turn.principal.require("minds", "write")
    if not (turn.is_named or turn.continues or turn.is_task):
        memory = await runtime.memory(turn.principal)
        turn = replace(turn, session=await find_talk(memory, turn.session, turn.page.lines))
    return PageAnswer(runtime, turn)


def _words(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    """Yield the answer to a message in parts, as they are generated."""

    def unremembered(prompt: Prompt[str]) -> AsyncGenerator[str]:
        models = runtime.models_of(turn.principal, lambda call: spent.add(call.role, call.usage))
        return speak(models.of(prompt.role), prompt)

    if turn.is_task:
        return unremembered(PageTask(text=turn.text))
    if turn.model == LIFE:
        return _of_life(runtime, turn.principal, turn.text)
    if turn.is_kept:
        return _of_mind(runtime, turn, spent)
    if turn.model != COMPANION:
        raise InputError(
            f"this chat is not stored (it is temporary, or a channel), but the model {turn.model!r} answers only in"
            f" stored chats: use the model {COMPANION!r}, or a chat that is stored"
        )
    question = answer_page(turn.page, turn.text)
    return answer_pieces(question, unremembered(question))


_locks: WeakKeyDictionary[OpenMind, asyncio.Lock] = WeakKeyDictionary()
"""A lock per open mind, so that one message is processed at a time. A message is compared with the log, which must
already contain the message before it."""


async def _of_mind(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    """Send a mind the new message, or let it answer the stored one again; yield its answer.

    If the log lacks earlier lines of the chat page, a chat bot (`ChatResponder`) is also given the page's lines.
    """
    async with (
        runtime.mind(turn.principal, turn.session, turn.model) as opened_mind,
        _locks.setdefault(opened_mind, asyncio.Lock()),
    ):
        mind, page = opened_mind.mind, turn.page
        followed = Followed(None, all_heard=True)
        if not turn.continues:
            followed = await follow(mind.memory, mind.session, page.lines, turn.text)
        opened_mind.zone.move(page.zone)
        opened_mind.charge.on_usage = spent.add
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
    """Send a message to a user's life, or answer its open question; yield its reply.

    If the life is not running or has not replied within PATIENCE_S seconds, yield a description of its state.

    Raises:
        NotFound: the life has no goal yet.
    """
    principal.require("life", "write")
    memory = await runtime.memory(principal)
    state = await read_state(memory)
    if not state.goal:
        raise NotFound("this user's life has no goal: set one with POST /api/v1/users/{user}/life/goal")
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
    """Return the first open question of a life; "" if it has none."""
    return next((each.tip for id_, each in state.questions.items() if id_ not in state.answers), "")
