"""A mind: a memory, tools, models, a runner for its reasoners; who answers for it is handed to it (minds/responder)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from mindstream import intake
from mindstream.clock import Clock, format_iso
from mindstream.errors import Conflict, HeardAlready, InputError, StorageError
from mindstream.location import AnyData
from mindstream.log.events import (
    BeliefChanged,
    Corrected,
    Event,
    FollowUp,
    Heard,
    Logged,
    Opened,
    Piece,
    PlanChanged,
    Redacted,
    Said,
    Waiting,
)
from mindstream.log.feed import Feed
from mindstream.log.names import StreamName, checked_name
from mindstream.memory.curation.curation import Correction
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore, clock_of, finish_erasures, opened_store
from mindstream.memory.policy import AnyPolicy, adopt_policy
from mindstream.memory.recall.embedding import choose_embedder, other_embedder
from mindstream.memory.recall.rerank import second_stage
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.registry import SAID_ONCE
from mindstream.memory.store.store import Entry
from mindstream.memory.store.validation import MAX_UTTERANCE, checked_text
from mindstream.minds.calls import CallLog
from mindstream.minds.home_loop import HomeLoop, at_home, streamed_at_home
from mindstream.minds.left_open import answer_left_open
from mindstream.minds.refused_messages import RefusedMessages
from mindstream.minds.responder import Attention, Host, NullResponder, ResponderFactory, Timeouts, make_responder
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Occurrence, Reasoner, RunContext, RunResult
from mindstream.reasoners.runner import stop_elsewhere
from mindstream.tools.tool import Tool, checked_tools

TalkEvent: TypeAlias = Heard | Waiting | Piece | Said | BeliefChanged | PlanChanged | FollowUp
"""What comes of something that is said to a mind; to be matched by class."""
Part: TypeAlias = Literal["whole", "talks", "thinks"]
"""What of a mind lives in a process."""


class Mind:
    """A memory, models, tools and reasoners to talk with. Open one with `Mind.open`, then `send` or `stream`.

    Attributes:
        memory: what its user ever said is in it, whatever the session.
        session: the conversation that goes on.
        tools: what its reasoners may call.
        reasoners: the runner of those who think.
        responder: who answers for it.
    """

    def __init__(
        self,
        memory: Memory,
        models: Models,
        session: str,
        *,
        tools: Sequence[Tool] = (),
        reasoners: Sequence[Reasoner] = (),
        timeouts: Timeouts | None = None,
        responder: ResponderFactory = NullResponder,
        thinks: bool = True,
        owner: str = "",
    ) -> None:
        self.home = HomeLoop()
        self.memory, self.models, self.session = memory, models, session
        self.tools = checked_tools(tools)
        self.timeouts = (timeouts or Timeouts()).fill(models)
        self.reasoners = Background(
            memory,
            speak_up=self._speak_up,
            tools=self.tools,
            lease_s=self.timeouts.lease_s,
            retry_s=self.timeouts.retry_s,
            session=session,
            thinks=thinks,
            owner=owner,
        )
        self._responds = responder
        self.responder = make_responder(responder, Host(memory, models, session, self.timeouts, self.reasoners))
        self.reasoners.add(*self.responder.reasoners, *reasoners)
        self._turn = Occurrence(0, "", "")
        self._taking_in = asyncio.Lock()
        """What is said at once is attended to and written down in the order in which it was said."""

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        data: AnyStore = "data",
        *,
        user: StreamName | str = "you",
        session: str | None = None,
        models: AnyModels = "rules",
        tools: Sequence[Tool] = (),
        reasoners: Sequence[Reasoner] = (),
        responder: ResponderFactory | None = None,
        embed: Embedder | str | None = None,
        clock: Clock | None = None,
        timeouts: Timeouts | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        part: Part = "whole",
        owner: str = "",
    ) -> AsyncIterator[Mind]:
        """Open a user's mind and let its reasoners work until the block ends.

        What was heard and not answered, since a process died, is answered then, if anybody answers (minds/left_open).

        Args:
            data: the data folder (made if need be), the URL of a PostgreSQL database, or a store.
            user: whose mind it is; a plain name is a user's.
            session: the conversation to go on with; None begins a new one. Memory spans all of them.
            models: a name (`rules`, `openai:gpt-5`, …), a model, a table of these by role (talker, reasoner, default),
                or `Models`. A role that is needed and stands nowhere is an error, unless there is a default.
            tools: what its reasoners may call, beside their own.
            reasoners: more of them, beside those of the responder; each writes its own slot.
            embed: an embedder, or its name; None: the one that made the vectors of its memory, wordllama in a new one.
            policy: `keep` or `decay`, recorded for its memory; or values by name while it is open (memory/policy).
            responder: how whoever answers is made, as `Coach.using(pack="sleep")`; None: nobody answers.
            part: what of it lives in this process: it `talks`, and another one thinks; or it `thinks`, and another one
                talks. Each of them may be in any number of processes.
            owner: the name under which it holds work that was taken up for it; "": one of its own.

        Raises:
            UserError: a name that cannot be used, two of the same name; another embedder than its memory's.
            StorageError: the data folder cannot be used.
        """
        name = StreamName("user", user) if isinstance(user, str) else user
        if isinstance(data, AnyData):
            await asyncio.to_thread(finish_erasures, data, name.key)
        clock = clock or clock_of(data)
        session = checked_name(session, "session") if session else format_iso(clock.now())
        calls = CallLog()
        async with contextlib.AsyncExitStack() as opened_here:
            shared = await opened_here.enter_async_context(open_models(models, clock))
            store = await opened_here.enter_async_context(opened_store(data))
            vectors, of_another = await choose_embedder(store, store.key(name), embed)
            if of_another:
                raise InputError(other_embedder(name.id, of_another, vectors.name))
            kept = await adopt_policy(store, store.key(name), clock.now(), policy)
            second = second_stage(kept.reranker, kept.reranked, shared.with_listener(calls.take))
            memory = Memory(store, name, vectors, clock, Feed(), strength=kept.laws, second=second)
            await memory.begin()
            asked = RefusedMessages(memory).around(shared.with_listener(calls.take))
            mind = cls(
                memory,
                asked,
                session,
                tools=tools,
                reasoners=reasoners,
                timeouts=timeouts,
                responder=responder or NullResponder,
                thinks=part != "talks",
                owner=owner,
            )
            await mind._begin()
            if part != "thinks":
                opened = Opened(session=session, pack=mind.responder.name, models=mind.models.names)
                await memory.commit(Entry(opened, "mindstream", system=True))
            working = [asyncio.ensure_future(mind.reasoners.run()), asyncio.ensure_future(calls.run(memory))]
            answering = asyncio.ensure_future(mind._answer_left_open(part))
            try:
                yield mind
            finally:
                await mind._close(answering, working, calls)

    @at_home
    async def _close(
        self, answering: asyncio.Future[None], working: Sequence[asyncio.Future[None]], calls: CallLog
    ) -> None:
        answering.cancel()  # first: what it breaks off stays open
        await asyncio.gather(answering, return_exceptions=True)
        await self.responder.close()
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        await calls.flush(self.memory)
        self.memory.feed.close()  # first: whoever listens must not wait for a store that cannot be written
        await self.memory.close()

    async def _begin(self) -> None:
        """Read what the mind holds."""
        self._turn = Occurrence(await self.memory.store.count(self.memory.key, "heard"), "", "")
        await self.responder.begin()

    async def _answer_left_open(self, part: Part) -> None:
        if part != "thinks" and not isinstance(self.responder, NullResponder):
            await answer_left_open(self.memory, self.reasoners.owner, self.timeouts.lease_s, self._in_session)

    @contextlib.asynccontextmanager
    async def _in_session(self, session: str) -> AsyncIterator[Mind]:
        """Give this mind as it answers in a conversation."""
        if session == self.session:
            yield self
            return
        other = Mind(
            self.memory,
            self.models,
            session,
            tools=self.tools,
            timeouts=self.timeouts,
            responder=self._responds,
            thinks=False,
            owner=self.reasoners.owner,
        )
        await other._begin()
        try:
            yield other
        finally:
            await other.responder.close()

    @streamed_at_home
    async def hear(
        self, text: str, *, one_answer: bool = False, by: str = "", once: str = ""
    ) -> AsyncGenerator[Logged]:
        """Take in what the user says and answer, row by row of the log: heard, perhaps waiting, pieces, said.

        What was yielded as `heard` is on disk and will be thought about, whatever happens next. Closing the generator
        breaks the answer off; whoever keeps it without listening holds up nobody.

        Args:
            one_answer: nothing that comes later would be seen: what was asked for is waited for.
            by: who says it; the mind's user where nobody is named.
            once: a key under which it is heard once, by whatever process.

        Raises:
            InputError: there is nothing to read in it, or it is too long.
            HeardAlready: something was heard under that key.
            StorageError: it could not be kept, or the answer could not.
        """
        text = checked_text(text, MAX_UTTERANCE)
        taken_in = await intake.cleaned(text) if intake.is_on() else intake.Cleaned(text)
        async with self._taking_in:
            attention = await self.responder.attend(taken_in.text, one_answer=one_answer)
            heard, *redacted = await self._write_down(taken_in, attention, by or attention.by or self.memory.name, once)
        try:
            async with self._taking_in:  # whoever spoke meanwhile is heard before anything is answered
                pass
        except asyncio.CancelledError:
            self.reasoners.release(heard.seq)
            raise
        async with aclosing(attention.answer(heard)) as rows:
            async for logged in rows:
                yield logged
                while redacted:
                    yield redacted.pop()

    @streamed_at_home
    async def answer_again(self, heard: Logged, *, one_answer: bool = False) -> AsyncGenerator[Logged]:
        """Answer once more what was heard (its row), as `hear` does. It is not heard again, nor thought about again.

        Raises:
            InputError: it is another row.
            StorageError: the answer could not be kept.
        """
        if not isinstance(heard.event, Heard) or heard.mind != self.memory.key:
            raise InputError("only what this mind has heard can be answered again")
        async with self._taking_in:
            attention = await self.responder.attend(heard.event.text, one_answer=one_answer)
        async with aclosing(attention.answer(heard)) as rows:
            async for logged in rows:
                yield logged

    @streamed_at_home
    async def stream(self, text: str, *, to_the_end: bool = False) -> AsyncGenerator[TalkEvent]:
        """Say something and give what comes of it, event by event, to be matched by class: Heard, Waiting, Piece, Said.

        Args:
            to_the_end: go on until the reasoners have nothing left to do: BeliefChanged, PlanChanged, FollowUp, too.

        Raises:
            InputError, StorageError: see `hear`.
        """
        with self.memory.feed.listening() as rows:
            async with aclosing(self.hear(text)) as answer:
                async for logged in answer:
                    if isinstance(logged.event, Heard | Waiting | Piece | Said):
                        yield logged.event
            if to_the_end:
                async for logged in _until(rows, asyncio.ensure_future(self.settled())):
                    if isinstance(logged.event, BeliefChanged | PlanChanged | FollowUp):
                        yield logged.event

    @at_home
    async def send(self, text: str) -> str:
        """Say something to the mind and return its whole answer; nothing that was asked for follows it.

        Raises:
            InputError, StorageError: see `hear`; also where nobody answers for this mind.
        """
        if isinstance(self.responder, NullResponder):
            raise InputError("nobody answers for this mind: open it with a responder; `stream` only listens")
        answer = ""
        async with aclosing(self.hear(text, one_answer=True)) as events:
            async for logged in events:
                if isinstance(logged.event, Said):
                    answer = logged.event.text
        return answer

    @at_home
    async def cancel(self, slot: str | None = None) -> int:
        """Stop the reasoners' runs that go on, in whatever process (of one slot, or all); return how many.

        What they were about counts as done.
        """
        memory, stopped = self.memory, self.reasoners.cancel(slot)
        ours = {self.reasoners.owner}
        return stopped + await stop_elsewhere(memory.store, memory.key, memory.clock, ours, slot=slot, answers=False)

    @at_home
    async def settled(self) -> None:
        """Return when the reasoners have nothing left that could come to something now."""
        await self.reasoners.settled()

    async def _write_down(self, said: intake.Cleaned, attention: Attention, by: str, once: str) -> list[Logged]:
        """Write down what the user says, its record, what was taken out, and the work that it causes in one commit."""
        memory, text = self.memory, said.text
        with self.reasoners.hearing():
            new = RecordDraft(text=text, kind="chat", by=by, episode=self.session, data={"by_user": True})
            record = (await memory.build_records([new]))[0]
            before, turn = self._turn, Occurrence(self._turn.number + 1, attention.phase, self._turn.phase)
            wake = self.reasoners.claims(turn, besides=attention.besides, answered=attention.hold)
            self._turn = turn
            entries = [Entry(Heard(text=text, session=self.session, record=record.id), by, (record,))]
            if said.taken:
                entries.append(Entry(Redacted(kinds=dict(said.taken)), "mindstream", system=True))
            try:
                unique = f"{SAID_ONCE}{once}" if once else ""
                rows = await memory.commit(*entries, wake=wake, unique=unique)
            except StorageError as error:
                self._turn = before  # what was not heard does not count
                if once and isinstance(error, Conflict) and (seq := await memory.store.taken_by(memory.key, unique)):
                    raise HeardAlready(seq) from None
                raise
            if attention.hold:
                self.reasoners.hold(rows[0].seq)
        return rows

    @at_home
    async def notice(self, event: Event, news: Sequence[RecordDraft] = (), *, by: str = "") -> Logged:
        """Let something happen to the mind that is not talk: log it, remember it, and wake whoever it concerns.

        Args:
            news: what is remembered of it, in the same commit.
            by: who did it; the mind's user where nobody is named.
        """
        stream, phase = self.memory, self._turn.phase
        turn = Occurrence(await stream.store.count(stream.key, event.kind) + 1, phase, phase, event.kind)
        entry = Entry(event, by or stream.name, tuple(await stream.build_records(news)) if news else ())
        (logged,) = await stream.commit(entry, wake=self.reasoners.claims(turn))
        self.reasoners.wake()
        return logged

    @at_home
    async def correct(self, old: str, text: str, *, by: str = "") -> Correction:
        """Correct a record (its id), wake whoever it concerns (`Trigger(on=("corrected",))`), say what rested on it.

        Raises:
            InputError: see `Memory.supersede`.
        """
        stream, phase, kind = self.memory, self._turn.phase, Corrected.kind
        turn = Occurrence(await stream.store.count(stream.key, kind) + 1, phase, phase, kind)
        done = await stream.correct(old, text, by=by, wake=self.reasoners.claims(turn))
        self.reasoners.wake()
        return done

    async def _speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        return await self.responder.speak_up(context, result, written)


async def _until(rows: AsyncIterator[Logged], over: asyncio.Future[None]) -> AsyncGenerator[Logged]:
    """Give rows until something is over, with all that came before that."""
    coming: asyncio.Future[Logged] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(rows))
            waited: set[asyncio.Future[Any]] = {coming, over}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                await asyncio.sleep(0)  # what was handed over last is taken first
            if not coming.done():
                return
            row, coming = await coming, None
            yield row
    except StopAsyncIteration:
        return
    finally:
        for each in (coming, over):
            if each is not None:
                each.cancel()
