"""What a companion is asked: the answer to an utterance, from what is remembered of whoever says it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from mindstream.models.model import Message
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import DatedLine, Line, Note
from mindstream.text.words import terms

QUOTED = 3
"""So many lines are quoted where no model is configured."""


class CompanionTalk(Prompt[str]):
    """Answer the utterance, as whoever remembers this person.

    `instructions`: what the page of this talk asks of whoever answers. `beside`: what it found for these words.
    """

    role: ClassVar[str] = "talker"

    instructions: str = ""
    beside: str = ""
    notes: tuple[Note, ...] = ()
    recalled: tuple[Note, ...] = ()
    talks: tuple[DatedLine, ...] = ()
    history: tuple[Line, ...] = ()
    earlier: int = 0
    """How many older lines of this talk are not shown."""
    utterance: str
    now: str = ""

    def texts(self) -> Iterator[str]:
        """Yield the texts whose links an answer may name."""
        yield from self.own_texts()
        yield self.beside
        yield from (note.text for note in (*self.notes, *self.recalled))

    def own_texts(self) -> Iterator[str]:
        """Yield the texts whose addresses a page may load by itself (images): the conversation and its instructions.

        Documents beside the words, notes and recalled memories may be third-party content.
        """
        yield from (line.text for line in (*self.history, *self.talks))
        yield from (self.instructions, self.utterance)

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in self.history]


@rule(CompanionTalk)
def quote_what_is_remembered(ask: CompanionTalk) -> str:
    """Stand in: say so, and quote what shares words with the utterance."""
    asked = {*terms(ask.utterance)}
    held: list[Note | DatedLine] = [*ask.notes, *ask.recalled, *(line for line in ask.talks if line.by_user)]
    near = sorted(held, key=lambda each: -len(asked & {*terms(each.text)}))[:QUOTED]
    quoted = [f"- {each.day}: {each.text}" for each in near if asked & {*terms(each.text)}]
    told = "What I remember of that:\n" + "\n".join(quoted) if quoted else "I have kept it."
    return f"(No model is configured: I only remember.) {told}"
