"""Operations on a user's mind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import numpy as np
from pydantic import Field, JsonValue

from mindstream.clock import Moment
from mindstream.errors import HeardAlready, StorageError
from mindstream.log.events import Heard, Logged, Waiting
from mindstream.log.names import id_of
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import KIND_CODES
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.store.validation import MAX_UTTERANCE
from mindstream.models.roles import DEFAULT
from mindstream.models.rules import Rules
from mindstream.reasoners.background import stop_elsewhere
from mindstream.service.operations.house import House
from mindstream.service.operations.shapes import Ask, NoQuestion, Page, Reply
from mindstream.service.operations.table import operation, read_number, write_cursor
from mindstream.service.operations.who import NotFound, Who


class SendRequest(Ask):
    """Something that is said to a mind.

    `session`: the conversation to go on with; none: the one that went on last. `pack`: who answers, of those that
    `/answers` names; "": whoever the operator has chosen.
    """

    text: str = Field(min_length=1, max_length=MAX_UTTERANCE)
    session: str | None = Field(None, min_length=1, max_length=100)
    pack: str = Field("", max_length=100)


class Sent(Reply):
    """It is on disk: `seq` is the row of the log that holds it; what comes of it are events after that."""

    seq: int
    session: str


ONCE: ContextVar[str] = ContextVar("once", default="")
"""The key under which what is done now is done once; what is said under it is heard once, by whatever server."""


async def answer(house: House, who: Who, ask: SendRequest) -> AsyncGenerator[Logged]:
    """Say something to a mind and give the rows that come of it: heard, perhaps waiting, pieces, said.

    Where another answer goes on in the same conversation, a `waiting` without a seq says so.
    Closing the generator breaks the answer off, not what was heard.
    """
    async with house.mind(who, ask.session, ask.pack) as opened:
        with opened.answers_now() as is_busy, opened.hears_now() as heard:
            async with aclosing(opened.mind.hear(ask.text, once=ONCE.get())) as rows:
                async for row in rows:
                    yield row
                    heard()
                    if is_busy and isinstance(row.event, Heard):
                        queued = Waiting(text="", slots=("talker",), answers=row.seq, belief_version=0)
                        yield Logged(0, row.mind, row.at, "mindstream", queued)


async def name_session(house: House, who: Who, sent: Sent) -> Sent:
    """Return the answer to something that was sent before, with the conversation it was sent to."""
    store = house.ground(who).store
    rows = await store.events(store.key(who.name), sent.seq - 1, [Heard.kind], 1)
    heard = rows[0].event if rows and rows[0].seq == sent.seq else None
    return Sent(seq=sent.seq, session=heard.session if isinstance(heard, Heard) else "")


@operation(
    "minds.send",
    "write",
    "POST /users/{user}/send",
    cli="chat",
    status=202,
    streams=answer,
    wordless=True,
    is_once=True,
    leaves_out=("session",),
    complete=name_session,
)
async def send(house: House, who: Who, ask: SendRequest) -> Sent:
    """Say something to a mind. Answered when it is on disk; to who accepts text/event-stream, by the answer's events.

    What was said while an answer goes on waits for its turn. What a mind says is an event of the log.
    """
    heard: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
    task = house.begin(_hear(house, who, ask, heard))
    waited: set[asyncio.Future[Any]] = {heard, task}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if not heard.done():
        try:
            await task  # which says why
        except HeardAlready as already:
            return await name_session(house, who, Sent(seq=already.seq, session=""))
        except asyncio.CancelledError:
            if not task.cancelled() or (own := asyncio.current_task()) is None or own.cancelling():
                raise
            raise StorageError("the server is about to end; this was not heard: send it again") from None
    return await heard


async def _hear(house: House, who: Who, ask: SendRequest, heard: asyncio.Future[Sent]) -> None:
    """Let a mind hear something and answer, whoever still waits for it."""
    async with aclosing(answer(house, who, ask)) as rows:
        async for row in rows:
            if isinstance(row.event, Heard) and not heard.done():
                heard.set_result(Sent(seq=row.seq, session=row.event.session))


class AgainRequest(Ask):
    """What was heard, by its row of the log; `pack`: who answers, as in `send`."""

    seq: int = Field(ge=1, le=2**62)
    pack: str = Field("", max_length=100)


@operation(
    "minds.answer_again",
    "write",
    "POST /users/{user}/answer-again",
    status=202,
    wordless=True,
    leaves_out=("session",),
    complete=name_session,
)
async def answer_again(house: House, who: Who, ask: AgainRequest) -> Sent:
    """Answer once more what was heard, as where its answer was stopped or failed. It is not heard again."""
    memory = await house.memory(who)
    found = await memory.store.events(memory.key, ask.seq - 1, [Heard.kind], 1)
    if not found or found[0].seq != ask.seq or not isinstance(found[0].event, Heard):
        raise NotFound(f"nothing was heard at {ask.seq} here")
    session = found[0].event.session
    if ask.pack:
        house.speaker(ask.pack)  # which refuses an unknown one
    house.begin(_answer_again(house, who, found[0], session, ask.pack))
    return Sent(seq=ask.seq, session=session)


async def _answer_again(house: House, who: Who, heard: Logged, session: str, pack: str) -> None:
    async with house.mind(who, session, pack) as opened:
        with opened.answers_now():
            async with aclosing(opened.mind.answer_again(heard)) as rows:
                async for _ in rows:
                    pass


class MindRequest(Ask):
    """A mind, by its conversation and who speaks for it; none: those that went on last."""

    session: str | None = Field(None, min_length=1, max_length=100)


class AsOf(Ask):
    """Of which moment: after that row of the log; none: now."""

    seq: int | None = Field(None, ge=0, le=2**62)


class BeliefShape(Reply):
    """The latest version of a belief; `seq`: the row of the log in which it was written."""

    slot: str
    version: int
    text: str
    value: JsonValue
    evidence: list[str]
    seq: int = 0


class Beliefs(Reply):
    """What is believed of a user, or planned with them, slot by slot."""

    beliefs: list[BeliefShape]


class Cancelled(Reply):
    """How many answers, and runs of reasoners, were stopped."""

    stopped: int


class SessionShape(Reply):
    """A conversation: when it was, how many lines it has, how it began; `seq`: the row of the log of its first line."""

    session: str
    first: Moment
    last: Moment
    lines: int
    opening: str
    seq: int


class Sessions(Page):
    """A page of conversations, those that began last first."""


class SessionList(Reply):
    """A page of conversations; `next`: the cursor of the next page, "" at the end."""

    sessions: list[SessionShape]
    next: str


@operation("minds.belief", "read", "GET /users/{user}/belief")
async def belief(house: House, who: Who, ask: AsOf) -> Beliefs:
    """Return what is believed of a user, or was after a row of the log."""
    return await _latest(house, who, "belief", ask.seq)


@operation("minds.plan", "read", "GET /users/{user}/plan")
async def plan(house: House, who: Who, ask: AsOf) -> Beliefs:
    """Return what was planned with a user, or had been after a row of the log."""
    return await _latest(house, who, "plan", ask.seq)


async def _latest(house: House, who: Who, kind: Kind, seq: int | None) -> Beliefs:
    memory = await house.memory(who)
    if seq is None:
        found = await memory.store.latest(memory.key, [kind], 1_000, now=house.clock.now())
    else:
        found = [each for each in await _versions(memory, kind) if each.seq <= seq]
    latest = {record.slot: record for record in found if record.slot}  # oldest first, so the newest stays
    return Beliefs(
        beliefs=[
            BeliefShape(
                slot=slot,
                version=record.version or 0,
                text=record.text,
                value=record.data.get("plan" if kind == "plan" else "value"),
                evidence=list(record.evidence),
                seq=record.seq,
            )
            for slot, record in sorted(latest.items())
        ]
    )


async def _versions(memory: Memory, kind: Kind) -> list[Record]:
    """Return all that is or was of a kind, oldest first."""
    columns = await memory.columns()
    of_kind = np.flatnonzero(columns.kind.values == KIND_CODES[kind]).tolist()
    return await memory.store.records(memory.key, [columns.ids[at] for at in of_kind])


@operation("minds.cancel", "write", "POST /users/{user}/cancel")
async def cancel(house: House, who: Who, ask: MindRequest) -> Cancelled:
    """Stop answering and thinking, in whatever process; what was heard stays, and counts as thought about."""
    store, stopped, ours = house.ground(who).store, 0, set[str]()
    stream = store.key(who.name)
    for opened in house.minds.of(who.wall, stream):
        if ask.session in (None, opened.key.session):
            ours.add(opened.mind.reasoners.owner)
            stopped += opened.break_off() + opened.mind.reasoners.cancel()
    stopped += await stop_elsewhere(store, stream, house.clock, ours, session=ask.session)
    return Cancelled(stopped=stopped)


@operation("minds.sessions", "read", "GET /users/{user}/sessions", cli="memory sessions")
async def sessions(house: House, who: Who, ask: Sessions) -> SessionList:
    """List the conversations that are remembered, those that began last first."""
    memory, at = await house.memory(who), read_number(ask.cursor)
    found = (await memory.sessions())[::-1]
    shown = [
        SessionShape(
            session=each.name, first=each.first, last=each.last, lines=each.lines, opening=each.opening, seq=each.seq
        )
        for each in found[at : at + ask.limit]
    ]
    more = at + ask.limit < len(found)
    return SessionList(sessions=shown, next=write_cursor(str(at + ask.limit)) if more else "")


class UserList(Reply):
    """The tenant's users of whom anything is kept, by name."""

    users: list[str]


class Answers(Reply):
    """Who answers in the roles that have no model of their own; `stand_ins`: no model does, rules stand in.

    `packs`: who can be talked to; `pack`: the one that the operator has chosen.
    """

    model: str
    stand_ins: bool
    roles: dict[str, str]
    packs: list[str]
    pack: str


@operation("people.users", "read", "GET /users")
async def users(house: House, who: Who, ask: NoQuestion) -> UserList:  # noqa: ARG001
    """List the users of whom anything is kept."""
    if who.only:
        return UserList(users=[who.only])
    streams = await house.ground(who).store.minds()
    return UserList(users=sorted(filter(None, (id_of(key, "user") for key in streams))))


@operation("people.answers", "read", "GET /answers")
async def answers(house: House, who: Who, ask: NoQuestion) -> Answers:  # noqa: ARG001
    """Say who answers here: a model by its name, or what stands in for one."""
    named = house.models.names
    default = named.get(DEFAULT, Rules.name)
    return Answers(
        model=default,
        stand_ins=set(named.values()) <= {Rules.name},
        roles={role: name for role, name in named.items() if role != DEFAULT},
        packs=house.speaker_names(),
        pack=house.own_speaker,
    )
