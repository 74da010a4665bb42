"""What an alarm comes to in a session: sure or a hint, told before or not, affirmed or taken back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mindstream.coach.events import Alarmed, Basis, Strength
from mindstream.coach.gates.gate import Situation
from mindstream.coach.open_question import SENTENCE
from mindstream.coach.packs.pack import Alarm, Pack, in_language
from mindstream.coach.packs.safety import Raised, find_alarm, find_hint, find_raised
from mindstream.coach.packs.saying import phrases
from mindstream.text.language import Language, language_of

BEGINNING = 200
"""Within so many characters it is said that a question is affirmed or denied, or that something was not meant."""
SHORT = 40
"""An answer that is no longer than this says nothing besides; a Chinese one has half as many characters."""
AFFIRMS = re.compile(
    r"^\W*(?:well\W+|honestly\W+)?"
    r"(?:yes|yeah|yep|yea|yup|true|i (?:do|have|am|guess|suppose|think so)|it is|it does)\b(?! not)"
    r"|^\W*(?:是(?!不)|嗯|对(?!了|不)|会(?!不)|想过|有过|有想过)",
    re.IGNORECASE,
)
AFFIRMS_IN_SHORT = re.compile(
    r"^\W*(?:well\W+|honestly\W+)?"
    r"(?:sometimes|at times|often|maybe|perhaps|kind ?of|kinda|sort of|a (?:bit|little))\b(?! not)"
    r"|^\W*(?:有(?!什么|点[困累])|经常|偶尔|时不时|可能(?!是)|也许|差不多|算是)",
    re.IGNORECASE,
)
"""Words that say yes where little else is said."""
DENIES = re.compile(
    r"^\W*(?:oh\W+|god\W+)?(?:no|nope|nah|never|not (?:really|at all|like that|that)|of course not|i do ?n[o']?t"
    r"|i'?m (?:ok|okay|fine|not)|(?:it'?s|that'?s) not that|nothing like that)\b"
    r"|^\W*(?:不是|没有|没(?!意)|不会|不想|不至于|当然不|没事|不(?:[,，。!！\s]|$))",
    re.IGNORECASE,
)
TAKES_BACK = re.compile(
    r"\b(?:did ?n[o']?t|do ?n[o']?t|did not|do not|never) mean\b|\bnot what i (?:meant|mean|said)\b"
    r"|\bfigure of speech\b|\bgot (?:me|that|it) wrong\b"
    r"|\b(?:just|only) (?:a )?(?:jok\w+|kidding|expression|saying|exaggerat\w+)\b|\bmisunder\w+"
    r"|不是(?:这个|那个|这|那)?个?意思|没有?(?:那|这)个?意思|开玩笑|误会|说着玩|随口|夸张|理解错|你想多了",
    re.IGNORECASE,
)


def is_about_danger(pack: Pack, text: str) -> bool:
    """Tell whether an utterance stops the talk, hints at what does, or takes that back: no fact is noted of it."""
    sure = find_alarm(pack, text)
    if (sure and sure.stops) or find_hint(pack, text):
        return True
    return len(text) <= SHORT and bool(TAKES_BACK.search(text.replace("’", "'")))


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
    """Decides for each utterance of a session what its alarms come to; remembers what was said because of them."""

    def __init__(self, pack: Pack, session: str) -> None:
        self._pack, self.session = pack, session
        self._told: Counter[str] = Counter()
        """How often each alarm's words were said."""
        self._asked: set[tuple[str, Basis]] = set()
        self._taken_back = 0
        """How often that was said, and believed: once without more, once more with a reservation."""
        self._open: Verdict = NOTHING
        """What was said or asked in the last answer, if that was because of an alarm."""
        self._before = ""
        """What the mind had asked before that."""

    def restore(self, events: Iterable[Alarmed]) -> None:
        """Take up a session where its log ends."""
        for event in events:
            if event.session == self.session:
                self._count(event)

    def judge(self, situation: Situation) -> Verdict:
        """Decide what an utterance raises, from its words and from what was said and asked before; changes nothing."""
        text, language = situation.text, language_of(situation.text, self._pack.languages)
        raised = find_raised(self._pack, text)
        alarm = raised.alarm if raised else None
        if alarm and alarm.stops:
            return Verdict(alarm, whole=self._words(alarm, language), urgent=True)
        if self._open.alarm and (answer := self._answer(self._open, text, language)):
            return answer
        first = in_language(alarm.say, language) if alarm and not self._told[alarm.id] else ""
        if hint := find_hint(self._pack, text):
            silent = (hint.alarm.id, hint.basis) in self._asked or self._told[hint.alarm.id]
            ask = "" if silent else in_language(hint.alarm.hint_ask, language)
            return Verdict(hint.alarm, "hint", hint.basis, first=first, ask=ask, beside=raised)
        return Verdict(beside=raised, first=first)

    def agree(self, alarm: Alarm, text: str) -> Verdict | None:
        """Return what is said when a model hears an alarm: sure where the words hint at it too, else asked about."""
        language = language_of(text, self._pack.languages)
        if find_hint(self._pack, text):
            return Verdict(alarm, basis="model", whole=self._words(alarm, language), urgent=True)
        ask = in_language(alarm.hint_ask, language)
        known = self._told[alarm.id] or any(alarm.id == asked for asked, _ in self._asked)
        return None if known or not ask else Verdict(alarm, "hint", "model", ask=ask)

    def keep(self, verdict: Verdict, situation: Situation) -> None:
        """Remember what is being said."""
        begins = self._open.alarm is None or self._open.strength == "taken_back"
        if (verdict.ask or verdict.urgent) and begins:
            asked = [each.strip() for each in SENTENCE.findall(situation.said) if each[-1] in "?？"]
            self._before = next(reversed(asked), "")
        back = verdict.strength == "taken_back"
        self._open = verdict if verdict.ask or verdict.urgent or back else NOTHING
        self._before = "" if back else self._before
        for event in verdict.events(self.session, 0):
            self._count(event)

    def _count(self, event: Alarmed) -> None:
        if event.strength == "taken_back":
            self._taken_back += 1
        elif event.spoken and event.strength == "hint":
            self._asked.add((event.alarm, event.basis))
        elif event.spoken:
            self._told[event.alarm] += 1

    def _answer(self, open_: Verdict, text: str, language: Language) -> Verdict | None:
        """Read an utterance as the answer to what an alarm said or asked; None where it is none."""
        said, alarm = text[:BEGINNING].replace("’", "'"), open_.alarm
        hinted = open_.strength == "hint"
        short = len(text) * (2 if language == "zh" else 1) <= SHORT
        affirmed = AFFIRMS.search(said) or (short and AFFIRMS_IN_SHORT.search(said))
        if alarm and hinted and affirmed and not TAKES_BACK.search(said):
            return Verdict(alarm, basis="answer", whole=self._words(alarm, language), urgent=True)
        denied = (hinted and DENIES.search(said)) or TAKES_BACK.search(said)
        believe = "".join(phrases(self._pack, "alarm_taken_back", language)[self._taken_back :][:1])
        if not denied or find_hint(self._pack, text):
            return None
        if not short or "?" in text or "？" in text:
            return Verdict(alarm, "taken_back", "answer", first=believe)
        more = phrases(self._pack, "ask_more", language)
        on = self._before or (more[self._taken_back % len(more)] if more else "")
        return Verdict(alarm, "taken_back", "answer", whole=f"{believe}\n\n{on}".strip())

    def _words(self, alarm: Alarm, language: Language) -> str:
        """Return an alarm's words: its own once in a session, then shorter ones that point back to them."""
        again = phrases(self._pack, "alarm_again", language)
        times = self._told[alarm.id]
        return again[(times - 1) % len(again)] if times and again else in_language(alarm.say, language)
