"""`Coach`: a talker that answers at once, a gate, and a belief reasoner in the background (Christakopoulou 2024)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from mindstream.clock import read_zone
from mindstream.coach.alarms import is_about_danger
from mindstream.coach.answering import UNAVAILABLE, Answering
from mindstream.coach.belief.belief import BeliefReasoner, plan_from, plan_slot
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.events import Alarmed, LeftUnsaid
from mindstream.coach.gates.gate import Decision, Gate, Gatekeeper, Situation, gate_named, judge_outcome
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import SAFETY, look_over
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import InputError, SettingsError
from mindstream.log.events import FollowUp, Heard, Logged, Said
from mindstream.log.work import ANSWER
from mindstream.memory.belief import Belief, read_belief
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.memory.store.store import Entry, read_log
from mindstream.minds.context import build_chat_record
from mindstream.minds.mind import Mind
from mindstream.minds.responder import AnswerRows, Handling, Host
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.night import SleepReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult
from mindstream.reasoners.reflect.reflect import ReflectReasoner


def safety_model(models: Models) -> Model | None:
    """Return the model of the role `safety`, which classifies utterances; None without a language model."""
    model = models.of("safety")
    return None if model.name == Rules.name else model


def _reasoners(models: Models, pack: Pack, thinking_s: float, zone: tzinfo | None) -> list[Reasoner]:
    """Return the belief reasoner, and the reasoners that the pack names.

    The belief reasoner also notes facts about the user if it has a language model. If it has none but the role `facts`
    has one, a reasoner for facts is added, which notes them.
    """
    thinks, facts = models.of("reasoner"), models.of("facts")
    believer = BeliefReasoner(thinks, pack, thinks.name != Rules.name, timeout_s=thinking_s, zone=zone)
    more = named_reasoners(pack.reasoners, models)
    if believer.notes or facts.name == Rules.name:
        return [believer, *more]
    return [believer, FactsReasoner(facts, timeout_s=thinking_s, leaves_out=partial(is_about_danger, pack)), *more]


def named_reasoners(names: Iterable[str], models: Models) -> list[Reasoner]:
    """Return the shipped reasoners of these names: `reflect`, `sleep`.

    Raises:
        SettingsError: there is no such reasoner.
    """
    model = models.of("reasoner")
    known: dict[str, Callable[[], Reasoner]] = {
        "reflect": lambda: ReflectReasoner(model),
        "sleep": lambda: SleepReasoner(model),
    }
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"there is no reasoner {unknown[0]!r:.80}: the reasoners are {', '.join(known)}")
    return [known[name]() for name in dict.fromkeys(names)]


class Coach:
    """A responder that coaches its user, with a gate, a talker and a belief reasoner (Christakopoulou 2024).

        async with Mind.open("data", user="ann", responder=Coach.using(pack="sleep")) as mind:
            print(await mind.send("Noise keeps me awake. Can you make me a plan?"))
            coach = Coach.of(mind)
            print(coach.belief.value, coach.plan.steps)

    A pack is a folder of YAML that defines the domain: phases, fields, topics, steps, alarms (`mindstream pack new`).

    Attributes:
        pack: the domain of the coach.
        belief: the current belief about the user: `value`, `version`, `evidence`.
        plan: the user's plan, in steps.
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
        self._stream, models = host.memory, host.models
        self.talker = Talker(host.memory, pack, models.of("talker"), host.session, exemplars, zone)
        self.reasoners: Sequence[Reasoner] = _reasoners(models, pack, host.timeouts.thinking_s, zone)
        self._gate = Gatekeeper(gate, pack)
        self._answering = Answering(self.talker, self._gate, host.thinkers, host.timeouts, safety_model(models))
        self._follow_ups = follow_ups
        self._alone: set[int] = set()
        """Log rows of the utterances after whose answers no follow-up is possible."""

    @staticmethod
    def using(
        pack: str | Path | Pack = "sleep",
        gate: str | Gate = "",
        exemplars: Exemplars | None = None,
        follow_ups: bool = True,
        timezone: str | tzinfo | None = None,
    ) -> Callable[[Host], Coach]:
        """Return a factory of coaches: `Mind.open(…, responder=Coach.using(pack="sleep"))`.

        Args:
            pack: the domain: the name of a shipped pack, a folder, or a `Pack`.
            gate: decides when the talker waits for the reasoner: `talker` (the talker decides itself), `belief` (the
                paper's rule), or a `Gate`; "": `talker` if a language model answers, otherwise `belief`.
            exemplars: finds answers to similar questions for the talker's prompt, such as a `Member` of a pool. The
                coach adds nothing from conversations to this source.
            follow_ups: whether follow-ups after an answer are possible. If not (for example in an API that returns one
                answer), an answer waits for the reasoner if the gate wakes the reasoner; with the gate `talker`, only
                if the talker decides to wait.
            timezone: the user's time zone, such as `Europe/Berlin`, unless the user names another one; None: unknown,
                so the coach mentions only hours and weekdays that the user has named.

        Raises:
            UserError: a pack, gate or time zone is unknown or invalid.
        """
        zone = read_zone(timezone) if isinstance(timezone, str) else timezone
        domain = pack if isinstance(pack, Pack) else load(pack)

        def make(host: Host) -> Coach:
            chosen = gate_named(gate, host.models.of("talker")) if isinstance(gate, str) else gate
            return Coach(host, domain, chosen, exemplars, follow_ups, zone)

        return make

    @staticmethod
    def of(mind: Mind) -> Coach:
        """Return the coach of a mind: `Coach.of(mind).belief`, `.plan`.

        Raises:
            InputError: the mind's responder is not a coach.
        """
        if not isinstance(mind.responder, Coach):
            raise InputError("the responder of this mind is not a coach; open it with responder=Coach.using(…)")
        return mind.responder

    @property
    def belief(self) -> Belief[Any]:
        """The current belief about the user; the pack defines its fields."""
        return read_belief(self.pack.name, self._stream.last_version(self.pack.name), self.pack.belief)

    @property
    def plan(self) -> CoachingPlan:
        """The current plan."""
        return plan_from(self._stream.last_version(plan_slot(self.pack)))

    async def begin(self) -> None:
        """Read belief, plan and the state of alarms from the log and memory."""
        stream = self._stream
        await stream.version(self.pack.name)
        await stream.version(plan_slot(self.pack))
        rows = [row.event async for row in read_log(stream.store, stream.key, kinds=[Alarmed.kind])]
        self._answering.alarms.restore(event for event in rows if isinstance(event, Alarmed))

    async def attend(self, text: str, *, one_answer: bool) -> Handling:
        """Ask the gate how to handle an utterance. The belief reasoner is woken only if the gate wants that."""
        await look_over(self.pack, text)
        situation = await self.talker.situation(text)
        first = self._gate.decide(situation)
        alone = one_answer or not self._follow_ups
        skipped = () if first.thinks else (self.pack.name,)
        return Handling(partial(self._answer, situation, first, alone), situation.phase.name, skipped, hold=True)

    def _answer(self, situation: Situation, first: Decision, alone: bool, heard: Logged) -> AnswerRows:
        """Begin the turn at once, even if no caller reads its events."""
        if alone:
            self._alone.add(heard.seq)
        return self._answering.answer(situation, heard, first, one_answer=alone)

    async def close(self) -> None:
        await self._answering.close()

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return the log entries that follow a reasoner's run: judgements of the gate's decisions, and a follow-up.

        A follow-up completes or corrects the talker's answer. There is none if the reasoner has nothing to add, if the
        user has sent a newer utterance, if an alarm's words were the answer, or if the answer is still in progress. If
        nothing can be sent after the answer, the follow-up is logged as `LeftUnsaid`.
        """
        judged: list[Entry] = []
        more = await self._follow_up(context, result) if context.utterances else None
        if context.slot == self.pack.name:
            judged = judge_outcome(result, written, context.utterances)
            self._alone.difference_update(utterance.seq for utterance in context.utterances)
        return [*judged, more] if more else judged

    async def _follow_up(self, context: RunContext, result: RunResult) -> Entry | None:
        stream, heard, now = self._stream, context.utterances[-1].seq, self._stream.clock.now()
        newest = await stream.store.last(stream.key, Heard.kind)
        if self._answering.is_answering(heard) or (newest and heard < newest.seq):
            return None
        work = await stream.store.open_work(stream.key)
        unanswered = [each for each in work if each.cause == heard and each.slot.startswith(ANSWER)]
        if any(not each.is_open_to("", now) for each in unanswered):  # another process answers it
            return None
        said = await self._said(heard)
        if said and said.model == SAFETY:  # an alarm's words are the whole answer
            return None
        answered = said and not said.late and said.model != UNAVAILABLE
        words = result.follow_up or ("" if answered else result.briefing.offer)
        if not words or (said and words in said.text):
            return None
        if heard in self._alone or (said and said.alone) or not self._follow_ups:
            return Entry(LeftUnsaid(text=words, answers=heard), AGENT)
        for each in unanswered:  # the process that was to answer has died: this follow-up becomes the answer
            await stream.store.release_work(stream.key, heard, each.owner, (each.slot,))
        session = context.utterances[-1].session
        record = await build_chat_record(stream, words, AGENT, session)
        return Entry(FollowUp(text=words, answers=heard, record=record.id), AGENT, (record,))

    async def _said(self, heard: int) -> Said | None:
        """Return the answer to an utterance (its log row); None: it has none yet."""
        rows = [await self._stream.store.last(self._stream.key, Said.kind)]
        if not rows[0] or not isinstance(rows[0].event, Said) or rows[0].event.answers != heard:
            rows = [*await self._stream.store.events(self._stream.key, after=heard, kinds=[Said.kind])]
        said = (row.event for row in rows if row and isinstance(row.event, Said))
        return next((each for each in said if each.answers == heard), None)
