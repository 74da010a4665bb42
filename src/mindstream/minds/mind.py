"""`Mind`: a memory, models, tools, a runner for reasoners, and a responder that answers (minds/responder)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from mindstream import redaction
from mindstream.clock import Clock, format_iso
from mindstream.errors import Conflict, HeardAlready, InputError, MindstreamError, StorageError
from mindstream.guidance import awaited, opens
from mindstream.identifiers import StreamName, checked_name
from mindstream.location import AnyData
from mindstream.log.events import (
    BeliefChanged,
    Corrected,
    Event,
    Feed,
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
from mindstream.log.work import ANSWER, Work
from mindstream.memory.curation.curation import Correction
from mindstream.memory.lease import renewing
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore, clock_of, finish_erasures, opened_store
from mindstream.memory.policy import AnyPolicy, adopt_policy
from mindstream.memory.recall.embedding import choose_embedder, other_embedder
from mindstream.memory.recall.rerank import second_stage
from mindstream.memory.store.record import MAX_UTTERANCE, RecordDraft, checked_text
from mindstream.memory.store.registry import SAID_ONCE
from mindstream.memory.store.store import Entry, NewWork, WorkReleased
from mindstream.minds.calls import CallLog, RefusedMessages
from mindstream.minds.responder import (
    Handling,
    Host,
    NullResponder,
    ResponderFactory,
    Timeouts,
    build_chat_record,
    make_responder,
)
from mindstream.models.embedders.embedder import EmbedderChoice
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.moved import renamed_keywords
from mindstream.reasoners.background import HOLDER, Background, find_unanswered, stop_elsewhere
from mindstream.reasoners.reasoner import Occurrence, Reasoner
from mindstream.together import cancel_all
from mindstream.tools.call import Approve, check_approve
from mindstream.tools.tool import Tool, checked_tools

P = ParamSpec("P")
T = TypeVar("T")
START_S = 5.0
"""Timeout for a thread to start running a loop, in seconds."""


class HomeLoop:
    """The event loop that an object is bound to (its home loop)."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._guests = 0
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()

    def is_here(self) -> bool:
        """Return whether the caller runs on this loop."""
        return asyncio.get_running_loop() is self._loop

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on this loop for a caller on another loop; cancelling the caller cancels the coroutine.

        Raises:
            InputError: the loop is closed.
        """
        try:
            with self._running():
                return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        finally:
            work.close()  # without this, Python would warn if the coroutine never started

    async def iterate(self, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield the items of a generator that runs on this loop; closing the returned generator closes `items`."""
        here = asyncio.get_running_loop()
        queue = asyncio.Queue[list[T]]()

        async def pump() -> None:
            async with aclosing(items):
                async for item in items:
                    here.call_soon_threadsafe(queue.put_nowait, [item])

        with self._running():
            pumping = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(pump(), self._loop))
            pumping.add_done_callback(lambda _: queue.put_nowait([]))
            try:
                while got := await queue.get():
                    yield got[0]
                await pumping
            finally:
                await cancel_all(pumping)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Keep the loop running until the block ends. Raise InputError if it is closed."""
        with self._changing:
            if self._loop.is_closed():
                raise InputError(
                    "this mind was opened on an event loop that is closed; open the mind on the loop that calls it, "
                    "or use one loop for all calls (mindstream.adapters.loop runs one in a thread)"
                )
            self._guests += 1
            if not self._loop.is_running():
                self._start()
        try:
            yield
        finally:
            with self._changing:
                self._guests -= 1
                thread = self._thread
                if thread is not None and not self._guests:
                    self._loop.call_soon_threadsafe(self._loop.stop)
                    thread.join()
                    self._thread = None

    def _start(self) -> None:
        """Start a thread that runs the loop; return when the loop is running, or after START_S seconds."""
        begun = threading.Event()
        self._loop.call_soon_threadsafe(begun.set)
        self._thread = threading.Thread(target=self._loop.run_forever, name="mindstream home loop", daemon=True)
        self._thread.start()
        begun.wait(START_S)


class _AtHome(Protocol):
    home: HomeLoop


S = TypeVar("S", bound=_AtHome)


def at_home(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Decorate a coroutine method so that it runs on its object's home loop."""

    @wraps(method)
    async def carried(self: S, /, *args: P.args, **more: P.kwargs) -> T:
        work = method(self, *args, **more)
        return await (work if self.home.is_here() else self.home.call(work))

    return carried


def streamed_at_home(
    method: Callable[Concatenate[S, P], AsyncGenerator[T]],
) -> Callable[Concatenate[S, P], AsyncGenerator[T]]:
    """Decorate an async generator method so that it runs on its object's home loop."""

    @wraps(method)
    def carried(self: S, /, *args: P.args, **more: P.kwargs) -> AsyncGenerator[T]:
        items = method(self, *args, **more)
        try:
            return items if self.home.is_here() else self.home.iterate(items)
        except RuntimeError:  # no loop runs yet: check this when the first item is requested
            return _later(self.home, items)

    return carried


async def _later(home: HomeLoop, items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    coming = items if home.is_here() else home.iterate(items)
    async with aclosing(coming):
        async for item in coming:
            yield item


POLL_S = 0.5
"""Poll interval for expired leases, in seconds."""


async def answer_unanswered(
    memory: Memory, owner: str, lease_s: float, of_session: Callable[[str], AbstractAsyncContextManager[Mind]]
) -> None:
    """Answer the utterances that were unanswered at the first poll; return when no such utterance is open any more.

    Args:
        of_session: opens the mind in a given session (conversation).
    """
    HOLDER.set(owner)  # applies to this task and the tasks that it starts
    left: set[int] | None = None
    while left is None or left:
        with contextlib.suppress(StorageError):  # the next poll tries again
            answers = await _answers(memory)
            left = {each.id for each in answers if each.owner != owner} if left is None else left
            left &= {each.id for each in answers}
            for each in answers:
                if each.id in left and each.is_open_to("", memory.clock.now()):
                    left -= {one.id for one in await _take(memory, owner, lease_s, each, of_session)} | {each.id}
        if left is None or left:
            await asyncio.sleep(POLL_S)


async def _answers(memory: Memory) -> list[Work]:
    return [work for work in await memory.store.open_work(memory.key) if work.slot.startswith(ANSWER)]


async def _take(
    memory: Memory,
    owner: str,
    lease_s: float,
    first: Work,
    of_session: Callable[[str], AbstractAsyncContextManager[Mind]],
) -> Sequence[Work]:
    """Claim the open answers of a conversation, answer the utterances in order, and return the claimed work."""
    store, now = memory.store, memory.clock.now()
    taken = await store.claim(memory.key, first.slot, owner, now, now + lease_s, first.cause + 1)
    if not taken:
        return taken
    ids = tuple(work.id for work in taken)
    for error in sorted({work.error for work in taken}):  # mark the work as not begun; this owner keeps the lease
        alike = tuple(work.id for work in taken if work.error == error)
        await memory.commit(put_back=WorkReleased(alike, owner, error, counts=False))
    with renewing(store, memory.clock, lambda: ids, owner, lease_s):
        for work in taken:
            row = await find_unanswered(store, memory.key, replace(work, owner=owner))
            if row is not None and isinstance(row.event, Heard):
                with contextlib.suppress(MindstreamError):  # after an error, the work stays open for the next process
                    async with of_session(row.event.session) as mind:
                        await take_all(mind.answer_again(row))
                    # an answer that was stopped ends without an error, and its work stays open: mark it as done
                    await store.release_work(memory.key, work.cause, owner, (work.slot,))
    return taken


async def take_all(rows: AsyncGenerator[Logged]) -> None:
    """Read all rows of an answer, and discard them, so that the answer runs to its end."""
    async with aclosing(rows) as answer:
        async for _ in answer:
            pass


TalkEvent: TypeAlias = Heard | Waiting | Piece | Said | BeliefChanged | PlanChanged | FollowUp
"""Events that `Mind.stream` yields, to be matched by class."""
Part: TypeAlias = Literal["whole", "talks", "thinks"]
"""The part of a mind that runs in this process: everything, only answers (`talks`) or only reasoners (`thinks`)."""


class Mind:
    """A memory with models, tools, reasoners and a responder. Open one with `Mind.open`, then call `send` or `stream`.

        async with Mind.open("data", user="ann", model="ollama:qwen3", responder=Coach.using(pack="sleep")) as mind:
            print(await mind.send("Noise keeps me awake."))
            async for event in mind.stream("Can you make me a plan?", to_the_end=True):
                print(event)  # Heard, Waiting, Piece, Said, BeliefChanged, PlanChanged, FollowUp

    The responder answers: a `Coach`, a `ChatBot.using(…)`, `answer_with(function)`, or a `Responder` of your own.
    Reasoners think in the background, and both share the memory. For a bot without reasoners, `ChatBot` is simpler.

    Attributes:
        memory: the user's memory, across all sessions.
        session: the name of the current conversation.
        tools: tools that the mind's reasoners may call.
        reasoners: the background runner of the mind's reasoners.
        responder: the component that answers utterances.
    """

    def __init__(
        self,
        memory: Memory,
        models: Models,
        session: str,
        *,
        tools: Sequence[Tool] = (),
        approve: Approve = (),
        reasoners: Sequence[Reasoner] = (),
        timeouts: Timeouts | None = None,
        responder: ResponderFactory = NullResponder,
        thinks: bool = True,
        owner: str = "",
    ) -> None:
        self.home = HomeLoop()
        self.memory, self.models, self.session = memory, models, session
        self.tools = checked_tools(tools)
        check_approve(approve, self.tools)
        self.timeouts = (timeouts or Timeouts()).fill(models)
        self.reasoners = Background(
            memory,
            speak_up=lambda context, result, written: self.responder.speak_up(context, result, written),
            tools=self.tools,
            approve=approve,
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
        """Held while an utterance is committed, so that concurrent utterances are committed in the order of the
        calls."""

    @classmethod
    @renamed_keywords(models="model")
    @opens
    async def open(
        cls,
        data: AnyStore = "data",
        *,
        user: StreamName | str = "you",
        session: str | None = None,
        model: AnyModels | None = None,
        tools: Sequence[Tool] = (),
        approve: Approve = (),
        reasoners: Sequence[Reasoner] = (),
        responder: ResponderFactory | None = None,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        timeouts: Timeouts | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        part: Part = "whole",
        owner: str = "",
    ) -> AsyncIterator[Mind]:
        """Open a user's mind, and run its reasoners until the block ends.

        A mind with a responder also answers utterances that a dead process left unanswered, unless `part` is `thinks`.

        Args:
            data: the data folder (created if missing), the URL of a PostgreSQL database, or a store.
            user: the name of the mind's user.
            session: the conversation to continue; None begins a new one. All sessions share the memory.
            model: a name (`rules`, `openai:gpt-5`, …), a model, a mapping from roles (talker, reasoner, default) to
                names or models, or `Models`. A mapping without a default must have every required role. None: the
                models of the responder (`ChatBot.using(model=…)`), or rules if the responder has none.
            tools: tools for the mind's reasoners, in addition to the reasoners' own.
            approve: which calls of tools that change the world are made: the names of the permitted tools, or a
                function that decides about each call (tools/call.py). By default no such call is made.
            reasoners: reasoners in addition to the responder's reasoners; each needs a different slot.
            embed: an embedder or its name; None: the embedder that made the memory's vectors (wordllama for a new
                memory).
            policy: `keep` or `decay`, which is recorded for the memory; or values by name that apply while the mind is
                open (memory/policy).
            responder: a factory such as `Coach.using(pack="sleep")`; None: utterances are stored, but not answered.
            part: `talks`: reasoners run in other processes; `thinks`: other processes answer. Any number of processes
                may run each part.
            owner: the name under which this mind claims work; "": a new random one.

        Raises:
            UserError: a name is invalid or used twice, or the embedder is not the one of the memory's vectors.
            StorageError: the data cannot be read or written.
        """
        name = user if isinstance(user, StreamName) else StreamName("user", user)
        if isinstance(data, AnyData):
            await asyncio.to_thread(finish_erasures, data, name.key)
        clock = clock or clock_of(data)
        session = checked_name(session, "session") if session else format_iso(clock.now())
        calls = CallLog()
        if model is None:
            model = getattr(responder, "models", None) or "rules"
        async with contextlib.AsyncExitStack() as opened_here:
            shared = await opened_here.enter_async_context(open_models(model, clock))
            store = await opened_here.enter_async_context(opened_store(data))
            vectors, of_another = await choose_embedder(store, store.key(name), embed)
            if of_another:
                raise InputError(other_embedder(name.id, of_another, vectors.name))
            kept = await adopt_policy(store, store.key(name), clock.now(), policy)
            second = second_stage(kept.reranker, kept.reranked, shared.with_listener(calls.take))
            memory = Memory(store, name, vectors, clock, Feed(), strength=kept.laws, second=second)
            memory.drawn = kept.drawn
            await memory.begin()
            asked = RefusedMessages(memory).around(shared.with_listener(calls.take))
            mind = cls(
                memory,
                asked,
                session,
                tools=tools,
                approve=approve,
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
            answering = asyncio.ensure_future(mind._answer_unanswered(part))
            try:
                yield mind
            finally:
                await mind._close(answering, working, calls)

    @at_home
    async def _close(
        self, answering: asyncio.Future[None], working: Sequence[asyncio.Future[None]], calls: CallLog
    ) -> None:
        await cancel_all(answering)  # first, so that the answers that it cancels stay open for another process
        await self.responder.close()
        await cancel_all(*working)
        await calls.flush(self.memory)
        self.memory.feed.close()  # before the memory, so that listeners do not wait if the store cannot be written
        await self.memory.close()

    async def _begin(self) -> None:
        """Read the state of the mind and of its responder from the log."""
        self._turn = Occurrence(await self.memory.store.count(self.memory.key, "heard"), "", "")
        await self.responder.begin()

    async def _answer_unanswered(self, part: Part) -> None:
        if part != "thinks" and not isinstance(self.responder, NullResponder):
            await answer_unanswered(self.memory, self.reasoners.owner, self.timeouts.lease_s, self._in_session)

    @contextlib.asynccontextmanager
    async def _in_session(self, session: str) -> AsyncIterator[Mind]:
        """Yield a mind for a session: this mind if it has this session, otherwise a new mind that shares the memory."""
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
        """Commit an utterance, answer it, and yield the log rows: heard, perhaps redacted, perhaps waiting, pieces,
        said.

        Once `heard` is yielded, the utterance is on disk, and reasoners will process it. Closing the generator cancels
        the answer. If the caller stops reading without closing the generator, the answer is still completed and stored.

        Args:
            one_answer: whether the user cannot be shown a follow-up later. True: a coach may wait for its reasoner
                before it answers (see `follow_ups` of `Coach.using`).
            by: the author; "": the mind's user.
            once: an idempotency key. All processes together accept only one utterance with the same key.

        Raises:
            InputError: the text is empty or too long.
            HeardAlready: an utterance with this key was heard before.
            StorageError: the utterance or the answer could not be committed.
            Exception: an error of the responder, such as ModelError (a coach answers with an excuse instead).
        """
        text = checked_text(text, MAX_UTTERANCE)
        cleaned = await redaction.cleaned(text) if redaction.is_on() else redaction.Cleaned(text)
        async with self._taking_in:
            handling = await self.responder.attend(cleaned.text, one_answer=one_answer)
            heard, *redacted = await self._write_down(cleaned, handling, by or handling.by or self.memory.name, once)
        try:
            async with self._taking_in:  # wait until utterances that arrived in this time are committed, too
                pass
        except asyncio.CancelledError:
            self.reasoners.release(heard.seq)
            raise
        async with aclosing(handling.answer(heard)) as rows:
            async for logged in rows:
                yield logged
                while redacted:
                    yield redacted.pop()

    @streamed_at_home
    async def answer_again(self, heard: Logged, *, one_answer: bool = False) -> AsyncGenerator[Logged]:
        """Answer an utterance once more. The utterance is given as its log row. Yield rows as `hear` does.

        The utterance is not committed again, and reasoners do not process it again.

        Raises:
            InputError: the row is not an utterance of this mind.
            StorageError: the answer could not be committed.
        """
        if not isinstance(heard.event, Heard) or heard.mind != self.memory.key:
            raise InputError("expected the log row of an utterance (`heard`) of this mind, found another row")
        async with self._taking_in:
            handling = await self.responder.attend(heard.event.text, one_answer=one_answer)
        async with aclosing(handling.answer(heard)) as rows:
            async for logged in rows:
                yield logged

    @streamed_at_home
    async def stream(self, text: str, *, to_the_end: bool = False) -> AsyncGenerator[TalkEvent]:
        """Send an utterance and yield events, to be matched by class: Heard, Waiting, Piece, Said.

        Args:
            to_the_end: whether to continue until the reasoners have no work left. True: BeliefChanged, PlanChanged and
                FollowUp are yielded, too.

        Raises:
            InputError: the text is empty or too long.
            StorageError: the utterance or the answer could not be committed.
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
    @awaited
    async def send(self, text: str) -> str:
        """Send an utterance and return the whole answer; no follow-up is sent after it.

        Raises:
            InputError: the mind has no responder, or the text is empty or too long.
            Exception: all other errors of `hear`.
        """
        if isinstance(self.responder, NullResponder):
            raise InputError(
                "this mind has no responder, so it cannot answer; open it with `responder=…`, or use `stream`, which"
                " only stores the utterance"
            )
        answer = ""
        async with aclosing(self.hear(text, one_answer=True)) as events:
            async for logged in events:
                if isinstance(logged.event, Said):
                    answer = logged.event.text
        return answer

    @at_home
    async def cancel(self, slot: str | None = None) -> int:
        """Stop the runs of reasoners (of one slot, or of all slots) in all processes; return their number.

        The work of a stopped run counts as done.
        """
        memory, stopped = self.memory, self.reasoners.cancel(slot)
        ours = {self.reasoners.owner}
        return stopped + await stop_elsewhere(memory.store, memory.key, memory.clock, ours, slot=slot, answers=False)

    @at_home
    async def settled(self) -> None:
        """Wait until the reasoners have no work left that can be done now."""
        await self.reasoners.settled()

    async def _write_down(self, said: redaction.Cleaned, handling: Handling, by: str, once: str) -> list[Logged]:
        """Commit an utterance; return the log rows.

        The commit also has the memory record, an event that names redactions if there are any, and work for reasoners.

        Raises:
            HeardAlready: an utterance with the key `once` was committed before.
        """
        memory, text = self.memory, said.text
        with self.reasoners.hearing():
            record = await build_chat_record(memory, text, by, self.session, by_user=True)
            before, turn = self._turn, Occurrence(self._turn.number + 1, handling.phase, self._turn.phase)
            wake = self.reasoners.claims(turn, besides=handling.besides, answered=handling.hold)
            self._turn = turn
            entries = [Entry(Heard(text=text, session=self.session, record=record.id), by, (record,))]
            if said.taken:
                entries.append(Entry(Redacted(kinds=dict(said.taken)), "mindstream", system=True))
            try:
                unique = f"{SAID_ONCE}{once}" if once else ""
                rows = await memory.commit(*entries, wake=wake, unique=unique)
            except StorageError as error:
                self._turn = before  # an utterance that was not committed does not count
                if once and isinstance(error, Conflict) and (seq := await memory.store.taken_by(memory.key, unique)):
                    raise HeardAlready(seq) from None
                raise
            if handling.hold:
                self.reasoners.hold(rows[0].seq)
        return rows

    @at_home
    async def notice(self, event: Event, news: Sequence[RecordDraft] = (), *, by: str = "") -> Logged:
        """Log an event that is not an utterance, and wake the reasoners that it triggers.

        Args:
            news: records to remember, written in the same commit.
            by: the author of the event; "": the mind's user.
        """
        memory = self.memory
        entry = Entry(event, by or memory.name, tuple(await memory.build_records(news)) if news else ())
        (logged,) = await memory.commit(entry, wake=await self._woken_by(event.kind))
        self.reasoners.wake()
        return logged

    @at_home
    async def correct(self, old: str, text: str, *, by: str = "") -> Correction:
        """Correct the text of the record with the id `old`; return the correction and the records that depend on it.

        Reasoners with `Trigger(on=("corrected",))` are woken.

        Raises:
            InputError: the record does not exist, is no longer current, or is a version of a belief or plan. Or the
                text is empty or too long.
        """
        done = await self.memory.correct(old, text, by=by, wake=await self._woken_by(Corrected.kind))
        self.reasoners.wake()
        return done

    async def _woken_by(self, kind: str) -> NewWork:
        """Return the work for reasoners that the next event of a kind causes."""
        number, phase = await self.memory.store.count(self.memory.key, kind) + 1, self._turn.phase
        return self.reasoners.claims(Occurrence(number, phase, phase, kind))


async def _until(rows: AsyncIterator[Logged], over: asyncio.Future[None]) -> AsyncGenerator[Logged]:
    """Yield rows until a future is done, including all rows that were published before it was done."""
    coming: asyncio.Future[Logged] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(rows))
            waited: set[asyncio.Future[Any]] = {coming, over}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                await asyncio.sleep(0)  # a row that was published before `over` was done may arrive now
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
