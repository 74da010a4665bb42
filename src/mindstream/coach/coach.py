"""The coach: a Talker that answers at once, a gate, a belief reasoner behind, over one mind (Christakopoulou 2024)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from mindstream.clock import read_zone
from mindstream.coach import stand_in  # noqa: F401 (registers the rule)
from mindstream.coach.alarms import is_about_danger
from mindstream.coach.answer_log import UNAVAILABLE
from mindstream.coach.answering import Answering, Exchange
from mindstream.coach.belief.belief import BeliefReasoner, plan_from, plan_slot
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.events import Alarmed, LeftUnsaid
from mindstream.coach.gates.gate import Decision, Gate, Gatekeeper, Situation, gate_named
from mindstream.coach.gates.outcomes import judge_outcome
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import SAFETY, look_over
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import InputError
from mindstream.log.events import FollowUp, Heard, Logged, Said
from mindstream.log.work import ANSWER, Work
from mindstream.memory.belief import Belief, read_belief
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Attention, Host
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.facts.facts import FactsReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult, Utterance


def second_listener(models: Models) -> Model | None:
    """Return who hears danger beside the Talker: the model of the role `safety`, else who notes facts."""
    model = models.of("safety")
    return None if model.name == Rules.name else model


def _reasoners(models: Models, pack: Pack, thinking_s: float, zone: tzinfo | None) -> list[Reasoner]:
    """Return who thinks behind the talk: one, that also notes what it believes.

    Where a stand-in does, one that notes beside it, if there is a model for that.
    """
    thinks, facts = models.of("reasoner"), models.of("facts")
    believer = BeliefReasoner(thinks, pack, thinks.name != Rules.name, timeout_s=thinking_s, zone=zone)
    if believer.notes or facts.name == Rules.name:
        return [believer]
    noting = FactsReasoner(facts, timeout_s=thinking_s, leaves_out=partial(is_about_danger, pack))
    return [believer, noting]


class Coach:
    """Answers for a mind: hears with its gate, answers by its Talker, a reasoner thinks behind (Christakopoulou 2024).

    `Mind.open(…, responder=Coach.using(pack="sleep"))` makes one, `Coach.of(mind)` finds it.

    Attributes:
        pack: the domain that it coaches in.
        belief: what is believed of the user now: `value`, `version`, `evidence`.
        plan: what the user is to do, in steps.
    """

    def __init__(
        self,
        host: Host,
        pack: Pack,
        gate: Gate,
        exemplars: Exemplars | None = None,
        follow_ups: bool = True,
        zone: tzinfo | None = None,
    ) -> None:
        self.name, self.title, self.pack = pack.name, pack.title, pack
        self._host, self._stream = host, host.memory
        models, thinking_s = host.models, host.timeouts.thinking_s
        self.talker = Talker(host.memory, pack, models.of("talker"), host.session, exemplars, zone)
        self.reasoners: Sequence[Reasoner] = _reasoners(models, pack, thinking_s, zone)
        self._gate = Gatekeeper(gate, pack)
        listener = second_listener(models)
        self._answering = Answering(self.talker, self._gate, host.thinkers, host.timeouts, listener)
        self._follow_ups = follow_ups
        self._alone: set[int] = set()
        """What was heard where nothing could follow the answer."""

    @staticmethod
    def using(
        pack: str | Path | Pack = "sleep",
        gate: str | Gate = "",
        exemplars: Exemplars | None = None,
        follow_ups: bool = True,
        timezone: str | tzinfo | None = None,
    ) -> Callable[[Host], Coach]:
        """Return how a coach is made for a mind: `Mind.open(…, responder=Coach.using(pack="sleep"))`.

        Args:
            pack: what it coaches in: the name of a pack that ships, a folder, or a pack.
            gate: when the Talker waits for the Reasoner: `talker` (it says so itself), `belief` (the paper's rule), or
                a gate; "": `talker` where a model answers, else `belief`.
            exemplars: who finds answers to like questions that its Talker is shown: a member of a pool, say. Nothing
                that is said is offered to them by it.
            follow_ups: something can be said after an answer. Where not (a page, a file, an API that gives one
                answer), nothing that was asked for comes later: such an answer waits for it.
            timezone: where the user lives, as `Europe/Berlin`, unless they say another; None: nobody knows, and no
                hour or weekday is spoken of but theirs.

        Raises:
            UserError: an unknown or broken pack, gate or time zone.
        """
        zone = read_zone(timezone) if isinstance(timezone, str) else timezone
        domain = pack if isinstance(pack, Pack) else load(pack)

        def make(host: Host) -> Coach:
            chosen = gate_named(gate, host.models.of("talker")) if isinstance(gate, str) else gate
            return Coach(host, domain, chosen, exemplars, follow_ups, zone)

        return make

    @staticmethod
    def of(mind: Mind) -> Coach:
        """Return the coach that answers for a mind: `Coach.of(mind).belief`, `.plan`.

        Raises:
            InputError: somebody else does, or nobody.
        """
        if not isinstance(mind.responder, Coach):
            raise InputError("no coach answers for this mind")
        return mind.responder

    @property
    def belief(self) -> Belief[Any]:
        """What is believed of the user now; the pack says in which fields."""
        return read_belief(self.pack.name, self._stream.last_version(self.pack.name), self.pack.belief)

    @property
    def plan(self) -> CoachingPlan:
        """The plan as it stands."""
        return plan_from(self._stream.last_version(plan_slot(self.pack)))

    async def begin(self) -> None:
        """Read what is believed and planned."""
        await self._stream.version(self.pack.name)
        await self._stream.version(plan_slot(self.pack))
        alarmed, after = list[Alarmed](), 0
        while rows := await self._stream.store.events(self._stream.key, after, [Alarmed.kind]):
            alarmed += [row.event for row in rows if isinstance(row.event, Alarmed)]
            after = rows[-1].seq
        self._answering.alarms.restore(alarmed)

    async def attend(self, text: str, *, one_answer: bool) -> Attention:
        """Ask the gate whether this is to be thought about, and wake the belief reasoner only then."""
        await look_over(self.pack, text)
        situation = await self.talker.situation(text)
        first = self._gate.decide(situation)
        alone = one_answer or not self._follow_ups
        return Attention(
            partial(self._answer, situation, first, alone),
            situation.phase.name,
            besides=() if first.thinks else (self.pack.name,),
            hold=True,
        )

    def _answer(self, situation: Situation, first: Decision, alone: bool, heard: Logged) -> AsyncGenerator[Logged]:
        """Begin the turn at once, whether or not anybody takes its events."""
        if alone:
            self._alone.add(heard.seq)
        exchange = Exchange()
        turn = self._answering.begin(situation, heard.seq, first, exchange, one_answer=alone)
        return self._events(heard, turn, exchange)

    async def _events(self, heard: Logged, turn: asyncio.Task[None], exchange: Exchange) -> AsyncGenerator[Logged]:
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

    async def close(self) -> None:
        await self._answering.close()

    async def speak_up(self, context: RunContext, run_result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Add to what a conclusion writes: what became of the gate's decision, and perhaps a follow-up."""
        judgement = judge_outcome(run_result, written, context.utterances) if context.slot == self.pack.name else []
        more = await self._follow_up(run_result, context.utterances)
        if context.slot == self.pack.name:
            self._alone.difference_update(utterance.seq for utterance in context.utterances)
        return [*judgement, *more]

    async def _follow_up(self, run_result: RunResult, utterances: Sequence[Utterance]) -> Sequence[Entry]:
        """Follow up, once, in the commit that ends the work: what the Talker could not say in time, or got wrong.

        Never over the user: whoever has said something newer, or is being answered, gets that answer instead.
        """
        if not utterances:
            return ()
        newest = utterances[-1].seq
        if self._answering.is_answering(newest) or newest < await self._newest_heard() or await self._is_open(newest):
            return ()
        said = await self._said(newest)
        if said and said.model == SAFETY:  # what an alarm says is the whole answer
            return ()
        answered = said and not said.late and said.model != UNAVAILABLE
        words = run_result.follow_up or ("" if answered else run_result.briefing.offer)
        if not words or (said and words in said.text):
            return ()
        if newest in self._alone or (said and said.alone) or not self._follow_ups:
            return [Entry(LeftUnsaid(text=words, answers=newest), AGENT)]
        for each in await self._unanswered(newest):  # a process that has died was to answer: this is the answer
            await self._stream.store.let_go(self._stream.key, newest, each.owner, (each.slot,))
        session = utterances[-1].session
        new = RecordDraft(text=words, kind="chat", by=AGENT, episode=session, data={"by_user": False})
        (record,) = await self._stream.build_records([new])
        return [Entry(FollowUp(text=words, answers=newest, record=record.id), AGENT, (record,))]

    async def _newest_heard(self) -> int:
        newest = await self._stream.store.last(self._stream.key, Heard.kind)
        return newest.seq if newest else 0

    async def _is_open(self, heard: int) -> bool:
        """Tell whether it is being answered in another process."""
        now = self._stream.clock.now()
        return any(not each.is_open_to("", now) for each in await self._unanswered(heard))

    async def _unanswered(self, heard: int) -> list[Work]:
        work = await self._stream.store.open_work(self._stream.key)
        return [each for each in work if each.cause == heard and each.slot.startswith(ANSWER)]

    async def _said(self, heard: int) -> Said | None:
        newest = await self._stream.store.last(self._stream.key, Said.kind)
        if newest and isinstance(newest.event, Said) and newest.event.answers == heard:
            return newest.event
        for logged in await self._stream.store.events(self._stream.key, after=heard, kinds=["said"]):
            if isinstance(logged.event, Said) and logged.event.answers == heard:
                return logged.event
        return None
