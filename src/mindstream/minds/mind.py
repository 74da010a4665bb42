"""A mind: a stream, tools, models, a runner for its reasoners; who speaks for it is handed to it (minds/responder)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from mindstream.clock import Clock, SystemClock, format_iso
from mindstream.errors import InputError
from mindstream.log.erasure import finish_all
from mindstream.log.events import Corrected, Event, Heard, Logged, Opened, Said
from mindstream.log.feed import Feed
from mindstream.log.names import StreamName, checked_name
from mindstream.memory.curation.curation import Correction
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Entry, Store
from mindstream.memory.store.validation import checked_text
from mindstream.memory.stream import Stream
from mindstream.minds.calls import CallLog
from mindstream.minds.responder import NullResponder, ResponderFactory, find_responder
from mindstream.minds.timeouts import Timeouts
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder
from mindstream.models.roles import Models
from mindstream.paths import usable
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult
from mindstream.reasoners.trigger import Turn
from mindstream.tools.tool import Tool, checked_tools


class Mind:
    """A mind that is open. Make one with `Mind.open`.

    Attributes:
        stream: its memory; all that its user ever said is in it, whatever the session.
        session: the conversation that goes on.
        tools: what its reasoners may call.
        floor: held by whoever speaks or changes what is believed.
        reasoners: the runner of those who think.
        speaker: who answers for it.
    """

    def __init__(
        self,
        stream: Stream,
        models: Models,
        session: str,
        *,
        tools: Sequence[Tool] = (),
        reasoners: Sequence[Reasoner] = (),
        timeouts: Timeouts | None = None,
        responder: ResponderFactory = NullResponder,
    ) -> None:
        self.stream, self.models, self.session = stream, models, session
        self.tools = checked_tools(tools)
        self.timeouts = (timeouts or Timeouts()).fill(models)
        self.floor = asyncio.Lock()
        self.reasoners = Background(
            stream, (), self.floor, self._speak_up, tools=self.tools,
            lease_s=self.timeouts.lease_s, retry_s=self.timeouts.retry_s,
        )  # fmt: skip
        self.responder = responder(self)
        self.reasoners.add(*self.responder.reasoners, *reasoners)
        self._turn = Turn(0, "", "")

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        data: str | Path | Store = "data",
        *,
        user: StreamName | str = "you",
        session: str | None = None,
        models: Models | Mapping[str, str] | str = "rules",
        tools: Sequence[Tool] = (),
        reasoners: Sequence[Reasoner] = (),
        responder: ResponderFactory | str | None = "coach",
        embed: Embedder | str = "wordllama",
        clock: Clock | None = None,
        timeouts: Timeouts | None = None,
        **options: Any,
    ) -> AsyncIterator[Mind]:
        """Open a user's mind and let its reasoners work until the block ends.

        Args:
            data: the data folder (made if need be), or a store.
            user: whose mind it is; a plain name is a user's.
            session: the conversation to go on with; None begins a new one. Memory spans all of them.
            models: a name (`rules`, `openai:gpt-5`, …) or a table role -> name; roles: talker, reasoner, default.
                A role that is needed and stands nowhere is an error, unless there is a default.
            tools: what its reasoners may call, beside their own.
            reasoners: more of them, beside those of the speaker; each writes its own slot.
            speaker: who answers: by name, by whoever makes one (see minds/responder), or None: nobody.
            options: what a speaker that is named is told; the coach's are `pack`, `gate`, `exemplars` and `follow_ups`
                (see coach.coach).

        Raises:
            UserError: a name that cannot be used, an unknown or broken pack, two of the same name.
            StorageError: the data folder cannot be used.
        """
        make = find_responder(responder, options)
        name = StreamName("user", user) if isinstance(user, str) else user
        folder = usable(data) if isinstance(data, str | Path) else None
        if folder is not None:
            await asyncio.to_thread(finish_all, folder, name.key)
        clock = clock or SystemClock()
        session = checked_name(session, "session") if session else format_iso(clock.now())
        calls = CallLog()
        table = {"default": models} if isinstance(models, str) else models
        shared = table if isinstance(table, Models) else Models.named(table, clock=clock)
        embed = embedder(embed) if isinstance(embed, str) else embed
        store: Store = SqliteStore(data) if isinstance(data, str | Path) else data
        try:
            stream = Stream(store, name, embed, clock, Feed())
            mind = cls(
                stream, shared.with_listener(calls.take), session, tools=tools, reasoners=reasoners, timeouts=timeouts,
                responder=make,
            )  # fmt: skip
            await mind._begin()
            opened = Opened(session=session, pack=mind.responder.name, models=mind.models.names)
            await stream.commit(Entry(opened, "mindstream", system=True))
            working = [asyncio.ensure_future(mind.reasoners.run()), asyncio.ensure_future(calls.run(stream))]
            try:
                yield mind
            finally:
                await mind.responder.close()
                for task in working:
                    task.cancel()
                await asyncio.gather(*working, return_exceptions=True)
                await calls.flush(stream)
                stream.feed.close()  # first: whoever listens must not wait for a store that cannot be written
                await stream.close()
        finally:
            if not isinstance(models, Models):
                await shared.aclose()
            if folder is not None:
                await store.close()

    async def _begin(self) -> None:
        """Read what the mind holds."""
        self._turn = Turn(await self.stream.store.count(self.stream.key, "heard"), "", "")
        await self.responder.begin()

    async def hear(self, text: str, *, one_answer: bool = False) -> AsyncGenerator[Logged]:
        """Take in what the user says and answer: heard, perhaps waiting, pieces, said.

        What was yielded as `heard` is on disk and will be thought about, whatever happens next. Closing the generator
        breaks the answer off; whoever keeps it without listening holds up nobody.

        Args:
            one_answer: nothing that comes later would be seen: what was asked for is waited for.

        Raises:
            InputError: there is nothing to read in it, or it is too long.
            StorageError: it could not be kept, or the answer could not.
        """
        async with aclosing(self.responder.hear(checked_text(text), one_answer=one_answer)) as events:
            async for logged in events:
                yield logged

    async def say(self, text: str) -> str:
        """Say something to the mind and return its whole answer; nothing that was asked for follows it.

        Raises:
            InputError, StorageError: see `hear`; also where nobody speaks for this mind.
        """
        if isinstance(self.responder, NullResponder):
            raise InputError("nobody speaks for this mind: open it with a speaker, or use `hear`, which only listens")
        answer = ""
        async with aclosing(self.hear(text, one_answer=True)) as events:
            async for logged in events:
                if isinstance(logged.event, Said):
                    answer = logged.event.text
        return answer

    def cancel(self, slot: str | None = None) -> int:
        """Stop the reasoners' runs that go on (of one slot, or all); return how many.

        What they were about counts as done.
        """
        return self.reasoners.cancel(slot)

    async def settled(self) -> None:
        """Return when the reasoners have nothing left that could come to something now."""
        await self.reasoners.settled()

    @property
    def belief(self) -> Any:
        """What its speaker believes of the user, as far as this process has seen."""
        return self.responder.belief

    @property
    def plan(self) -> Any:
        """What its speaker plans with the user, as far as this process has seen."""
        return self.responder.plan

    async def take_in(
        self, text: str, *, phase: str = "", besides: Sequence[str] = (), hold: bool = False, by: str = ""
    ) -> Logged:
        """Write down what the user says, its record and the work that it causes in one commit.

        Args:
            by: who says it; the mind's user where nobody is named.
            phase: what the talk is in, as triggers ask for it.
            besides: slots that are not woken.
            hold: the reasoners leave it alone until it is released (see Background.release): it is to be answered.
        """
        with self.reasoners.hearing():
            new = RecordDraft(
                text=text, kind="chat", by=by or self.stream.name, episode=self.session, data={"by_user": True}
            )
            record = (await self.stream.build_records([new]))[0]
            self._turn = Turn(self._turn.number + 1, phase, self._turn.phase)
            wake = self.reasoners.claims(self._turn, besides=besides)
            event = Heard(text=text, session=self.session, record=record.id)
            (heard,) = await self.stream.commit(Entry(event, by or self.stream.name, (record,)), wake=wake)
            if hold:
                self.reasoners.hold(heard.seq)
        return heard

    async def notice(self, event: Event, news: Sequence[RecordDraft] = (), *, by: str = "") -> Logged:
        """Let something happen to the mind that is not talk: log it, remember it, and wake whoever it concerns.

        Args:
            news: what is remembered of it, in the same commit.
            by: who did it; the mind's user where nobody is named.
        """
        stream, phase = self.stream, self._turn.phase
        turn = Turn(await stream.store.count(stream.key, event.kind) + 1, phase, phase, event.kind)
        entry = Entry(event, by or stream.name, tuple(await stream.build_records(news)) if news else ())
        (logged,) = await stream.commit(entry, wake=self.reasoners.claims(turn))
        self.reasoners.wake()
        return logged

    async def correct(self, old: str, text: str, *, by: str = "") -> Correction:
        """Correct a record (its id), wake whoever it concerns (`Trigger(on=("corrected",))`), say what rested on it.

        Raises:
            InputError: see `Stream.supersede`.
        """
        stream, phase, kind = self.stream, self._turn.phase, Corrected.kind
        turn = Turn(await stream.store.count(stream.key, kind) + 1, phase, phase, kind)
        done = await stream.correct(old, text, by=by, wake=self.reasoners.claims(turn))
        self.reasoners.wake()
        return done

    async def _speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        return await self.responder.speak_up(context, result, written)
