"""`Talker` answers at once, from memory, belief, plan and the reasoner's briefing (Christakopoulou 2024, 3.2.1).

Without a model, a rule answers with a pack's phrases and quotations from memory (`answer_from_pack`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Any, ClassVar

import numpy as np

from mindstream.clock import format_spoken
from mindstream.coach.belief.belief import plan_of, read_briefing
from mindstream.coach.belief.plan import MARKS, CoachingPlan
from mindstream.coach.events import LeftUnsaid
from mindstream.coach.gates.gate import Handover, Situation
from mindstream.coach.packs.load import fresh, list_in, phrases, say
from mindstream.coach.packs.pack import Lists, Pack, Phase, Topic, choices, topics_in, zone_in
from mindstream.coach.packs.safety import find_hint, spoke_of_danger
from mindstream.errors import BudgetSpent, ModelError, ModelRefused, ReplyInvalid
from mindstream.json_values import JsonObject
from mindstream.log.events import Failed, Said
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.store.store import Entry
from mindstream.minds.responder import gather_context
from mindstream.models.embedders.embedder import vectors
from mindstream.models.model import Message, Model, Piece, Request
from mindstream.models.model import Part as ReplyPart
from mindstream.models.prompt import Prompt, rule
from mindstream.models.untrusted import is_visible
from mindstream.reasoners.reasoner import Briefing
from mindstream.text.context import Part, fit
from mindstream.text.links import LinkFilter, links
from mindstream.text.words import Language, language_of, terms


class Talk(Prompt[str]):
    """Answer the utterance now.

    Attributes:
        exemplars: answers of other agents to similar questions; they contain nothing about this user.
        age: number of messages of the user between those that the briefing is about and this one; if there are any, the
            briefing's question is left out, because the talker may have asked it already.
        earlier: number of older lines of this conversation that the prompt leaves out.
        decides: whether the reply begins with the talker's decision about waiting (see coach/gates/gate.py).
        late: whether the reasoner is still running although the answer has waited for it; the answer must not
            anticipate the reasoner's result.
        thought: whether the reasoner has processed this utterance.
        one_answer: whether no follow-up is possible after the answer.
        unsaid: the reasoner's follow-up to the last answer, which could not be sent.
        called_for: advice to give in the talker's own words, such as to see a doctor.
        before: an alarm's words that precede the answer.
        asked_after: an alarm's question that follows the answer; the answer itself then asks nothing.
        now: the user's local day and hour; "": unknown.
        later: how long after the last line the utterance comes, such as "13 days later"; "": less than 24 hours in the
            same conversation, or there is no earlier line.
    """

    role: ClassVar[str] = "talker"

    pack: Pack
    phase: Phase
    belief: JsonObject
    plan: CoachingPlan
    briefing: Briefing = Briefing()
    age: int = 0
    notes: tuple[Note, ...]
    recalled: tuple[Note, ...]
    talks: tuple[DatedLine, ...] = ()
    exemplars: tuple[str, ...] = ()
    history: tuple[Line, ...]
    earlier: int = 0
    utterance: str
    decides: bool = False
    late: bool = False
    thought: bool = False
    one_answer: bool = False
    unsaid: str = ""
    called_for: str = ""
    before: str = ""
    asked_after: str = ""
    now: str = ""
    later: str = ""

    def texts(self) -> Iterator[str]:
        """Yield the texts whose links an answer may contain: the conversation, notes and recalled memories, the plan,
        the reasoner's offer, and the pack's resources.

        Exemplars are third-party content, so a link that only they contain is removed from the answer.
        """
        yield from self.own_texts()
        yield from (step.full() for step in self.plan.steps)
        yield from (note.text for note in (*self.notes, *self.recalled))
        yield self.briefing.offer

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose links (to images) a web page may load without a click: the conversation and the pack.

        Notes and recalled memories are not among them, because they may be based on third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.utterance, self.before)
        yield from (resource.link for resource in self.pack.resources if resource.link)

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in self.history]


AGENT = "coach"
"""Author of the talker's log rows and memory records."""
EXEMPLAR_TOKENS = 1_000
"""Maximum number of tokens of exemplars in a prompt; the last ones are dropped first."""
EXEMPLAR_S = 2.0
"""Maximum time that an answer waits for exemplars, in seconds."""
ITEMS = 4
"""Maximum number of items, the newest ones, that the prompt shows of each list in the belief. Lists of fields with
`always` are shown whole."""


class Talker:
    """Ask the model for an answer, and choose phrases that need no model.

    Args:
        exemplars: finds answers to similar questions for the prompt. The talker adds none of its own answers to this
            source.
        zone: the user's time zone, unless the belief has another one. None: unknown, so the prompt does not have the
            user's day and hour.
    """

    def __init__(
        self,
        stream: Memory,
        pack: Pack,
        model: Model,
        session: str,
        exemplars: Exemplars | None = None,
        zone: tzinfo | None = None,
    ) -> None:
        self.stream, self.pack, self.model, self.session = stream, pack, model, session
        self.failures = 0
        """Number of failed answers in a row."""
        self._exemplars, self._zone = exemplars, zone
        self._missed = ""
        """Why the last search for exemplars failed; "": it did not. The same reason is logged only once in a row."""

    async def situation(self, text: str) -> Situation:
        """Read the state of the conversation for an utterance: belief, plan, phase, and last answer."""
        erasures = await self.stream.store.last_erasure()  # read first, so that erasures from here on are noticed
        belief = await self.stream.belief(self.pack.name, self.pack.belief)
        plan = await plan_of(self.stream, self.pack)
        newest = await self.stream.latest("chat", 3, episode=self.session)
        value = belief.value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        said = [line.text for line in newest if not line.data.get("by_user")]
        return Situation(text, phase, value, belief.version, plan, said[-1] if said else "", erasures)

    def is_outdated(self, situation: Situation) -> bool:
        """Return whether this process has seen a newer version of the belief than that in `situation`."""
        record = self.stream.last_version(self.pack.name)
        return record is not None and (record.version or 0) != situation.version

    async def speak(self, situation: Situation, heard: int, handover: Handover | None = None, **more: Any) -> Speech:
        """Ask the model for the answer to an utterance; the caller reads the reply.

        Args:
            heard: the log row of the utterance.
            handover: receives the talker's decision before the first words; None: the talker makes no decision.
            more: further fields of the prompt (`Talk`).
        """
        question = (await self.question(situation, heard)).model_copy(update=more)
        return Speech(self.model, question, handover or Handover(may_wait=False))

    async def question(self, situation: Situation, heard: int) -> Talk:
        """Build the prompt: utterance, memory, belief, plan, briefing and history (Christakopoulou 2024, equation
        2)."""
        memory = await gather_context(self.stream, self.session, situation.text, heard, self.pack.name)
        always = {name for name, field in self.pack.fields.items() if field.always}
        newest = {
            name: held[-ITEMS:] if isinstance(held, list) and name not in always else held
            for name, held in situation.belief.items()
        }
        zone = zone_in(self.pack, situation.belief) or self._zone
        briefing = await read_briefing(self.stream, self.pack.name)
        age = sum(seq > briefing.upto for seq in memory.heard)
        return Talk(
            pack=self.pack,
            phase=situation.phase,
            belief={name: held for name, held in newest.items() if held not in (None, [], "")},
            plan=situation.plan,
            briefing=replace(briefing, ask="") if age else briefing,
            age=age,
            notes=memory.notes,
            recalled=memory.recalled,
            talks=memory.talks,
            exemplars=await self._find_exemplars(situation.text) if self._exemplars else (),
            history=memory.history,
            earlier=memory.left_out,
            utterance=situation.text,
            now=format_spoken(self.stream.clock.now(), zone) if zone else "",
            later=memory.later,
        )

    async def unsaid(self) -> str:
        """Return the follow-up to the last answer if it could not be sent; "" if there is none."""
        store, key = self.stream.store, self.stream.key
        left = await store.last(key, LeftUnsaid.kind)
        if left is None or not isinstance(left.event, LeftUnsaid):
            return ""
        said = await store.last(key, Said.kind)
        return "" if said and said.seq > left.seq else left.event.text

    async def _find_exemplars(self, text: str) -> tuple[str, ...]:
        """Return the exemplars that fit into EXEMPLAR_TOKENS; () if the search fails, which is logged unless the last
        search failed for the same reason."""
        found, missed = await find_examples(self._exemplars, text, EXEMPLAR_S)
        if missed and missed != self._missed:
            await self.stream.commit(Entry(Failed(text=missed, where="exemplars"), AGENT))
        self._missed = missed
        return tuple(map(str, fit([Part("exemplars", found)], EXEMPLAR_TOKENS).kept("exemplars", found)))

    async def filler(self, text: str, move: str = "wait") -> str:
        """Return a phrase to say while the user waits. It states nothing, and if possible it was not said lately."""
        newest = await self.stream.latest("chat", 1)
        lately = max(0, newest[0].seq - 200) if newest else 0
        waits = await self.stream.store.events(self.stream.key, kinds=["waiting"], after=lately)
        said = [str(getattr(logged.event, "text", "")) for logged in waits]
        return fresh(phrases(self.pack, move, language_of(text, self.pack.languages)), said, len(said))

    def excuse(self, failure: BaseException, text: str) -> str:
        """Count a failure, and return its explanation for the user; a shorter one if a model fails repeatedly."""
        move = "model_failed" if isinstance(failure, ModelError) else "fault"
        move = "model_refused" if isinstance(failure, ModelRefused) else move
        move = "budget_spent" if isinstance(failure, BudgetSpent) else move
        move = "model_still_failed" if move == "model_failed" and self.failures else move
        self.failures += 1
        return self.phrase(move, text, self.failures)

    def phrase(self, move: str, text: str, place: int = 0) -> str:
        """Return one of the pack's phrases for a move, in the language of a text; "…" if the pack has none. `place`
        selects the phrase: its index, which wraps around."""
        found = phrases(self.pack, move, language_of(text, self.pack.languages))
        return found[place % len(found)] if found else "…"


class Speech:
    """An answer of the talker: the parts of the model's reply, and the words in them that are shown.

        async with aclosing(speech.parts) as parts:
            async for part in parts:
                words = speech.read(part)

    Attributes:
        parts: the parts of the reply, to be read until `ended`, and to be closed.
    """

    def __init__(self, model: Model, question: Talk, handover: Handover) -> None:
        self.parts = model.reply(Request(question, question.role))
        self._name, self._question, self._handover = model.name, question, handover
        self._filter, self._has_words = self._new_filter(), False

    @property
    def ended(self) -> bool:
        """Whether the rest of the reply is discarded, because the talker waits for the reasoner."""
        return self._handover.ended

    def read(self, part: ReplyPart) -> str:
        """Return the words of a part that are shown now, without links that no trusted text contains."""
        words = self._handover.read(part.text) if isinstance(part, Piece) else ""
        words = self._filter.feed(words) if words else ""
        self._has_words = self._has_words or is_visible(words)
        return words

    def finish(self) -> str:
        """Return the last words, at the end of the reply.

        If the reply has no words, they are the offer, or else the question, in the briefing of a reasoner that has
        processed the utterance.

        Raises:
            ReplyInvalid: the reply has no words and is no decision to wait, and no briefing has words that can be
                shown.
        """
        question, rest = self._question, self._filter.feed(self._handover.finish(), last=True)
        if self._has_words or is_visible(rest):
            return rest
        if question.thought and (words := question.briefing.offer or question.briefing.ask):
            return rest + self._new_filter().feed(words, last=True)
        if self._handover.way != "wait":
            raise ReplyInvalid(f"{self._name} answered {question.label()!r} with no words")
        return rest

    def _new_filter(self) -> LinkFilter:
        question = self._question
        return LinkFilter(lambda: links(question.texts()), lambda: links(question.own_texts()))


HELD = 8
"""Maximum number of lines that are listed if none is near the question: belief and plan first, then statements of the
user, notes and memories."""
SHARE, LIKENESS, NEAREST = 0.5, 0.15, 3
"""A line from memory is quoted if it has at least this share of the question's words, or at least this similarity in
meaning; maximum number of such lines."""


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
        if (hint and hint.alarm.is_danger) or spoke_of_danger(
            self.ask.pack, self.said
        ):  # do not repeat words about danger
            return [self.say("alarm_heard"), "" if self.ask.asked_after else self.say("alarm_open")]
        if self.ask.utterance.rstrip().endswith(("?", "？")) and (quoted := self._quoted()):
            return [quoted]
        heard = [self._fresh(topic.acknowledge) for topic in self.topics[:2]]
        if self.ask.asked_after:
            return heard or [self.say("heard")]
        return [*heard, self.say("check_in", title=now.title) if now and now.told else self._question()]

    def _question(self) -> str:
        """Return the reasoner's question, else the first question about an unknown field of the phase that was not
        asked yet, else a general one."""
        known = {*self.ask.belief, *(topic.field for topic in self.topics)}
        fields = [self.ask.pack.fields[name] for name in self.ask.phase.fields if name not in known]
        asked = (each for field in fields for each in choices(field.ask, self.language)[:1])
        new = next((each for each in asked if not any(each in text for text in self.said)), "")
        return self.ask.briefing.ask or new or self.say("ask_more")

    def _quoted(self) -> str:
        """Quote the fields named in the question, and the user's statements that are nearest to it.

        The rule cannot decide which of these answers the question or is still true, so it lists all of them, the newest
        statements first.
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
        """Return the user's statements (no questions), notes and recalled memories, each with its day: the statements
        in this conversation first, newest first, then those in other conversations, then notes and memories."""
        mine = [(each.day, each.text) for each in (*self.ask.recalled, *self.ask.notes)]
        before = (line for line in self.ask.history if isinstance(line, DatedLine))
        mine += [(line.day, line.text) for line in (*self.ask.talks, *before) if line.by_user]
        mine += [(self.say("this_talk"), line.text) for line in self._own if line.by_user]
        plain = ((day, text.strip("“”")) for day, text in reversed(mine))
        return list(dict.fromkeys((day, text) for day, text in plain if not text.endswith(("?", "？"))))

    def _held(self) -> dict[str, str]:
        """Return the fields of the belief and the plan as texts, by name."""
        held = {name.replace("_", " "): self._list(value) for name, value in self.ask.belief.items()}
        plan = [f"{step.title} ({MARKS[step.state]})" for step in self.ask.plan.steps]
        return held | ({self.say("plan"): "; ".join(plan)} if plan else {})

    def _nearest(self, told: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return at most NEAREST lines that contain at least half (SHARE) of the question's words or are similar to it
        in meaning, in their given order. Similarity is measured only in English, and only if the question contains no
        topic of the pack."""
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
