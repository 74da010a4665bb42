"""Commits an answer together with the alarms, the decision and the work that belong to it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace

from mindstream.coach.alarms import NOTHING, Verdict
from mindstream.coach.gates.gate import Decision, Gatekeeper, Situation
from mindstream.coach.gates.outcomes import decision_entry
from mindstream.coach.handover import Handover
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import ErasedMeanwhile, LeaseLost, ModelResting, StorageError
from mindstream.foreign_code import describe
from mindstream.log.events import Failed, Logged, Said, Waiting
from mindstream.memory.store.redaction import MARK
from mindstream.memory.store.store import Entry, WorkDone
from mindstream.models.providers.thoughts import answer_in
from mindstream.reasoners.background import Background
from mindstream.reasoners.conversation import build_chat_record

UNAVAILABLE = "unavailable"
"""Model name of an answer that only says that no model could answer."""
WRITES = 3
"""Maximum attempts to commit an answer that was shown."""


@dataclass
class Answer:
    """An answer in progress.

    Attributes:
        heard: the log row of the utterance.
        model: who found the words.
        decision: the gate's decision or, once the answer begins, the Talker's (`handover`).
        one_answer: nothing can follow it.
        words: everything that was shown.
        kept: the part that is remembered; an excuse is not.
        verdict: the alarm's part of the answer; `judged`: it was determined.
        erasures: number of the last erasure when the Talker began to read.
        written: a commit was attempted. decided: the log has the decision.
        speaking: words are coming, so silence need not be filled.
        reading: the Talker's model was asked and has said nothing yet.
        turn: id of the work item that ends with this answer; None: there is none.
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
    handover: Handover = field(default_factory=Handover)

    @property
    def hands_over(self) -> bool:
        """Whether the Talker decided to wait and has not waited yet."""
        return self.decision.hands_over and not self.waited and self.handover.way == "wait"


class AnswerLog:
    """Commits answers of a Talker, and that they wait or fail."""

    def __init__(self, talker: Talker, gate: Gatekeeper, reasoners: Background) -> None:
        self._stream, self._session, self._slot = talker.stream, talker.session, talker.pack.name
        self._gate, self._reasoners = gate, reasoners
        self._has_thought = False
        """Whether the utterance before is thought about; the first one of a conversation always is."""

    async def keep(self, answer: Answer) -> Logged:
        """Commit and remember an answer; end the Reasoner's work on the utterance if it needs no thought.

        Raises:
            StorageError: it cannot be committed.
        """
        first = answer.verdict.first
        answer.written, kept = True, _without_late_thoughts(answer.kept, first)
        records = [await build_chat_record(self._stream, kept, AGENT, self._session)] if kept else []
        needless = await self._needless(answer)
        if answer.turn is None:  # an alarm takes no turn
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
        for attempt in range(1, WRITES + 2):  # once more if words were erased in the meantime
            try:
                entries = (said, *raised, *self._decision(answer, needless))
                logged = (await self._stream.commit(*entries, finish=finish, words_read=answer.erasures))[0]
            except ErasedMeanwhile as erased:
                if erased.whole:
                    raise
                # the answer may repeat erased words: only the fact that there was an answer stays
                said = Entry(event.model_copy(update={"text": MARK, "record": ""}), AGENT)
                raised, answer.erasures = [], None
            except StorageError as error:
                if attempt >= WRITES or (isinstance(error, LeaseLost) and finish == own):
                    raise
                needless, finish = None, own  # another process may be thinking about it: leave that work open
                await asyncio.sleep(0.1 * attempt)
            else:
                answer.decided = True
                self._reasoners.turns.claimed.discard(answer.heard)
                return logged
        raise AssertionError("unreachable")

    async def wait(self, answer: Answer, filler: str) -> Logged:
        """Commit that the answer waits or takes longer, with the words shown in the meantime."""
        event = Waiting(text=filler, slots=(self._slot,), answers=answer.heard, belief_version=answer.situation.version)
        decided = self._decision(answer) if answer.waited else []
        logged = (await self._stream.commit(Entry(event, AGENT), *decided))[0]
        answer.decided = answer.decided or bool(decided)
        return logged

    async def fail(self, failure: BaseException) -> None:
        """Log a failure, or only show it if the store fails. A model known to be unavailable is not logged again."""
        if isinstance(failure, ModelResting):
            return
        event = Failed(text=describe(failure), where="talker")
        try:
            await self._stream.commit(Entry(event, AGENT))
        except Exception:  # noqa: BLE001 (the store fails as well)
            self._stream.show(event, AGENT)

    async def _needless(self, answer: Answer) -> WorkDone | None:
        """Return the end of the belief reasoner's work on an utterance that needs no thought of its own.

        That is an utterance that the Talker answers alone. It is also every second one of those that do not wait:
        the Reasoner sees it with the next. An alarm or a hint of danger is always thought about.
        """
        decision, way = answer.decision, answer.handover.way
        rests = decision.hands_over and decision.thinks and not answer.waited and answer.model != UNAVAILABLE
        rests = rests and (way == "alone" or (way == "think" and self._has_thought))
        rests = rests and not answer.verdict.alarm and not self._gate.hints(answer.situation.text)
        self._has_thought = not rests
        if rests:
            with contextlib.suppress(StorageError):
                work = [each for each in await self._reasoners.work() if each.cause == answer.heard]
                ours = tuple(each.id for each in work if each.slot == self._slot and not each.running)
                return WorkDone(ours, self._reasoners.owner, begun=False) if ours else None
        return None

    def _decision(self, answer: Answer, needless: WorkDone | None = None) -> list[Entry]:
        """Return the decision, to be logged once, with the first commit that answers."""
        decision = answer.decision
        if answer.decided:
            return []
        if decision.hands_over:
            way = "wait" if answer.waited else answer.handover.way
            decision = replace(decision, thinks=decision.thinks and needless is None, why=f"{decision.why}: {way}")
        return [decision_entry(decision, self._gate.name, answer.situation.phase.name, answer.heard)]


def _without_late_thoughts(text: str, first: str) -> str:
    """Return the words without thoughts that were shown because their closing mark came late.

    Args:
        first: an alarm's words, which precede those of the model.
    """
    if not first or not text.startswith(first):
        return answer_in(text).strip()
    return f"{first}\n\n{answer_in(text.removeprefix(first)).strip()}".strip()
