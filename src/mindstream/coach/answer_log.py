"""What a Talker has said is committed, with what belongs to it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace

from mindstream.coach.alarms import Verdict
from mindstream.coach.gates.gate import Decision, Gatekeeper, Situation
from mindstream.coach.gates.outcomes import decision_entry
from mindstream.coach.handover import Handover
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import ErasedMeanwhile, LeaseLost, ModelResting, StorageError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed, Logged, Said, Waiting
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.models.providers.thoughts import answer_in
from mindstream.reasoners.background import Background

UNAVAILABLE = "unavailable"
"""Named as the model of an answer that says that there is none: a model was asked and failed."""


@dataclass
class Answer:
    """What is being said to an utterance.

    Attributes:
        model: who found the words.
        decision: what was decided of the utterance, by the gate or, as it began, by the Talker (`handover`).
        one_answer: nothing can follow it.
        words: all that was shown.
        kept: what of it is remembered.
        verdict: what an alarm adds to it; None before that was judged.
        erasures: the number of the last erasure when the Talker began to read for it.
        written: it was tried to keep it. decided: what was decided stands in the log.
        speaking: words of it are coming, so that silence need not be filled.
        turn: the work that it is, which ends with it; None: it is none.
        reading: the Talker's model has been asked and has said nothing yet.
    """

    heard: int
    model: str
    decision: Decision
    one_answer: bool = False
    waited: bool = False
    late: bool = False
    words: str = ""
    kept: str = ""
    verdict: Verdict | None = None
    decided: bool = False
    speaking: bool = False
    reading: bool = False
    erasures: int | None = None
    written: bool = False
    turn: int | None = None
    handover: Handover = field(default_factory=Handover)

    @property
    def hands_over(self) -> bool:
        """The Talker has said that it waits, and has not waited yet."""
        return self.decision.hands_over and not self.waited and self.handover.way == "wait"


class Aside(str):
    """Words that are shown and not remembered: that a model could not be reached says nothing of the user."""


WRITES = 3
"""So often an answer that was shown is tried to be kept."""


class AnswerLog:
    """Commits what a talker has said, with what belongs to it."""

    def __init__(self, talker: Talker, gate: Gatekeeper, reasoners: Background) -> None:
        self._stream, self._session, self._slot = talker.stream, talker.session, talker.pack.name
        self._gate, self._reasoners = gate, reasoners
        self._has_thought = False
        """The utterance before was thought about; the first of a talk always is."""

    async def keep(self, answer: Answer, situation: Situation) -> Logged:
        """Commit what was said, and remember it; where nothing in it needs thought, the work on it ends with that.

        Raises:
            StorageError: it cannot be kept.
        """
        first = answer.verdict.first if answer.verdict else ""
        answer.written, kept = True, _without_late_thoughts(answer.kept, first)
        new = RecordDraft(text=kept, kind="chat", by=AGENT, episode=self._session, data={"by_user": False})
        records = await self._stream.build_records([new]) if kept else []
        needless = await self._needless(answer, situation)
        if answer.turn is None:  # an alarm takes no turn
            found = await self._reasoners.turns.find(answer.heard)
            answer.turn = found[0] if found else None
        finish = self._ends(answer, needless)
        event = Said(
            text=_without_late_thoughts(answer.words, first),
            answers=answer.heard,
            belief_version=self._belief_version(),
            model=answer.model,
            waited=answer.waited,
            late=answer.late,
            alone=answer.one_answer,
            record=records[0].id if records else "",
        )
        raised = answer.verdict.events(self._session, answer.heard) if answer.verdict else []
        said = Entry(event, AGENT, tuple(records))
        for attempt in range(1, WRITES + 2):  # once more where words were erased meanwhile
            entries = [said, *(Entry(each, AGENT) for each in raised), *self._decision(answer, situation, needless)]
            try:
                logged = (await self._stream.commit(*entries, finish=finish, words_read=answer.erasures))[0]
            except ErasedMeanwhile as erased:
                if erased.whole:
                    raise
                # it may tell what was forgotten while it was said: what stays is that there was an answer
                said = Entry(event.model_copy(update={"text": MARK, "record": ""}), AGENT)
                raised, answer.erasures = [], None
            except StorageError as error:
                if attempt >= WRITES or (isinstance(error, LeaseLost) and finish == self._turn_of(answer)):
                    raise
                needless, finish = None, self._turn_of(answer)  # another process may be at it: then it is thought about
                await asyncio.sleep(0.1 * attempt)
            else:
                answer.decided = True
                self._reasoners.turns.claimed.discard(answer.heard)
                return logged
        raise AssertionError("unreachable")

    async def wait(self, answer: Answer, situation: Situation, filler: str) -> Logged:
        """Commit that the answer waits, or takes its time, and what is said meanwhile."""
        event = Waiting(text=filler, slots=(self._slot,), answers=answer.heard, belief_version=self._belief_version())
        decided = self._decision(answer, situation) if answer.waited else []
        logged = (await self._stream.commit(Entry(event, AGENT), *decided))[0]
        answer.decided = answer.decided or bool(decided)
        return logged

    async def fail(self, failure: BaseException) -> None:
        """Commit that something failed, or show it where that cannot be; that a model rests is no news."""
        if isinstance(failure, ModelResting):
            return
        event = Failed(text=describe(failure), where="talker")
        try:
            await self._stream.commit(Entry(event, AGENT))
        except Exception:  # noqa: BLE001 (a failure that cannot be logged is shown)
            self._stream.show(event, AGENT)

    def _ends(self, answer: Answer, needless: WorkDone | None) -> WorkDone | None:
        """Return what work ends with an answer: itself, and what need not be thought about."""
        turn = self._turn_of(answer)
        if turn is None or needless is None or turn.owner != needless.owner:
            return turn or needless
        return replace(turn, work=(*turn.work, *needless.work))

    def _turn_of(self, answer: Answer) -> WorkDone | None:
        owner = self._reasoners.turns.owner(answer.heard)
        return None if answer.turn is None else WorkDone((answer.turn,), owner, begun=False)

    async def _needless(self, answer: Answer, situation: Situation) -> WorkDone | None:
        """Return the end of the belief reasoner's work on an utterance that it need not think about by itself.

        That is one that the Talker answers alone; of others that do not wait, each one after one that was thought
        about: it is seen with the next.
        """
        rests = self._rests(answer) and not (answer.verdict and answer.verdict.alarm)
        rests = rests and not self._gate.hints(situation.text)
        self._has_thought = not rests
        if not rests:
            return None
        with contextlib.suppress(StorageError):
            work = [each for each in await self._reasoners.work() if each.cause == answer.heard and not each.running]
            ours = tuple(each.id for each in work if each.slot == self._slot)
            return WorkDone(ours, self._reasoners.owner, begun=False) if ours else None
        return None

    def _rests(self, answer: Answer) -> bool:
        decision = answer.decision
        if not decision.hands_over or not decision.thinks or answer.waited or answer.model == UNAVAILABLE:
            return False
        return answer.handover.way == "alone" or (answer.handover.way == "think" and self._has_thought)

    def _decision(self, answer: Answer, situation: Situation, needless: WorkDone | None = None) -> list[Entry]:
        """Return what was decided, once: it is logged with the first commit that answers."""
        decision = answer.decision
        if answer.decided:
            return []
        if decision.hands_over:
            way = "wait" if answer.waited else answer.handover.way
            decision = replace(decision, thinks=decision.thinks and needless is None, why=f"{decision.why}: {way}")
        return [decision_entry(decision, self._gate.name, situation.phase.name, answer.heard)]

    def _belief_version(self) -> int:
        """Return the version of the belief that was read last, which is what an answer is spoken from."""
        record = self._stream.last_version(self._slot)
        return (record.version or 0) if record else 0


def _without_late_thoughts(text: str, first: str) -> str:
    """Return the words that were said, without thoughts that were shown before their closing mark came.

    Args:
        first: the words of an alarm that come before those of the model.
    """
    if not first or not text.startswith(first):
        return answer_in(text).strip()
    return f"{first}\n\n{answer_in(text.removeprefix(first)).strip()}".strip()
