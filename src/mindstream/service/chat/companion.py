"""A companion: recalls before it answers, notes after. It needs no tools, of the client or of the model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from mindstream.clock import format_spoken
from mindstream.coach.packs.saying import shipped_phrases
from mindstream.coach.talker import HISTORY_TOKENS, gather_context
from mindstream.errors import PromptBlocked, ReplyInvalid
from mindstream.foreign_code import describe
from mindstream.log.events import Failed
from mindstream.memory.store.store import Entry
from mindstream.minds.responder import FunctionResponder, Host
from mindstream.models.model import Piece, Request
from mindstream.models.reply import legible_parts
from mindstream.reasoners.conversation import DatedLine
from mindstream.reasoners.facts.facts import FactsReasoner
from mindstream.reasoners.reasoner import Reasoner
from mindstream.service.chat.companion_talk import CompanionTalk
from mindstream.service.chat.page import Page
from mindstream.text.context import Part, fit
from mindstream.text.links import links, pieces_without_links
from mindstream.text.words import language_of

NAME = "companion"
"""Signs what it says."""


class Companion(FunctionResponder):
    """Answers from memory, by the model of the role `talker`; a reasoner notes what was said.

    Attributes:
        page: what the page of this talk sends with the words that are answered next; of its lines only where they were
            not heard here.
    """

    reasoners: Sequence[Reasoner]

    def __init__(self, host: Host) -> None:
        super().__init__(host, self._speak, NAME)
        self.page = Page()
        self._model = host.models.of("talker")
        self.reasoners = (FactsReasoner(host.models.of("facts"), timeout_s=host.timeouts.thinking_s),)

    async def _speak(self, text: str, host: Host) -> AsyncGenerator[str]:
        page, said = self.page, False
        question = await self._question(text, host, page)
        request = Request(question, question.role, longest_reply=page.longest_reply, sampling=page.sampling)
        try:
            async with aclosing(answer_pieces(question, self._words(request))) as pieces:
                async for piece in pieces:
                    said = said or bool(piece.strip())
                    yield piece
        except PromptBlocked as error:
            if said:
                raise
            failed = Failed(text=describe(error), where=NAME)
            await host.memory.commit(Entry(failed, NAME))
            yield shipped_phrases("model_refused", language_of(text))[0]
            return
        if not said:
            raise ReplyInvalid(f"{self._model.name} answered with no words")

    async def _words(self, request: Request) -> AsyncGenerator[str]:
        async with aclosing(legible_parts(self._model.reply(request))) as parts:
            async for part in parts:
                if isinstance(part, Piece) and part.text:
                    yield part.text

    async def _question(self, text: str, host: Host, page: Page) -> CompanionTalk:
        memory = host.memory
        own = next(iter(await memory.store.records(memory.key, [host.asked_in])), None)
        found = await gather_context(memory, host.session, text, own.seq if own else 0)
        own_lines = (line for line in found.history if not isinstance(line, DatedLine))
        history, left_out = tuple(line.model_copy(update={"later": ""}) for line in own_lines), found.left_out
        newest_of_others = tuple(line for line in found.history if isinstance(line, DatedLine))
        if page.lines:
            fits = fit([Part("history", page.lines, "last")], HISTORY_TOKENS)
            history, left_out = fits.kept("history", page.lines), fits.cut["history"]
        return CompanionTalk(
            instructions=page.instructions,
            beside=page.beside,
            notes=found.notes,
            recalled=found.recalled,
            talks=(*found.talks, *newest_of_others),
            history=history,
            earlier=left_out,
            utterance=text,
            now=format_spoken(memory.clock.now(), page.zone) if page.zone else "",
        )


def answer_pieces(question: CompanionTalk, words: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Pass an answer on without addresses that nobody gave: a page would load an image, or a user follow a link."""
    return pieces_without_links(words, lambda: links(question.texts()), lambda: links(question.own_texts()))


def answer_page(page: Page, text: str) -> CompanionTalk:
    """Return the question of a talk that is not to be remembered: nothing is recalled for it, either."""
    fits = fit([Part("history", page.lines, "last")], HISTORY_TOKENS)
    return CompanionTalk(
        instructions=page.instructions,
        beside=page.beside,
        history=fits.kept("history", page.lines),
        earlier=fits.cut["history"],
        utterance=text,
    )
