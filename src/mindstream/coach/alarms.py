"""What an alarm comes to: sure or a hint, told before or not, asked about until answered, affirmed, taken back."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from mindstream.coach.events import Alarmed, Basis, Strength
from mindstream.coach.gates.gate import Situation
from mindstream.coach.packs.load import phrases
from mindstream.coach.packs.pack import Alarm, Pack, Texts, in_language
from mindstream.coach.packs.safety import Raised, find_alarm, find_hint, find_raised, recognises_danger
from mindstream.coach.talker import AGENT, Talker
from mindstream.errors import StorageError
from mindstream.foreign_code import ForeignFailure, ForeignTask
from mindstream.log.events import FollowUp
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.models.decide import LETTERS, Question, decide
from mindstream.models.model import Model
from mindstream.models.prompt import rule
from mindstream.models.questions import YES_NO
from mindstream.text.words import Language, language_of

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

    `open_question`: what was asked of the user because of a hint: then also whether the message answers it, and how.
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
    """Stand in: answer as the recogniser hears it."""
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
"""The surest ways to say yes, no, or that it was not meant, as an answer to what was asked because of a hint."""
GAPS, MODELS = (0, 2, 4), 2
"""So many answers after a question about danger was put, and not answered, it is put again; then each time the last.
What a model alone has heard is asked about so often in all."""
HARMLESS = ("no", DENIES, TAKES_BACK, NO_MESSAGE)
"""What a second listener may have read where no danger is."""


def is_about_danger(pack: Pack, text: str) -> bool:
    """Tell whether an utterance stops the talk, or hints at what does: no fact is noted of it."""
    sure = find_alarm(pack, text)
    return bool((sure and sure.stops) or find_hint(pack, text))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said because of an alarm, and what the log is told.

    Attributes:
        whole: the whole answer; "" where somebody else answers.
        first, ask: what is said before that answer, and what is asked after it.
        urgent: a life may be in danger: it waits for nobody.
        beside: another alarm, that does not stop the talk: whose words `first` are.
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
        """Return what the log is told."""
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
    """Decides for each utterance what its alarms come to; remembers what was said because of them.

    A question about danger stays open, whatever else is said and in whatever session, until it is answered.
    """

    def __init__(self, pack: Pack, session: str, *, listened_to: bool = False) -> None:
        """`listened_to`: a model reads what answers a question about danger; words alone then only affirm."""
        self._pack, self.session, self._listened_to = pack, session, listened_to
        self._told: Counter[str] = Counter()
        """How often each alarm's words were said in this session."""
        self._asked: set[tuple[str, Basis]] = set()
        """What was asked about in this session."""
        self._taken_back = 0
        """How often that was said, and believed: once without more, once more with a reservation."""
        self._open: tuple[Alarm, Basis] | None = None
        """The alarm whose question is not answered yet."""
        self._put, self._since = 0, 0
        """How often that was put, and how many answers have been given since."""
        self._last: Alarm | None = None
        """The alarm whose words were the last answer: it may not have been meant."""

    @property
    def question(self) -> str:
        """What was asked because of a hint and is not answered yet, or what was said for sure just now; else ""."""
        alarm = self._open[0] if self._open else self._last
        texts = alarm and (alarm.hint_ask if self._open else alarm.say)
        return in_language(texts, "en") if texts else ""

    @property
    def is_open(self) -> bool:
        """A question about danger is not answered yet."""
        return self._open is not None

    def restore(self, events: Iterable[Alarmed]) -> None:
        """Take up where the log ends; `events`: those of all sessions, oldest first."""
        for event in events:
            self._count(event)
        self._since = GAPS[-1]  # whoever comes back is asked again

    def judge(self, situation: Situation, read: str | None = None) -> Verdict:
        """Decide what an utterance raises, from its words and from what was said and asked before; changes nothing.

        Args:
            read: what the second listener has read in it (of suggests_danger.ANSWERS); None: nobody listens.
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
        """Return what is said when a model hears an alarm: sure where the words hint at it too, else asked about."""
        language = language_of(text, self._pack.languages)
        if find_hint(self._pack, text):
            return Verdict(alarm, basis="model", whole=self._words(alarm, language), urgent=True)
        ask = in_language(alarm.hint_ask, language)
        known = self._told[alarm.id] or any(alarm.id == asked for asked, _ in self._asked)
        return None if known or not ask else Verdict(alarm, "hint", "model", ask=ask)

    def keep(self, verdict: Verdict) -> None:
        """Remember what is being said."""
        self._since += 1
        told = verdict.strength == "taken_back" or (verdict.whole and verdict.strength == "sure")
        self._last = verdict.alarm if told else None
        for event in verdict.events(self.session, 0):
            self._count(event)

    def _count(self, event: Alarmed) -> None:
        """Take in what was said because of an alarm; what was in another session is only followed."""
        if event.strength == "hint" and event.spoken:
            alarm = next((each for each in self._pack.alarms if each.id == event.alarm), None)
            self._put = self._put + 1 if self._open else 1
            self._open, self._since = (alarm, event.basis) if alarm else None, 0
        elif event.strength == "taken_back" or (self._open and event.spoken and event.alarm == self._open[0].id):
            self._open = None
        if event.session != self.session:
            return
        if event.strength == "taken_back":
            self._taken_back += 1
        elif event.spoken and event.strength == "hint":
            self._asked.add((event.alarm, event.basis))
        elif event.spoken:
            self._told[event.alarm] += 1

    @property
    def _is_due(self) -> bool:
        """It is time to put the open question again."""
        if self._open is None or (self._open[1] == "model" and self._put >= MODELS):
            return False
        return self._since >= GAPS[min(self._put, len(GAPS)) - 1]

    def _hint(self, text: str, read: str | None) -> Raised | None:
        """Return what words hint at; what only the recogniser hears is a model's to decide, where one has read them."""
        hint = find_hint(self._pack, text)
        return None if hint and hint.basis == "recogniser" and read in HARMLESS else hint

    def _again(self, alarm: Alarm, language: Language) -> str:
        """Return an open question as it is put again: gently, and not each time alike."""
        ask, ways = in_language(alarm.hint_ask, language), phrases(self._pack, "alarm_ask_again", language)
        return ways[(self._put - 1) % len(ways)].replace("{ask}", ask) if ways else ask

    def _answer(self, situation: Situation, language: Language, read: str | None) -> Verdict | None:
        """Read an utterance as the answer to what an alarm said or asked; None where it is none.

        The surest yes to what was just asked counts, whoever listens; all else is for the listener to read, if there is
        one: where it fails, the question stays open.
        """
        alarm, asked = (self._open[0], True) if self._open else (self._last, False)
        if alarm is None:
            return None
        text, said = situation.text.replace("’", "'"), situation.said
        back, just = bool(BACK.search(text)), any(ask in said for ask in _all(alarm.hint_ask))
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
        """Return an alarm's words: its own once in a session, then shorter ones that point back to them."""
        again = phrases(self._pack, "alarm_again", language)
        times = self._told[alarm.id]
        return again[(times - 1) % len(again)] if times and again else in_language(alarm.say, language)


def _all(texts: Texts) -> list[str]:
    """Return a text in all its languages."""
    return [texts] if isinstance(texts, str) else list(texts.values())


LISTENS_S = 120.0
"""How long the model may take beside an answer; after that it has heard nothing."""
HEAD_START_S = 0.1
"""So much later than the Talker it is asked, where it is in nobody's way: its words would come later else."""
IN_THE_WAY_S = 8.0
"""How long an answer waits for it where a question about danger is open, words hint at it, or nothing could follow."""

SURER = 2.0
"""An answer counts that is so many times as likely as the next; a very small model answers all there is by chance."""

SAID = 240
"""So much of what was said before it is shown, in characters: its end, where questions stand."""
DANGEROUS = ("yes", DANGER)
IN_THIS_PROCESS = ("local", "gguf:")


class SecondListener:
    """Asks a model of each utterance whether it suggests danger to life, or answers what was asked about it.

    It delays no word but where such a question is open, or words hint at danger: then it is heard first. Where both do,
    the alarm is sure; where only the model hears it, its careful question is asked; what a recogniser alone thinks to
    hear, and the model does not, is not asked about. What is heard late follows the answer at once.

    Args:
        floor: held while the Talker speaks.
        model: None: nobody listens. One in this process is asked when the answer is out: it would slow down the
            Talker's.
        log: told of a failure, which is all that comes of it.
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
        self._listening: dict[int, asyncio.Task[str]] = {}
        self._following: set[asyncio.Task[None]] = set()

    def begin(self, situation: Situation, heard: int, turn: asyncio.Task[None], one_answer: bool) -> None:
        """Listen to an utterance that is being answered."""
        if self._model is None or self._alarm is None:
            return
        hinted = find_hint(self._talker.pack, situation.text) is not None
        at_once = self._alarms.is_open or one_answer or hinted
        head_start_s = 0.0 if at_once else None if self._model.name.startswith(IN_THIS_PROCESS) else HEAD_START_S
        asked = SuggestsDanger(
            utterance=situation.text, said=situation.said[-SAID:], open_question=self._alarms.question
        )
        self._listening[heard] = asyncio.ensure_future(self._read(self._model, asked, turn, head_start_s))
        following = asyncio.ensure_future(self._follow(situation, heard, turn))
        self._following.add(following)
        following.add_done_callback(self._following.discard)

    async def hear_out(self, heard: int) -> None:
        """Wait for it, but not for long."""
        if listening := self._listening.get(heard):
            await asyncio.wait({listening}, timeout=IN_THE_WAY_S)

    def verdict(self, heard: int, situation: Situation) -> Verdict | None:
        """Return, once, what an utterance comes to as it has read it; None while it has not, or has failed."""
        if self._alarm is None or not (read := self._has_read(heard)):
            return None
        del self._listening[heard]
        sure = self._alarms.agree(self._alarm, situation.text) if read in DANGEROUS else None
        return sure or self._alarms.judge(situation, read)

    async def until_sure(self, heard: int, other: Coroutine[Any, Any, None]) -> None:
        """Wait for something else, but no longer than until danger is heard."""
        waited = asyncio.ensure_future(other)
        try:
            if listening := self._listening.get(heard):
                await asyncio.wait({waited, listening}, return_when=asyncio.FIRST_COMPLETED)
                if self._has_read(heard) in DANGEROUS:
                    return
            await waited
        finally:
            waited.cancel()

    async def close(self) -> None:
        """Stop listening."""
        tasks = [*self._listening.values(), *self._following]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _has_read(self, heard: int) -> str:
        listening = self._listening.get(heard)
        return listening.result() if listening and listening.done() else ""

    async def _read(
        self, model: Model, asked: SuggestsDanger, turn: asyncio.Task[None], head_start_s: float | None
    ) -> str:
        """Return the likeliest answer; "" where it failed, or guesses. The turn goes first, by so much or whole."""
        await asyncio.wait({turn}, timeout=head_start_s)
        try:
            found = await ForeignTask(partial(decide, model, asked)).result(LISTENS_S)
        except ForeignFailure as error:
            await self._log(error.cause or error)
            return ""
        likeliest, next_one = sorted((p for _, p in found.weights), reverse=True)[:2]
        return found.best if likeliest >= SURER * next_one else ""

    async def _follow(self, situation: Situation, heard: int, turn: asyncio.Task[None]) -> None:
        """Say, after the answer, what was heard too late for it."""
        try:
            await asyncio.wait({turn, self._listening[heard]})
            async with self._floor:
                verdict = self.verdict(heard, situation)
                if verdict and verdict.alarm and verdict.basis in ("model", "answer"):
                    self._alarms.keep(verdict)
                    await self._commit(verdict, heard)
        except StorageError as error:
            await self._log(error)
        finally:
            self._listening.pop(heard, None)

    async def _commit(self, verdict: Verdict, heard: int) -> None:
        stream, session = self._talker.stream, self._talker.session
        raised = [Entry(each, AGENT) for each in verdict.events(session, heard)]
        if not (text := verdict.whole or verdict.ask):  # it was taken back, and the answer is out
            await stream.commit(*raised)
            return
        new = RecordDraft(text=text, kind="chat", by=AGENT, episode=session, data={"by_user": False})
        (record,) = await stream.build_records([new])
        follow_up = FollowUp(text=text, answers=heard, record=record.id)
        await stream.commit(Entry(follow_up, AGENT, (record,)), *raised)
