"""The extension point `Responder`: who answers for a mind.

`Mind` asks its responder how to handle an utterance, commits the utterance, and passes on the responder's answer. A
responder never calls its mind; it uses its `Host`.
"""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from mindstream.errors import InputError
from mindstream.log.events import FollowUp, Heard, Logged, Piece, Said
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.minds.context import build_chat_record
from mindstream.models.providers.thoughts import answer_in
from mindstream.models.roles import Models
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult

TRIES, PAUSES_S = 2, 30.0
"""Number of times that an endpoint may use its whole time, with these pauses between, before the Talker gives up …"""
CALLS = 3
"""… and number of such calls in a Reasoner's run."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts of a mind, in seconds.

    Attributes:
        deadline_s: how long the Talker waits for the Reasoner before it says that it takes longer.
        filler_s: silence before a filler says that the answer takes longer.
        silence_s: how long the Talker's model may be silent; 0: derived from the model's own timeouts (see
            models/providers/limits), which usually end a silence first.
        thinking_s: how long a Reasoner's run may take; 0: derived from the model's own timeouts.
        lease_s: how long work stays with a process that has died.
        retry_s: pause of a Reasoner's work after the first failed run; each further pause is four times as long.
    """

    deadline_s: float = 30.0
    filler_s: float = 4.0
    silence_s: float = 0.0
    thinking_s: float = 0.0
    lease_s: float = 10.0
    retry_s: float = 0.5

    def fill(self, models: Models) -> Timeouts:
        """Return the timeouts with values derived from the models in place of 0."""
        talker, reasoner = models.waits("talker"), models.waits("reasoner")
        silence_s, thinking_s = TRIES * talker.first_s + PAUSES_S, CALLS * reasoner.first_s
        return replace(self, silence_s=self.silence_s or silence_s, thinking_s=self.thinking_s or thinking_s)


@dataclass(frozen=True, slots=True)
class Host:
    """The parts of a mind that its responder may use.

    Attributes:
        session: the present conversation.
        thinkers: the reasoners: released after an answer, or waited for; their `floor` is held during an answer.
        asked_in: the record id of the utterance that is answered, for `memory.recall(…, asked_in=…)`; "": none.
    """

    memory: Memory
    models: Models
    session: str
    timeouts: Timeouts
    thinkers: Background
    asked_in: str = ""


AnswerFunction: TypeAlias = Callable[[Logged], AsyncGenerator[Logged]]
"""Answers an utterance (its log row): yields that row first, then the events of the answer."""


@dataclass(frozen=True, slots=True)
class Handling:
    """How an utterance is processed and answered.

    Attributes:
        phase: the phase of the conversation, for triggers.
        besides: slots that are not woken.
        hold: the reasoners wait until the utterance is released (see Background.release), because it is answered first.
        by: the author; "": the mind's user.
    """

    answer: AnswerFunction
    phase: str = ""
    besides: Sequence[str] = ()
    hold: bool = False
    by: str = ""


def __getattr__(name: str) -> object:
    if name == "Attention":
        warnings.warn("Attention is called Handling now", DeprecationWarning, stacklevel=2)
        return Handling
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Responder(Protocol):
    """Answers utterances of a mind's user, and may add to the results of its reasoners.

    Attributes:
        name: its name in the log; a coach has the name of its pack.
        title: its name for people.
        reasoners: reasoners that it needs.
    """

    name: str
    title: str
    reasoners: Sequence[Reasoner]

    async def begin(self) -> None:
        """Read its state, before the first utterance."""

    async def attend(self, text: str, *, one_answer: bool) -> Handling:
        """Return how an utterance is processed and answered; nothing is written yet.

        Args:
            one_answer: nothing can follow the answer.
        """

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return entries to commit together with a reasoner's result (`written`: the reasoner's own)."""

    async def close(self) -> None:
        """Cancel answers in progress; the parts that were shown are kept."""


ResponderFactory: TypeAlias = Callable[[Host], Responder]


def make_responder(factory: ResponderFactory, host: Host) -> Responder:
    """Make a responder.

    Raises:
        InputError: the factory makes none; the message says what would.
    """
    name = getattr(factory, "__name__", type(factory).__name__)
    if inspect.isasyncgenfunction(factory) or inspect.iscoroutinefunction(factory):
        raise InputError(f"responder={name} is a function that answers: hand over answer_with({name})")
    made = factory(host) if callable(factory) else factory
    if not callable(factory) or not all(hasattr(made, each) for each in ("name", "reasoners", "attend", "speak_up")):
        raise InputError(f"responder={name} makes no responder: give Coach.using(), answer_with(…), or what makes one")
    return made


async def follow_up(host: Host, by: str, context: RunContext, result: RunResult) -> Sequence[Entry]:
    """Return the entry of a result's unsolicited follow-up; nothing if the user has said anything newer."""
    if not result.follow_up or not context.utterances:
        return ()
    newest = context.utterances[-1].seq
    if await host.memory.store.events(host.memory.key, newest, ["heard"], 1):
        return ()
    record = await build_chat_record(host.memory, result.follow_up, by, host.session)
    return [Entry(FollowUp(text=record.text, answers=newest, record=record.id), by, (record,))]


class NullResponder:
    """Gives no answers: utterances are remembered and reasoned about. Follow-ups are signed by their slot."""

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
"""Yields the pieces of an answer to an utterance: the shortest way to a responder of your own."""


def answer_with(respond: Respond, name: str = "responder") -> ResponderFactory:
    """Make a responder from an async generator function that takes an utterance and its host, and yields the answer.

    If it raises, the answer ends; the part that was shown is kept. One utterance is answered at a time, and reasoners
    think about it after the answer. Their `follow_up` is signed with the responder's name, where it can be seen.

    Raises:
        InputError: the function returns instead of yielding.
    """
    if inspect.iscoroutinefunction(respond) or inspect.isgeneratorfunction(respond):
        raise InputError(f"{respond.__name__} is no async generator: write `async def`, and `yield` the answer")
    return lambda host: FunctionResponder(host, respond, name)


class FunctionResponder:
    """Answers with a function (see `answer_with`)."""

    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host, respond: Respond, name: str) -> None:
        self.name = self.title = name
        self._host, self._respond = host, respond
        self._alone = 0
        """The last utterance whose answer nothing could follow."""

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Handling:
        async def answer(heard: Logged) -> AsyncGenerator[Logged]:
            memory, thinkers = self._host.memory, self._host.thinkers
            self._alone = heard.seq if one_answer else self._alone
            asked_in = heard.event.record if isinstance(heard.event, Heard) else ""
            said, stopped, logged = "", asyncio.Event(), None
            try:
                yield heard
                async with thinkers.turns.of(heard.seq, stopped.set) as turn, thinkers.floor:
                    pieces = self._respond(text, replace(self._host, asked_in=asked_in))
                    try:
                        async for piece in pieces:
                            if stopped.is_set():
                                break
                            said += piece
                            yield memory.show(Piece(text=piece, answers=heard.seq), self.name)
                    finally:
                        try:
                            if isinstance(pieces, AsyncGenerator):
                                await pieces.aclose()
                        finally:
                            if said.strip():
                                logged = await asyncio.shield(self._keep(heard, said, turn))
                if logged:
                    yield logged
            finally:
                thinkers.release(heard.seq)

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
        pass
