"""`Talker` answers at once, from memory, belief, plan and the reasoner's briefing (Christakopoulou 2024, 3.2.1).

Without a model, a rule answers with a pack's phrases and quotations from memory (`answer_from_pack`).

A `Gate` decides whether an answer waits for the reasoner. `Handover` is the talker's own decision: a mark such as
`[WAIT]` at the beginning of its reply, so that one model call both decides and answers. Users never see the mark. See
docs/gates.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief.belief import plan_of, read_briefing
from mindstream.coach.belief.plan import MARKS, CoachingPlan
from mindstream.coach.events import Decided, Judged, LeftUnsaid
from mindstream.coach.packs.load import fresh, list_in, phrases, say
from mindstream.coach.packs.pack import Lists, Pack, Phase, Topic, choices, topics_in, zone_in
from mindstream.coach.packs.safety import find_hint, spoke_of_danger
from mindstream.errors import BudgetSpent, ModelError, ModelRefused, ReplyInvalid, SettingsError
from mindstream.foreign_code import describe
from mindstream.json_values import JsonObject
from mindstream.log.events import BeliefChanged, Failed, PlanChanged, Said
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.store.store import Entry
from mindstream.minds.responder import Part, fit, gather_context
from mindstream.models.embedders.embedder import vectors
from mindstream.models.model import Message, Model, Piece, Request
from mindstream.models.model import Part as ReplyPart
from mindstream.models.prompt import Prompt, rule
from mindstream.models.rules import Rules
from mindstream.models.untrusted import HALF, is_visible, legible
from mindstream.reasoners.reasoner import Briefing, RunResult, Utterance
from mindstream.text.links import LinkFilter, links
from mindstream.text.words import Language, language_of, terms


@dataclass(frozen=True, slots=True)
class Situation:
    """An utterance, and the state of the conversation before its answer.

    Attributes:
        phase: the phase of the conversation, according to the belief.
        belief: the other fields of the belief.
        version: the version of the belief.
        said: the last answer in this session; "" before the first one.
        erasures: the number of the last erasure of stored words at the time when belief and plan were read.
    """

    text: str
    phase: Phase
    belief: Mapping[str, JsonValue] = field(default_factory=dict)
    version: int = 0
    plan: CoachingPlan = field(default_factory=CoachingPlan)
    said: str = ""
    erasures: int = 0

    @property
    def has_plan(self) -> bool:
        """Whether the plan has a current step."""
        return self.plan.now is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about an utterance.

    Attributes:
        waits: whether the talker waits for the reasoner before it answers.
        thinks: whether the reasoner is woken. False: the reasoner sees the utterance when it is woken the next time.
        why: the reason in a few words, for the log.
        hands_over: whether the talker decides about waiting, at the beginning of its reply (see the top of this
            module).
    """

    waits: bool
    thinks: bool = True
    why: str = ""
    hands_over: bool = False


class Gate(Protocol):
    """Decides whether the answer to an utterance waits for the reasoner.

    The gate decides before the utterance is committed, and again if the answer had to wait for earlier answers.
    """

    @property
    def name(self) -> str:
        """The name of the gate in the log."""

    def decide(self, situation: Situation) -> Decision:
        """Return the decision within a millisecond, because the utterance is acknowledged only after it."""


class Gatekeeper:
    """Calls a gate safely.

    If the gate raises an error, `BeliefGate` (the rule of Christakopoulou 2024) decides. An utterance that hints at
    danger wakes the reasoner, whatever the decision.
    """

    def __init__(self, gate: Gate, pack: Pack) -> None:
        self.name = gate.name
        self._gate, self._pack = gate, pack

    def decide(self, situation: Situation) -> Decision:
        """Decide about an utterance. If the gate fails, `BeliefGate` decides; a hint of danger always wakes the
        reasoner."""
        try:
            decision = self._gate.decide(situation)
        except Exception as error:  # noqa: BLE001 (a gate is third-party code)
            decision = BeliefGate().decide(situation)
            decision = replace(decision, why=f"{decision.why} (the gate failed: {describe(error)})")
        if not decision.thinks and self.hints(situation.text):
            return replace(decision, thinks=True, why=f"a hint of danger; {decision.why}")
        return decision

    def hints(self, text: str) -> bool:
        """Return whether an utterance hints at danger."""
        return find_hint(self._pack, text) is not None


GATES = ("talker", "belief")


class BeliefGate:
    """The paper's rule (Christakopoulou 2024, 4.2): the answer waits in the phases that the pack marks.

    The reasoner is always woken.
    """

    name = "belief"

    def decide(self, situation: Situation) -> Decision:
        return Decision(situation.phase.waits, why=f"phase {situation.phase.name}")


class TalkerGate:
    """A gate that lets the talker's model decide whether the answer waits for the reasoner.

    The model states the decision by a mark such as `[WAIT]` at the beginning of its reply.
    """

    name = "talker"

    def decide(self, situation: Situation) -> Decision:
        return Decision(waits=False, why=f"the Talker's to say, in phase {situation.phase.name}", hands_over=True)


def gate_named(name: str, talker: Model) -> Gate:
    """Return a gate by name; "" is `talker` if a language model answers, otherwise `belief`.

    Raises:
        SettingsError: the name is unknown, or the gate needs a language model.
    """
    answers = talker.name != Rules.name
    if name == "belief" or not (name or answers):
        return BeliefGate()
    if name == "talker" and not answers:
        raise SettingsError("the gate 'talker' needs a language model for the role talker; use 'belief' without one")
    if name in ("", "talker"):
        return TalkerGate()
    raise SettingsError(
        f"unknown gate {name!r}; choose one of {', '.join(GATES)}, or leave the gate"
        " out (the default is talker with a model, belief without)"
    )


GATE_AUTHOR = "gate"


def judge_outcome(result: RunResult, written: Sequence[Entry], utterances: Sequence[Utterance]) -> list[Entry]:
    """Return log entries that judge the decisions about the utterances that a belief reasoner has processed.

    - `needed`: the answer should have waited, because the plan changed or the talker was corrected.
    - `changed`: the belief changed.

    If several utterances were processed together and had such an effect, only the newest utterance is judged, because
    it is unknown which utterance was the cause.
    """
    needs = {
        "plan": any(isinstance(entry.event, PlanChanged) for entry in written),
        "correction": bool(result.follow_up),
    }
    changed = any(isinstance(entry.event, BeliefChanged) for entry in written)
    why = ", ".join(name for name, found in needs.items() if found)
    about = utterances if not why and not changed else utterances[-1:]
    return [Entry(Judged(about=each.seq, needed=bool(why), changed=changed, why=why), GATE_AUTHOR) for each in about]


def decision_entry(decision: Decision, gate: str, phase: str, heard: int) -> Entry:
    """Return the log entry of a decision about an utterance (its seq)."""
    event = Decided(
        answers=heard, gate=gate, waits=decision.waits, thinks=decision.thinks, why=decision.why, phase=phase
    )
    return Entry(event, GATE_AUTHOR)


Way = Literal["alone", "think", "wait"]
"""The talker's decision.

- `alone`: the reasoner is not needed.
- `think`: the reasoner runs after the answer.
- `wait`: the answer waits for the reasoner.
"""

NAMES = ("wait", "alone", "think")
CLOSING = "*_`\"':.。"
EDGE = r"[\s*_`\"'#>~]{0,12}"
MARK = re.compile(rf"{EDGE}[\[［【<]\s*({'|'.join(NAMES)})\s*[\]］】>][*_`\"':.。]*", re.IGNORECASE)
OPEN = re.compile(rf"{EDGE}(?:[\[［【<]\s*([a-z]*)\s*)?$", re.IGNORECASE)
"""Matches the end of a text if it may be the beginning of a mark that the next piece completes."""
BARE = re.compile(rf"{EDGE}([A-Z]{{1,5}}){EDGE}\.?$")
"""Matches a mark without its brackets. Such a mark counts only if it is the whole reply."""


class Handover:
    """Read the talker's reply piece by piece; find and remove the marks of its decision, such as `[WAIT]`.

    Args:
        may_wait: whether a mark for waiting is obeyed; otherwise it is only removed.

    Attributes:
        way: the talker's decision; "wait" also if the mark for waiting comes at the end of the reply.
        ended: whether the reply began with the mark for waiting; the rest of the reply is then discarded.
    """

    def __init__(self, *, may_wait: bool = True) -> None:
        self.may_wait = may_wait
        self.way: Way = "think"
        self.ended = False
        self._half = self._held = ""
        self._began = self._asks = self._marked = False

    def read(self, piece: str) -> str:
        """Read a piece and return the text that can be shown now."""
        piece = self._half + piece
        self._half = piece[-1] if HALF.search(piece) else ""  # half a character waits for the other half
        text, shown = self._held + legible(piece.removesuffix(self._half)), ""
        while not self.ended and (mark := MARK.search(text)):
            before, text = text[: mark.start()], text[mark.end() :]
            shown += self._show(before)
            self._marked = True
            self._decide(mark[1].lower())
        if self.ended:
            self._held = ""
            return shown
        held = (None if self._began else BARE.match(text)) or OPEN.search(text)
        at = held.start() if held and any(name.startswith((held[1] or "").lower()) for name in NAMES) else len(text)
        self._held = text[at:]
        return shown + self._show(text[:at])

    def finish(self) -> str:
        """End the reply: return the text that was still held back. Set `way` if the whole reply is a mark without
        brackets, or if the reply ended with the mark for waiting."""
        rest, self._held = self._held, ""
        if not self._began and (bare := BARE.match(rest)) and bare[1].lower() in NAMES:
            self._decide(bare[1].lower())
            rest = ""
        if self._asks:
            self.way = "wait"
        return self._show(rest) if rest.strip() and not self.ended else ""

    def _show(self, text: str) -> str:
        if self._marked:
            text = text.lstrip(CLOSING)
            self._marked = not text
        text = text if self._began else text.lstrip()
        if text.strip():
            self._began, self._asks = True, False
        return text

    def _decide(self, name: str) -> None:
        if name == "wait" and not self.may_wait:
            return
        self._asks = name == "wait"
        if not self._began:
            self.way = name  # type: ignore[assignment]
            self.ended = self._asks


class Talk(Prompt[str]):
    """Answer the utterance now.

    Attributes:
        exemplars: lessons of a pool, and answers of other agents to similar questions.
        age: number of messages of the user that are newer than the briefing, without this message. If there are any,
            the prompt leaves out the briefing's question, which the talker may have asked already.
        earlier: number of older lines of this conversation that the prompt leaves out.
        decides: whether the reply begins with the talker's decision about waiting (see coach/talker.py).
        late: whether the reasoner has no result yet, although the answer has waited for it. If so, the answer must not
            anticipate the result.
        thought: whether the reasoner has processed this utterance.
        one_answer: whether no follow-up is possible after the answer.
        unsaid: the reasoner's follow-up to the last answer, which could not be sent.
        called_for: advice to give in the talker's own words, such as to see a doctor.
        before: an alarm's words that precede the answer.
        asked_after: an alarm's question that follows the answer; the answer itself then asks nothing.
        now: the user's local day and hour; "": unknown.
        later: the time from the last line to the utterance, such as "13 days later". "": less than 24 hours in the same
            conversation, or there is no earlier line.
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
        """Yield the texts whose links an answer may contain.

        These are the conversation, notes and recalled memories, the plan, the reasoner's offer, and the pack's
        resources. Exemplars are not among them: they are third-party content.
        """
        yield from self.own_texts()
        yield from (step.full() for step in self.plan.steps)
        yield from (note.text for note in (*self.notes, *self.recalled))
        yield self.briefing.offer

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose links (to images) a web page may load without a click.

        These are the conversation, and the links of the pack's resources. Notes and recalled memories are not among
        them, because they may be based on third-party content.
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
        """Return the exemplars that fit into EXEMPLAR_TOKENS; () if the search fails.

        A failure is logged, unless the last search failed for the same reason.
        """
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
    """An answer of the talker. It reads the parts of the model's reply, and returns the words that are shown.

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
        """Return the words of a part that can be shown now, without links that no trusted text contains.

        The result is "" while words are held back, and for a part that is no text.
        """
        words = self._handover.read(part.text) if isinstance(part, Piece) else ""
        words = self._filter.feed(words) if words else ""
        self._has_words = self._has_words or is_visible(words)
        return words

    def finish(self) -> str:
        """Return the last words, at the end of the reply.

        If the reply has no words, and the reasoner has processed the utterance, the words come from the reasoner's
        briefing: the offer, or else the question.

        Raises:
            ReplyInvalid: there are no words, neither in the reply nor in a briefing, and the talker did not decide to
                wait.
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
"""Maximum number of lines that the rule lists if no line is near the question. The lines of belief and plan come first,
then statements of the user, notes and memories."""
SHARE, LIKENESS, NEAREST = 0.5, 0.15, 3
"""Thresholds for quoting a line from memory. SHARE: minimum share of the question's words in the line. LIKENESS:
minimum similarity in meaning; one of the two is enough. NEAREST: maximum number of quoted lines."""


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
        # do not repeat words about danger
        if (hint and hint.alarm.is_danger) or spoke_of_danger(self.ask.pack, self.said):
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
        """Quote the fields of the belief and the plan that the question names, and the user's nearest statements.

        All these lines are listed, the newest statements first, because the rule cannot decide which line answers the
        question or is still true. If there are no such lines, list what is known, or return "" if the message has
        topics.
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
        """Return the user's statements (no questions), notes and recalled memories, each with its day.

        Statements in this conversation come first, the newest first. Then come statements in other conversations,
        notes, and recalled memories.
        """
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
        """Return at most NEAREST lines, in the given order, that share words with the question or are similar to it.

        A line needs at least half (SHARE) of the question's words, or the similarity LIKENESS in meaning. Similarity
        counts only in English, and only if the question contains no topic of the pack.
        """
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
