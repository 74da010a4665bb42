"""`Talker` answers at once, from memory, belief, plan and the reasoner's briefing (Christakopoulou 2024, 3.2.1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from datetime import tzinfo
from typing import Any, ClassVar

from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief.belief import plan_of, read_briefing
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.events import LeftUnsaid
from mindstream.coach.gates.gate import Situation
from mindstream.coach.handover import Handover
from mindstream.coach.packs.load import fresh, phrases
from mindstream.coach.packs.pack import Pack, Phase, zone_in
from mindstream.errors import BudgetSpent, ModelError, ModelRefused, ReplyInvalid
from mindstream.log.events import Failed, Said
from mindstream.memory.conversation import DatedLine, Line, Note
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.store.store import Entry
from mindstream.minds.context import gather_context
from mindstream.models.model import Message, Model, Piece, Request
from mindstream.models.prompt import Prompt
from mindstream.reasoners.reasoner import Briefing
from mindstream.text.context import Part, fit
from mindstream.text.links import LinkFilter, links
from mindstream.text.words import language_of


class Talk(Prompt[str]):
    """Answer the utterance now.

    Attributes:
        exemplars: answers of other agents to similar questions; they contain nothing about this user.
        earlier: number of older lines of this conversation that are not shown.
        decides: whether the reply begins with the talker's decision (see coach/handover).
        late: whether the reasoner is still running; the answer must not anticipate its result.
        thought: whether the reasoner has processed this utterance.
        one_answer: whether no follow-up is possible after the answer.
        unsaid: the reasoner's follow-up to the last answer, which could not be sent.
        called_for: advice to give in the talker's own words, such as to see a doctor.
        before: an alarm's words that precede the answer.
        asked_after: an alarm's question that follows the answer; the answer itself then asks nothing.
        now: the user's local day and hour; "": unknown.
    """

    role: ClassVar[str] = "talker"

    pack: Pack
    phase: Phase
    belief: dict[str, JsonValue]
    plan: CoachingPlan
    briefing: Briefing = Briefing()
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

    def texts(self) -> Iterator[str]:
        """Yield the texts whose links an answer may contain: conversation, notes, plan, and the pack's resources.

        Exemplars are third-party content, so a link that only they contain is removed from the answer.
        """
        yield from self.own_texts()
        yield from (step.full() for step in self.plan.steps)
        yield from (note.text for note in (*self.notes, *self.recalled))
        yield self.briefing.offer

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose addresses a page may load without a click (images): the conversation and the pack.

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
ITEMS = (2, 4)
"""Number of the newest items of a belief's list in the prompt: if the prompt has all conversations, and otherwise."""


class Talker:
    """Ask the model for an answer, and choose phrases that need no model.

    Args:
        exemplars: finds answers to similar questions for the prompt. Nothing is offered to it.
        zone: the user's time zone, unless the belief has another one; None: unknown, so no hour is mentioned.
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
        """Why the last search for exemplars failed; the same reason is logged once."""

    async def situation(self, text: str) -> Situation:
        """Return the state of the conversation for an utterance, read once per turn."""
        erasures = await self.stream.store.last_erasure()  # before anything is read
        belief = await self.stream.belief(self.pack.name, self.pack.belief)
        plan = await plan_of(self.stream, self.pack)
        newest = await self.stream.latest("chat", 3, episode=self.session)
        value = belief.value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        said = [line.text for line in newest if not line.data.get("by_user")]
        return Situation(text, phase, value, belief.version, plan, said[-1] if said else "", erasures)

    def is_outdated(self, situation: Situation) -> bool:
        """Return whether this process has seen a newer version of the belief."""
        record = self.stream.last_version(self.pack.name)
        return record is not None and (record.version or 0) != situation.version

    async def speak(
        self, situation: Situation, heard: int, handover: Handover | None = None, **more: Any
    ) -> AsyncGenerator[str]:
        """Yield the answer to an utterance in pieces, without links that no trusted text contains.

        Args:
            heard: the log row of the utterance.
            handover: receives the talker's decision before the first piece; None: the talker makes no decision.
            more: further fields of the prompt (`Talk`).

        Raises:
            ModelError: the endpoint failed; pieces that were already yielded stay valid.
            ReplyInvalid: the reply has no words and is not a decision to wait. If the reasoner has processed the
                utterance, its briefing is the answer instead.
        """
        handover = handover or Handover(may_wait=False)
        question = (await self.question(situation, heard)).model_copy(update=more)
        given = LinkFilter(lambda: links(question.texts()), lambda: links(question.own_texts()))
        said = False
        async with aclosing(self.model.reply(Request(question, question.role))) as parts:
            async for part in parts:
                words = handover.read(part.text) if isinstance(part, Piece) else ""
                if words and (words := given.feed(words)):
                    said = said or any(sign.isprintable() and sign != " " for sign in words)
                    yield words
                if handover.ended:
                    break
        if rest := given.feed(handover.finish(), last=True):
            said = said or any(sign.isprintable() and sign != " " for sign in rest)
            yield rest
        if not said and question.thought and (words := question.briefing.offer or question.briefing.ask):
            briefed = LinkFilter(lambda: links(question.texts()), lambda: links(question.own_texts()))
            yield briefed.feed(words, last=True)
        elif not said and handover.way != "wait":
            raise ReplyInvalid(f"{self.model.name} answered {question.label()!r} with no words")

    async def question(self, situation: Situation, heard: int) -> Talk:
        """Build the prompt: utterance, memory, belief, plan, briefing and history (equation 2)."""
        memory = await gather_context(self.stream, self.session, situation.text, heard, self.pack.name)
        shown = ITEMS[0] if memory.has_all else ITEMS[1]
        newest = {name: held[-shown:] if isinstance(held, list) else held for name, held in situation.belief.items()}
        zone = zone_in(self.pack, situation.belief) or self._zone
        return Talk(
            pack=self.pack,
            phase=situation.phase,
            belief={name: held for name, held in newest.items() if held not in (None, [], "")},
            plan=situation.plan,
            briefing=await read_briefing(self.stream, self.pack.name),
            notes=memory.notes,
            recalled=memory.recalled,
            talks=memory.talks,
            exemplars=await self._find_exemplars(situation.text) if self._exemplars else (),
            history=memory.history,
            earlier=memory.left_out,
            utterance=situation.text,
            now=format_spoken(self.stream.clock.now(), zone) if zone else "",
        )

    async def unsaid(self) -> str:
        """Return the follow-up to the last answer that could not be sent; "" if there is none."""
        store, key = self.stream.store, self.stream.key
        left, said = await store.last(key, LeftUnsaid.kind), await store.last(key, Said.kind)
        if left is None or not isinstance(left.event, LeftUnsaid) or (said and said.seq > left.seq):
            return ""
        return left.event.text

    async def _find_exemplars(self, text: str) -> tuple[str, ...]:
        """Return the exemplars that fit into EXEMPLAR_TOKENS; () if the search fails."""
        found, missed = await find_examples(self._exemplars, text, EXEMPLAR_S)
        if missed and missed != self._missed:
            await self.stream.commit(Entry(Failed(text=missed, where="exemplars"), AGENT))
        self._missed = missed
        return tuple(map(str, fit([Part("exemplars", found)], EXEMPLAR_TOKENS).kept("exemplars", found)))

    async def filler(self, text: str, move: str = "wait") -> str:
        """Return a phrase to say while the user waits. It states nothing, and was not said lately."""
        newest = await self.stream.latest("chat", 1)
        lately = max(0, newest[0].seq - 200) if newest else 0
        waits = await self.stream.store.events(self.stream.key, kinds=["waiting"], after=lately)
        said = [str(getattr(logged.event, "text", "")) for logged in waits]
        return fresh(phrases(self.pack, move, language_of(text, self.pack.languages)), said, len(said))

    def excuse(self, failure: BaseException, text: str) -> str:
        """Return the explanation of a failure: the whole text at first, shorter when it repeats."""
        move = "model_failed" if isinstance(failure, ModelError) else "fault"
        move = "model_refused" if isinstance(failure, ModelRefused) else move
        move = "budget_spent" if isinstance(failure, BudgetSpent) else move
        move = "model_still_failed" if move == "model_failed" and self.failures else move
        self.failures += 1
        return self.phrase(move, text, self.failures)

    def phrase(self, move: str, text: str, place: int = 0) -> str:
        """Return one of the pack's phrases for a move, in the language of a text."""
        found = phrases(self.pack, move, language_of(text, self.pack.languages))
        return found[place % len(found)] if found else "…"
