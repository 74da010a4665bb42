"""What is answered to an utterance of a page: words as they come, and what they took."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from mindstream.errors import InputError, ModelUnavailable
from mindstream.log.events import Logged, Piece, Said
from mindstream.models.ask import speak
from mindstream.models.model import Usage
from mindstream.models.prompt import Prompt
from mindstream.models.shorten import estimate_tokens
from mindstream.models.wrappers.meter import Metered
from mindstream.server.chat.errors import refusal_of
from mindstream.server.chat.listing import COMPANION, LIFE
from mindstream.server.chat.turns import Turn
from mindstream.service.chat.branches import Followed, find_talk, follow
from mindstream.service.chat.companion import Companion, CompanionTalk, PageTask, answer_page, answer_pieces
from mindstream.service.operations.open_minds import OpenMind
from mindstream.service.operations.runtime import Runtime

BEGINS_S = 10.0
"""So long it is waited for the first words before the answer's head is sent: until then an error has its own status."""
TALKER = "talker"


@dataclass
class Spent:
    """What an answer took, in tokens: as the endpoint counts them, else estimated."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def add(self, role: str, usage: Usage | None) -> None:
        """Count a call, of whoever speaks."""
        if usage is not None and role in (TALKER, PageTask.role):
            self.input += usage.input_tokens
            self.output += usage.output_tokens
            self.cached += usage.cached_tokens

    def add_call(self, call: Metered) -> None:
        """Count a call."""
        self.add(call.role, call.usage)

    def estimate(self, turn: Turn, said: str) -> None:
        """Fill in what no endpoint has told."""
        shown = (turn.page.instructions, turn.page.beside, *(line.text for line in turn.page.lines), turn.text)
        self.input = self.input or sum(estimate_tokens(text) for text in shown if text)
        self.output = self.output or estimate_tokens(said)


class PageAnswer:
    """An answer that is being given; it ends where nobody wants it any longer, and before the house is closed.

    Attributes:
        said: what has come of it.
        spent: what it took; whole when it has ended.
    """

    def __init__(self, runtime: Runtime, turn: Turn) -> None:
        self.turn, self.said, self.spent = turn, "", Spent()
        self._waiting: asyncio.Queue[str | BaseException | None] = asyncio.Queue()
        self._getting: asyncio.Future[str | BaseException | None] | None = None
        self._task = runtime.begin(self._run(words(runtime, turn, self.spent)))

    async def _run(self, pieces: AsyncGenerator[str]) -> None:
        ended: BaseException | None = None
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if piece:
                        self._waiting.put_nowait(piece)
        except asyncio.CancelledError:
            ended = ModelUnavailable("it was broken off")
            raise
        except BaseException as error:
            ended = error
            raise
        finally:
            self._waiting.put_nowait(ended)

    async def next(self, within_s: float | None = None) -> str | None:
        """Return the next words; "" where none came in time, None at the end.

        Raises:
            MindstreamError, Refusal: it went wrong.
        """
        self._getting = self._getting or asyncio.ensure_future(self._waiting.get())
        if not (await asyncio.wait({self._getting}, timeout=within_s))[0]:
            return ""
        got, self._getting = self._getting.result(), None
        if isinstance(got, BaseException):
            raise refusal_of(got)
        if got is None:
            self.spent.estimate(self.turn, self.said)
            if not self.said.strip():
                raise refusal_of(ModelUnavailable("nothing was said"))
            return None
        self.said += got
        return got

    async def whole(self) -> str:
        """Return all of it.

        Raises:
            MindstreamError, Refusal: it went wrong.
        """
        try:
            while await self.next() is not None:
                pass
        finally:
            self.close()
        return self.said

    def close(self) -> None:
        """Break it off where it still goes on; what was said is kept."""
        self._task.cancel()
        if self._getting is not None:
            self._getting.cancel()

    @property
    def finish(self) -> str:
        """Why it ended: `stop`, or `length`."""
        longest = self.turn.page.longest_reply
        return "length" if longest and self.spent.output >= longest else "stop"


async def begin(runtime: Runtime, turn: Turn) -> PageAnswer:
    """Begin to answer an utterance, in the talk that it belongs to.

    Raises:
        Forbidden: whoever asks may not talk to minds.
        StorageError: what was heard cannot be read.
    """
    turn.principal.require("minds", "write")
    if not (turn.is_named or turn.goes_on or turn.is_task):
        memory = await runtime.memory(turn.principal)
        turn = replace(turn, session=await find_talk(memory, turn.session, turn.page.lines))
    return PageAnswer(runtime, turn)


async def words(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    """PageAnswer an utterance in pieces.

    Raises:
        NotFound: nobody is called so.
        MindstreamError: it went wrong.
    """
    if turn.is_task:
        pieces = _unremembered(runtime, turn, spent, PageTask(text=turn.text))
    elif turn.model == LIFE:
        from mindstream.server.chat.listing import speak_with_life

        pieces = speak_with_life(runtime, turn.principal, turn.text)
    elif not turn.is_kept:
        if turn.model != COMPANION:
            raise InputError(
                f"nothing of this chat is to be kept, and {turn.model!r} needs what it keeps: ask {COMPANION}"
            )
        pieces = _unremembered(runtime, turn, spent, answer_page(turn.page, turn.text))
    else:
        pieces = _of_mind(runtime, turn, spent)
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece


async def _unremembered(runtime: Runtime, turn: Turn, spent: Spent, prompt: Prompt[str]) -> AsyncGenerator[str]:
    """Let a model answer that knows nothing of the user; nobody hears it."""
    model = runtime.models_of(turn.principal, spent.add_call).of(prompt.role)
    words = speak(model, prompt)
    async with aclosing(answer_pieces(prompt, words) if isinstance(prompt, CompanionTalk) else words) as pieces:
        async for piece in pieces:
            yield piece


_in_turn: WeakKeyDictionary[OpenMind, asyncio.Lock] = WeakKeyDictionary()
"""One utterance of a talk at a time: what the next one is compared with is whole."""


async def _of_mind(runtime: Runtime, turn: Turn, spent: Spent) -> AsyncGenerator[str]:
    async with (
        runtime.mind(turn.principal, turn.session, turn.model) as opened,
        _in_turn.setdefault(opened, asyncio.Lock()),
        aclosing(await _rows(opened, turn, spent)) as rows,
    ):
        said = False
        async for row in rows:
            if isinstance(row.event, Piece):
                said = True
                yield row.event.text
            elif isinstance(row.event, Said) and not said:
                yield row.event.text


async def _rows(opened: OpenMind, turn: Turn, spent: Spent) -> AsyncGenerator[Logged]:
    """Tell a mind what is new, as far as it has not heard it, and give what comes of it."""
    mind, page = opened.mind, turn.page
    new = Followed(None, all_heard=True)
    followed = new if turn.goes_on else await follow(mind.memory, mind.session, page.lines, turn.text)
    opened.zone.move(page.zone)
    opened.on_usage = spent.add
    if isinstance(mind.responder, Companion):
        unheard = () if followed.all_heard else page.lines
        mind.responder.page = replace(page, lines=unheard, zone=opened.zone)
    if followed.again:
        return mind.answer_again(followed.again, one_answer=True)
    return mind.hear(turn.text, one_answer=True)
