"""Who answers for a mind. The ground knows no domain: whoever answers is handed to a mind.

An utterance goes one way: `Mind` asks its responder how it is to be taken in, writes it down, and passes on what the
responder answers. A responder never calls its mind: what it may use is `Host`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from mindstream.log.events import Logged, Piece, Said
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.minds.timeouts import Timeouts
from mindstream.models.roles import Models
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult


@dataclass(frozen=True, slots=True)
class Host:
    """What a responder may use of the mind that it answers for.

    Attributes:
        session: the conversation that goes on.
        thinkers: the reasoners behind the talk: released when it has spoken, or waited for; their `floor` is held
            while it speaks.
    """

    memory: Memory
    models: Models
    session: str
    timeouts: Timeouts
    thinkers: Background


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


class NullResponder:
    """Answers nobody: what is said is remembered and thought about."""

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

    async def speak_up(self, *_: object) -> Sequence[Entry]:
        return ()

    async def close(self) -> None:
        pass


Respond: TypeAlias = Callable[[str, Host], AsyncIterator[str]]
"""Gives the pieces of an answer to an utterance: the shortest way to a responder of one's own."""


def answer_with(respond: Respond, name: str = "responder") -> ResponderFactory:
    """Make a responder of an async generator that takes an utterance and its host, and yields pieces of the answer.

    What it raises ends the answer; what was shown of it is kept. One utterance is answered at a time, and the mind's
    reasoners think about it when it has been answered.
    """
    return lambda host: FunctionResponder(host, respond, name)


class FunctionResponder:
    """Answers by a function (see `answer_with`)."""

    reasoners: Sequence[Reasoner] = ()

    def __init__(self, host: Host, respond: Respond, name: str) -> None:
        self.name = self.title = name
        self._host, self._respond = host, respond

    async def begin(self) -> None:
        pass

    async def attend(self, text: str, *, one_answer: bool) -> Attention:  # noqa: ARG002
        async def answer(heard: Logged) -> AsyncGenerator[Logged]:
            memory, thinkers = self._host.memory, self._host.thinkers
            said = ""
            try:
                yield heard
                async with thinkers.floor:
                    try:
                        async with aclosing(_closing(self._respond(text, self._host))) as pieces:
                            async for piece in pieces:
                                said += piece
                                yield memory.show(Piece(text=piece, answers=heard.seq), self.name)
                    finally:
                        logged = await asyncio.shield(self._keep(heard, said)) if said.strip() else None
                if logged:
                    yield logged
            finally:
                thinkers.release(heard.seq)

        return Attention(answer, hold=True)

    async def _keep(self, heard: Logged, said: str) -> Logged:
        new = RecordDraft(text=said, kind="chat", by=self.name, episode=self._host.session, data={"by_user": False})
        (record,) = await self._host.memory.build_records([new])
        event = Said(text=record.text, answers=heard.seq, belief_version=0, model=self.name, record=record.id)
        (logged,) = await self._host.memory.commit(Entry(event, self.name, (record,)))
        return logged

    async def speak_up(self, *_: object) -> Sequence[Entry]:
        return ()

    async def close(self) -> None:
        pass


async def _closing(pieces: AsyncIterator[str]) -> AsyncGenerator[str]:
    async for piece in pieces:
        yield piece
