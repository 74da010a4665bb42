"""Operations on a user's mind: the agent that talks with this user and has a memory about them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any

import numpy as np
from pydantic import AliasChoices, Field, JsonValue

from mindstream.clock import Moment
from mindstream.errors import HeardAlready, StorageError
from mindstream.identifiers import id_of
from mindstream.log.events import Heard, Logged, Waiting
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import KIND_CODES
from mindstream.memory.store.record import MAX_UTTERANCE, Kind, Record
from mindstream.minds.mind import take_all
from mindstream.models.roles import DEFAULT
from mindstream.models.rules import Rules
from mindstream.reasoners.background import stop_elsewhere
from mindstream.service.operations.logs import require_utterance
from mindstream.service.operations.operation import (
    Ask,
    EmptyRequest,
    NotBlank,
    Page,
    Principal,
    Reply,
    RowNumber,
    Seq,
    Short,
    operation,
    read_place,
    write_cursor,
)
from mindstream.service.operations.runtime import Runtime


class SendRequest(Ask):
    """A message to a mind.

    `session`: the conversation to continue; by default the most recent conversation with this responder, or a new
    conversation if none is open. `pack` (or `bot`): the name of the responder, one of the names that GET /answers
    returns; "": the operator's choice.
    """

    text: str = Field(min_length=1, max_length=MAX_UTTERANCE)
    session: NotBlank | None = None
    pack: str = Field("", max_length=100, validation_alias=AliasChoices("pack", "bot"))


class Sent(Reply):
    """The message is stored; the answer follows as later events. `seq`: the message's row of the log."""

    seq: int
    session: str


ONCE: ContextVar[str] = ContextVar("once", default="")
"""The idempotency key of the current request; "": none.

A message that arrives repeatedly with the same key is processed once, whichever server of the data receives it.
"""


async def answer(runtime: Runtime, principal: Principal, request: SendRequest) -> AsyncGenerator[Logged]:
    """Send a message to a mind and yield the rows of its answer: heard, perhaps waiting, parts of the answer, said.

    If another answer is running in the same conversation, the rows include a live `waiting` (without a seq).
    Closing the generator cancels the answer; the message remains stored.
    """
    async with runtime.mind(principal, request.session, request.pack) as opened:
        with opened.answers_now() as is_busy, opened.hears_now() as heard:
            async with aclosing(opened.mind.hear(request.text, once=ONCE.get())) as rows:
                async for row in rows:
                    yield row
                    heard()
                    if is_busy and isinstance(row.event, Heard):
                        queued = Waiting(text="", slots=("talker",), answers=row.seq, belief_version=0)
                        yield Logged(0, row.mind, row.at, "mindstream", queued)


async def name_session(runtime: Runtime, principal: Principal, sent: Sent) -> Sent:
    """Return a stored reply with the session filled in, for a request that is sent again. The session is not stored."""
    store = runtime.tenant(principal).store
    rows = await store.events(store.key(principal.name), sent.seq - 1, [Heard.kind], 1)
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
async def send(runtime: Runtime, principal: Principal, request: SendRequest) -> Sent:
    """Send a message to a mind. The reply is sent after the message is stored; the answer is an event of the log.

    With `Accept: text/event-stream` the events of the answer follow. A message that arrives during an answer waits for
    its turn.
    """
    heard: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
    task = runtime.begin(_hear(runtime, principal, request, heard))
    waited: set[asyncio.Future[Any]] = {heard, task}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if not heard.done():
        try:
            await task  # raises the error of the task
        except HeardAlready as already:
            return await name_session(runtime, principal, Sent(seq=already.seq, session=""))
        except asyncio.CancelledError:
            if not task.cancelled() or (own := asyncio.current_task()) is None or own.cancelling():
                raise
            raise StorageError("the server is shutting down, and the message was not stored: send it again") from None
    return await heard


async def _hear(runtime: Runtime, principal: Principal, request: SendRequest, heard: asyncio.Future[Sent]) -> None:
    """Let a mind process and answer a message, even if the client disconnects; `heard` is set once it is stored."""
    async with aclosing(answer(runtime, principal, request)) as rows:
        async for row in rows:
            if isinstance(row.event, Heard) and not heard.done():
                heard.set_result(Sent(seq=row.seq, session=row.event.session))


class AgainRequest(Ask):
    """`seq`: the row of the log that contains the message; `pack`: the name of the responder, as in `send`."""

    seq: RowNumber
    pack: Short = ""


@operation(
    "minds.answer_again",
    "write",
    "POST /users/{user}/answer-again",
    status=202,
    wordless=True,
    leaves_out=("session",),
    complete=name_session,
)
async def answer_again(runtime: Runtime, principal: Principal, request: AgainRequest) -> Sent:
    """Answer a message again, for example if its answer was stopped or failed. The message is not stored again."""
    memory = await runtime.memory(principal)
    found = await memory.store.events(memory.key, request.seq - 1, [Heard.kind], 1)
    session = require_utterance(found, request.seq).session
    if request.pack:
        runtime.responder(request.pack)  # raises NotFound for an unknown responder
    runtime.begin(_answer_again(runtime, principal, found[0], session, request.pack))
    return Sent(seq=request.seq, session=session)


async def _answer_again(runtime: Runtime, principal: Principal, heard: Logged, session: str, pack: str) -> None:
    async with runtime.mind(principal, session, pack) as opened:
        with opened.answers_now():
            await take_all(opened.mind.answer_again(heard))


class MindRequest(Ask):
    """`session`: a conversation; by default all open conversations of the user."""

    session: NotBlank | None = None


class AsOf(Ask):
    """`seq`: return the state after this row of the log; by default the current state."""

    seq: Seq | None = None


class BeliefShape(Reply):
    """The latest version of a belief or plan.

    `slot`: its name. `value`: its content as data; `text`: the same as text. `evidence`: the ids of its sources. `seq`:
    its row of the log.
    """

    slot: str
    version: int
    text: str
    value: JsonValue
    evidence: list[str]
    seq: int = 0


class Beliefs(Reply):
    """Beliefs about a user, or plans with the user, sorted by slot."""

    beliefs: list[BeliefShape]


class Cancelled(Reply):
    """`stopped`: the number of answers and background reasoning runs that were stopped."""

    stopped: int


class SessionShape(Reply):
    """A conversation.

    `first`, `last`: the times of its first and last message. `lines`: the number of its messages. `opening`: the
    beginning of its first message; `seq`: the row of the log of that message.
    """

    session: str
    first: Moment
    last: Moment
    lines: int
    opening: str
    seq: int


class Sessions(Page):
    """A page of conversations, sorted by the time of their first message, newest first."""


class SessionList(Reply):
    """A page of conversations; `next`: the cursor of the next page, "" at the end."""

    sessions: list[SessionShape]
    next: str


@operation("minds.belief", "read", "GET /users/{user}/belief")
async def belief(runtime: Runtime, principal: Principal, request: AsOf) -> Beliefs:
    """Return the beliefs about a user, now or after a row of the log."""
    return await _latest(runtime, principal, "belief", request.seq)


@operation("minds.plan", "read", "GET /users/{user}/plan")
async def plan(runtime: Runtime, principal: Principal, request: AsOf) -> Beliefs:
    """Return the plans with a user, now or after a row of the log."""
    return await _latest(runtime, principal, "plan", request.seq)


async def _latest(runtime: Runtime, principal: Principal, kind: Kind, seq: int | None) -> Beliefs:
    memory = await runtime.memory(principal)
    if seq is None:
        found = await memory.store.latest(memory.key, [kind], 1_000, now=runtime.clock.now())
    else:
        found = [each for each in await _versions(memory, kind) if each.seq <= seq]
    latest = {record.slot: record for record in found if record.slot}  # oldest first, so the newest stays
    return Beliefs(
        beliefs=[
            BeliefShape.from_object(
                record,
                version=record.version or 0,
                value=record.data.get("plan" if kind == "plan" else "value"),
            )
            for _, record in sorted(latest.items())
        ]
    )


async def _versions(memory: Memory, kind: Kind) -> list[Record]:
    """Return all records of a kind, including superseded ones, oldest first."""
    columns = await memory.columns()
    of_kind = np.flatnonzero(columns.kind.values == KIND_CODES[kind]).tolist()
    return await memory.records([columns.ids[at] for at in of_kind])


@operation("minds.cancel", "write", "POST /users/{user}/cancel")
async def cancel(runtime: Runtime, principal: Principal, request: MindRequest) -> Cancelled:
    """Stop answers and background reasoning, in any process; the user's messages remain, and count as processed."""
    store, stopped, ours = runtime.tenant(principal).store, 0, set[str]()
    stream = store.key(principal.name)
    for opened in runtime.minds.of(principal.tenant_key, stream):
        if request.session in (None, opened.key.session):
            ours.add(opened.mind.reasoners.owner)
            stopped += opened.break_off() + opened.mind.reasoners.cancel()
    stopped += await stop_elsewhere(store, stream, runtime.clock, ours, session=request.session)
    return Cancelled(stopped=stopped)


@operation("minds.sessions", "read", "GET /users/{user}/sessions", cli="memory sessions")
async def sessions(runtime: Runtime, principal: Principal, request: Sessions) -> SessionList:
    """List the conversations, sorted by the time of their first message, newest first."""
    memory, (at, last) = await runtime.memory(principal), read_place(request.cursor)
    found = (await memory.sessions())[::-1]
    at = next((number for number, each in enumerate(found, 1) if each.name == last), at) if last else at
    shown = [SessionShape.from_object(each, session=each.name) for each in found[at : at + request.limit]]
    more = at + request.limit < len(found)
    return SessionList(sessions=shown, next=write_cursor(f"{at + len(shown)}:{shown[-1].session}") if more else "")


class UserList(Reply):
    """The users of the tenant that have any data, sorted by name."""

    users: list[str]


class Answers(Reply):
    """The models and responders of this server.

    `roles`: the model of each role that has its own. `model`: the model of all other roles. `stand_ins`: no model is
    configured, so the rule-based default gives the answers. `packs`: the names of the responders; `pack`: the
    operator's choice.
    """

    model: str
    stand_ins: bool
    roles: dict[str, str]
    packs: list[str]
    pack: str


@operation("people.users", "read", "GET /users")
async def users(runtime: Runtime, principal: Principal, request: EmptyRequest) -> UserList:  # noqa: ARG001
    """List the users that have any data; with a token for one user, only this user."""
    if principal.only:
        return UserList(users=[principal.only])
    streams = await runtime.tenant(principal).store.minds()
    return UserList(users=sorted(filter(None, (id_of(key, "user") for key in streams))))


@operation("people.answers", "read", "GET /answers")
async def answers(runtime: Runtime, principal: Principal, request: EmptyRequest) -> Answers:  # noqa: ARG001
    """Return the models of this server (if none is configured, the rule-based default answers) and its responders."""
    named = runtime.models.names
    default = named.get(DEFAULT, Rules.name)
    return Answers(
        model=default,
        stand_ins=set(named.values()) <= {Rules.name},
        roles={role: name for role, name in named.items() if role != DEFAULT},
        packs=runtime.listed_names(),
        pack=runtime.default_responder,
    )
