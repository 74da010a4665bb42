"""A mind: a Talker that answers at once, Reasoners that think behind, one stream that joins them (seed 000)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mindstream.clock import Clock, SystemClock, written
from mindstream.log.erasure import finish_all
from mindstream.log.events import FollowUp, Heard, Logged, Opened, Said
from mindstream.log.feed import Feed
from mindstream.memory.belief import Belief
from mindstream.memory.door import checked_name, checked_text
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Entry, Store
from mindstream.memory.stream import New, Stream
from mindstream.minds import talk_rules  # noqa: F401 (registers the rule)
from mindstream.minds.answering import Answering
from mindstream.minds.calls import CallLog
from mindstream.minds.exchange import Exchange
from mindstream.minds.gates.gate import Decision, Gate, Situation
from mindstream.minds.gates.keeper import Gatekeeper
from mindstream.minds.gates.named import gate
from mindstream.minds.gates.outcomes import judged
from mindstream.minds.patience import Patience
from mindstream.minds.talker import Talker
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder
from mindstream.models.roles import Models
from mindstream.packs.load import load
from mindstream.packs.pack import Pack
from mindstream.packs.safety import SAFETY, look_over
from mindstream.paths import usable
from mindstream.reasoners.background import Background
from mindstream.reasoners.belief.belief import BeliefReasoner, plan_of
from mindstream.reasoners.belief.plan import Plan
from mindstream.reasoners.conversation import AGENT
from mindstream.reasoners.facts.facts import FactsReasoner
from mindstream.reasoners.reasoner import Conclusion, Occasion, Reasoner, Utterance
from mindstream.reasoners.trigger import Turn


class Mind:
    """A mind that is open. Make one with `Mind.open`.

    Attributes:
        stream: its memory; all that its user ever said is in it, whatever the session.
        session: the conversation that goes on.
    """

    def __init__(
        self,
        stream: Stream,
        pack: Pack,
        models: Models,
        session: str,
        gate_: Gate,
        patience: Patience,
        more: Sequence[Reasoner] = (),
    ) -> None:
        self.stream = stream
        self.pack = pack
        self.models = models
        self.session = session
        self.talker = Talker(stream, pack, models.of("talker"), session)
        self._gate = Gatekeeper(gate_, pack)
        floor = asyncio.Lock()  # held by whoever speaks or changes what is believed
        self._heard = 0
        self.reasoners = Background(
            stream, [*_reasoners(pack, models, patience), *more], floor, self._speak_up,
            lease_s=patience.lease_s, retry_s=patience.retry_s,
        )  # fmt: skip
        self._answering = Answering(self.talker, self._gate, self.reasoners, floor, patience)
        self._turn = Turn(stream.store.count(stream.name, "heard"), "", "")

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        data: str | Path | Store = "data",
        *,
        pack: str | Path | Pack = "sleep",
        user: str = "you",
        session: str | None = None,
        models: Models | Mapping[str, str] | str = "rules",
        gate_: str | Gate = "belief",
        embed: Embedder | str = "wordllama",
        clock: Clock | None = None,
        patience: Patience | None = None,
        reasoners: Sequence[Reasoner] = (),
    ) -> AsyncIterator[Mind]:
        """Open a user's mind and let its reasoners work until the block ends.

        Args:
            data: the data folder (made if need be), or a store.
            session: the conversation to go on with; None begins a new one. Memory spans all of them.
            reasoners: more of them, beside the belief and the facts reasoner; each writes its own slot.
            models: a name (`rules`, `openai:gpt-5`, …) or a table role -> name; roles: talker, reasoner, default.

        Raises:
            UserError: a name that cannot be used, an unknown or broken pack.
            StorageError: the data folder cannot be used.
        """
        checked_name(user, "user")
        folder = usable(data) if isinstance(data, str | Path) else None
        if folder is not None:
            await asyncio.to_thread(finish_all, folder, user)
        clock = clock or SystemClock()
        domain = pack if isinstance(pack, Pack) else load(pack)
        session = checked_name(session, "session") if session else written(clock.now())
        calls = CallLog()
        table = {"default": models} if isinstance(models, str) else models
        shared = table if isinstance(table, Models) else Models.named(table, clock=clock)
        answers = shared.told_to(calls.take)
        embed = embedder(embed) if isinstance(embed, str) else embed
        store: Store = SqliteStore(data) if isinstance(data, str | Path) else data
        try:
            stream = Stream(store, user, embed, clock, Feed())
            chosen = gate(gate_, domain, answers, store) if isinstance(gate_, str) else gate_
            mind = cls(stream, domain, answers, session, chosen, patience or Patience(), reasoners)
            await stream.commit(Entry(Opened(session=session, pack=domain.name, models=answers.names), "mindstream"))
            working = [asyncio.ensure_future(mind.reasoners.run()), asyncio.ensure_future(calls.run(stream))]
            try:
                yield mind
            finally:
                await mind._answering.close()
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

    async def hear(self, text: str) -> AsyncGenerator[Logged]:
        """Take in what the user says and answer: heard, perhaps waiting, pieces, said.

        What was yielded as `heard` is on disk and will be thought about, whatever happens next. Closing the generator
        breaks the answer off; whoever keeps it without listening holds up nobody.

        Raises:
            InputError: there is nothing to read in it, or it is too long.
            StorageError: it could not be kept, or the answer could not.
        """
        await look_over(self.pack, text := checked_text(text))
        situation = self._situation(text)
        first = self._gate.first(situation)
        exchange = Exchange()
        with self.reasoners.hearing():
            heard = await self._hear(text, first, situation.phase.name)
            self.reasoners.hold(heard.seq)
        turn = self._answering.begin(text, heard.seq, first, exchange)
        try:
            yield heard
            async with contextlib.aclosing(exchange.events()) as events:
                async for logged in events:
                    yield logged
            if not turn.cancelled():
                turn.result()
        finally:
            turn.cancel()
            await asyncio.wait({turn})

    async def settled(self) -> None:
        """Return when the reasoners have nothing left that could come to something now."""
        await self.reasoners.settled()

    @property
    def belief(self) -> Belief:  # type: ignore[type-arg]
        """What is believed of the user now."""
        return self.stream.belief(self.pack.name, self.pack.belief)

    @property
    def plan(self) -> Plan:
        """The plan as it stands."""
        return plan_of(self.stream, self.pack)

    def _situation(self, text: str) -> Situation:
        unthought = sum(work.slot == self.pack.name for work in self.reasoners.work())
        return replace(self.talker.situation(text), unthought=unthought)

    async def _hear(self, text: str, decision: Decision, phase: str) -> Logged:
        record = (await self.stream.made([self._chat(text, self.stream.name, by_user=True)]))[0]
        event = Heard(text=text, session=self.session, record=record.id)
        self._turn = Turn(self._turn.number + 1, phase, self._turn.phase)
        wake = self.reasoners.claims(self._turn, besides=() if decision.thinks else (self.pack.name,))
        (logged,) = await self.stream.commit(Entry(event, self.stream.name, (record,)), wake=wake)
        self._heard = max(self._heard, logged.seq)
        return logged

    async def _speak_up(self, occasion: Occasion, conclusion: Conclusion, written: Sequence[Entry]) -> Sequence[Entry]:
        """Add to what a conclusion writes: what became of the gate's decision, and perhaps a follow-up."""
        judgement = judged(conclusion, written, occasion.utterances) if occasion.slot == self.pack.name else []
        return [*judgement, *await self._follow_up(conclusion, occasion.utterances)]

    async def _follow_up(self, conclusion: Conclusion, utterances: Sequence[Utterance]) -> Sequence[Entry]:
        """Follow up, once, in the commit that ends the work: what the Talker could not say in time, or got wrong.

        Never over the user: whoever has said something newer, or is being answered, gets that answer instead.
        """
        if conclusion.model == "" or not utterances:
            return ()
        newest = utterances[-1].seq
        if self._answering.is_answering(newest) or newest < self._newest_heard():
            return ()
        said = self._said(newest)
        if said and said.model == SAFETY:  # what an alarm says is the whole answer
            return ()
        words = conclusion.follow_up if said and not said.late else (conclusion.words or conclusion.follow_up)
        if not words or (said and words in said.text):
            return ()
        (record,) = await self.stream.made([self._chat(words, AGENT, by_user=False)])
        return [Entry(FollowUp(text=words, answers=newest, record=record.id), AGENT, (record,))]

    def _newest_heard(self) -> int:
        return max(
            (row.seq for row in self.stream.store.events(self.stream.name, max(0, self._heard - 1), ["heard"])),
            default=0,
        )

    def _said(self, heard: int) -> Said | None:
        for logged in self.stream.store.events(self.stream.name, after=heard, kinds=["said"]):
            if isinstance(logged.event, Said) and logged.event.answers == heard:
                return logged.event
        return None

    def _chat(self, text: str, by: str, *, by_user: bool) -> New:
        return New(text=text, kind="chat", by=by, episode=self.session, data={"by_user": by_user})


def _reasoners(pack: Pack, models: Models, patience: Patience) -> list[Reasoner]:
    return [
        BeliefReasoner(models.of("reasoner"), pack, patience_s=patience.thinking_s),
        FactsReasoner(models.of("facts", "reasoner"), patience_s=patience.thinking_s),
    ]
