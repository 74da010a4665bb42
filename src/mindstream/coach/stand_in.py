"""The rule that replaces the talker's model: it answers with a pack's phrases and quotations from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mindstream.coach.belief.plan import MARKS
from mindstream.coach.packs.load import fresh, list_in, say
from mindstream.coach.packs.pack import Lists, Topic, choices, topics_in
from mindstream.coach.packs.safety import find_hint, spoke_of_danger
from mindstream.coach.talker import Talk
from mindstream.memory.conversation import DatedLine, Line
from mindstream.models.embedders.wordllama import vectors
from mindstream.models.prompt import rule
from mindstream.text.words import Language, language_of, terms

HELD = 8
"""Maximum number of lines from memory that are listed; the newest are chosen."""
SHARE, LIKENESS, NEAREST = 0.5, 0.15, 3
"""Minimum share of the question's words in a quoted line, or minimum similarity in meaning; maximum number of lines."""


@rule(Talk)
def answer_from_pack(ask: Talk) -> str:
    """Answer without a model: greet, acknowledge the topics, and ask about the phase's first unknown field.

    An utterance that ends with a question mark is answered by quoting memory.
    """
    named = set(topics_in(ask.pack, ask.utterance))
    topics = [topic for topic in ask.pack.topics if topic.id in named]
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
        hint = find_hint(self.ask.pack, self.ask.utterance)
        if (hint and hint.alarm.is_danger) or spoke_of_danger(self.ask.pack, self.said):  # do not repeat such words
            return [self.say("alarm_heard"), "" if self.ask.asked_after else self.say("alarm_open")]
        if self.ask.utterance.rstrip().endswith(("?", "？")) and (quoted := self._quoted()):
            return [quoted]
        heard = [self._fresh(topic.acknowledge) for topic in self.topics[:2]]
        if self.ask.asked_after:
            return heard or [self.say("heard")]
        return [*heard, self.say("check_in", title=now.title) if now and now.told else self._question()]

    def _question(self) -> str:
        """Ask the Reasoner's question, otherwise that of the phase's first unknown field."""
        known = {*self.ask.belief, *(topic.field for topic in self.topics)}
        fields = [self.ask.pack.fields[name] for name in self.ask.phase.fields if name not in known]
        asked = (each for field in fields for each in choices(field.ask, self.language)[:1])
        new = next((each for each in asked if not any(each in text for text in self.said)), "")
        return self.ask.briefing.ask or new or self.say("ask_more")

    def _quoted(self) -> str:
        """Quote the fields named in the question, and the nearest statements of the user.

        The rule cannot decide which of them answers the question or is still true: all are listed, the newest first.
        """
        told, held, asked = self._told(), self._held(), set(terms(self.ask.utterance))
        named = [f"{name}: {text}" for name, text in held.items() if asked.issuperset(terms(name) or [name])]
        near = self._nearest(told)
        if len(near) == 1 and not named:
            return self.say("told", day=near[0][0], quote=near[0][1])
        if named or near:
            return "\n".join([self.say("nearest"), *(f"- {line}" for line in (*named, *map(": ".join, near)))])
        if self.topics:
            return ""
        lines = [f"{name}: {text}" for name, text in held.items()] + [": ".join(line) for line in told]
        return "\n".join([self.say("held" if lines else "not_told"), *(f"- {line}" for line in lines[:HELD])])

    def _told(self) -> list[tuple[str, str]]:
        """Return the user's statements with their day, the newest first."""
        mine = [(each.day, each.text) for each in (*self.ask.recalled, *self.ask.notes)]
        before = (line for line in self.ask.history if isinstance(line, DatedLine))
        mine += [(line.day, line.text) for line in (*self.ask.talks, *before) if line.by_user]
        mine += [(self.say("this_talk"), line.text) for line in self._own if line.by_user]
        plain = ((day, text.strip("“”")) for day, text in reversed(mine))
        return list(dict.fromkeys((day, text) for day, text in plain if not text.endswith(("?", "？"))))

    def _held(self) -> dict[str, str]:
        """Return the belief and the plan, by name."""
        held = {name.replace("_", " "): self._list(value) for name, value in self.ask.belief.items()}
        plan = [f"{step.title} ({MARKS[step.state]})" for step in self.ask.plan.steps]
        return held | ({self.say("plan"): "; ".join(plan)} if plan else {})

    def _nearest(self, told: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the lines that share most words with the question, or are similar in meaning where that can be
        measured."""
        asked, texts = set(terms(self.ask.utterance)), [text for _, text in told]
        shared = np.array([len(asked & set(terms(text))) / max(1, len(asked)) for text in texts])
        likeness = np.zeros(len(texts))
        if texts and self.language == "en" and not self.topics:
            question, *others = vectors([self.ask.utterance, *texts])
            likeness = np.stack(others) @ question
        near = [n for n in range(len(texts)) if shared[n] >= SHARE or likeness[n] >= LIKENESS]
        return [told[n] for n in sorted(sorted(near, key=lambda n: -shared[n] - likeness[n])[:NEAREST])]

    def _list(self, value: object) -> str:
        return list_in(self.language, value if isinstance(value, list) else [value])

    def _fresh(self, options: Lists) -> str:
        return fresh(choices(options, self.language), self.said, len(self.said))

    def say(self, name: str, **filled: str) -> str:
        return say(self.ask.pack, name, self.language, self.said, **filled)

    @property
    def said(self) -> list[str]:
        return [line.text for line in self._own if not line.by_user]

    @property
    def _own(self) -> list[Line]:
        """The lines of this conversation."""
        return [line for line in self.ask.history if not isinstance(line, DatedLine)]
