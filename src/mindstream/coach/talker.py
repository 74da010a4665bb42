"""The Talker: fast, always on; answers from what memory holds (Christakopoulou 2024, 3.2.1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, ClassVar

from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief.belief import plan_of
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.briefing import briefing_of
from mindstream.coach.events import LeftUnsaid
from mindstream.coach.gates.gate import Situation
from mindstream.coach.handover import Handover, without_marks
from mindstream.coach.packs.load import fresh, phrases
from mindstream.coach.packs.pack import Pack, Phase, zone_in
from mindstream.errors import BudgetSpent, ModelError, ModelRefused, ReplyInvalid
from mindstream.log.events import Failed, Said
from mindstream.memory.memory import Memory
from mindstream.memory.recall.exemplars import Exemplars, find_examples
from mindstream.memory.recall.relevance import LOW_CERTAINTY
from mindstream.memory.store.record import Kind, Record
from mindstream.memory.store.store import Entry
from mindstream.models.model import Message, Model, Request
from mindstream.models.prompt import Prompt
from mindstream.models.reply import legible_parts
from mindstream.reasoners.conversation import DatedLine, Line, Note, dated_line, lines, lines_of_talks, note
from mindstream.reasoners.reasoner import Briefing
from mindstream.text.context import Part, fit
from mindstream.text.links import links, pieces_without_links
from mindstream.text.words import language_of


class Talk(Prompt[str]):
    """Answer the utterance now.

    `decides`: the reply begins with who answers (see coach/handover). `late`: a Reasoner is still at it; say nothing
    that is its to say. `thought`: it has thought about this utterance. `one_answer`: nothing can follow.
    `called_for`: what a sign for a doctor, or of a danger, calls for, to be said in the answer's own words;
    `before`: what an alarm of the pack says ahead of the answer; `asked_after`: what is asked because of a hint of one,
    after the answer, which then asks nothing.
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
    """Lines of earlier talks."""
    exemplars: tuple[str, ...] = ()
    """How others answered like questions: data, of which nothing is about this user; rules make nothing of them."""
    history: tuple[Line, ...]
    earlier: int = 0
    """How many older lines of this talk are not shown."""
    utterance: str
    decides: bool = False
    late: bool = False
    thought: bool = False
    one_answer: bool = False
    unsaid: str = ""
    """What the Reasoner would have added to the last answer, where nothing could follow it."""
    called_for: str = ""
    before: str = ""
    asked_after: str = ""
    now: str = ""
    """The hour and the day where they live, if that is known."""

    def texts(self) -> Iterator[str]:
        """Yield the texts whose links an answer may name: what was said, noted and planned, and the pack's resources.

        Exemplars are third-party content: a link that only they contain is not named.
        """
        yield from self.own_texts()
        yield from (step.full() for step in self.plan.steps)
        yield from (note.text for note in (*self.notes, *self.recalled))
        yield self.briefing.offer

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose addresses a page may load by itself (images): the conversation and the pack.

        Notes and recalled memories may be based on third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.utterance, self.before)
        yield from (resource.link for resource in self.pack.resources if resource.link)

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in self.history]


AGENT = "coach"
"""Signs what the Talker says."""
EXEMPLAR_TOKENS = 1_000
"""What exemplars may take in a prompt; those that do not fit are dropped from the last."""
EXEMPLAR_S = 2.0
"""So long an answer waits for them."""


class Talker:
    """Finds the words for an answer.

    Args:
        exemplars: who finds answers to like questions for the model to see. Nothing is ever offered to them here.
        zone: where the user lives, unless they say another; None: nobody knows, and no hour is spoken of.
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
        """How often in a row there was no answer."""
        self._exemplars, self._zone = exemplars, zone
        self._missed = ""
        """Why there were no exemplars the last time; it is logged once."""

    async def situation(self, text: str) -> Situation:
        """Return what is known before anybody thinks about an utterance."""
        belief = await self.stream.belief(self.pack.name, self.pack.belief)
        plan = await plan_of(self.stream, self.pack)
        newest = await self.stream.latest("chat", 3, episode=self.session)
        value = belief.value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        said = [line.text for line in newest if not line.data.get("by_user")]
        return Situation(text, phase, value, plan.now is not None, said=said[-1] if said else "")

    async def speak(self, text: str, heard: int, handover: Handover | None = None, **more: Any) -> AsyncGenerator[str]:
        """Yield the answer to what was heard (its seq) in pieces.

        Args:
            handover: learns, before the first piece comes, how the Talker has decided; without one it does not.
            more: other fields of Talk.

        Raises:
            ModelError: the endpoint failed; pieces that came before stand.
            ReplyInvalid: it said nothing at all, and does not wait.
        """
        handover = handover or Handover(may_wait=False)
        question = (await self.question(text, heard)).model_copy(update=more)
        request, said = Request(question, question.role), False
        reply = without_marks(legible_parts(self.model.reply(request)), handover)
        given, loaded = lambda: links(question.texts()), lambda: links(question.own_texts())
        async with aclosing(pieces_without_links(reply, given, loaded)) as pieces:
            async for piece in pieces:
                said = said or any(sign.isprintable() and sign != " " for sign in piece)
                yield piece
        if not said and handover.way != "wait":
            raise ReplyInvalid(f"{self.model.name} answered {question.label()!r} with no words")

    async def question(self, text: str, heard: int) -> Talk:
        """Gather what the Talker answers from: the newest utterance, memory, belief, plan, history (equation 2)."""
        memory = await gather_context(self.stream, self.session, text, heard, self.pack.name)
        belief = await self.stream.belief(self.pack.name, self.pack.belief)
        plan = await plan_of(self.stream, self.pack)
        briefing = await briefing_of(self.stream, self.pack.name)
        value: dict[str, JsonValue] = belief.value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        zone = zone_in(self.pack, value) or self._zone
        return Talk(
            pack=self.pack,
            phase=phase,
            belief=_newest_of(value, memory.has_all),
            plan=plan,
            briefing=briefing,
            notes=memory.notes,
            recalled=memory.recalled,
            talks=memory.talks,
            exemplars=await self._shots(text) if self._exemplars else (),
            history=memory.history,
            earlier=memory.left_out,
            utterance=text,
            now=format_spoken(self.stream.clock.now(), zone) if zone else "",
        )

    async def unsaid(self) -> str:
        """Return what would have been added to the last answer if anything could have followed it."""
        store, key = self.stream.store, self.stream.key
        left, said = await store.last(key, LeftUnsaid.kind), await store.last(key, Said.kind)
        current = left and isinstance(left.event, LeftUnsaid) and not (said and said.seq > left.seq)
        return left.event.text if current else ""  # type: ignore[union-attr]

    async def _shots(self, text: str) -> tuple[str, ...]:
        """Return the exemplars that fit, as they may be served now; whatever is wrong with them, none."""
        found, missed = await find_examples(self._exemplars, text, EXEMPLAR_S)
        if missed and missed != self._missed:
            await self.stream.commit(Entry(Failed(text=missed, where="exemplars"), AGENT))
        self._missed = missed
        return tuple(map(str, fit([Part("exemplars", found)], EXEMPLAR_TOKENS).kept("exemplars", found)))

    async def filler(self, text: str, move: str = "wait") -> str:
        """Return what is said while waiting, or (another move) when it takes long: it states nothing."""
        language = language_of(text, self.pack.languages)
        waits = await self.stream.store.events(self.stream.key, kinds=["waiting"], after=await self._lately())
        said = [str(getattr(logged.event, "text", "")) for logged in waits]
        return fresh(phrases(self.pack, move, language), said, len(said))

    def excuse(self, failure: BaseException, text: str) -> str:
        """Return what is true of a failure, for whoever waits for an answer: in full at first, then shorter."""
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

    async def _lately(self) -> int:
        """Return a seq some way back, so that looking for what was said lately stays cheap in a long life."""
        newest = await self.stream.latest("chat", 1)
        return max(0, newest[0].seq - 200) if newest else 0


async def as_pieces(words: str) -> AsyncGenerator[str]:
    """Give words that are ready in pieces, as if they were spoken."""
    for line in words.splitlines(keepends=True):
        yield line


HISTORY_TOKENS, EARLIER_TOKENS, MEMORY_TOKENS = 3_000, 800, 450
"""What this talk, what was said before it, and all else that memory holds may take in a prompt."""
ITEMS = (2, 4)
"""So many items of a belief's list are shown: where all that was said is shown, and where it is not."""
HISTORY, NOTES, RECALLED = 60, 20, 12
"""So many lines of talk, notes of others than the Reasoner, and memories are shown."""
RECALLED_KINDS: tuple[Kind, ...] = ("note", "thought", "observation", "document", "chat")


@dataclass(frozen=True, slots=True)
class TalkContext:
    """What fits into a prompt, the most needed first: this talk, what was recalled, notes, earlier talks.

    Attributes:
        history: lines of this talk, and the newest of those before it; `left_out`: how many older ones of this talk are
            not shown; `has_all`: nothing that was ever said is left out.
        recalled: what the user's words bring up, beside the notes. `talks`: lines of earlier talks, the newest last:
            what the words bring up of them, then as many of the newest as fit.
    """

    history: tuple[Line, ...]
    left_out: int
    has_all: bool
    recalled: tuple[Note, ...]
    notes: tuple[Note, ...]
    talks: tuple[DatedLine, ...]


async def gather_context(
    stream: Memory, session: str, text: str, heard: int, believer: str | None = None
) -> TalkContext:
    """Gather what an utterance (its words, and its row of the log) is answered from.

    Args:
        believer: the reasoner whose notes are left out, because they repeat its belief; None: no notes are left out.
    """
    newest = await stream.latest("chat", HISTORY)
    own = next((record.id for record in newest if record.seq == heard), "")
    try:
        found = await stream.recall(text, k=RECALLED, kinds=RECALLED_KINDS, floor=LOW_CERTAINTY, asked_in=own)
    except ModelError:  # an embedder that cannot be had: what is newest must do
        return await context_without_recall(stream, session, heard, believer)
    return await fit_context(stream, session, heard, newest, [each.record for each in found], believer)


async def context_without_recall(stream: Memory, session: str, heard: int, believer: str | None = None) -> TalkContext:
    """Gather what is newest."""
    return await fit_context(stream, session, heard, await stream.latest("chat", HISTORY), believer=believer)


async def fit_context(
    stream: Memory,
    session: str,
    heard: int,
    newest: Sequence[Record],
    found: Sequence[Record] = (),
    believer: str | None = None,
) -> TalkContext:
    """Fit what is newest and what was found into the budget."""
    talk = [record for record in newest if record.episode == session]
    if len(newest) == HISTORY and len(talk) < HISTORY:  # other talks go on beside this one
        talk = await stream.latest("chat", HISTORY, episode=session)
    own = [record for record in talk if record.seq < heard or not record.data.get("by_user")]
    own_lines = lines(own)
    fits = fit([Part("history", own_lines, "last")], HISTORY_TOKENS)
    began = min((record.seq for record in talk), default=heard)
    earlier = [record for record in newest if record.episode != session and record.seq < began]
    before = [] if fits.cut["history"] else _newest(earlier, EARLIER_TOKENS)
    shown = {record.id for record in (*talk, *before)}
    now = stream.clock.now()
    notes = [note(record, now) for record in await stream.latest("note", NOTES) if record.by != believer]
    recalled = [note(record, now) for record in found if record.kind != "chat" and record.by != believer]
    others = [each for each in recalled if each not in notes]
    brought_up = [record for record in found if record.kind == "chat" and record.id not in shown]
    again = {record.id for record in brought_up} | shown
    older = [record for record in newest if record.id not in again and record.data.get("by_user")]
    memory = fit(
        [
            Part("recalled", others),
            Part("brought up", [dated_line(record, now) for record in brought_up]),
            Part("notes", notes, "last"),
            Part("older", [dated_line(record, now) for record in older], "last"),
        ],
        MEMORY_TOKENS,
    )
    talks = sorted(
        [*memory.kept("brought up", brought_up), *memory.kept("older", older)], key=lambda record: record.seq
    )
    return TalkContext(
        history=lines_of_talks(
            [*before, *fits.kept("history", own)],
            session,
            now,
            {record.id: line for record, line in zip(own, own_lines, strict=True)},
        ),
        left_out=fits.cut["history"],
        has_all=len(newest) < HISTORY and not fits.cut["history"] and len(before) == len(earlier),
        recalled=memory.kept("recalled", others),
        notes=memory.kept("notes", notes),
        talks=tuple(dated_line(record, now) for record in talks),
    )


def _newest_of(belief: Mapping[str, JsonValue], has_all: bool) -> dict[str, JsonValue]:
    """Return what is held of a belief, of each list its newest items: few where all that it rests on is shown, too."""
    kept = ITEMS[0] if has_all else ITEMS[1]
    shown = {name: held[-kept:] if isinstance(held, list) else held for name, held in belief.items()}
    return {name: held for name, held in shown.items() if held not in (None, [], "")}


def _newest(records: Sequence[Record], tokens: int) -> list[Record]:
    """Return the newest records of talk that fit."""
    return list(fit([Part("lines", lines(records), "last")], tokens).kept("lines", records))
