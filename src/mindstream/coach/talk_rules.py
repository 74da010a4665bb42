"""The rule that speaks when there is no model: understands by topics and moves, asks on, never twice the same words.

It claims nothing that was not said: it names topics the user named, quotes the user, or reads from memory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mindstream import chance
from mindstream.coach.belief.corrections import correct_belief
from mindstream.coach.belief.plan import PlanStep
from mindstream.coach.memory_question import asks_for_name, asks_for_own
from mindstream.coach.packs.mirror import goes_on, mirror
from mindstream.coach.packs.pack import Lists, choices, in_language
from mindstream.coach.packs.reading import Reading, read_utterance
from mindstream.coach.packs.safety import find_hint
from mindstream.coach.packs.saying import fresh, list_in, phrases
from mindstream.coach.packs.translate import translate
from mindstream.coach.step_question import asked_of_step
from mindstream.coach.talk import Talk
from mindstream.models.prompt import rule
from mindstream.text.corrections import read_correction
from mindstream.text.revise import apply_correction, resolve_correction

FEW = 4
"""With fewer notes than this, what is remembered names the trouble as it is believed, too."""


@rule(Talk)
def answer_by_topics_and_moves(ask: Talk) -> str:
    """Answer an utterance."""
    return _Answer(ask, read_utterance(ask.pack, ask.utterance)).text()


@dataclass(frozen=True)
class _Answer:
    ask: Talk
    heard: Reading

    def text(self) -> str:
        parts = [part for part in self._parts() if part]
        answer = "\n".join(line.rstrip(" \t") for line in self._join(parts).split("\n")).strip()
        if answer and answer != (self._said[-1] if self._said else None):
            return answer
        return self._join([self._say("other"), answer or self._question()])

    def _parts(self) -> list[str]:
        """Decide what to answer, the clearest wish first."""
        moves, topics = self.heard.moves, self.heard.topics
        if self.ask.late:
            return [self._say("late")]
        if find_hint(self.ask.pack, self.ask.utterance):  # such words are not said back, nor taken for a wish
            return [self._say("alarm_heard"), "" if self.ask.asked_after else self._say("alarm_open")]
        if put_right := self._put_right():
            return put_right
        if "forget" in moves:
            return [self._say("forget")]
        if "plan_again" in moves and (about := self._about_the_step()):
            return about
        if answer := self._from_memory():
            return answer
        if "recall" in moves:
            return self._memory()
        if "who" in moves:
            return [self._say("who", name=self.ask.pack.title), "" if topics or self._told else self._question()]
        if "bye" in moves and not topics:
            return [self._say("thanks") if "thanks" in moves else "", self._say("bye")]
        if "rude" in moves and not topics:
            return [self._say("rude"), self._question()]
        if "laugh" in moves and not self._trouble(topics):
            return [self._say("laugh"), "" if self.ask.phase.plans else self._question()]
        if "complaint" in moves:
            return [self._say("complaint"), *self._about_topics(asks=False), self._question()]
        if moves & {"plan", "stepwise"} and not self.ask.phase.plans:
            return self._quick(topics)
        if about := self._about_the_step():
            return about
        if self.ask.phase.plans and not topics:
            return self._in_planning()
        return self._understanding()

    def _put_right(self) -> list[str]:
        """Say what becomes of a correction, or of what is to be forgotten, where anything is held of it."""
        language, lines = self.heard.language, [line.text for line in self.ask.history if line.by_user]
        notes = [note.text for note in self.ask.notes]
        found = correct_belief(self.ask.pack, self.ask.belief, lines, notes, [self.ask.utterance], language)
        read = read_correction(self.ask.utterance)
        if not found.used or read is None:
            return []
        if read.forgets:
            return [self._say("forgotten")]
        if not read.new:
            return [self._say("taken_back"), self._question()]
        changes = apply_correction(resolve_correction(read, lines), [*notes, *lines])
        now = changes[0].text.strip("“”").rpartition(": ")[2] if changes else read.new
        said = goes_on(mirror(now, language), language) or now
        return [self._say("corrected", said=said.rstrip(".。")), self._question()]

    def _understanding(self) -> list[str]:
        moves = self.heard.moves
        opening = ""
        if "greet" in moves and not self._said:
            opening = self._say("greet")
        elif "thanks" in moves:
            opening = self._say("thanks")
        about = self._about_topics(asks=True)
        if about:
            return [opening, *about]
        denied = [self._name(mention.topic) for mention in self.heard.mentions if mention.denied]
        if denied:
            return [opening, self._say("denied", topics=self._list(denied)), self._question()]
        for move in ("unsure", "no", "yes"):
            if move in moves:
                return [opening, self._say(move), self._question()]
        if opening and len(self.heard.text.split()) <= 4:
            return [opening, self._question()]
        return [opening, self._echo(), self._question()]

    def _in_planning(self) -> list[str]:
        moves, now = self.heard.moves, self._told
        for move in ("done", "like", "thanks", "unsure", "greet", "no", "yes"):
            if move in moves:
                asks = {"like": "", "no": "", "done": "next_ready"}.get(move, "check_in")
                check = self._say(asks, title=now.title) if now and asks else ""
                return [self._say(move), check or ("" if now else self._question())]
        return [self._echo(), "" if now else self._question()]

    def _about_the_step(self) -> list[str]:
        """Answer a question about the step the user was given, from the plan as it stands."""
        step = self._told
        asked = asked_of_step(self.ask.pack, step, self.heard)
        if step is None or not asked:
            return []
        if asked == "plan_again":
            later = [each.title for each in self.ask.plan.steps if each.state == "later"]
            rest = self._say("plan_later", topics=self._list(later)) if later else ""
            return [self._say(asked, title=step.title, do=step.do), rest]
        if asked == "safe":
            return [self._say("safe", caution=step.caution) if step.caution else self._say("safe_none")]
        return [self._say(f"proof_{step.evidence or 'limited'}" if asked == "proof" else asked, why=step.why)]

    def _trouble(self, topics: list[str]) -> bool:
        """Tell whether what is named may be what the talk is about, not only a thing in the room."""
        found = filter(None, map(self.ask.pack.topic, topics))
        return any(topic.field in self._needs() or not topic.field for topic in found)

    def _about_topics(self, asks: bool) -> list[str]:
        """Acknowledge up to two topics that were named, and ask on about the first that still has a question."""
        topics = [topic for topic in map(self.ask.pack.topic, self.heard.topics) if topic]
        parts = [self._fresh(topic.acknowledge) for topic in topics[:2]]
        if "question" in self.heard.moves and topics:
            parts = [*parts[:1], self._fresh(topics[0].quick)]
        if not asks or not topics:
            return parts
        for topic in topics:
            if question := self._unasked(topic.ask):
                return [*parts, question]
        return [*parts, self._question()]

    def _quick(self, topics: list[str]) -> list[str]:
        """Snap a first list of ideas, as the intuitive talker does, for what the user named just now.

        Source: Christakopoulou 2024, 4.4.
        """
        known = read_utterance(self.ask.pack, " . ".join(str(held) for held in self.ask.belief.values())).topics
        named = [topic for topic in map(self.ask.pack.topic, dict.fromkeys([*topics, *known])) if topic]
        wished = [topic for topic in named if self.ask.pack.fields.get(topic.field) and topic.field in self._needs()]
        if not wished:
            about = self._about_topics(asks=False)
            question = next(filter(None, (self._unasked(topic.ask) for topic in named)), "") or self._question()
            return [*(about or [self._say("quick_none")]), question]
        lines = [f"- {self._name(topic.id)}: {self._fresh(topic.quick)}" for topic in wished[:4]]
        return [self._say("quick_intro") + "\n" + "\n".join(lines) + "\n", self._say("quick_outro")]

    def _from_memory(self) -> list[str]:
        """Quote what the user said where it answers their question, with its day; or say that nothing was found."""
        names = [note for note in self.ask.notes if note.text.startswith("name: ")]
        if names and asks_for_name(self.ask.utterance):
            return [self._say("your_name", name=names[-1].text.removeprefix("name: "))]
        found = self.ask.answer
        if found is None:
            return [self._say("not_told")] if asks_for_own(self.ask.utterance) else []
        today = any(line.by_user and line.text == found.text for line in self.ask.history)
        return [self._say("told_now" if today else "told_before", quote=found.text.strip(" “”"), day=found.day)]

    def _needs(self) -> set[str]:
        return set(self.ask.pack.phases[0].needs) or set(self.ask.pack.fields)

    def _memory(self) -> list[str]:
        """Say what memory holds: the user's notes, what is believed, the step of the plan."""
        language = self.heard.language
        known = list(dict.fromkeys(note.text for note in (*self.ask.notes, *self.ask.recalled)))[-12:]
        lines = [f"- {mirror(text.strip('“”'), language) or text}" for text in known]
        for name, held in self.ask.belief.items():
            if held not in (None, [], "") and not known:
                lines.append(f"- {name.replace('_', ' ')}: {self._list(held if isinstance(held, list) else [held])}")
        if not lines:
            return [self._say("memory_empty"), self._question()]
        step = self.ask.plan.now
        parts = [self._say("memory_intro") + "\n" + "\n".join(lines) + "\n"]
        if step:
            parts.append(self._say("memory_plan", title=step.title))
        trouble = self._list(self._trouble_known())
        if trouble and len(known) < FEW:
            parts.append(self._say("memory_trouble", topics=trouble))
        return [*parts, self._say("memory_more")]

    def _echo(self) -> str:
        words = self.heard.text.strip()
        if "question" in self.heard.moves:
            return self._join([self._say("no_answer"), self._so_far()])
        if said := mirror(words, self.heard.language):
            on = goes_on(said, self.heard.language)
            move = "wish" if "wish" in self.heard.moves else "heard" if on == said else "heard_on"
            return self._say(move, said=said, said_on=on, quote=words.rstrip(".!。！"))
        return self._say("heard_plain")

    def _so_far(self) -> str:
        """Say what is believed of the trouble, once, instead of guessing."""
        known = self._trouble_known()
        before = (option.split("{")[0] in said for option in self._phrases("so_far") for said in self._said)
        return self._say("so_far", topics=self._list(known)) if known and not any(before) else ""

    def _trouble_known(self) -> list[str]:
        held = [self.ask.belief.get(name) for name in self._needs()]
        return [self._shown(item) for value in held if isinstance(value, list) for item in value]

    def _shown(self, held: object) -> str:
        """Return what is held, in the language that is spoken now where the pack has it in both."""
        return translate(self.ask.pack, str(held), self.heard.language)

    def _question(self) -> str:
        """Ask what the Reasoner would like to know, or offer the step it has; else what the phase needs, or openly."""
        if self.ask.asked_after:
            return ""
        if self.ask.ask_next and not any(self.ask.ask_next in said for said in self._said):
            return self.ask.ask_next
        if self.ask.plan.now and not self.ask.plan.now.told:
            return self._say("offer_step")
        for name in self.ask.phase.fields:
            spec = self.ask.pack.fields[name]
            if self.ask.belief.get(name) in (None, [], "") and (question := self._unasked(spec.ask)):
                return question
        return self._say("ask_more")

    def _unasked(self, options: Lists) -> str:
        if self.ask.asked_after:
            return ""
        new = [text for text in choices(options, self.heard.language) if not any(text in said for said in self._said)]
        return chance.pick(new, "ask", len(self._said)) if new else ""

    def _fresh(self, options: Lists) -> str:
        return fresh(choices(options, self.heard.language), self._said, len(self._said))

    def _phrases(self, move: str) -> list[str]:
        return phrases(self.ask.pack, move, self.heard.language)

    def _say(self, move: str, **filled: str) -> str:
        words = fresh(self._phrases(move), self._said, move, len(self._said))
        return re.sub(r"\{(\w+)\}", lambda found: self._shown(filled.get(found[1], found[0])), words)

    def _name(self, topic: str) -> str:
        found = self.ask.pack.topic(topic)
        return in_language(found.name, self.heard.language) if found else topic

    def _list(self, items: Sequence[object]) -> str:
        return list_in(self.heard.language, [self._shown(item) for item in items])

    def _join(self, parts: list[str]) -> str:
        return ("" if self.heard.language == "zh" else " ").join(filter(None, parts)).replace("\n ", "\n")

    @property
    def _told(self) -> PlanStep | None:
        """The present step of the plan, if the user was given it."""
        now = self.ask.plan.now
        return now if now and now.told else None

    @property
    def _said(self) -> list[str]:
        return [line.text for line in self.ask.history if not line.by_user]
