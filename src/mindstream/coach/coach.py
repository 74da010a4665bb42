"""`Coach`: a talker, a belief reasoner in the background, and a gate, which decides whether an answer waits for the
reasoner (Christakopoulou 2024)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mindstream import tracing
from mindstream.clock import read_zone
from mindstream.coach.alarms import NOTHING, Alarms, SafetyClassifier, Verdict, is_about_danger
from mindstream.coach.belief.belief import BeliefReasoner, plan_from, plan_slot
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.events import Alarmed, LeftUnsaid
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import SAFETY, look_over
from mindstream.coach.talker import (
    AGENT,
    Decision,
    Gate,
    Gatekeeper,
    Handover,
    Situation,
    Speech,
    Talker,
    decision_entry,
    gate_named,
    judge_outcome,
)
from mindstream.errors import (
    ErasedMeanwhile,
    InputError,
    LeaseLost,
    ModelResting,
    ModelUnavailable,
    SettingsError,
    StorageError,
)
from mindstream.foreign_code import describe, is_ours
from mindstream.log.events import Failed, FollowUp, Heard, Logged, Piece, Reading, Said, Waiting
from mindstream.log.work import ANSWER
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Entry, WorkDone, read_log
from mindstream.memory.stream import Belief, read_belief
from mindstream.minds.mind import Mind
from mindstream.minds.responder import (
    AnswerRows,
    Exchange,
    Handling,
    Host,
    Timeouts,
    build_chat_record,
    end_turns,
    stop_turns,
)
from mindstream.models.model import Cause, Model, calls_for, estimate_tokens
from mindstream.models.reply import answer_in
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.untrusted import is_visible
from mindstream.reasoners.background import POLL_S, Background
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.night import SleepReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult
from mindstream.reasoners.reflect.reflect import ReflectReasoner
from mindstream.tracing import span, tell

T = TypeVar("T")
UNAVAILABLE = "unavailable"
"""Model name that is logged for an answer which only says that no model could answer."""
LEFT, LEFT_TOKENS = 3, 90
"""Maximum number of utterances in a row that are postponed to the belief reasoner's next run, and their maximum total
length in tokens."""
WRITES = 3
"""If the store fails: maximum number of attempts to commit an answer that was already shown."""


@dataclass
class Answer:
    """An answer in progress.

    Attributes:
        heard: the log row of the utterance.
        model: the name of the model that answers, SAFETY for an alarm's words, or UNAVAILABLE.
        decision: the gate's decision.
        handover: reads from the beginning of the talker's reply whether the talker decided to wait for the reasoner.
        one_answer: whether no follow-up is possible after this answer.
        waited: whether the answer waited for the reasoner; late: whether it waited without getting a result.
        words: all text that was shown.
        kept: the part of `words` that is stored in memory; an excuse is not stored.
        verdict: the effect of alarms on the answer; judged: whether the verdict was determined.
        erasures: number of the last erasure when the talker began to read the memory.
        written: whether a commit of the answer was attempted; decided: whether the log has the decision.
        speaking: whether words are being shown, so that no filler phrase is needed.
        reading: whether the talker's model was asked and has not answered yet.
        turn: id of the work item that ends with this answer; None: there is none.
        defers: whether the belief reasoner processes the utterance together with the next one.
    """

    heard: int
    situation: Situation
    model: str
    decision: Decision
    one_answer: bool = False
    waited: bool = False
    late: bool = False
    words: str = ""
    kept: str = ""
    verdict: Verdict = NOTHING
    judged: bool = False
    decided: bool = False
    speaking: bool = False
    reading: bool = False
    erasures: int | None = None
    written: bool = False
    turn: int | None = None
    defers: bool = False
    handover: Handover = field(default_factory=Handover)

    @property
    def hands_over(self) -> bool:
        """Whether the talker decided to wait for the reasoner, and has not waited yet."""
        return self.decision.hands_over and not self.waited and self.handover.way == "wait"


class AnswerLog:
    """Commit answers to the log, and events that say that an answer waits or has failed."""

    def __init__(self, talker: Talker, gate: Gatekeeper, reasoners: Background) -> None:
        self._stream, self._session, self._slot = talker.stream, talker.session, talker.pack.name
        self._gate, self._reasoners = gate, reasoners
        self._left: list[str] | None = None
        """The utterances that are postponed to the reasoner's next run. None: no utterance was answered since the mind
        was opened; the first one is not postponed."""

    async def keep(self, answer: Answer) -> Logged:
        """Commit an answer and store it in memory.

        If the utterance does not need the reasoner, also end the reasoner's work on the utterance. If the utterance is
        postponed to the reasoner's next run, extend the lease of this work.

        If texts of the mind were erased since the talker read them, the words of the answer may repeat erased texts.
        Then only the fact that there was an answer is stored.

        Raises:
            StorageError: the answer cannot be committed.
        """
        first = answer.verdict.first
        answer.written, kept = True, _without_late_thoughts(answer.kept, first)
        records = [await build_chat_record(self._stream, kept, AGENT, self._session)] if is_visible(kept) else []
        needless = await self._needless(answer)
        if answer.turn is None:  # the answer to an urgent alarm does not wait for the turn
            found = await self._reasoners.turns.find(answer.heard)
            answer.turn = found[0] if found else None
        owner = self._reasoners.turns.owner(answer.heard)
        finish = own = None if answer.turn is None else WorkDone((answer.turn,), owner, begun=False)
        if needless is not None and (own is None or own.owner == needless.owner):
            finish = needless if own is None else replace(own, work=(*own.work, *needless.work))
        event = Said(
            text=_without_late_thoughts(answer.words, first),
            answers=answer.heard,
            belief_version=answer.situation.version,
            model=answer.model,
            waited=answer.waited,
            late=answer.late,
            alone=answer.one_answer,
            record=records[0].id if records else "",
        )
        raised = [Entry(each, AGENT) for each in answer.verdict.events(self._session, answer.heard)]
        said = Entry(event, AGENT, tuple(records))
        left = self._reasoners.deferral(answer.heard, self._slot) if answer.defers else None
        for attempt in range(1, WRITES + 2):  # one more attempt in case texts were erased in the meantime
            try:
                entries = (said, *raised, *self._decision(answer, needless))
                logged = (await self._stream.commit(*entries, finish=finish, kept=left, words_read=answer.erasures))[0]
            except ErasedMeanwhile as erased:
                if erased.whole:
                    raise
                # the answer may repeat erased texts, so only the fact that there was an answer is logged
                said = Entry(event.model_copy(update={"text": MARK, "record": ""}), AGENT)
                raised, answer.erasures = [], None
            except StorageError as error:
                if attempt >= WRITES or (isinstance(error, LeaseLost) and finish == own):
                    raise
                needless, finish = None, own  # another process may be doing the reasoner's work: leave it open
                await asyncio.sleep(0.1 * attempt)
            else:
                answer.decided = True
                self._reasoners.turns.claimed.discard(answer.heard)
                return logged
        raise AssertionError("unreachable")

    async def wait(self, answer: Answer, filler: str) -> Logged:
        """Commit the event that says that the answer waits or takes longer, with the filler phrase that is shown."""
        slots, version = (self._slot,) if answer.waited else (), answer.situation.version
        event = Waiting(text=filler, slots=slots, answers=answer.heard, belief_version=version)
        decided = self._decision(answer) if answer.waited else []
        logged = (await self._stream.commit(Entry(event, AGENT), *decided))[0]
        answer.decided = answer.decided or bool(decided)
        return logged

    async def fail(self, failure: BaseException) -> None:
        """Log a failure, or only show it if the store fails, too. A model's outage that is already known is not logged
        again."""
        if isinstance(failure, ModelResting):
            return
        event = Failed(text=describe(failure), where="talker")
        try:
            await self._stream.commit(Entry(event, AGENT))
        except Exception:  # noqa: BLE001 (the store fails as well)
            self._stream.show(event, AGENT)

    async def _needless(self, answer: Answer) -> WorkDone | None:
        """Return the `WorkDone` that ends the belief reasoner's work on an utterance; None if the work is needed, has
        begun, or cannot be read.

        The work is needed at once in these cases:

        - there was an alarm or a hint of danger;
        - the answer waited for the reasoner;
        - the talker's model was unavailable;
        - the gate did not leave the decision to the talker.

        Otherwise the talker's decision counts. `alone`: the work is not needed. `think`: the work is postponed to the
        reasoner's next run (`answer.defers` is set), for at most LEFT utterances in a row, with at most LEFT_TOKENS
        tokens together.
        """
        decision, way = answer.decision, answer.handover.way
        rests = decision.hands_over and decision.thinks and not answer.waited and answer.model != UNAVAILABLE
        rests = rests and not answer.verdict.alarm and not self._gate.hints(answer.situation.text)
        left, needless = self._left, rests and way == "alone"
        if left is not None and rests and way == "think":
            left = [*left, answer.situation.text]
            answer.defers = len(left) <= LEFT and estimate_tokens("\n".join(left)) <= LEFT_TOKENS
        if not needless:
            self._left = left if answer.defers else []
            return None
        with contextlib.suppress(StorageError):
            work = [each for each in await self._reasoners.work() if each.cause == answer.heard]
            ours = tuple(each.id for each in work if each.slot == self._slot and not each.running)
            return WorkDone(ours, self._reasoners.owner, begun=False) if ours else None
        return None

    def _decision(self, answer: Answer, needless: WorkDone | None = None) -> list[Entry]:
        """Return the log entry of the gate's decision; [] if the log has it already."""
        decision = answer.decision
        if answer.decided:
            return []
        if decision.hands_over:
            way = "wait" if answer.waited else answer.handover.way
            thinks = decision.thinks and needless is None and not answer.defers
            decision = replace(decision, thinks=thinks, why=f"{decision.why}: {way}")
        return [decision_entry(decision, self._gate.name, answer.situation.phase.name, answer.heard)]


def _without_late_thoughts(text: str, first: str) -> str:
    """Remove a model's thoughts from a text that was already shown.

    Thoughts without an opening mark can be shown, because they are recognised only when their closing mark arrives.

    Args:
        first: an alarm's words, which precede the words of the model.
    """
    if not first or not text.startswith(first):
        return answer_in(text).strip()
    return f"{first}\n\n{answer_in(text.removeprefix(first)).strip()}".strip()


class Answering:
    """Answer utterances one after the other; only an urgent alarm does not wait for its turn.

    Args:
        reasoners: the background runner of the reasoners; its lock `floor` is held while the talker speaks.
        classifier: the model that detects danger in utterances; None: only patterns and the recogniser do.
    """

    def __init__(
        self, talker: Talker, gate: Gatekeeper, reasoners: Background, timeouts: Timeouts, classifier: Model | None
    ) -> None:
        self._talker, self._gate, self._reasoners = talker, gate, reasoners
        self._floor, self._timeouts = reasoners.floor, timeouts
        self._stream, self._pack = talker.stream, talker.pack
        self._log = AnswerLog(talker, gate, reasoners)
        self.alarms = Alarms(talker.pack, talker.session, listened_to=classifier is not None)
        self._classifier = SafetyClassifier(talker, self.alarms, reasoners.floor, classifier, self._log.fail)
        self._in_turn = asyncio.Lock()  # one answer at a time, in the order of the utterances
        self._answering: set[int] = set()
        self._turns: set[asyncio.Task[None]] = set()
        self._last_word_s = _now_s()
        """Time when a word was last shown, in seconds of the event loop's clock."""

    def is_answering(self, heard: int) -> bool:
        """Return whether an utterance (its log row) is being answered now."""
        return heard in self._answering

    def answer(self, situation: Situation, heard: Logged, first: Decision, *, one_answer: bool = False) -> Exchange:
        """Begin the turn of an utterance in an asyncio task, and return the turn's events.

        An urgent alarm cancels the answers in progress.

        Args:
            first: the gate's decision.
            one_answer: whether no follow-up is possible after the answer.
        """
        if not self._in_turn.locked():  # while an answer runs, the silence began with its last word
            self._last_word_s = _now_s()
        answer, exchange = Answer(heard.seq, situation, self._talker.model.name, first, one_answer), Exchange()
        verdict = self.alarms.judge(situation)
        with calls_for(Cause(rows=(heard.seq,))):
            if verdict.urgent:
                stop_turns(*self._turns)
                turn = asyncio.ensure_future(self._sound(verdict, answer, exchange))
            else:
                turn = asyncio.ensure_future(self._take_turn(answer, exchange))
                self._turns.add(turn)
                self._classifier.begin(situation, heard.seq, turn, one_answer)

        def end(turn: asyncio.Task[None]) -> None:
            self._turns.discard(turn)
            exchange.end(turn)
            if answer.defers:
                self._reasoners.defer(heard.seq, self._pack.name)
            else:
                self._reasoners.release(heard.seq)  # now the reasoners process the utterance and its answer

        turn.add_done_callback(end)
        return exchange.events(heard, turn)

    async def close(self) -> None:
        """Cancel the answers in progress; the parts that were shown are stored."""
        turns = tuple(self._turns)
        stop_turns(*turns)
        await self._classifier.close()
        await end_turns(*turns)

    async def _sound(self, verdict: Verdict, answer: Answer, exchange: Exchange) -> None:
        """Answer with the words of an urgent alarm."""
        self.alarms.keep(verdict)
        answer.verdict, answer.judged, answer.decision = verdict, True, _at_once(answer.decision)
        await self._speak(answer, exchange)

    async def _take_turn(self, answer: Answer, exchange: Exchange) -> None:
        """Wait for the turn of an utterance, then answer it. If `_waits_first` says so, wait for the reasoner before
        the answer. If the talker hands over in its reply, wait for the reasoner after the reply, then answer again."""
        queued, heard = self._in_turn.locked() or self._floor.locked(), answer.heard
        async with self._turn(answer) as waited:
            self._answering.add(heard)
            try:
                with self._filling_silence(answer, exchange):
                    if queued or waited:  # the belief may have changed in the meantime
                        answer.situation = await self._talker.situation(answer.situation.text)
                        answer.decision = replace(self._gate.decide(answer.situation), thinks=answer.decision.thinks)
                    if self.alarms.is_open or self._gate.hints(answer.situation.text):
                        await self._classifier.wait(heard)
                    if self._waits_first(answer):
                        await self._wait(answer, exchange)
                    async with self._floor:
                        await self._speak(answer, exchange)
                    if answer.hands_over:
                        await self._wait(answer, exchange)
                        async with self._floor:
                            await self._speak(answer, exchange)
            finally:
                self._answering.discard(heard)
                # true if the answer was cancelled while it waited for the reasoner
                if is_visible(answer.words) and not answer.written:
                    await self._log.keep(answer)

    @contextlib.asynccontextmanager
    async def _turn(self, answer: Answer) -> AsyncIterator[bool]:
        """Hold the turn of an utterance: first get the turn among all processes, then the turn in this process. Yield
        whether the utterance had to wait for another process.
        """
        talks: dict[str, tracing.Value] = {tracing.AGENT: "talker", tracing.CONVERSATION: self._talker.session}
        began, task = _now_s(), asyncio.current_task()
        assert task is not None
        async with self._reasoners.turns.of(answer.heard, task.cancel) as answer.turn:
            waited = _now_s() - began > POLL_S
            async with self._in_turn:
                with span(tracing.INVOKE_AGENT, "talker", talks) as traced:
                    yield waited
                    tell(traced, {tracing.ANSWERED: tracing.write_answer(answer.words)})

    def _waits_first(self, answer: Answer) -> bool:
        """Return whether the answer waits for the reasoner before it begins. An answer that contains the advice of an
        alarm never waits.

        If no follow-up is possible, any other answer waits, unless the gate leaves the decision to the talker or does
        not wake the reasoner. If a follow-up is possible, the gate decides. If the answer begins or waits for another
        reason than the gate's, `answer.decision` is changed accordingly.
        """
        decision, verdict = answer.decision, self.alarms.judge(answer.situation)
        if verdict.whole or verdict.beside:
            answer.decision = replace(_at_once(decision), hands_over=decision.hands_over)
            return False
        if answer.one_answer and decision.thinks and not decision.hands_over and not decision.waits:
            answer.decision = replace(decision, why=f"nothing can follow the answer; {decision.why}")
            return True
        return decision.thinks and decision.waits

    async def _wait(self, answer: Answer, exchange: Exchange) -> None:
        """Show a filler phrase and wait for the reasoner.

        Set `answer.late` if the reasoner has no result before the deadline, or if an error occurs. Errors are logged.
        """
        deadline_s = self._timeouts.thinking_s if answer.one_answer else self._timeouts.deadline_s
        answer.waited, answer.speaking = True, False
        answer.decision = replace(answer.decision, waits=True)
        try:
            await exchange.show(await self._log.wait(answer, await self._talker.filler(answer.situation.text)))
            self._reasoners.release(answer.heard)
            try:
                async with asyncio.timeout(deadline_s):
                    settled = self._reasoners.settled(answer.heard, [self._pack.name])
                    await self._classifier.until_danger(answer.heard, settled)
            except TimeoutError:
                answer.late = True
        except BaseException as error:  # whatever has failed, the user gets an answer
            if is_ours(error):
                raise
            await self._log.fail(error)
            answer.late = True

    async def _speak(self, answer: Answer, exchange: Exchange) -> None:
        """Show the alarm's words or the talker's answer, and commit the shown part, also after an error."""
        said: Logged | None = None
        try:
            first = self._judge(answer)
            if answer.verdict.whole:
                answer.model = SAFETY
                for line in answer.verdict.whole.splitlines(keepends=True):
                    await self._say(answer, line, exchange)
            else:
                await self._talk(answer, first, exchange)
        finally:
            if is_visible(answer.words) and not answer.hands_over:
                said = await self._log.keep(answer)
        if said:
            await exchange.show(said)

    async def _talk(self, answer: Answer, first: str, exchange: Exchange) -> None:
        """Show an alarm's first words, then the talker's answer or an excuse, then an alarm's question."""
        if first and not self._in_own_words(answer.verdict):
            await self._say(answer, f"{first}\n\n", exchange)
            gap = ""
        else:
            gap = "\n\n" if answer.words else ""
        try:
            speech = await self._in_time(self._ask_talker(answer))
            async with contextlib.aclosing(speech.parts) as parts:
                while not speech.ended and (part := await self._in_time(anext(parts, None))) is not None:
                    if words := speech.read(part):
                        self._note_reply(answer)
                        await self._say(answer, gap + words, exchange)
                        gap = ""
            words = speech.finish()
            self._note_reply(answer)
            if words:
                await self._say(answer, gap + words, exchange)
            self._talker.failures = 0
        except BaseException as error:  # whatever has failed, the user gets an excuse
            if is_ours(error):
                raise
            answer.model, answer.handover = UNAVAILABLE, Handover()
            await self._log.fail(error)
            excuse = self._talker.excuse(error, answer.situation.text)
            await self._say(answer, f"\n{excuse}" if answer.words else excuse, exchange, kept=False)
        if answer.hands_over:
            return
        if answer.one_answer:  # nothing can be shown after this answer, so wait for the safety classifier's result
            await self._classifier.wait(answer.heard)
            late = self._judge(answer)
            if more := answer.verdict.whole or late:
                await self._say(answer, f"\n\n{more}", exchange)
        if answer.verdict.ask:
            await self._say(answer, f"\n\n{answer.verdict.ask}", exchange)

    async def _say(self, answer: Answer, words: str, exchange: Exchange, *, kept: bool = True) -> None:
        """Show words to the user; `kept`: whether they are also stored in memory."""
        self._last_word_s, answer.speaking = _now_s(), True
        answer.words += words
        answer.kept += words if kept else ""
        await exchange.show(self._stream.show(Piece(text=words, answers=answer.heard), AGENT))

    def _in_own_words(self, verdict: Verdict) -> bool:
        """Return whether the model gives an alarm's advice in its own words.

        That is so for an alarm that does not stop the conversation, if there is a model.
        """
        return verdict.beside is not None and self._talker.model.name != Rules.name

    def _judge(self, answer: Answer) -> str:
        """Update the answer's verdict on alarms, and return an alarm's words for the beginning of the answer.

        The result is "" if there are no such words, or if an earlier call has returned them.
        """
        found = self._classifier.verdict(answer.heard, answer.situation)
        if not answer.judged:
            answer.verdict, answer.judged = found or self.alarms.judge(answer.situation), True
        elif found and (found.whole or (found.ask and not answer.verdict.ask)):
            answer.verdict = found
        else:
            return ""
        self.alarms.keep(answer.verdict)
        return answer.verdict.first

    async def _ask_talker(self, answer: Answer) -> Speech:
        """Ask the talker, and return the answer, of which nothing has been read yet.

        If the answer has waited or the belief has changed, first renew the situation.
        """
        decision, verdict = answer.decision, answer.verdict
        if answer.waited or self._talker.is_outdated(answer.situation):
            answer.situation = await self._talker.situation(answer.situation.text)
        if answer.erasures is None:
            answer.erasures = answer.situation.erasures
        answer.handover, answer.reading = Handover(may_wait=decision.hands_over and not answer.waited), True
        words = {"called_for" if self._in_own_words(verdict) else "before": verdict.first}
        return await self._talker.speak(
            answer.situation,
            answer.heard,
            answer.handover,
            decides=decision.hands_over,
            late=answer.late,
            thought=answer.waited and not answer.late,
            unsaid=await self._talker.unsaid() if answer.one_answer else "",
            one_answer=answer.one_answer,
            asked_after=verdict.ask,
            **words,
        )

    async def _in_time(self, coming: Awaitable[T]) -> T:
        """Wait for a result of the talker's model (`coming`), and return it.

        Raises:
            ModelUnavailable: the model was silent for too long.
        """
        silence_s = self._timeouts.silence_s
        try:
            async with asyncio.timeout(silence_s):
                return await coming
        except TimeoutError:
            raise ModelUnavailable(f"{self._talker.model.name} sent no output for {silence_s:g} seconds") from None

    def _note_reply(self, answer: Answer) -> None:
        """Note that the talker's model, perhaps a fallback, has answered."""
        answer.model, answer.reading = self._talker.model.name, False

    async def _say_longer(self, answer: Answer) -> Logged:
        """Show a phrase that says that the answer takes longer, even if it cannot be logged."""
        move = "wait_longer" if answer.waited else "a_moment"
        try:
            return await self._log.wait(answer, await self._talker.filler(answer.situation.text, move))
        except BaseException as error:  # the phrase is shown whatever has failed
            if is_ours(error):
                raise
            words = self._talker.phrase(move, answer.situation.text)
            return self._stream.show(Waiting(text=words, slots=(), answers=answer.heard, belief_version=0), AGENT)

    @contextlib.contextmanager
    def _filling_silence(self, answer: Answer, exchange: Exchange) -> Iterator[None]:
        """Within the block, show at intervals that the answer takes longer, until words of the answer are shown.

        While the model is reading the prompt, only the first interval shows a phrase. Later intervals show `Reading`
        events.
        """

        async def fill() -> None:
            was_said = False
            while True:
                quiet_s = 0.0 if answer.speaking else _now_s() - self._last_word_s
                if quiet_s < self._timeouts.filler_s:
                    await asyncio.sleep(self._timeouts.filler_s - quiet_s)
                    continue
                self._last_word_s = _now_s()
                if was_said and answer.reading:
                    exchange.put(self._stream.show(Reading(model=answer.model, answers=answer.heard), AGENT))
                else:
                    was_said = was_said or answer.reading
                    exchange.put(await self._say_longer(answer))

        filling = list[asyncio.Task[None]]()
        first_s = max(0.0, self._timeouts.filler_s - (_now_s() - self._last_word_s))
        # a timer starts the task, because most answers begin before the first phrase is due
        begin = asyncio.get_running_loop().call_later(first_s, lambda: filling.append(asyncio.ensure_future(fill())))
        try:
            yield
        finally:
            begin.cancel()
            for task in filling:
                task.cancel()


def _at_once(decision: Decision) -> Decision:
    return replace(decision, waits=False, hands_over=False, why=f"an alarm; {decision.why}")


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def safety_model(models: Models) -> Model | None:
    """Return the model of the role `safety`, which classifies utterances; None without a language model."""
    model = models.of("safety")
    return None if model.name == Rules.name else model


def _reasoners(models: Models, pack: Pack, thinking_s: float, zone: tzinfo | None) -> list[Reasoner]:
    """Return the belief reasoner, and the reasoners that the pack names.

    The belief reasoner also notes facts about the user if it has a language model. If it has none, but the role `facts`
    has one, another reasoner is added for facts.
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
            follow_ups: whether follow-ups after an answer are possible. Set it to False, for example, in an API that
                returns one answer. Then an answer waits for the reasoner if the gate wakes the reasoner; with the gate
                `talker`, it waits only if the talker decides to wait.
            timezone: the user's time zone, such as `Europe/Berlin`, until the user names another one. None: unknown;
                the coach mentions only hours and weekdays that the user has named.

        Raises:
            UserError: a pack or time zone is unknown or invalid. (An unknown gate is refused when a mind is opened.)
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
        """Begin to answer an utterance at once, even if no caller reads the returned rows.

        `alone`: whether no follow-up is sent after the answer.
        """
        if alone:
            self._alone.add(heard.seq)
        return self._answering.answer(situation, heard, first, one_answer=alone)

    async def close(self) -> None:
        await self._answering.close()

    async def speak_up(self, context: RunContext, result: RunResult, written: Sequence[Entry]) -> Sequence[Entry]:
        """Return the log entries that follow a reasoner's run: judgements of the gate's decisions, and a follow-up.

        A follow-up completes or corrects the talker's answer, or replaces a missing answer. There is no follow-up if

        - the reasoner has nothing to add;
        - the user has sent a newer utterance;
        - an alarm's words were the answer;
        - the answer is still in progress.

        If nothing can be sent after the answer, the follow-up is logged as `LeftUnsaid`.
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
        record = await build_chat_record(stream, words, AGENT, context.utterances[-1].session)
        return Entry(FollowUp(text=words, answers=heard, record=record.id), AGENT, (record,))

    async def _said(self, heard: int) -> Said | None:
        """Return the answer to the utterance in the log row `heard`; None: there is no answer yet."""
        rows = [await self._stream.store.last(self._stream.key, Said.kind)]
        if not rows[0] or not isinstance(rows[0].event, Said) or rows[0].event.answers != heard:
            rows = [*await self._stream.store.events(self._stream.key, after=heard, kinds=[Said.kind])]
        said = (row.event for row in rows if row and isinstance(row.event, Said))
        return next((each for each in said if each.answers == heard), None)
