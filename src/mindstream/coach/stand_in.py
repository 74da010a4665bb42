"""Stands in for the Talker where no model is configured: a pack's phrases, and quotations of what memory holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mindstream.coach.packs.pack import Lists, Topic, choices
from mindstream.coach.packs.safety import find_hint, spoke_of_danger
from mindstream.coach.packs.saying import fresh, list_in, say
from mindstream.coach.packs.topics import topics_in
from mindstream.coach.talk import Talk
from mindstream.models.prompt import rule
from mindstream.text.language import Language, language_of
from mindstream.text.words import terms

HELD = 8
"""So many lines of what memory holds are listed, the newest."""
SHARE = 0.5
"""A line that is quoted for a question holds so much of its words."""


@rule(Talk)
def answer_from_pack(ask: Talk) -> str:
    """Stand in: greet, acknowledge the topics that are named, ask for the phase's first field that holds nothing.

    What ends with a question mark is answered by quoting memory. Nothing else is read of the words.
    """
    topics = [topic for topic in ask.pack.topics if topic.id in topics_in(ask.pack, ask.utterance)]
    answer = _Answer(ask, topics, language_of(ask.utterance, ask.pack.languages))
    opening = [] if answer.said else [answer.say("greet"), answer.say("stands_in")]
    return ("" if answer.language == "zh" else " ").join(filter(None, [*opening, *answer.parts()]))


@dataclass(frozen=True)
class _Answer:
    ask: Talk
    topics: list[Topic]
    language: Language

    def parts(self) -> list[str]:
        now = self.ask.plan.now
        if self.ask.thought and self.ask.briefing.offer:
            return [self.ask.briefing.offer]
        if self.ask.late:
            return [self.say("late")]
        if find_hint(self.ask.pack, self.ask.utterance) or spoke_of_danger(
            self.ask.pack, self.said
        ):  # such words are not said back
            return [self.say("alarm_heard"), "" if self.ask.asked_after else self.say("alarm_open")]
        if self.ask.utterance.rstrip().endswith(("?", "？")) and (quoted := self._quoted()):
            return [quoted]
        heard = [self._fresh(topic.acknowledge) for topic in self.topics[:2]]
        if self.ask.asked_after:
            return heard or [self.say("heard")]
        return [*heard, self.say("check_in", title=now.title) if now and now.told else self._question()]

    def _question(self) -> str:
        """Ask what the Reasoner would like to know, else for the first field of the phase of which nothing is known."""
        known = {*self.ask.belief, *(topic.field for topic in self.topics)}
        fields = [self.ask.pack.fields[name] for name in self.ask.phase.fields if name not in known]
        asked = (each for field in fields for each in choices(field.ask, self.language)[:1])
        new = next((each for each in asked if not any(each in text for text in self.said)), "")
        return self.ask.briefing.ask or new or self.say("ask_more")

    def _quoted(self) -> str:
        """Quote what the user told that holds most of a question's words; else list what is held, the newest first."""
        mine = [(line.day, line.text) for line in self.ask.talks if line.by_user]
        mine += [(each.day, each.text) for each in (*self.ask.notes, *self.ask.recalled)]
        mine += [(self.ask.now, line.text) for line in self.ask.history if line.by_user]
        told = [(day, text.strip("“”")) for day, text in mine if not text.strip("“”").endswith(("?", "？"))]
        wanted, rarity = set(terms(self.ask.utterance)), Counter(term for _, text in told for term in set(terms(text)))

        def shared(line: tuple[str, str]) -> float:
            return sum(1 / rarity[term] for term in wanted & set(terms(line[1])))

        best = max(reversed(told), key=shared, default=("", ""))
        if wanted and len(wanted & set(terms(best[1]))) >= SHARE * len(wanted):
            return self.say("told", day=best[0], quote=best[1])
        if self.topics:
            return ""
        held = [f"{name.replace('_', ' ')}: {self._list(value)}" for name, value in self.ask.belief.items()]
        held += dict.fromkeys(f"{day}: {text}" for day, text in reversed(told))
        return "\n".join([self.say("held" if held else "not_told"), *(f"- {line}" for line in held[:HELD])])

    def _list(self, value: object) -> str:
        return list_in(self.language, value if isinstance(value, list) else [value])

    def _fresh(self, options: Lists) -> str:
        return fresh(choices(options, self.language), self.said, len(self.said))

    def say(self, name: str, **filled: str) -> str:
        return say(self.ask.pack, name, self.language, self.said, **filled)

    @property
    def said(self) -> list[str]:
        return [line.text for line in self.ask.history if not line.by_user]
