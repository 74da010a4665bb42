"""Alarms in a conversation, such as danger to life.

A sure alarm is answered with the alarm's words. After a hint, the user is asked a question, which is repeated in later
answers until the user answers it. If only a model or the recogniser suggested danger, the number of repetitions is
limited (UNPROVEN).
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from mindstream.coach.events import Alarmed, Basis, Strength
from mindstream.coach.packs.load import phrases
from mindstream.coach.packs.pack import Alarm, Pack, all_texts, in_language
from mindstream.coach.packs.safety import Raised, find_alarm, find_hint, find_raised, recognises_danger
from mindstream.coach.talker import AGENT, Situation, Talker
from mindstream.errors import ModelUnavailable, StorageError
from mindstream.foreign_code import ForeignFailure, ForeignTask, Overdue
from mindstream.log.events import FollowUp
from mindstream.memory.store.store import Entry
from mindstream.minds.responder import build_chat_record
from mindstream.models.decide import LETTERS, YES_NO, Question, decide
from mindstream.models.model import Model
from mindstream.models.prompt import rule
from mindstream.text.words import Language, language_of
from mindstream.together import cancel_all

ANSWERS = (
    "yes, it is so, or it was",
    "no, it is not so",
    "takes it back: it was not meant like that",
    "no answer to it, and danger all the same",
    "no answer to it, and no danger",
)
AFFIRMS, DENIES, TAKES_BACK, DANGER, NO_MESSAGE = ANSWERS
LIKELY = 0.9


class SuggestsDanger(Question):
    """Does the newest message suggest danger to life?

    `open_question`: the unanswered question about danger; if given, the answer is one of ANSWERS.
    """

    role: ClassVar[str] = "safety"

    utterance: str
    said: str = ""
    open_question: str = ""

    def answers(self) -> tuple[str, ...]:
        return ANSWERS if self.open_question else YES_NO

    def marks(self) -> tuple[str, ...]:
        return tuple(LETTERS[: len(ANSWERS)]) if self.open_question else YES_NO


@rule(SuggestsDanger)
def answer_by_recogniser(ask: SuggestsDanger) -> dict[str, float]:
    """Answer without a model: by the recogniser of danger."""
    likely = LIKELY if recognises_danger(ask.utterance) else 1 - LIKELY
    yes, no = (DANGER, NO_MESSAGE) if ask.open_question else YES_NO
    return dict.fromkeys(ask.answers(), 0.0) | {yes: likely, no: 1 - likely}


YES = re.compile(
    r"^\W*(?:(?:well|honestly)\W+)?(?:(?:yes|yeah|yep)\b"
    r"|(?:i (?:do|have|am|guess so|think so)|sometimes|often|at times|maybe)"
    r"(?:\W*$|\W+(?:yes|yeah|i do|i have|sometimes)\b))"
    r"|^\W*(?:是|嗯|对|会|有过?|有时候?|有?想过|经常|偶尔|可能|也许)[会想有过的吧啊]*(?:\W|$)",
    re.IGNORECASE,
)
NO = re.compile(
    r"^\W*(?:oh\W+)?(?:no|nope|nah|never|not (?:really|at all|that))\b|^\W*(?:不是?|没有?|不会)[的过想啊]*(?:\W|$)",
    re.IGNORECASE,
)
BACK = re.compile(
    r"\b(?:did ?n[o']?t|do ?n[o']?t|did not|do not|never) mean\b|\bnot what i mean|\b(?:jok|kidding|figure of speech)"
    r"|不是(?:这|那)?个?意思|没有?(?:这|那)个?意思|开玩笑|说着玩",
    re.IGNORECASE,
)
"""YES, NO, BACK: patterns of unambiguous answers to a question about danger: yes, no, "I did not mean it"."""
GAPS, UNPROVEN = (0, 2, 4), 2
"""GAPS: number of answers after which an unanswered question about danger is repeated. The n-th number applies after
the question was asked n times, and the last number also after that. UNPROVEN: maximum number of times that a question
is asked if no pattern of danger matched, so that only a model or the recogniser suggested danger."""
HARMLESS = ("no", DENIES, TAKES_BACK, NO_MESSAGE)
"""Answers of the safety classifier that mean no danger."""


def is_about_danger(pack: Pack, text: str) -> bool:
    """Return whether an utterance raises an alarm that stops the conversation, or hints at an alarm.

    No facts are noted from such an utterance.
    """
    sure = find_alarm(pack, text)
    return bool((sure and sure.stops) or find_hint(pack, text))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The effect of alarms on an answer.

    Attributes:
        alarm: the alarm; None: there is none, apart from `beside`.
        strength, basis: how certain the alarm is, and what detected it.
        whole: an alarm's words that are the whole answer; "": the talker answers.
        first, ask: words that come before the talker's answer, and a question that comes after it.
        urgent: whether a life may be in danger; the answer then does not wait for its turn.
        beside: an additional alarm that does not stop the conversation; its words are `first`.
    """

    alarm: Alarm | None = None
    strength: Strength = "sure"
    basis: Basis = "words"
    whole: str = ""
    first: str = ""
    ask: str = ""
    urgent: bool = False
    beside: Raised | None = None

    def events(self, session: str, heard: int) -> list[Alarmed]:
        """Return the log events of the verdict; `heard`: the log row of the utterance."""
        told: list[tuple[Alarm | None, Strength, Basis, bool]] = [
            (self.alarm, self.strength, self.basis, bool(self.whole or self.ask or (self.first and not self.beside)))
        ]
        if self.beside:
            told.insert(0, (self.beside.alarm, "sure", self.beside.basis, bool(self.first)))
        return [
            Alarmed(session=session, answers=heard, alarm=alarm.id, strength=strength, basis=basis, spoken=spoken)
            for alarm, strength, basis, spoken in told
            if alarm
        ]


NOTHING = Verdict()


class Alarms:
    """Decide about alarms for each utterance, and track which alarms' words were shown and which questions were asked.

    A question about danger stays open across utterances and sessions until it is answered.
    """

    def __init__(self, pack: Pack, session: str, *, listened_to: bool = False) -> None:
        """Start without any alarms.

        Args:
            listened_to: whether a model classifies the answers to questions about danger; then patterns recognise only
                a clear yes.
        """
        self._pack, self.session, self._listened_to = pack, session, listened_to
        self._told: Counter[str] = Counter()
        """Number of times that each alarm's words were shown in this session."""
        self._asked: set[tuple[str, Basis]] = set()
        """Hints that the user was asked about in this session, as alarm id and basis."""
        self._taken_back = 0
        """Number of times that an alarm was taken back in this session."""
        self._open: tuple[Alarm, Basis] | None = None
        """The alarm whose question is unanswered."""
        self._put, self._since = 0, 0
        """Number of times that the open question was asked, and number of answers given since then."""
        self._last: Alarm | None = None
        """The alarm that the user may take back (again): the alarm whose words were the last answer, or the alarm that
        was taken back just before the last answer."""

    @property
    def question(self) -> str:
        """The open question, or else the words of the alarm in the last answer; "" if there are none."""
        alarm = self._open[0] if self._open else self._last
        texts = alarm and (alarm.hint_ask if self._open else alarm.say)
        return in_language(texts, "en") if texts else ""

    @property
    def is_open(self) -> bool:
        """Whether a question about danger is unanswered."""
        return self._open is not None

    def restore(self, events: Iterable[Alarmed]) -> None:
        """Restore the state from the `Alarmed` events of all sessions, oldest first."""
        for event in events:
            self._count(event)
        self._since = GAPS[-1]  # so that no GAP delays an open question when the user returns

    def judge(self, situation: Situation, read: str | None = None) -> Verdict:
        """Return the verdict on an utterance, from its words and from earlier questions. Do not change the state.

        Args:
            read: the safety classifier's answer (one of ANSWERS or YES_NO); None: there is none.
        """
        text, language = situation.text, language_of(situation.text, self._pack.languages)
        raised = find_raised(self._pack, text)
        alarm = raised.alarm if raised else None
        if alarm and alarm.stops:
            return Verdict(alarm, whole=self._words(alarm, language), urgent=True)
        if answer := self._answer(situation, language, read):
            return answer
        first = in_language(alarm.say, language) if alarm and not self._told[alarm.id] else ""
        if hint := self._hint(text, read):
            silent = (hint.alarm.id, hint.basis) in self._asked or self._told[hint.alarm.id]
            ask = "" if silent else in_language(hint.alarm.hint_ask, language)
            if not (silent and self._is_due):
                return Verdict(hint.alarm, "hint", hint.basis, first=first, ask=ask, beside=raised)
        if self._open and (self._is_due or (read is None and YES.search(text))):
            open_, basis = self._open
            return Verdict(open_, "hint", basis, first=first, ask=self._again(open_, language), beside=raised)
        return Verdict(beside=raised, first=first)

    def agree(self, alarm: Alarm, text: str) -> Verdict | None:
        """Return the verdict on an alarm that a model suggests.

        If the user's words hint at danger as well, the verdict is sure. Otherwise the verdict asks the alarm's
        question. If the alarm has no question, or if its question or words were used before in this session, return
        None instead.
        """
        language = language_of(text, self._pack.languages)
        if find_hint(self._pack, text):
            return Verdict(alarm, basis="model", whole=self._words(alarm, language), urgent=True)
        ask = in_language(alarm.hint_ask, language)
        known = self._told[alarm.id] or any(alarm.id == asked for asked, _ in self._asked)
        return None if known or not ask else Verdict(alarm, "hint", "model", ask=ask)

    def refute(self, text: str, read: str) -> Verdict | None:
        """Return the verdict that takes back the open question about danger; None: the question stays open.

        The question is taken back if only the recogniser hinted at danger, and the classifier's later answer (`read`)
        says that there is no danger. The coach then does not ask the question again. If the user answers it
        nevertheless, the user's answer counts.
        """
        hint = find_hint(self._pack, text)
        if read == "no" and self._open and self._open[1] == "recogniser" and hint and hint.basis == "recogniser":
            return Verdict(self._open[0], "taken_back", "model")
        return None

    def keep(self, verdict: Verdict) -> None:
        """Update the state for an answer that is given with this verdict."""
        self._since += 1
        told = (verdict.strength == "taken_back" and verdict.basis == "answer") or (
            verdict.whole and verdict.strength == "sure"
        )
        self._last = verdict.alarm if told else None
        for event in verdict.events(self.session, 0):
            self._count(event)

    def _count(self, event: Alarmed) -> None:
        """Update the state by an event. Events of other sessions affect only the open question."""
        if event.strength == "hint" and event.spoken:
            alarm = next((each for each in self._pack.alarms if each.id == event.alarm), None)
            before = self._open[1] if self._open else ""
            proven = event.basis == "words" and before != "words"  # no longer a guess: `_put` begins again at 1
            self._put = self._put + 1 if before and not proven else 1
            basis: Basis = "words" if before == "words" else event.basis
            self._open, self._since = (alarm, basis) if alarm else None, 0
        elif event.strength == "taken_back" and event.basis == "model":
            self._put = UNPROVEN
        elif event.strength == "taken_back" or (self._open and event.spoken and event.alarm == self._open[0].id):
            self._open = None
        if event.session != self.session:
            return
        if event.strength == "taken_back":
            self._taken_back += event.basis == "answer"
        elif event.spoken and event.strength == "hint":
            self._asked.add((event.alarm, event.basis))
        elif event.spoken:
            self._told[event.alarm] += 1

    @property
    def _is_due(self) -> bool:
        """Whether the open question has to be repeated now."""
        if self._open is None or (self._open[1] != "words" and self._put >= UNPROVEN):
            return False
        return self._since >= GAPS[min(self._put, len(GAPS)) - 1]

    def _hint(self, text: str, read: str | None) -> Raised | None:
        """Return the hint in a text; None: there is none.

        A hint that only the recogniser found does not count if the classifier found the text harmless.
        """
        hint = find_hint(self._pack, text)
        return None if hint and hint.basis == "recogniser" and read in HARMLESS else hint

    def _again(self, alarm: Alarm, language: Language) -> str:
        """Return an alarm's question for asking it again, in gentle and varying words."""
        ask, ways = in_language(alarm.hint_ask, language), phrases(self._pack, "alarm_ask_again", language)
        return ways[(self._put - 1) % len(ways)].replace("{ask}", ask) if ways else ask

    def _answer(self, situation: Situation, language: Language, read: str | None) -> Verdict | None:
        """Return the verdict if an utterance answers an alarm's words or question; None otherwise.

        A clear yes to the question that was just asked always counts. If there is a classifier, it decides in all other
        cases; if it fails, the question stays open.
        """
        alarm, asked = (self._open[0], True) if self._open else (self._last, False)
        if alarm is None:
            return None
        text, said = situation.text.replace("’", "'"), situation.said
        back, just = bool(BACK.search(text)), any(ask in said for ask in all_texts(alarm.hint_ask))
        if asked and (read == AFFIRMS or (not back and (just or not said) and YES.search(text))):
            return Verdict(alarm, basis="answer", whole=self._words(alarm, language), urgent=True)
        denied = (asked and read == DENIES) or read == TAKES_BACK
        if read is None and not self._listened_to:
            denied = back or bool(asked and just and NO.search(text))
        if not denied or self._hint(text, read):
            return None
        believe = "".join(phrases(self._pack, "alarm_taken_back", language)[self._taken_back :][:1])
        return Verdict(alarm, "taken_back", "answer", first=believe)

    def _words(self, alarm: Alarm, language: Language) -> str:
        """Return an alarm's words: at its first use in a session, the full words; later, shorter words that refer to
        the full ones, if the pack has such words."""
        again = phrases(self._pack, "alarm_again", language)
        times = self._told[alarm.id]
        return again[(times - 1) % len(again)] if times and again else in_language(alarm.say, language)


CLASSIFY_S = 120.0
"""Timeout of the safety classifier, in seconds; a later result is ignored."""
HEAD_START_S = 0.1
"""Delay of the classifier's request after the turn has begun, in seconds; the talker's request comes first. If the
answer waits for the classifier, there is no delay. Otherwise, a classifier that runs in this process is called only
after the turn has ended."""
ANSWER_WAITS_S = 8.0
"""Maximum time that an answer waits for the classifier, in seconds."""
SURER = 2.0
"""Minimum ratio of the best answer's probability to the next one; below it, the model is considered to be guessing."""
SAID = 160
"""Maximum number of characters of the last answer that the classifier is shown. They are the end of the answer, where a
question usually is."""
SHORT = 80
"""Maximum length of an utterance, in characters, that the classifier reads together with the last answer. A longer one
is read alone, unless a question about danger is open."""
LONGEST_WORD = 40
"""Maximum characters of a word that is kept whole when a text is shortened. A longer text without blanks, as in
Chinese, is cut anywhere."""
DANGEROUS = ("yes", DANGER)
IN_THIS_PROCESS = ("local", "gguf:")


def _end_of(text: str) -> str:
    """Return "…" and the last SAID characters of a text, from the beginning of a word on; a shorter text unchanged."""
    if len(text) <= SAID:
        return text
    end = text[-SAID:]
    part, _, rest = end.partition(" ")
    return f"… {rest if text[-SAID - 1] != ' ' and rest and len(part) <= LONGEST_WORD else end.lstrip()}"


class SafetyClassifier:
    """Ask a model about each utterance whether it suggests danger to life, or answers a question about danger.

    The answer waits for the result only if a question about danger is open, the words hint at danger, or no follow-up
    is possible. A result that comes too late for the answer is sent as a follow-up.

    - Both the words and the model suggest danger: the alarm is sure.
    - Only the model suggests danger: the user is asked a question.
    - Only the recogniser hinted at danger, and the model finds no danger: the hint is dropped.

    Args:
        floor: the lock that is held while the talker speaks.
        model: the classifying model; None: nothing is classified. A model that runs in this process is asked only after
            the answer, because it would slow the answer down. If the answer waits for the result, the model is asked at
            once.
        log: receives failures; a failure has no other effect.
    """

    def __init__(
        self,
        talker: Talker,
        alarms: Alarms,
        floor: asyncio.Lock,
        model: Model | None,
        log: Callable[[BaseException], Awaitable[None]],
    ) -> None:
        self._talker, self._alarms, self._floor, self._model, self._log = talker, alarms, floor, model, log
        self._alarm = next((each for each in talker.pack.alarms if each.recogniser == "danger"), None)
        self._reading: dict[int, asyncio.Task[str]] = {}
        self._following: set[asyncio.Task[None]] = set()

    def begin(self, situation: Situation, heard: int, turn: asyncio.Task[None], one_answer: bool) -> None:
        """Start to classify an utterance, if there is a model for it and the pack has an alarm for danger.

        Args:
            heard: the log row of the utterance. turn: the task that answers it.
            one_answer: whether no follow-up is possible after the answer, so that the classifier starts without delay.
        """
        if self._model is None or self._alarm is None:
            return
        hinted = find_hint(self._talker.pack, situation.text) is not None
        at_once = self._alarms.is_open or one_answer or hinted
        head_start_s = 0.0 if at_once else None if self._model.name.startswith(IN_THIS_PROCESS) else HEAD_START_S
        question = self._alarms.question
        said = _end_of(situation.said) if question or len(situation.text) <= SHORT else ""
        asked = SuggestsDanger(utterance=situation.text, said=said, open_question=question)
        self._reading[heard] = asyncio.ensure_future(self._read(self._model, asked, turn, head_start_s))
        following = asyncio.ensure_future(self._follow(situation, heard, turn))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def wait(self, heard: int) -> None:
        """Wait for the classification of an utterance (its log row), at most ANSWER_WAITS_S seconds."""
        if reading := self._reading.get(heard):
            await asyncio.wait({reading}, timeout=ANSWER_WAITS_S)

    def verdict(self, heard: int, situation: Situation) -> Verdict | None:
        """Return the verdict on an utterance. None if the model has given no sure answer (yet), or if this method has
        used the answer before."""
        if self._alarm is None or not (read := self._result(heard)):
            return None
        del self._reading[heard]
        if read in DANGEROUS:
            found = self._alarms.agree(self._alarm, situation.text)
        else:
            found = self._alarms.refute(situation.text, read)
        return found or self._alarms.judge(situation, read)

    async def until_danger(self, heard: int, other: Coroutine[Any, Any, None]) -> None:
        """Wait until another coroutine ends, or until danger is detected in the utterance; then cancel the
        coroutine."""
        waited = asyncio.ensure_future(other)
        try:
            if reading := self._reading.get(heard):
                await asyncio.wait({waited, reading}, return_when=asyncio.FIRST_COMPLETED)
                if self._result(heard) in DANGEROUS:
                    return
            await waited
        finally:
            waited.cancel()

    async def close(self) -> None:
        """Stop classifying."""
        await cancel_all(*self._reading.values(), *self._following)

    def _result(self, heard: int) -> str:
        reading = self._reading.get(heard)
        return reading.result() if reading and reading.done() else ""

    async def _read(
        self, model: Model, asked: SuggestsDanger, turn: asyncio.Task[None], head_start_s: float | None
    ) -> str:
        """Return the likeliest answer; "": the model failed, or is guessing.

        The model is guessing if the likeliest answer is less than SURER times as likely as the second.

        Args:
            head_start_s: seconds to wait for the turn before the model is called; None: wait until the turn has ended.
        """
        await asyncio.wait({turn}, timeout=head_start_s)
        try:
            found = await ForeignTask(partial(decide, model, asked)).result(CLASSIFY_S)
        except Overdue:
            said = (
                f"{model.name} gave no result of the safety check within {CLASSIFY_S:g} seconds. Is it busy, or still"
                " loading? --patience S sets how long to wait for answers"
            )
            await self._log(ModelUnavailable(said))
            return ""
        except ForeignFailure as error:
            await self._log(error.cause or error)
            return ""
        likeliest, next_one = sorted((p for _, p in found.weights), reverse=True)[:2]
        return found.best if likeliest >= SURER * next_one else ""

    async def _follow(self, situation: Situation, heard: int, turn: asyncio.Task[None]) -> None:
        """Send a result that came too late for the answer as a follow-up, and log it."""
        try:
            await asyncio.wait({turn, self._reading[heard]})
            async with self._floor:
                verdict = self.verdict(heard, situation)
                if not (verdict and verdict.alarm and verdict.basis in ("model", "answer")):
                    return
                self._alarms.keep(verdict)
                stream, session = self._talker.stream, self._talker.session
                entries = [Entry(each, AGENT) for each in verdict.events(session, heard)]
                if text := verdict.whole or verdict.ask:  # there is no text if the alarm was taken back
                    record = await build_chat_record(stream, text, AGENT, session)
                    entries.insert(0, Entry(FollowUp(text=text, answers=heard, record=record.id), AGENT, (record,)))
                await stream.commit(*entries)
        except StorageError as error:
            await self._log(error)
        finally:
            self._reading.pop(heard, None)
