"""The companion: recalls before it answers, takes notes after. It needs no tools of the client or of the model."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import ClassVar

from mindstream.clock import format_spoken
from mindstream.coach.packs.load import shipped_phrases
from mindstream.errors import PromptBlocked, ReplyInvalid
from mindstream.foreign_code import describe
from mindstream.log.declared import NoWords
from mindstream.log.events import Event, Failed
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.store.store import Entry
from mindstream.minds.context import HISTORY_TOKENS, gather_context
from mindstream.minds.responder import FunctionResponder, Host
from mindstream.models.model import FREELY, Message, Piece, Request, Sampling
from mindstream.models.prompt import Prompt, rule
from mindstream.models.reply import legible_parts
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.reasoner import Reasoner
from mindstream.text.context import Part, fit
from mindstream.text.links import links, pieces_without_links
from mindstream.text.words import language_of, terms

QUOTED = 3
"""Maximum number of lines that are quoted if no model is configured."""


class CompanionTalk(Prompt[str]):
    """Answer the utterance, as whoever remembers this person.

    `instructions`: what the page of this talk asks of whoever answers. `beside`: what it found for these words.
    """

    role: ClassVar[str] = "talker"

    instructions: str = ""
    beside: str = ""
    notes: tuple[Note, ...] = ()
    recalled: tuple[Note, ...] = ()
    talks: tuple[DatedLine, ...] = ()
    history: tuple[Line, ...] = ()
    earlier: int = 0
    """How many older lines of this talk are not shown."""
    utterance: str
    now: str = ""

    def texts(self) -> Iterator[str]:
        """Yield the texts whose links an answer may name."""
        yield from self.own_texts()
        yield self.beside
        yield from (note.text for note in (*self.notes, *self.recalled))

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose addresses a page may load by itself (images): the conversation and its instructions.

        A page's documents, notes and recalled memories may be third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.instructions, self.utterance)

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in self.history]


@rule(CompanionTalk)
def quote_what_is_remembered(ask: CompanionTalk) -> str:
    """Rule-based default: say so, and quote lines that share words with the utterance."""
    asked = {*terms(ask.utterance)}
    held: list[Note | DatedLine] = [*ask.notes, *ask.recalled, *(line for line in ask.talks if line.by_user)]
    near = sorted(held, key=lambda each: -len(asked & {*terms(each.text)}))[:QUOTED]
    quoted = [f"- {each.day}: {each.text}" for each in near if asked & {*terms(each.text)}]
    told = "What I remember of that:\n" + "\n".join(quoted) if quoted else "I have kept it."
    return f"(No model is configured: I only remember.) {told}"


@dataclass(frozen=True, slots=True)
class Page:
    """A conversation as its page shows it.

    Attributes:
        instructions: the page's system prompt; never remembered.
        beside: what the page found for these words (documents, search); third-party content; never remembered.
        lines: the lines before the new words, oldest first.
        zone: the user's time zone; None: the page does not say.
        longest_reply: maximum tokens of an answer; 0: the page does not say.
        sampling: the sampling parameters of the page.
    """

    instructions: str = ""
    beside: str = ""
    lines: Sequence[Line] = ()
    zone: tzinfo | None = None
    longest_reply: int = 0
    sampling: Sampling = FREELY


class TalkZone(tzinfo):
    """The time zone of a conversation, which may change with each utterance.

    Attributes:
        place: the current zone.
    """

    def __init__(self, place: tzinfo) -> None:
        self.place = self._usual = place

    def move(self, place: tzinfo | None) -> None:
        """Change to a zone; None: the default one."""
        self.place = place or self._usual

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return self.place.utcoffset(at and at.replace(tzinfo=self.place))

    def dst(self, at: datetime | None) -> timedelta | None:
        return self.place.dst(at and at.replace(tzinfo=self.place))

    def tzname(self, at: datetime | None) -> str | None:
        return self.place.tzname(at and at.replace(tzinfo=self.place))

    def fromutc(self, at: datetime) -> datetime:
        return self.place.fromutc(at.replace(tzinfo=self.place)).replace(tzinfo=self)


NAME = "companion"
"""The author of its answers."""


class Companion(FunctionResponder):
    """Answers from memory, by the model of the role `talker`; a reasoner takes notes.

    Attributes:
        page: what the page sends with the next utterance; its lines only if they were not heard here.
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
    """Remove from an answer the addresses that no text gave: a page would load an image, or a user follow a link."""
    return pieces_without_links(words, lambda: links(question.texts()), lambda: links(question.own_texts()))


def answer_page(page: Page, text: str) -> CompanionTalk:
    """Return the prompt of a conversation that is not remembered: nothing is recalled for it, either."""
    fits = fit([Part("history", page.lines, "last")], HISTORY_TOKENS)
    return CompanionTalk(
        instructions=page.instructions,
        beside=page.beside,
        history=fits.kept("history", page.lines),
        earlier=fits.cut["history"],
        utterance=text,
    )


BEGINS = "### Task:"
"""The beginning of Open WebUI's own prompts; they contain the conversation in the tags of `SHOWS_TALK`."""
SHOWS_TALK = ("<chat_history>", "{{MESSAGES")
OTHER_FORMS = (
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Provide a concise, 5-word-or-less title for the conversation,",
    "Please generate a concise, 5-word-or-less title for the conversation,",
)
"""The beginnings of its other prompts, and of LibreChat's, word for word."""
TOOLS_FORM = "Available Tools: "
_BLOCK = re.compile(
    r"^[ \t]*<(context|sources?|documents?|attached_files?|files?|search_results?|web_search|knowledge|retrieved_\w+)"
    r"\b[^>]*>.*</\1>[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Content that a page found for the user's words: from the first opening tag to the last closing one, since a document
may contain such tags."""
_RULED = re.compile(r"^[^\n]{0,200}\n-{5,}\n.*\n-{5,}$", re.DOTALL | re.MULTILINE)
"""The same in the form of LlamaIndex's default template: between two lines of dashes."""
_ASKED = (
    re.compile(r"<user_query>(.*)</user_query>", re.DOTALL | re.IGNORECASE),
    re.compile(r"^(?:user )?(?:query|question):[ \t]*(.+?)(?:\n+(?:answer|response):\s*)?\Z", re.DOTALL | re.I | re.M),
)
"""How templates of chat pages embed the user's words."""
_HEADING = re.compile(r"\n#{1,6} [^\n]{0,60}\Z")
ONLY_DOCUMENTS = "(a document, and no words of their own)"


class PageTask(Prompt[str]):
    """Do what a chat page wants for its own use."""

    role: ClassVar[str] = "side_tasks"
    reply_tokens: ClassVar[int] = 600

    text: str


@rule(PageTask)
def leave_it_undone(ask: PageTask) -> str:  # noqa: ARG001
    """Rule-based default: return an empty JSON answer, which pages ignore."""
    return "{}"


def is_page_task(instructions: str, lines: Sequence[Line], text: str) -> bool:
    """Return whether a page asks for its own use: by the form of its prompts, if there are no earlier lines."""
    if lines:
        return False
    start = text.lstrip()
    shows = start.startswith(BEGINS) and any(mark in start for mark in SHOWS_TALK)
    return shows or start.startswith(OTHER_FORMS) or instructions.lstrip().startswith(TOOLS_FORM)


def split_context(text: str) -> tuple[str, str]:
    """Return the user's own words, and what the page added: documents and its own instructions.

    A message in which no words are recognised as the user's own is treated as third-party content.
    """
    blocks = _BLOCK.search(text) or _RULED.search(text)
    if blocks is None:
        return text, ""
    before, after = text[: blocks.start()].strip(), text[blocks.end() :].strip()
    for form in _ASKED:
        if asked := form.search(after):
            return asked[1].strip() or ONLY_DOCUMENTS, text[: blocks.end()]
    if not after:  # the user's words come first, perhaps with a heading between them and the documents
        said = "" if before.startswith(BEGINS) else _HEADING.sub("", f"\n{before}").strip()
        return said or ONLY_DOCUMENTS, text[blocks.start() :]
    return after, text[: blocks.end()]


class Branched(Event):
    """A page shows another conversation than the one that was heard: lines were edited, or are answered again."""

    kind = "branched"
    session: NoWords[str]
    left: NoWords[tuple[str, ...]] = ()
    """Ids of the records of the abandoned lines, which are history now."""
    taken_up: NoWords[tuple[str, ...]] = ()
    """Ids of abandoned records that are valid again."""


EVENTS: tuple[type[Event], ...] = (Branched,)
