"""Show the events of an open mind on a screen, and send lines of input to the mind as the user's utterances."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from mindstream.cli.permission import Asker, server_approval
from mindstream.cli.screens.run import PlainScreen
from mindstream.cli.screens.talk import Screen
from mindstream.cli.shell.files import InputLine, Lines
from mindstream.cli.shell.output import complain, is_answerable, short
from mindstream.coach.coach import UNAVAILABLE
from mindstream.errors import InputError, MindstreamError, StorageError
from mindstream.log.events import Failed, Heard, Logged, Opened, Said, Thought
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.minds.mind import Mind
from mindstream.models.roles import Models
from mindstream.service.cost import describe_turn
from mindstream.service.minds import open_mind
from mindstream.service.opening import unpriced
from mindstream.service.pools import open_member
from mindstream.service.solving import talk_tools
from mindstream.settings import Settings
from mindstream.sharing.member import Member, Offering, offered_pool
from mindstream.tools.tool import Tool

COMMANDS = {
    "/belief": "show the belief about you",
    "/plan": "show the plan",
    "/retain": "WORDS: store these words in memory as a note",
    "/recall": "WORDS: show the memories that match these words",
    "/sessions": "list the conversations",
    "/forget": "WORDS: permanently forget the records that mention these words; shows the records first, and asks",
    "/offer": "offer the last answer to the pool that --offer names; shows it first, and asks",
    "/work": "list what the reasoners work on",
    "/cancel": "stop the reasoners",
    "/help": "list the commands",
    "/quit": "end the conversation, as Ctrl-D does",
}
"""The commands of the terminal. Other input is an utterance, except a typed line that begins with a single `/`: it is
refused as an unknown command."""
MAX_AT_ONCE = 500
"""Maximum number of utterances that wait for their answers."""
STORAGE_TRIES = 3
"""Number of consecutive failed writes of the reasoners after which the conversation no longer waits for them."""


@dataclass(frozen=True)
class CalledTools:
    """Additional tools of a conversation, as for `solve`: tools by name, folders of documents, MCP servers.

    Attributes:
        trust: accept the tools of MCP servers without a question.
    """

    names: tuple[str, ...] = ()
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    trust: bool = False

    def open(self, settings: Settings) -> contextlib.AbstractAsyncContextManager[tuple[Tool, ...]]:
        """Open the tools; in a terminal, ask the user whether to accept the tools of an MCP server."""
        console = PlainScreen(Console(stderr=True))
        asker = Asker(console) if self.mcp and is_answerable() else None
        return talk_tools(settings, self.names, self.docs, self.mcp, server_approval(self.trust, asker, console))


@dataclass(frozen=True)
class TalkOptions:
    """The options of a conversation.

    Attributes:
        wait: read the next line only after the answer and all reasoning.
        pool: name of the pool whose exemplars the talker sees.
        offer: name of the pool that answers are offered to.
        follow_ups: the mind may send an unsolicited message after an answer.
        called: additional tools of the reasoner.
        reasoners: names of reasoners in addition to those of the pack.
    """

    session: str | None = None
    wait: bool = True
    json: bool = False
    record: Path | None = None
    pool: str = ""
    offer: str = ""
    follow_ups: bool = True
    called: CalledTools = CalledTools()
    reasoners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mark(Logged):
    """A marker in the feed of events: when the screen reads it, all earlier events have been shown."""

    shown: asyncio.Event = field(default_factory=asyncio.Event)


class Conversation:
    """Sends utterances to a mind and shows the answers."""

    def __init__(self, mind: Mind, screen: Screen) -> None:
        self.mind = mind
        self.screen = screen
        self.thinking = False
        self.on_shown: Callable[[Logged], None] = lambda _: None
        self.offering: Offering | None = None
        self.exchanges: list[tuple[str, str]] = []
        """Utterances with their answers that are not offered yet; [] if the options name no pool for offers."""
        self._heard: dict[int, str] = {}
        self.answers = self.unanswered = 0
        """Number of answers; number of utterances without an answer, because the model failed or was not reached."""
        self._failures = 0
        self._given_up = asyncio.Event()
        self._reason = ""

    async def say(self, text: str, heard: asyncio.Event | None = None) -> None:
        """Send a text to the mind, and return when its answer has been shown.

        `heard` is set as soon as the text is stored, or storing it has failed.

        Raises:
            InputError: the text is not accepted.
            StorageError: the text cannot be stored.
            Exception: an error of the responder (see `Mind.hear`).
        """
        try:
            async with contextlib.aclosing(self.mind.hear(text)) as events:
                async for _ in events:
                    if heard is not None:
                        heard.set()
        finally:
            if heard is not None:
                heard.set()
        await self.caught_up()

    async def find_opening(self) -> Logged | None:
        """Return the row of the log that opened this session.

        Return None if the newest row of this kind is of another session, or if there is none.
        """
        last = await self.mind.memory.store.last(self.mind.memory.key, Opened.kind)
        return last if last and isinstance(last.event, Opened) and last.event.session == self.mind.session else None

    async def _look(self) -> None:
        """Update `thinking`: whether a reasoner runs, or has work left that has not failed."""
        self.thinking = False
        with contextlib.suppress(StorageError):
            self.thinking = any(work.running or not work.error for work in await self.mind.reasoners.work())

    def complain(self, error: MindstreamError, where: str, before: str = "") -> None:
        """Show an error as an event; the conversation continues."""
        self.mind.memory.show(Failed(text=f"{before}{error}", where=where), "mindstream")

    async def offer(self) -> list[str]:
        """Offer the exchanges that are not offered yet; return a line about each."""
        lines = []
        while self.offering and self.exchanges:
            query, answer = self.exchanges.pop(0)
            lines.append(f"“{short(query, 60)}”: {await self.offering.offer(query, answer)}")
        return lines

    async def caught_up(self) -> None:
        """Wait until all earlier events have been shown."""
        mark = _Mark(0, self.mind.memory.key, 0.0, "", Failed(text="", where=""))
        self.mind.memory.feed.publish(mark)
        await mark.shown.wait()

    async def settled(self) -> None:
        """Wait until the reasoners have finished all work that they can finish now.

        Raises:
            StorageError: the reasoners failed to write STORAGE_TRIES times in succession.
        """
        settling = asyncio.ensure_future(self.mind.settled())
        giving_up = asyncio.ensure_future(self._given_up.wait())
        try:
            await asyncio.wait({settling, giving_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            giving_up.cancel()
            settling.cancel()
        if not settling.done() or settling.cancelled():
            raise StorageError(self._reason)
        settling.result()
        await self.caught_up()

    async def follow(self, events: AsyncIterator[Logged]) -> None:
        """Show events until the feed is closed."""
        async for logged in events:
            if isinstance(logged, _Mark):
                logged.shown.set()
                continue
            if logged.seq:
                await self._look()
            self.screen.show(logged)
            self.on_shown(logged)
            event = logged.event
            if isinstance(event, Heard) and self.offering:
                self._heard[logged.seq] = event.text
            elif isinstance(event, Said) and (asked := self._heard.pop(event.answers, "")):
                self.exchanges += [(asked, event.text)] if event.model != UNAVAILABLE else []
            if isinstance(event, Said):
                self.unanswered += event.model == UNAVAILABLE
                self.answers += event.model != UNAVAILABLE
            elif isinstance(event, Thought):
                self._failures = 0
            elif isinstance(event, Failed) and not logged.seq and event.where in self.mind.reasoners.slots:
                self._failures, self._reason = self._failures + 1, event.text
                if self._failures >= STORAGE_TRIES:
                    self._given_up.set()


@contextlib.asynccontextmanager
async def conversing(settings: Settings, screen: Screen, options: TalkOptions) -> AsyncIterator[Conversation]:
    """Open a mind and show its events, up to the last one when the block ends.

    Raises:
        UserError: a name, a pack or a folder is not valid.
        StorageError: the data cannot be read or written.
        OSError: the screen cannot be written to.
    """
    talking, offering = asyncio.current_task(), None
    showing: asyncio.Task[None] | None = None
    closed = False

    def shown(task: asyncio.Task[None]) -> None:
        is_broken = not closed and not task.cancelled() and task.exception()
        if is_broken and talking and not talking.cancelling():  # a second cancel would stop the storing of the answer
            talking.cancel()

    with contextlib.ExitStack() as stack:
        try:
            async with (
                open_member(settings, offered_pool(options.pool, options.offer), offers=bool(options.offer)) as member,
                options.called.open(settings) as tools,
                open_mind(
                    settings,
                    session=options.session,
                    record=options.record,
                    exemplars=_shown(member, options, offering := Offering(member) if member else None),
                    follow_ups=options.follow_ups,
                    tools=tools,
                    reasoners=options.reasoners,
                ) as mind,
            ):
                conversation = Conversation(mind, screen)
                if offering and options.offer:
                    offering.scorer, conversation.offering = mind.models.of("scorer"), offering
                    offering.member = replace(offering.member, model=mind.models.of("talker").name)
                screen.watch(conversation)
                if settings.budget_usd is not None and (why := unpriced(settings)):
                    screen.note(why)
                # before anything else, because reasoners already emit events
                events = stack.enter_context(mind.memory.feed.listening())
                if (began := await conversation.find_opening()) is not None:
                    screen.show_opening(began)
                showing = asyncio.create_task(conversation.follow(events))
                showing.add_done_callback(shown)
                yield conversation
        finally:
            closed = True
            if showing is not None:
                await showing


def _shown(member: Member | None, options: TalkOptions, offering: Offering | None) -> Exemplars | None:
    """Return the object that finds exemplars for the talker; None without --pool: --offer alone reads no pool."""
    if member is None or not options.pool:
        return None
    return offering if options.offer else member


async def answer(conversation: Conversation, first: InputLine, lines: Lines, *, wait: bool) -> bool:
    """Answer all lines and finish all work; return whether every line was accepted.

    Args:
        wait: read the next line only after the answer and all reasoning. False: send each line at once.

    Raises:
        StorageError: the data cannot be written.
    """
    taken: list[bool] = []
    line: InputLine | None = first
    if wait:
        while line is not None:
            taken.append(await _said(conversation, line, None))
            await conversation.settled()
            line = await lines.next()
    else:
        room = asyncio.Semaphore(MAX_AT_ONCE)

        async def pour(line: InputLine, heard: asyncio.Event) -> None:
            async with room:
                taken.append(await _said(conversation, line, heard))

        async with asyncio.TaskGroup() as group:
            while line is not None:
                heard = asyncio.Event()
                group.create_task(pour(line, heard))
                await heard.wait()  # keeps the order of the lines
                line = await lines.next()
    conversation.mind.reasoners.resume()
    await conversation.settled()
    return all(taken)


async def _said(conversation: Conversation, line: InputLine, heard: asyncio.Event | None) -> bool:
    command, *_ = line.text.split()
    try:
        if command.lower() in COMMANDS:
            raise InputError(f"{command} is a command that works only in a terminal; /{command} sends it as text")
        text = line.text.lstrip()[1:] if command[1:].lower() in COMMANDS else line.text
        await conversation.say(text, heard)
        for message in await conversation.offer():
            complain(message)
    except StorageError as error:
        conversation.complain(error, "storage")
        raise
    except MindstreamError as error:
        conversation.complain(error, "input", f"line {line.number}: ")
        if heard is not None:
            heard.set()
        return False
    return True


def describe_models(models: Models, settings: Settings) -> str:
    """Describe on one line the models that answer and think, and the cost of a turn."""
    if models.only_rules:
        return "no model is configured: fixed rules answer, and understand little; `mindstream init` sets a model"
    talker, reasoner = models.of("talker").name, models.of("reasoner").name
    who = f"{talker} answers and thinks" if talker == reasoner else f"{talker} answers, {reasoner} thinks"
    return f"{who}; {describe_turn(settings)}"
