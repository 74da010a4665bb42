"""Who answers for a mind. The ground knows no domain: whoever answers is handed to a mind.

An utterance goes one way: `Mind` asks its responder how it is to be taken in, writes it down, and passes on what the
responder answers. A responder never calls its mind: what it may use is `Host`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from mindstream.errors import InputError
from mindstream.log.events import FollowUp, Heard, Logged, Piece, Said
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.models.providers.thoughts import answer_in
from mindstream.models.roles import Models
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult

TRIES, PAUSES_S = 2, 30.0
"""So often an endpoint may take as long as it may, with such pauses between, until the Talker gives it up …"""
CALLS = 3
"""… and so often within a run of a Reasoner."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, in seconds.

    Attributes:
        deadline_s: how long the Talker waits for the Reasoner before it says that it takes longer.
        filler_s: how long there may be silence before a word is said: that it still thinks.
        silence_s: how long the Talker may be silent, whatever its model does; 0: by the waits of its model (see
            models/providers/limits), which mostly ends a silence itself.
        thinking_s: how long a run of a Reasoner may think; 0: by the waits of its model.
        lease_s: how long work stays with a process that has died.
        retry_s: how long a Reasoner's work rests after the first run that failed; after the next, four times as long.
    """

    deadline_s: float = 30.0
    filler_s: float = 4.0
    silence_s: float = 0.0
    thinking_s: float = 0.0
    lease_s: float = 10.0
    retry_s: float = 0.5

    def fill(self, models: Models) -> Timeouts:
        """Return them with what the models of a mind make of those that are 0."""
        talker, reasoner = models.waits("talker"), models.waits("reasoner")
        silence_s, thinking_s = TRIES * talker.first_s + PAUSES_S, CALLS * reasoner.first_s
        return replace(self, silence_s=self.silence_s or silence_s, thinking_s=self.thinking_s or thinking_s)


@dataclass(frozen=True, slots=True)
class Host:
    """What a responder may use of the mind that it answers for.

    Attributes:
        session: the conversation that goes on.
        thinkers: the reasoners behind the talk: released when it has spoken, or waited for; their `floor` is held
            while it speaks.
        asked_in: the id of the record of what is answered now, for `memory.recall(…, asked_in=…)`; "" where nothing is.
    """

    memory: Memory
    models: Models
    session: str
    timeouts: Timeouts
    thinkers: Background
    asked_in: str = ""


AnswerFunction: TypeAlias = Callable[[Logged], AsyncGenerator[Logged]]
"""Answers what was heard (its row of the log), event by event: that row first, then what is said."""


@dataclass(frozen=True, slots=True)
class Attention:
    """How an utterance is to be taken in, and how it is answered.

    Attributes:
        phase: what the talk is in, as triggers ask for it.
        besides: slots that are not woken.
        hold: the reasoners leave it alone until it is released (see Background.release): it is to be answered first.
        by: who says it; "": the mind's user.
    """

    answer: AnswerFunction
    phase: str = ""
    besides: Sequence[str] = ()
    hold: bool = False
    by: str = ""


class Responder(Protocol):
    """Answers what is said to a mind, and may add to what its reasoners conclude.

    Attributes:
        name: what it is called in the log; a coach is called like its pack.
        title: what it is called before people.
        reasoners: those that it brings along.
    """

    name: str
    title: str
    reasoners: Sequence[Reasoner]

    async def begin(self) -> None:
        """Read what it needs to know, before anything is heard."""

    async def attend(self, text: str, *, one_answer: bool) -> Attention:
        """Say how an utterance is taken in and answered; nothing is written yet.

        Args:
            one_answer: nothing can follow the answer.
        """

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return what is to be committed with a reasoner's result besides what it writes itself."""

    async def close(self) -> None:
        """Break off what is being said; what was shown of it is kept."""


ResponderFactory: TypeAlias = Callable[[Host], Responder]


def make_responder(factory: ResponderFactory, host: Host) -> Responder:
    """Make who answers.

    Raises:
        InputError: what was given makes none; the message says what would.
    """
    name = getattr(factory, "__name__", type(factory).__name__)
    if inspect.isasyncgenfunction(factory) or inspect.iscoroutinefunction(factory):
        raise InputError(f"responder={name} is a function that answers: hand over answer_with({name})")
    made = factory(host) if callable(factory) else factory
    if not callable(factory) or not all(hasattr(made, each) for each in ("name", "reasoners", "attend", "speak_up")):
        raise InputError(f"responder={name} makes no responder: give Coach.using(), answer_with(…), or what makes one")
    return made


async def follow_up(host: Host, by: str, context: RunContext, result: RunResult) -> Sequence[Entry]:
    """Return the `follow_up` of a result, to be said unasked; nothing where the user has said something newer."""
    if not result.follow_up or not context.utterances:
        return ()
    newest = context.utterances[-1].seq
    if await host.memory.store.events(host.memory.key, newest, ["heard"], 1):
        return ()
    record = await _chat_record(host, by, result.follow_up)
    return [Entry(FollowUp(text=record.text, answers=newest, record=record.id), by, (record,))]


async def _chat_record(host: Host, by: str, text: str) -> Record:
    new = RecordDraft(text=text, kind="chat", by=by, episode=host.session, data={"by_user": False})
    return (await host.memory.build_records([new]))[0]


class NullResponder:
    """Answers nobody: what is said is remembered and thought about. A follow-up is said in its slot's name."""

    name = title = ""
    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host) -> None:
        self._host = host

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Attention:  # noqa: ARG002
        return Attention(self._listen)

    async def _listen(self, heard: Logged) -> AsyncGenerator[Logged]:
        self._host.thinkers.wake()
        yield heard

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        return await follow_up(self._host, context.slot, context, result)

    async def close(self) -> None:
        pass


Respond: TypeAlias = Callable[[str, Host], AsyncIterator[str]]
"""Gives the pieces of an answer to an utterance: the shortest way to a responder of one's own."""


def answer_with(respond: Respond, name: str = "responder") -> ResponderFactory:
    """Make a responder of an async generator that takes an utterance and its host, and yields pieces of the answer.

    What it raises ends the answer; what was shown of it is kept. One utterance is answered at a time, and the mind's
    reasoners think about it when it has been answered. Their `follow_up` is said in its name, where it can be seen.

    Raises:
        InputError: it is a function that returns where it should yield.
    """
    if inspect.iscoroutinefunction(respond) or inspect.isgeneratorfunction(respond):
        raise InputError(f"{respond.__name__} is no async generator: write `async def`, and `yield` what it says")
    return lambda host: FunctionResponder(host, respond, name)


class FunctionResponder:
    """Answers by a function (see `answer_with`)."""

    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host, respond: Respond, name: str) -> None:
        self.name = self.title = name
        self._host, self._respond = host, respond
        self._alone = 0
        """What was heard last where nothing could follow the answer."""

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Attention:
        async def answer(heard: Logged) -> AsyncGenerator[Logged]:
            memory, thinkers = self._host.memory, self._host.thinkers
            self._alone = heard.seq if one_answer else self._alone
            asked_in = heard.event.record if isinstance(heard.event, Heard) else ""
            said, stopped = "", asyncio.Event()
            try:
                yield heard
                async with thinkers.turns.of(heard.seq, stopped.set) as turn, thinkers.floor:
                    try:
                        async with aclosing(
                            _closing(self._respond(text, replace(self._host, asked_in=asked_in)))
                        ) as pieces:
                            async for piece in pieces:
                                if stopped.is_set():
                                    break
                                said += piece
                                yield memory.show(Piece(text=piece, answers=heard.seq), self.name)
                    finally:
                        logged = await asyncio.shield(self._keep(heard, said, turn)) if said.strip() else None
                if logged:
                    yield logged
            finally:
                thinkers.release(heard.seq)

        return Attention(answer, hold=True)

    async def _keep(self, heard: Logged, said: str, turn: int | None) -> Logged:
        turns = self._host.thinkers.turns
        ends = WorkDone((turn,), turns.owner(heard.seq), begun=False) if turn is not None else None
        said = answer_in(said) or "…"
        record = await _chat_record(self._host, self.name, said)
        event = Said(text=record.text, answers=heard.seq, belief_version=0, model=self.name, record=record.id)
        (logged,) = await self._host.memory.commit(Entry(event, self.name, (record,)), finish=ends)
        turns.claimed.discard(heard.seq)
        return logged

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:  # noqa: ARG002
        is_seen = not context.utterances or context.utterances[-1].seq != self._alone
        return await follow_up(self._host, self.name, context, result) if is_seen else ()

    async def close(self) -> None:
        pass


async def _closing(pieces: AsyncIterator[str]) -> AsyncGenerator[str]:
    async for piece in pieces:
        yield piece
