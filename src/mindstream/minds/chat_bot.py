"""The chat bot: recalls before it answers, takes notes after, and calls tools in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import tzinfo
from types import MappingProxyType
from typing import Any, ClassVar

from mindstream.clock import Clock, MachineZone, format_spoken
from mindstream.errors import PromptBlocked, ReplyInvalid, SettingsError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed
from mindstream.log.events import Piece as PieceEvent
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore
from mindstream.memory.policy import AnyPolicy
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry
from mindstream.minds.context import HISTORY, HISTORY_TOKENS, gather_context
from mindstream.minds.mind import Mind
from mindstream.minds.responder import FunctionResponder, Host
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import FREELY, Message, Model, Part, Piece, Request, Sampling
from mindstream.models.prompt import Prompt, rule
from mindstream.models.reply import legible_parts
from mindstream.models.roles import AnyModels
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, Utterance
from mindstream.text.context import Part as ContextPart
from mindstream.text.context import fit
from mindstream.text.links import links, pieces_without_links
from mindstream.text.words import language_of, terms
from mindstream.tools.approval import Approve, with_approval
from mindstream.tools.loop import run_tool_loop
from mindstream.tools.tool import Tool, checked_tools

NAME = "companion"
"""The author of its answers, unless it is given a name."""
QUOTED = 3
"""Maximum number of lines that are quoted if no model is configured."""
STEPS = 10
"""Maximum number of model calls for an answer with tools."""
EXEMPLAR_S = 2.0
"""Seconds that an answer waits for lessons and exemplars."""
SETTLE_S = 60.0
"""Seconds for which the end of a chat waits for the facts of the last messages."""
REFUSED = {
    "en": "The language model that I think with did not take that, so I can't answer it. What you said is kept.",
    "zh": "我用来思考的语言模型没有接受这句话，所以我答不上来。你说的话已经记下了。",
}
NO_MODEL = (
    'a chat bot needs a language model: name one, as model="openai:gpt-5-mini" (with OPENAI_API_KEY set),'
    ' "anthropic:claude-haiku-4-5", "ollama:qwen3" or "http://127.0.0.1:8000/v1#my-model"'
)


class CompanionTalk(Prompt[str]):
    """Answer the utterance, as whoever remembers this person.

    `persona`: the developer's instructions, in place of the companion's description of itself. `instructions`: what
    the page of this talk asks of whoever answers. `beside`: what it found for these words.
    """

    role: ClassVar[str] = "talker"

    persona: str = ""
    instructions: str = ""
    beside: str = ""
    exemplars: tuple[str, ...] = ()
    """Lessons and good answers of others, from a pool."""
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
        yield from self.exemplars
        yield from (note.text for note in (*self.notes, *self.recalled))

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose addresses a page may load by itself (images): the conversation and its instructions.

        A page's documents, notes and recalled memories may be third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.persona, self.instructions, self.utterance)

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


@dataclass(frozen=True, slots=True)
class _PageModel:
    """A model whose replies are as long and as free as a page says."""

    inner: Model
    page: Page

    @property
    def name(self) -> str:
        return self.inner.name

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        page = self.page
        return self.inner.reply(replace(request, longest_reply=page.longest_reply, sampling=page.sampling))


class ChatResponder(FunctionResponder):
    """Answers from memory, by the model of the role `talker`; a reasoner takes notes.

    Attributes:
        page: what the page sends with the next utterance; its lines only if they were not heard here.
    """

    reasoners: Sequence[Reasoner]

    def __init__(self, host: Host, bot: BotFactory | None = None) -> None:
        self._bot = bot or BotFactory()
        super().__init__(host, self._speak, self._bot.name)
        self.page = Page(zone=MachineZone()) if bot else Page()
        self._model = host.models.of("talker")
        self.reasoners = (FactsReasoner(host.models.of("facts"), timeout_s=host.timeouts.thinking_s),)

    async def _speak(self, text: str, host: Host) -> AsyncGenerator[str]:
        page, said = self.page, False
        own = next(iter(await host.memory.store.records(host.memory.key, [host.asked_in])), None)
        question = await self._question(text, host, page, own)
        model = _PageModel(self._model, page)
        words = _words(model, question)
        if self._bot.tools and own is not None:
            words = self._words_with_tools(model, question, host, own)
        try:
            async with aclosing(answer_pieces(question, words)) as pieces:
                async for piece in pieces:
                    said = said or bool(piece.strip())
                    yield piece
        except PromptBlocked as error:
            if said:
                raise
            failed = Failed(text=describe(error), where=self.name)
            await host.memory.commit(Entry(failed, self.name))
            yield REFUSED.get(language_of(text), REFUSED["en"])
            return
        if not said:
            raise ReplyInvalid(f"{self._model.name} answered with no words")

    async def _words_with_tools(
        self, model: Model, question: CompanionTalk, host: Host, own: Record
    ) -> AsyncGenerator[str]:
        """Yield the model's words while it calls tools; the calls are logged, and found again after a crash."""
        memory = host.memory
        context = RunContext(
            self.name,
            memory,
            [Utterance(own.seq, own.text, own.id, host.session, own.created)],
            await memory.latest("chat", HISTORY, episode=host.session),
            tools=self._bot.tools,
            events=await memory.store.events(memory.key, own.seq - 1, ["heard"], 1),
        )
        tools = with_approval(self._bot.tools, self._bot.approve, lambda: bool(context.strangers))
        coming = asyncio.Queue[str | None]()

        async def run() -> None:
            try:
                await run_tool_loop(
                    model, question, tools, context, steps=STEPS, role=question.role, on_text=coming.put_nowait
                )
            finally:
                coming.put_nowait(None)

        running = asyncio.ensure_future(run())
        try:
            while (words := await coming.get()) is not None:
                yield words
            await running
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _question(self, text: str, host: Host, page: Page, own: Record | None) -> CompanionTalk:
        memory = host.memory
        found = await gather_context(memory, host.session, text, own.seq if own else 0)
        own_lines = (line for line in found.history if not isinstance(line, DatedLine))
        history, left_out = tuple(line.model_copy(update={"later": ""}) for line in own_lines), found.left_out
        newest_of_others = tuple(line for line in found.history if isinstance(line, DatedLine))
        if page.lines:
            fits = fit([ContextPart("history", page.lines, "last")], HISTORY_TOKENS)
            history, left_out = fits.kept("history", page.lines), fits.cut["history"]
        shown, failed = await find_examples(self._bot.exemplars, text, EXEMPLAR_S)
        if failed:
            await memory.commit(Entry(Failed(text=failed, where="exemplars"), self.name))
        return CompanionTalk(
            persona=self._bot.instructions,
            instructions=page.instructions,
            beside=page.beside,
            exemplars=tuple(map(str, shown)),
            notes=found.notes,
            recalled=found.recalled,
            talks=(*found.talks, *newest_of_others),
            history=history,
            earlier=left_out,
            utterance=text,
            now=format_spoken(memory.clock.now(), page.zone) if page.zone else "",
        )


async def _words(model: Model, question: CompanionTalk) -> AsyncGenerator[str]:
    async with aclosing(legible_parts(model.reply(Request(question, question.role)))) as parts:
        async for part in parts:
            if isinstance(part, Piece) and part.text:
                yield part.text


def answer_pieces(question: CompanionTalk, words: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Remove from an answer the addresses that no text gave: a page would load an image, or a user follow a link."""
    return pieces_without_links(words, lambda: links(question.texts()), lambda: links(question.own_texts()))


def answer_page(page: Page, text: str) -> CompanionTalk:
    """Return the prompt of a conversation that is not remembered: nothing is recalled for it, either."""
    fits = fit([ContextPart("history", page.lines, "last")], HISTORY_TOKENS)
    return CompanionTalk(
        instructions=page.instructions,
        beside=page.beside,
        history=fits.kept("history", page.lines),
        earlier=fits.cut["history"],
        utterance=text,
    )


@dataclass(frozen=True)
class BotFactory:
    """Makes the responder of a chat bot; `ChatBot.using(…)` returns it.

    Attributes:
        models: the bot's own models; None: those of the mind or server that it answers for.
        instructions: who the bot is and what it does.
        tools: the tools that it may call.
        approve: which calls of tools that change the world are made (tools/approval).
        name: the author of its answers.
        exemplars: finds lessons and good answers of others for an utterance, such as a `Member` of a pool.
    """

    models: AnyModels | None = None
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    approve: Approve = ()
    name: str = NAME
    exemplars: Exemplars | None = None

    def __call__(self, host: Host) -> ChatResponder:
        """Make the responder.

        Raises:
            SettingsError: no model is configured.
        """
        if host.models.only_rules:
            raise SettingsError(NO_MODEL)
        return ChatResponder(host, self)


class ChatBot:
    """A chat bot that remembers its user, in as many lines as this:

        async with ChatBot.open("data", user="ann", model="openai:gpt-5-mini") as bot:
            print(await bot.send("I am allergic to peanuts."))
            print(await bot.send("What could I cook tonight?"))

    *It remembers.* Before each answer it recalls what fits the words, from this and all earlier conversations of the
    user; after it, the model extracts lasting facts in the background. Open it tomorrow, and it still knows them.
    `bot.memory` is the user's `Memory`: `await bot.memory.recall("what is Ann allergic to?")`.

    *It streams.* Words come as the model says them:

        async for piece in bot.stream("Tell me more."):
            print(piece, end="", flush=True)

    *It calls tools.* A tool is a Python function with type hints and a docstring, plain or async. One that changes
    the world is marked, and called only if `approve` says so: a list of names, or a function of the call.

        def weather(city: str) -> str:
            \"\"\"Return today's weather in a city.\"\"\"
            return "rain"

        @tool(changes=True)
        def order(dish: str) -> str:
            \"\"\"Order a dish.\"\"\"
            return f"{dish} is on its way"

        ChatBot.open(…, tools=[weather, order], approve=lambda call: input(f"{call}? [y/N] ") == "y")

    *It has a character.* `instructions` says who it is, what it does and how it speaks.

    *It is served.* `ChatBot.using(…)` describes a bot; a server offers it to every user, under /v1/models and
    /v1/chat/completions (any OpenAI client talks to it), and `Mind.open(responder=…)` takes it:

        app("data", bots={"support": ChatBot.using(model="openai:gpt-5-mini", instructions="…")})

    Without asyncio there is the same class in `mindstream.sync`. For phases, gates and background reasoners see `Coach`
    and `Mind`; a `ChatBot` is a mind with a simple responder.

    Attributes:
        mind: the mind behind it: its log, its reasoners, its models.
    """

    def __init__(self, mind: Mind) -> None:
        self.mind = mind

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        data: AnyStore = "data",
        *,
        user: str = "you",
        model: AnyModels | None = None,
        instructions: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        approve: Approve = (),
        session: str | None = None,
        embed: Embedder | str | None = None,
        clock: Clock | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        settle_s: float = SETTLE_S,
        exemplars: Exemplars | None = None,
    ) -> AsyncIterator[ChatBot]:
        """Open a user's bot.

        At the end of the block it waits for the facts of the last messages, at most `settle_s` seconds. What is not
        done by then, or if the block ends by an error, is done when the user's bot is opened again.

        Args:
            data: the data folder (created if missing), the URL of a PostgreSQL database, or a store.
            user: who talks; each name has a memory of its own.
            model: its name, as `openai:gpt-5-mini`, a model, or a table by role: `talker` answers, `facts` takes notes.
            instructions: who the bot is and what it does; trusted.
            tools: functions with type hints and a docstring, or tools (docs/tools.md).
            approve: which calls of tools that change the world are made: the names of tools, or a function of the call
                (tools/approval). By default none.
            session: the conversation to continue; None begins a new one. Memory spans all of them.
            embed, policy: see `Memory.open`.
            exemplars: finds lessons and good answers of others for an utterance, such as a `Member` of a pool.

        Raises:
            SettingsError: no model is named, or there is no such model.
            UserError: a name is invalid, or two tools have one name.
            StorageError: the data folder cannot be used.
        """
        factory = cls.using(model=model, instructions=instructions, tools=tools, approve=approve, exemplars=exemplars)
        if model is None:
            raise SettingsError(NO_MODEL)
        opened = Mind.open(data, user=user, session=session, responder=factory, embed=embed, clock=clock, policy=policy)
        async with opened as mind:
            yield cls(mind)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settle_s):
                    await mind.settled()

    @staticmethod
    def using(
        *,
        model: AnyModels | None = None,
        instructions: str = "",
        tools: Sequence[Tool | Callable[..., Any]] = (),
        approve: Approve = (),
        name: str = NAME,
        exemplars: Exemplars | None = None,
    ) -> BotFactory:
        """Describe a bot, for `app(data, bots={"support": ChatBot.using(…)})` and `Mind.open(responder=…)`.

        Args:
            model: see `open`; None: the models of the server or of the mind.
            name: the author of its answers in the log and in memory.
        """
        return BotFactory(model, instructions, checked_tools(tools), approve, name, exemplars)

    @property
    def memory(self) -> Memory:
        """All that is remembered of the user."""
        return self.mind.memory

    @property
    def session(self) -> str:
        """The name of this conversation; `open(session=…)` continues it."""
        return self.mind.session

    async def send(self, text: str) -> str:
        """Say something, and return the whole answer.

        Raises:
            InputError: the text is empty or too long.
            ModelError: the model failed (ModelUnavailable: it cannot be reached or is overloaded, after three tries).
                What was said is stored.
            StorageError: it could not be stored.
        """
        return await self.mind.send(text)

    async def stream(self, text: str) -> AsyncGenerator[str]:
        """Say something, and yield the words of the answer as they come. Leaving the loop stops the answer.

        Raises:
            InputError, ModelError, StorageError: as `send`.
        """
        async with aclosing(self.mind.stream(text)) as events:
            async for event in events:
                if isinstance(event, PieceEvent):
                    yield event.text

    async def settled(self) -> None:
        """Return when the facts of all messages so far have been extracted, or cannot be for now."""
        await self.mind.settled()

    async def cancel(self) -> int:
        """Stop the extraction of facts that is under way; return the number of runs that were stopped."""
        return await self.mind.cancel()
