"""`Responder`, the protocol of the component that answers the utterances of a mind's user.

`Mind` asks its responder how to handle an utterance, commits the utterance, and passes on the responder's answer. A
responder never calls its mind; it uses the parts of the mind in its `Host`. An answer is a task, which passes its
events to the caller through an `Exchange`. `gather_context` gathers what a responder shows to its models.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

from mindstream.clock import DAY_S
from mindstream.errors import InputError, ModelError, StorageError
from mindstream.log.events import FollowUp, Heard, Logged, Piece, Said, Signal
from mindstream.memory.conversation import DatedLine, Line, Note, dated_line, format_later, lines, lines_of_talks, note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.ranking import LOW_CERTAINTY
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.models.model import estimate_tokens
from mindstream.models.reply import answer_in
from mindstream.models.roles import Models
from mindstream.models.untrusted import is_visible
from mindstream.moved import renamed
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult

TRIES, PAUSES_S = 2, 30.0
"""The default of `Timeouts.silence_s` is TRIES times the timeout of the talker's model for the first part of a reply,
plus PAUSES_S seconds for pauses."""
CALLS = 3
"""The default of `Timeouts.thinking_s` is this many times the timeout of the reasoner's model for the first part of a
reply."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a mind, in seconds.

    Attributes:
        deadline_s: maximum time that a coach's talker waits for the reasoner. After that, the talker says that the
            result takes longer. If no follow-up is possible, the maximum is `thinking_s` instead.
        filler_s: silence after which a filler sentence says that the answer takes longer.
        silence_s: maximum time without output of the talker's model; 0: derived from the model's own timeouts (see
            models/providers/adapter), which are usually reached first.
        thinking_s: maximum duration of a run of the belief reasoner or the facts reasoner; 0: derived from the model's
            own timeouts.
        lease_s: duration of a lease on work; leases are renewed. If a process dies, another one can claim its work
            after this time.
        retry_s: pause after the first failed run of a reasoner; each further pause is four times as long.
    """

    deadline_s: float = 30.0
    filler_s: float = 4.0
    silence_s: float = 0.0
    thinking_s: float = 0.0
    lease_s: float = 10.0
    retry_s: float = 0.5

    def fill(self, models: Models) -> Timeouts:
        """Return these timeouts, with `silence_s` and `thinking_s` derived from the models' timeouts where they are
        0."""
        talker, reasoner = models.waits("talker"), models.waits("reasoner")
        silence_s, thinking_s = TRIES * talker.first_s + PAUSES_S, CALLS * reasoner.first_s
        return replace(self, silence_s=self.silence_s or silence_s, thinking_s=self.thinking_s or thinking_s)


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of a mind that its responder may use.

    Attributes:
        session: the name of the current conversation.
        thinkers: the background runner of the reasoners; its lock `floor` is held while an answer is given.
        asked_in: the record id of the utterance to be answered, for `memory.recall(…, asked_in=…)`; "": none.
    """

    memory: Memory
    models: Models
    session: str
    timeouts: Timeouts
    thinkers: Background
    asked_in: str = ""


class AnswerRows(Protocol):
    """The log rows of an answer; the first row is that of the utterance. It is a generator, or another iterator that
    can be closed."""

    def __aiter__(self) -> AsyncIterator[Logged]: ...

    def aclose(self) -> Awaitable[None]:
        """Cancel the answer, unless it has ended."""


AnswerFunction: TypeAlias = Callable[[Logged], AnswerRows]
"""A function that answers an utterance, given as its log row, and yields the rows of the answer."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How an utterance is processed and answered.

    Attributes:
        answer: the function that answers the utterance.
        phase: the phase of the conversation, for the triggers of reasoners.
        besides: slots of reasoners that the utterance does not wake.
        hold: whether reasoners process the utterance only after it is answered (see Background.release).
        by: the author of the utterance; "": the mind's user.
    """

    answer: AnswerFunction
    phase: str = ""
    besides: Sequence[str] = ()
    hold: bool = False
    by: str = ""


__getattr__ = renamed(__name__, Attention="Handling")


class Responder(Protocol):
    """Answers the utterances of a mind's user, and may add entries to the results of its reasoners.

    Attributes:
        name: the name of the responder. A `FunctionResponder` signs its answers in the log with it; a coach has the
            name of its pack.
        title: the responder's name for display.
        reasoners: the reasoners that the responder needs; the mind runs them.
    """

    name: str
    title: str
    reasoners: Sequence[Reasoner]

    async def begin(self) -> None:
        """Read the responder's state from the log; called before the first utterance."""

    async def attend(self, text: str, *, one_answer: bool) -> Handling:
        """Return how an utterance is processed and answered, without writing anything.

        Args:
            one_answer: whether the user cannot be shown a follow-up after the answer.
        """

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return log entries, such as a follow-up, that are committed together with a reasoner's result.

        `written`: the log entries of the reasoner itself.
        """

    async def close(self) -> None:
        """Cancel answers in progress; the parts that were shown are stored."""


ResponderFactory: TypeAlias = Callable[[Host], Responder]


def make_responder(factory: ResponderFactory, host: Host) -> Responder:
    """Create a responder with a factory.

    Raises:
        InputError: the factory does not return a responder; the message says what is expected.
    """
    name = getattr(factory, "__name__", type(factory).__name__)
    if inspect.isasyncgenfunction(factory) or inspect.iscoroutinefunction(factory):
        raise InputError(f"responder={name} is an async function that answers; pass answer_with({name}) instead")
    made = factory(host) if callable(factory) else factory
    if not callable(factory) or not all(hasattr(made, each) for each in ("name", "reasoners", "attend", "speak_up")):
        raise InputError(
            f"responder={name} does not create a responder; pass Coach.using(), answer_with(…), or a function that"
            " takes a Host and returns a Responder"
        )
    return made


async def follow_up(host: Host, by: str, context: RunContext, result: RunResult) -> Sequence[Entry]:
    """Return the log entry of a result's unsolicited follow-up, with `by` as its author.

    Return () if the result has no follow-up, if the run was about no utterance, or if the user has sent a newer
    utterance.
    """
    if not result.follow_up or not context.utterances:
        return ()
    newest = context.utterances[-1].seq
    if await host.memory.store.events(host.memory.key, newest, ["heard"], 1):
        return ()
    record = await build_chat_record(host.memory, result.follow_up, by, host.session)
    return [Entry(FollowUp(text=record.text, answers=newest, record=record.id), by, (record,))]


class NullResponder:
    """The responder of a mind that does not answer: utterances are stored, and reasoners process them.

    A reasoner's follow-up has the reasoner's slot as its author.
    """

    name = title = ""
    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host) -> None:
        self._host = host

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Handling:  # noqa: ARG002
        return Handling(self._listen)

    async def _listen(self, heard: Logged) -> AsyncGenerator[Logged]:
        self._host.thinkers.wake()
        yield heard

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        return await follow_up(self._host, context.slot, context, result)

    async def close(self) -> None:
        pass


Respond: TypeAlias = Callable[[str, Host], AsyncIterator[str]]
"""A function that yields the pieces of an answer to an utterance; `answer_with` makes it a responder."""


def answer_with(respond: Respond, name: str = "responder") -> ResponderFactory:
    """Return a factory for a responder that answers with an async generator function.

    The function takes an utterance and a `Host`, and yields the pieces of the answer. If it raises, the answer ends,
    and the part that was shown is stored. One utterance is answered at a time; reasoners process it after the answer.
    Their follow-ups have the responder's name as author; after a `one_answer` request no follow-up is sent.

    Raises:
        InputError: the function is a coroutine function or a plain generator function.
    """
    if inspect.iscoroutinefunction(respond) or inspect.isgeneratorfunction(respond):
        raise InputError(
            f"{respond.__name__} must be an async generator function: use `async def`, and `yield` the answer"
        )
    return lambda host: FunctionResponder(host, respond, name)


class FunctionResponder:
    """A responder that answers with a function (see `answer_with`)."""

    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host, respond: Respond, name: str) -> None:
        self.name = self.title = name
        self._host, self._respond = host, respond
        self._turns = set[asyncio.Task[None]]()
        self._is_closed = False
        self._alone = 0
        """Log row of the last utterance with `one_answer`, after which no follow-up is sent."""

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Handling:
        def answer(heard: Logged) -> AnswerRows:
            memory, thinkers = self._host.memory, self._host.thinkers
            self._alone = heard.seq if one_answer else self._alone
            asked_in = heard.event.record if isinstance(heard.event, Heard) else ""
            exchange = Exchange()

            async def take_turn() -> None:
                said, stopped = list[str](), asyncio.Event()
                async with thinkers.turns.of(heard.seq, stopped.set) as turn, thinkers.floor:
                    pieces = self._respond(text, replace(self._host, asked_in=asked_in))
                    try:
                        async for piece in pieces:
                            if stopped.is_set():
                                break
                            said.append(piece)
                            await exchange.show(memory.show(Piece(text=piece, answers=heard.seq), self.name))
                    except asyncio.CancelledError:
                        del said[len(said) - exchange.unread :]
                        if self._is_closed and not is_visible("".join(said)):
                            raise StorageError("the mind was closed before it answered") from None
                        raise
                    finally:
                        try:
                            if isinstance(pieces, AsyncGenerator):
                                await pieces.aclose()
                        finally:
                            if is_visible(shown := "".join(said)):
                                exchange.put(await asyncio.shield(self._keep(heard, shown, turn)))

            def end(turn: asyncio.Task[None]) -> None:
                self._turns.discard(turn)
                exchange.end(turn)
                thinkers.release(heard.seq)

            turn = asyncio.ensure_future(take_turn())
            self._turns.add(turn)
            turn.add_done_callback(end)
            return exchange.events(heard, turn)

        return Handling(answer, hold=True)

    async def _keep(self, heard: Logged, said: str, turn: int | None) -> Logged:
        memory, turns = self._host.memory, self._host.thinkers.turns
        ends = WorkDone((turn,), turns.owner(heard.seq), begun=False) if turn is not None else None
        record = await build_chat_record(memory, answer_in(said) or "…", self.name, self._host.session)
        event = Said(text=record.text, answers=heard.seq, belief_version=0, model=self.name, record=record.id)
        (logged,) = await memory.commit(Entry(event, self.name, (record,)), finish=ends)
        turns.claimed.discard(heard.seq)
        return logged

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        is_seen = not context.utterances or context.utterances[-1].seq != self._alone
        return await follow_up(self._host, self.name, context, result) if is_seen else ()

    async def close(self) -> None:
        self._is_closed = True
        await end_turns(*self._turns)


_stopped = WeakSet[asyncio.Task[None]]()


def stop_turns(*turns: asyncio.Task[None]) -> None:
    """Cancel the tasks of answers, each only once: a second cancellation would stop the storing of the shown part.

    `Task.cancelling` cannot show this, because a timeout within the task cancels it, too.
    """
    for turn in turns:
        if turn not in _stopped:
            _stopped.add(turn)
            turn.cancel()


async def end_turns(*turns: asyncio.Task[None]) -> None:
    """Cancel the tasks of answers as `stop_turns` does, and wait for their end."""
    stop_turns(*turns)
    if turns:
        await asyncio.wait(turns)


GONE_S = 1.0
"""Seconds that an answer waits for the reader of its events. If they are not read in time, it continues without
waiting."""


class Exchange:
    """A queue from the task that produces an answer to a listener.

    The listener iterates over the queue, and closes the queue at the end.

    The task waits until each piece was read, so that only the shown part of an interrupted answer is stored. If the
    listener stops reading, the task waits GONE_S seconds, then continues without the listener.
    """

    _turn: asyncio.Task[None]

    def __init__(self) -> None:
        self._events: deque[Logged | None] = deque()
        self._more, self._all_taken = Signal(), Signal()
        self._untaken, self._is_gone, self._is_read = 0, False, False

    def put(self, logged: Logged | None) -> None:
        """Add an event without waiting; None marks the end."""
        self._events.append(logged)
        self._untaken += 1
        self._more.set()
        self._all_taken.clear()

    async def show(self, logged: Logged) -> None:
        """Add an event, and wait until the listener has read it. After GONE_S, the listener is considered gone."""
        self.put(logged)
        if not self._is_gone:
            self._is_gone = not await self._all_taken.wait(GONE_S)

    @property
    def unread(self) -> int:
        """The number of pieces of the answer that the listener has not read yet."""
        return sum(logged is not None and isinstance(logged.event, Piece) for logged in self._events)

    def end(self, turn: asyncio.Task[None]) -> None:
        """Mark the end of the answer; call this when its task is done."""
        if not turn.cancelled():
            turn.exception()  # marks it as retrieved: the listener gets it, so asyncio must not report it
        self.put(None)

    def events(self, heard: Logged, turn: asyncio.Task[None]) -> Exchange:
        """Add the utterance (`heard`) as the first event, and return this object. It yields the events until `end`.

        `turn`: the task that answers the utterance.
        """
        self._turn = turn
        self.put(heard)
        return self

    def __aiter__(self) -> AsyncIterator[Logged]:
        return self

    async def __anext__(self) -> Logged:
        """Return the next event; at the end, raise the exception of the task if it has one."""
        if self._is_read:  # the listener has read an event, and asks for the next one
            self._is_gone = self._is_read = False
            self._untaken -= 1
            if not self._untaken:
                self._all_taken.set()
        while not self._events:
            self._more.clear()
            await self._more.wait()
        if (logged := self._events.popleft()) is None:
            self._events.appendleft(None)  # further calls need the end mark, too
            if not self._turn.cancelled():
                self._turn.result()
            raise StopAsyncIteration
        self._is_read = True
        return logged

    async def aclose(self) -> None:
        """Cancel the task, unless it is done; the part of the answer that was shown is stored."""
        await end_turns(self._turn)


HISTORY_TOKENS, EARLIER_TOKENS, MEMORY_TOKENS = 3_000, 800, 450
"""Maximum number of tokens for this conversation, for the newest lines of earlier ones, and for all other memories."""
HISTORY, NOTES, RECALLED = 60, 20, 12
"""Maximum number of chat lines, of notes and of recalled memories that are considered for the context."""
RECALLED_KINDS: tuple[Kind, ...] = ("note", "thought", "observation", "document", "chat")


@dataclass(frozen=True, slots=True)
class TalkContext:
    """Context of an answer, within the token budget.

    Attributes:
        history: the newest lines of this conversation, without the utterance itself. If no line of this conversation
            had to be left out, the newest lines of earlier conversations come first.
        left_out: number of lines that do not fit, among the newest HISTORY lines of this conversation.
        has_all: whether `history` contains all earlier lines of this conversation, and all lines of other conversations
            from before it began.
        recalled: memories that match the utterance, apart from notes in `notes` and lines of conversations.
        notes: the newest notes about the user.
        talks: chat lines that `history` does not have, mostly from other conversations, oldest first. They are lines
            that match the utterance, and the user's newest lines, as far as they fit.
        heard: the log rows of the user's earlier messages among the newest HISTORY lines of all conversations.
        later: the time between the last line and the utterance ("13 days later"); "": there is no last line, or it is
            in this conversation and less than 24 hours old.
    """

    history: tuple[Line, ...]
    left_out: int
    has_all: bool
    recalled: tuple[Note, ...]
    notes: tuple[Note, ...]
    talks: tuple[DatedLine, ...]
    heard: tuple[int, ...] = ()
    later: str = ""


async def gather_context(
    memory: Memory, session: str, text: str, heard: int, believer: str | None = None
) -> TalkContext:
    """Gather the context for answering an utterance.

    Args:
        text: the utterance.
        heard: the number of the log row of the utterance.
        believer: the slot of a reasoner whose notes and thoughts are left out, because the prompt has the reasoner's
            belief; None: there is no such reasoner.
    """
    newest = await memory.latest("chat", HISTORY)
    own = next((record.id for record in newest if record.seq == heard), "")
    try:
        hits = await memory.recall(text, k=RECALLED, kinds=RECALLED_KINDS, floor=LOW_CERTAINTY, asked_in=own)
        found = [hit.record for hit in hits]
    except ModelError:  # the embedder is unavailable
        found = []
    talk = [record for record in newest if record.episode == session]
    if len(newest) == HISTORY and len(talk) < HISTORY:  # messages of other conversations are among the newest
        talk = await memory.latest("chat", HISTORY, episode=session)
    own_talk = [record for record in talk if record.seq < heard or not record.data.get("by_user")]
    own_lines, now = lines(own_talk), memory.clock.now()
    fits = fit([Part("history", own_lines, "last")], HISTORY_TOKENS)
    began = min((record.seq for record in talk), default=heard)
    earlier = [record for record in newest if record.episode != session and record.seq < began]
    before: Sequence[Record] = ()
    if not fits.cut["history"]:
        before = fit([Part("lines", lines(earlier), "last")], EARLIER_TOKENS).kept("lines", earlier)
    notes = [note(record, now) for record in await memory.latest("note", NOTES) if record.by != believer]
    recalled = [note(record, now) for record in found if record.kind != "chat" and record.by != believer]
    others = [each for each in recalled if each not in notes]
    shown = {record.id for record in (*talk, *before)}
    matching = [record for record in found if record.kind == "chat" and record.id not in shown]
    shown |= {record.id for record in matching}
    older = [record for record in newest if record.id not in shown and record.data.get("by_user")]
    kept = fit(
        [
            Part("recalled", others),
            Part("matching", [dated_line(record, now) for record in matching]),
            Part("notes", notes, "last"),
            Part("older", [dated_line(record, now) for record in older], "last"),
        ],
        MEMORY_TOKENS,
    )
    talks = sorted([*kept.kept("matching", matching), *kept.kept("older", older)], key=lambda record: record.seq)
    known = {record.id: line for record, line in zip(own_talk, own_lines, strict=True)}
    last = next(iter([*own_talk[-1:], *earlier[-1:]]), None)
    passed_s = now - last.created if last else 0.0
    return TalkContext(
        history=lines_of_talks([*before, *fits.kept("history", own_talk)], session, now, known),
        left_out=fits.cut["history"],
        has_all=len(newest) < HISTORY and not fits.cut["history"] and len(before) == len(earlier),
        recalled=kept.kept("recalled", others),
        notes=kept.kept("notes", notes),
        talks=tuple(dated_line(record, now) for record in talks),
        heard=tuple(record.seq for record in newest if record.seq < heard and record.data.get("by_user")),
        later=format_later(passed_s) if last and (last.episode != session or passed_s >= DAY_S) else "",
    )


async def build_chat_record(memory: Memory, text: str, by: str, session: str, *, by_user: bool = False) -> Record:
    """Build the memory record of a line of a conversation; the caller writes it."""
    draft = RecordDraft(text=text, kind="chat", by=by, episode=session, data={"by_user": by_user})
    return (await memory.build_records([draft]))[0]


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a prompt: a list of items. Items that do not fit are left out.

    Attributes:
        keep: the items that are kept if not all fit: the first, or the last (for a history).
    """

    name: str
    items: Sequence[object]
    keep: Literal["first", "last"] = "first"


@dataclass(frozen=True, slots=True)
class Fitted:
    """The result of `fit`: for each part of a prompt, the positions of the kept items (`places`) and the number of
    items left out (`cut`)."""

    places: dict[str, list[int]]
    cut: dict[str, int]
    tokens: int

    def kept(self, part: str, items: Sequence[T]) -> tuple[T, ...]:
        """Return the kept items of a part, in their order."""
        return tuple(items[place] for place in self.places[part])


def fit(parts: Sequence[Part], budget: int, tokens: Callable[[str], int] = estimate_tokens) -> Fitted:
    """Select the items that fit into `budget` tokens. Earlier parts have priority.

    A part keeps its first items, up to the first that does not fit. If `keep` is "last", it keeps its last items.
    """
    room = budget
    places: dict[str, list[int]] = {}
    for part in parts:
        kept: list[int] = []
        order = range(len(part.items))
        for n in order if part.keep == "first" else reversed(order):
            size = tokens(str(part.items[n]))
            if size > room:
                break
            room -= size
            kept.append(n)
        places[part.name] = sorted(kept)
    cut = {part.name: len(part.items) - len(places[part.name]) for part in parts}
    return Fitted(places, cut, budget - room)
