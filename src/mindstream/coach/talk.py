"""What the Talker is asked: the answer to an utterance, from what memory holds (Christakopoulou 2024, eq. 1, 2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import JsonValue

from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.packs.pack import Pack, Phase
from mindstream.models.model import Message
from mindstream.models.prompt import Prompt
from mindstream.reasoners.conversation import DatedLine, Line, Note
from mindstream.reasoners.reasoner import Briefing


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
