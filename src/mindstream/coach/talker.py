"""The Talker: fast, always on; answers from what memory holds (Christakopoulou 2024, 3.2.1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief.belief import plan_of
from mindstream.coach.context import TalkContext, context_without_recall, gather_context
from mindstream.coach.gates.gate import Situation
from mindstream.coach.open_question import Timing, open_question
from mindstream.coach.packs.filler import states
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.saying import fresh, phrases
from mindstream.coach.talk import Talk
from mindstream.coach.talk_rules import answer_by_topics_and_moves
from mindstream.log.events import Failed
from mindstream.memory.exemplars import Exemplars, find_examples
from mindstream.memory.store import Entry
from mindstream.memory.stream import Stream
from mindstream.models.ask import speak
from mindstream.models.model import Model
from mindstream.text.context import Part, fit
from mindstream.text.language import language_of
from mindstream.text.links import links, pieces_without_links

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
    """

    def __init__(
        self, stream: Stream, pack: Pack, model: Model, session: str, exemplars: Exemplars | None = None
    ) -> None:
        self.stream, self.pack, self.model, self.session = stream, pack, model, session
        self._timing = Timing(pack)
        self._exemplars = exemplars
        self._missed = ""
        """Why there were no exemplars the last time; it is logged once."""

    async def situation(self, text: str) -> Situation:
        """Return what is known before anybody thinks about an utterance."""
        value = (await self.stream.belief(self.pack.name, self.pack.belief)).value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        said = [
            line.text
            for line in await self.stream.latest("chat", 3, episode=self.session)
            if not line.data.get("by_user")
        ]
        now = (await plan_of(self.stream, self.pack)).now
        told = now if now and now.told else None
        return Situation(text, phase, value, now is not None, said=said[-1] if said else "", told=told)

    async def speak(self, text: str, heard: int, late: bool = False, **more: bool | str) -> AsyncGenerator[str]:
        """Yield the answer to what was heard (its seq) in pieces; `more`: other fields of Talk."""
        question = (await self.question(text, heard, late)).model_copy(update=more)
        pieces = pieces_without_links(speak(self.model, question), lambda: links(question.texts()))
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece

    async def question(self, text: str, heard: int, late: bool = False) -> Talk:
        """Gather what the Talker answers from: the newest utterance, memory, belief, plan, history (equation 2)."""
        asked = await self._asked(text, late, await gather_context(self.stream, self.session, text, heard))
        return asked.model_copy(update={"exemplars": await self._shots(text)}) if self._exemplars else asked

    async def _shots(self, text: str) -> tuple[str, ...]:
        """Return the exemplars that fit, as they may be served now; whatever is wrong with them, none."""
        found, missed = await find_examples(self._exemplars, text, EXEMPLAR_S)
        if missed and missed != self._missed:
            await self.stream.commit(Entry(Failed(text=missed, where="exemplars"), AGENT))
        self._missed = missed
        return tuple(map(str, fit([Part("exemplars", found)], EXEMPLAR_TOKENS).kept("exemplars", found)))

    async def answer_by_rule(self, text: str, heard: int, late: bool = False) -> str:
        """Answer by rule, where the model cannot."""
        memory = await context_without_recall(self.stream, self.session, text, heard)
        words: str = answer_by_topics_and_moves(await self._asked(text, late, memory))
        return words

    async def filler(self, text: str, move: str = "wait") -> str:
        """Return what is said while waiting, or (another move) when it takes long: it states nothing."""
        language = language_of(text, self.pack.languages)
        waits = await self.stream.store.events(self.stream.name, kinds=["waiting"], after=await self._lately())
        said = [str(getattr(logged.event, "text", "")) for logged in waits]
        fillers = [filler for filler in phrases(self.pack, move, language) if not states(filler, [text])]
        return fresh(fillers, said, len(said))

    async def _lately(self) -> int:
        """Return a seq some way back, so that looking for what was said lately stays cheap in a long life."""
        newest = await self.stream.latest("chat", 1)
        return max(0, newest[0].seq - 200) if newest else 0

    async def _asked(self, text: str, late: bool, memory: TalkContext) -> Talk:
        belief = await self.stream.belief(self.pack.name, self.pack.belief)
        value: dict[str, JsonValue] = belief.value.model_dump(mode="json")
        phase = self.pack.phase(str(value.pop("phase", "")))
        plan = await plan_of(self.stream, self.pack)
        wanted = await open_question(self.stream, self.pack.name, phase.name)
        situation = Situation(text, phase, value, plan.now is not None)
        ask_next, asked_before = self._timing.may_ask(wanted, memory.history, situation)
        return Talk(
            pack=self.pack,
            phase=phase,
            belief={name: held for name, held in value.items() if held not in (None, [], "")},
            plan=plan,
            notes=memory.notes,
            recalled=memory.recalled,
            talks=memory.talks,
            answer=memory.answer,
            history=memory.history,
            earlier=memory.left_out,
            utterance=text,
            late=late,
            ask_next=ask_next,
            asked_before=asked_before,
            now=format_spoken(self.stream.clock.now()),
        )


async def as_pieces(words: str) -> AsyncGenerator[str]:
    """Give words that are ready in pieces, as if they were spoken."""
    for line in words.splitlines(keepends=True):
        yield line


async def after(first: str, pieces: AsyncGenerator[str]) -> AsyncGenerator[str]:
    """Give what comes first, if there is any, then the pieces."""
    async with aclosing(pieces):
        if first:
            yield first
        async for piece in pieces:
            yield piece


async def then(pieces: AsyncGenerator[str], last: str) -> AsyncGenerator[str]:
    """Give the pieces, then what comes last, if there is any."""
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece
        if last:
            yield last
