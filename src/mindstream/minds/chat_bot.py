"""`ChatBot`: recalls memories before it answers, calls tools while it answers, and extracts facts afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import tzinfo
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from mindstream.clock import Clock, MachineZone, format_spoken
from mindstream.errors import InputError, PromptBlocked, ReplyInvalid, SettingsError
from mindstream.foreign_code import describe
from mindstream.guidance import SYNC, awaited, explain_attribute, explained, opens, streamed
from mindstream.log.events import Failed
from mindstream.log.events import Piece as PieceEvent
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore
from mindstream.memory.policy import AnyPolicy
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry
from mindstream.minds.mind import Mind
from mindstream.minds.responder import HISTORY, HISTORY_TOKENS, FunctionResponder, Host, fit, gather_context
from mindstream.minds.responder import Part as ContextPart
from mindstream.models.embedders.embedder import EmbedderChoice
from mindstream.models.model import FREELY, Layer, Layered, Message, Model, Part, Piece, Request, Sampling
from mindstream.models.prompt import Prompt, rule
from mindstream.models.reply import LegiblePieces
from mindstream.models.roles import AnyModels
from mindstream.models.untrusted import is_visible
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, Utterance
from mindstream.text.links import LinkFilter, links, pieces_without_links
from mindstream.text.words import language_of, terms
from mindstream.together import cancel_all
from mindstream.tools.call import Approve, check_approve, run_tool_loop, with_approval
from mindstream.tools.tool import AnyTools, Tool, checked_tools

NAME = "companion"
"""The default author of a chat bot's answers."""
QUOTED = 3
"""Maximum number of remembered lines that an answer quotes if no model is configured."""
STEPS = 10
"""Maximum number of model calls for an answer with tools."""
EXEMPLAR_S = 2.0
"""Maximum time that an answer waits for lessons and exemplars, in seconds."""
SETTLE_S = 60.0
"""Maximum time that the end of a chat waits until the facts of the last messages are extracted, in seconds."""
REFUSED = {
    "en": "The language model that I think with did not take that, so I can't answer it. What you said is kept.",
    "zh": "我用来思考的语言模型没有接受这句话，所以我答不上来。你说的话已经记下了。",
}
NO_MODEL = (
    'a chat bot needs a language model; name one, such as model="openai:gpt-5-mini" (with OPENAI_API_KEY set),'
    ' "anthropic:claude-haiku-4-5", "ollama:qwen3" or "http://127.0.0.1:8000/v1#my-model"; without a key, try it with'
    ' model=FakeModel(["Hello!"])'
)


class CompanionTalk(Prompt[str]):
    """Answer the utterance, from the memory of this user.

    `persona`: the developer's instructions, in place of the companion's description of itself. `instructions`: the
    system prompt that the client (a chat page) sends. `beside`: documents or search results that the client sends with
    the utterance.
    """

    role: ClassVar[str] = "talker"

    persona: str = ""
    instructions: str = ""
    beside: str = ""
    exemplars: tuple[str, ...] = ()
    """Lessons, and good answers of other agents, from a pool (sharing)."""
    notes: tuple[Note, ...] = ()
    recalled: tuple[Note, ...] = ()
    talks: tuple[DatedLine, ...] = ()
    history: tuple[Line, ...] = ()
    earlier: int = 0
    """Number of older lines of this conversation that the prompt leaves out."""
    utterance: str
    now: str = ""

    def texts(self) -> Iterator[str]:
        """Yield the texts of the prompt; an answer may contain only links that one of them contains."""
        yield from self.own_texts()
        yield self.beside
        yield from self.exemplars
        yield from (note.text for note in (*self.notes, *self.recalled))

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose links (to images) a web page may load without a click: conversation and instructions.

        The other texts (documents that the client sent, notes, recalled memories) may be third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.persona, self.instructions, self.utterance)

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in self.history]


@rule(CompanionTalk)
def quote_what_is_remembered(ask: CompanionTalk) -> str:
    """Answer that no model is configured, and quote remembered lines that share words with the utterance."""
    asked = {*terms(ask.utterance)}
    held: list[Note | DatedLine] = [*ask.notes, *ask.recalled, *(line for line in ask.talks if line.by_user)]
    near = sorted(held, key=lambda each: -len(asked & {*terms(each.text)}))[:QUOTED]
    quoted = [f"- {each.day}: {each.text}" for each in near if asked & {*terms(each.text)}]
    told = "What I remember of that:\n" + "\n".join(quoted) if quoted else "I have kept it."
    return f"(No model is configured: I only remember.) {told}"


@dataclass(frozen=True, slots=True)
class Page:
    """What a client (such as a web page with a chat) sends with an utterance: the conversation before it, and options.

    Attributes:
        instructions: the client's system prompt; never remembered.
        beside: documents or search results that the client sends with the utterance (third-party content); never
            remembered.
        lines: the lines of the conversation before the utterance, oldest first.
        zone: the user's time zone; None: the client does not say.
        longest_reply: maximum number of tokens of an answer; 0: the client does not say.
        sampling: the client's sampling parameters.
    """

    instructions: str = ""
    beside: str = ""
    lines: Sequence[Line] = ()
    zone: tzinfo | None = None
    longest_reply: int = 0
    sampling: Sampling = FREELY


class _PageModel(Layered):
    """A model that is called with the reply length and the sampling parameters that the client sent (`page`)."""

    def __init__(self, inner: Model, page: Page) -> None:
        super().__init__(inner)
        self._page = page

    def layer(self, request: Request) -> Layer:
        page = self._page
        return Layer(self.inner, request.but(longest_reply=page.longest_reply, sampling=page.sampling))


class ChatResponder(FunctionResponder):
    """Answer with the model of the role `talker`, from memory; a reasoner extracts facts.

    Attributes:
        page: what the client sends with the next utterance: options, and the earlier messages of the conversation.
            `page.lines` is empty if this mind has heard those messages itself.
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
        own = await host.memory.get(host.asked_in)
        question = await self._question(text, host, page, own)
        model, legible, allowed = _PageModel(self._model, page), LegiblePieces(), _link_filter(question)
        if self._bot.tools and own is not None:
            parts = self._reply_with_tools(model, question, host, own)
        else:
            parts = model.reply(Request(question, question.role))
        try:
            async with aclosing(parts):
                async for part in parts:
                    words = legible.add(part.text) if isinstance(part, Piece) else ""
                    if words and (words := allowed.feed(words)):
                        said = said or is_visible(words)
                        yield words
            if words := allowed.feed("", last=True):
                said = said or is_visible(words)
                yield words
        except PromptBlocked as error:
            if said:
                raise
            await host.memory.commit(Entry(Failed(text=describe(error), where=self.name), self.name))
            yield REFUSED.get(language_of(text), REFUSED["en"])
            return
        if not said:
            raise ReplyInvalid(f"{self._model.name} answered with no words")

    async def _reply_with_tools(
        self, model: Model, question: CompanionTalk, host: Host, own: Record
    ) -> AsyncGenerator[Part]:
        """Yield the words of a model that may call tools.

        Tool calls and their results are logged. If the utterance is answered again after a crash, recent results are
        reused.
        """
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
                yield Piece(words)
            await running
        finally:
            await cancel_all(running)

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


def _link_filter(question: CompanionTalk) -> LinkFilter:
    return LinkFilter(lambda: links(question.texts()), lambda: links(question.own_texts()))


def answer_pieces(question: CompanionTalk, words: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Remove from an answer the web addresses that no text of its prompt contains.

    Otherwise a page might load an image, or a user open a link, that the model was tricked into writing.
    """
    return pieces_without_links(words, lambda: links(question.texts()), lambda: links(question.own_texts()))


def answer_page(page: Page, text: str) -> CompanionTalk:
    """Return the prompt of a conversation that is not remembered; no memories are recalled for it either."""
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
    """Create the responder of a chat bot; `ChatBot.using(…)` returns such a factory.

    Attributes:
        models: the bot's models; None: the models of the mind or server that the bot answers for.
        instructions: the bot's character and task.
        tools: the tools that the bot may call.
        approve: decides which calls of tools that change the world are made (tools/call.py).
        name: the author of the bot's answers.
        exemplars: a source of lessons and good answers of other agents, such as a `Member` of a pool.
    """

    models: AnyModels | None = None
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    approve: Approve = ()
    name: str = NAME
    exemplars: Exemplars | None = None

    def __call__(self, host: Host) -> ChatResponder:
        """Create the responder.

        Raises:
            SettingsError: no model is configured.
        """
        if host.models.only_rules:
            raise SettingsError(NO_MODEL)
        return ChatResponder(host, self)


class ChatBot:
    """A chat bot that remembers its user:

        async with ChatBot("data", user="ann", model="openai:gpt-5-mini") as bot:
            print(await bot.send("I am allergic to peanuts."))
            print(await bot.send("What could I cook tonight?"))

    *It remembers.* Before each answer it recalls relevant memories from all conversations of the user. After the
    answer, the model extracts lasting facts in the background; they are stored, so the bot knows them when it is opened
    again. `bot.memory` is the user's `Memory`: `await bot.memory.recall("what is Ann allergic to?")`.

    *It streams.* The words are yielded as the model produces them:

        async for piece in bot.stream("Tell me more."):
            print(piece, end="", flush=True)

    *It calls tools.* A tool is a Python function with type hints and a docstring, sync or async. A tool that changes
    the world is marked with `changes=True`. It is called only if `approve` (a list of names, or a function of the call)
    allows it.

        def weather(city: str) -> str:
            \"\"\"Return today's weather in a city.\"\"\"
            return "rain"

        @tool(changes=True)
        def order(dish: str) -> str:
            \"\"\"Order a dish.\"\"\"
            return f"{dish} is on its way"

        ChatBot(…, tools=[weather, order], approve=lambda call: input(f"{call}? [y/N] ") == "y")

    *It has a character.* `instructions` says who it is, what it does and how it speaks.

    *It is served.* `ChatBot.using(…)` describes a bot; a server offers it to every user, under /v1/models and
    /v1/chat/completions (any OpenAI client talks to it), and `Mind.open(responder=…)` takes it:

        app("data", bots={"support": ChatBot.using(model="openai:gpt-5-mini", instructions="…")})

    `ChatBot.open(…)` takes the same arguments; `mindstream.sync` has the same class for code without asyncio. For
    phases, gates and background reasoners see `Coach` and `Mind`; a `ChatBot` is a mind with a simple responder.

    Attributes:
        mind: the bot's `Mind`, with its log, reasoners and models.
    """

    @explained
    def __init__(
        self,
        data: AnyStore | Mind = "data",
        *,
        user: str = "you",
        model: AnyModels | None = None,
        instructions: str = "",
        tools: AnyTools = (),
        approve: Approve = (),
        session: str | None = None,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        settle_s: float = SETTLE_S,
        exemplars: Exemplars | None = None,
    ) -> None:
        """Describe a bot that `async with` opens; arguments as in `open`. If `data` is a mind, the bot is open
        already."""
        if isinstance(data, Mind):
            self.mind = data
            return
        self._opening = ChatBot.open(
            data,
            user=user,
            model=model,
            instructions=instructions,
            tools=tools,
            approve=approve,
            session=session,
            embed=embed,
            clock=clock,
            policy=policy,
            settle_s=settle_s,
            exemplars=exemplars,
        )

    async def __aenter__(self) -> Self:
        self.mind = (await self._opening.__aenter__()).mind
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._opening.__aexit__(*error)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or "mind" in self.__dict__:
                explain_attribute(self, name)
            self.__enter__()

        def __enter__(self) -> NoReturn:
            raise InputError(f"open the bot with `async with ChatBot(…) as bot:`; {SYNC}")

        def __exit__(self, *_: object) -> None: ...

    @classmethod
    @opens
    async def open(
        cls,
        data: AnyStore = "data",
        *,
        user: str = "you",
        model: AnyModels | None = None,
        instructions: str = "",
        tools: AnyTools = (),
        approve: Approve = (),
        session: str | None = None,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        settle_s: float = SETTLE_S,
        exemplars: Exemplars | None = None,
    ) -> AsyncIterator[ChatBot]:
        """Open a user's bot.

        The end of the block waits until the facts of the last messages are extracted, at most `settle_s` seconds. An
        error in the block ends it without waiting. Facts that are not extracted by then are extracted when the user's
        bot is opened again.

        Args:
            data: the data folder (created if missing), the URL of a PostgreSQL database, or a store.
            user: the name of the user; each user has a separate memory.
            model: the name of a model, such as `openai:gpt-5-mini`, a model, or a table by role: `talker` answers,
                `facts` extracts facts.
            instructions: the bot's character and task; trusted text.
            tools: functions with type hints and a docstring, or tools (docs/tools.md).
            approve: which calls of tools that change the world are made: the names of the permitted tools, or a
                function that decides about each call (tools/call.py). By default no such call is made.
            session: the conversation to continue; None begins a new one. All conversations share the memory.
            embed, policy: see `Memory.open`.
            exemplars: a source of lessons and good answers of other agents, such as a `Member` of a pool.

        Raises:
            SettingsError: no model is named, or the named model does not exist.
            UserError: a name is invalid, or two tools have the same name.
            StorageError: the data cannot be read or written.
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
    @explained
    def using(
        *,
        model: AnyModels | None = None,
        instructions: str = "",
        tools: AnyTools = (),
        approve: Approve = (),
        name: str = NAME,
        exemplars: Exemplars | None = None,
    ) -> BotFactory:
        """Describe a bot, for `app(data, bots={"support": ChatBot.using(…)})` and `Mind.open(responder=…)`.

        Args:
            model: see `open`; None: the models of the server or of the mind that uses the bot.
            name: the author of the bot's answers in the log and in memory.
        """
        made = checked_tools(tools)
        check_approve(approve, made)
        return BotFactory(model, instructions, made, approve, name, exemplars)

    @property
    def memory(self) -> Memory:
        """The memory of the user, across all conversations."""
        return self.mind.memory

    @property
    def session(self) -> str:
        """The name of this conversation; `open(session=…)` continues it."""
        return self.mind.session

    @awaited
    async def send(self, text: str) -> str:
        """Send an utterance, and return the whole answer.

        Raises:
            InputError: the text is empty or too long.
            ModelError: the model failed (ModelUnavailable: it could not be reached or was overloaded, after up to three
                attempts). The utterance is stored.
            StorageError: the utterance or the answer could not be stored.
        """
        return await self.mind.send(text)

    @streamed
    async def stream(self, text: str) -> AsyncGenerator[str]:
        """Send an utterance, and yield the pieces of the answer as they come. Leaving the loop stops the answer.

        Raises:
            InputError, ModelError, StorageError: as `send`.
        """
        async with aclosing(self.mind.stream(text)) as events:
            async for event in events:
                if isinstance(event, PieceEvent):
                    yield event.text

    async def settled(self) -> None:
        """Wait until facts have been extracted from all messages, or until waiting is pointless
        (Background.settled)."""
        await self.mind.settled()

    async def cancel(self) -> int:
        """Stop the extraction of facts that is in progress; return the number of runs that were stopped."""
        return await self.mind.cancel()
