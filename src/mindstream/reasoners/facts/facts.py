"""The facts reasoner: statements of users about themselves become notes, which supersede outdated ones.

Source: Christakopoulou 2024, 3.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, ConfigDict, Field

from mindstream.clock import format_spoken
from mindstream.log.events import Remembered
from mindstream.memory.store.record import Record, normalised
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.ask import ask
from mindstream.models.model import Message, Model
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import Line, lines, user_statements
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, Trigger, Writing
from mindstream.text.classifier import Support, complaint
from mindstream.text.links import has_links, links, without_links


class Fact(BaseModel):
    """One fact about the user."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=500, description="One short sentence that stands on its own.")
    predicate: str = Field(
        "said", max_length=80, description="What it is about, in one to three words: name, age, bedtime, caffeine."
    )
    object: str = Field("", max_length=200, description="The value: Tomás, 51, 22:15, two teas a day.")
    rests_on: str = Field("", max_length=400, description="The user's words that say so, copied.")
    replaces: list[int] = Field(
        default_factory=list,
        max_length=40,
        description="Numbers of known facts that are no longer true because of this one.",
    )


class Facts(BaseModel):
    """What was learnt."""

    model_config = ConfigDict(frozen=True)

    facts: list[Fact] = Field(default_factory=list, max_length=20)
    let_go: list[int] = Field(
        default_factory=list,
        max_length=200,
        description="Numbers of known facts that the user takes back or wants forgotten, with nothing in their place.",
    )


class ExtractFacts(Prompt[Facts]):
    """Which lasting facts about the user do these utterances state?"""

    utterances: tuple[str, ...]
    conversation: tuple[Line, ...] = ()
    known: tuple[str, ...] = ()
    now: str = ""

    def ground(self, reply: Facts, turns: Sequence[Message]) -> tuple[Facts, str]:  # noqa: ARG002
        """Remove facts without support in the user's words, and links that the user did not name."""
        support = Support(user_statements(self.conversation, self.utterances))
        held = [
            fact for fact in reply.facts if support.has_quotation(fact.rests_on) or support.has_most_words(fact.text)
        ]
        gone = [fact.text for fact in reply.facts if fact not in held]
        found, links_gone = self._without_made_up_links(reply.model_copy(update={"facts": held}) if gone else reply)
        return found, " ".join(filter(None, (complaint(gone) if gone else "", links_gone)))

    def _without_made_up_links(self, reply: Facts) -> tuple[Facts, str]:
        if not any(has_links(f"{fact.text} {fact.object}") for fact in reply.facts):
            return reply, ""
        given = links([*self.utterances, *self.known, *(line.text for line in self.conversation)])
        gone: list[str] = []

        def kept(text: str) -> str:
            left, more = without_links(text, given)
            gone.extend(more)
            return left

        facts = [fact.model_copy(update={"text": kept(fact.text), "object": kept(fact.object)}) for fact in reply.facts]
        return (
            (reply.model_copy(update={"facts": facts}), f"The user named no link {', '.join(gone)[:400]}.")
            if gone
            else (reply, "")
        )


@rule(ExtractFacts)
def note_nothing(ask: ExtractFacts) -> Facts:  # noqa: ARG001
    """Rule: note nothing. Utterances are remembered as they are, and recalled with their day."""
    return Facts()


KNOWN = 40
"""Number of known facts in the prompt, newest last."""


def _leaves_out_nothing(_: str) -> bool:
    return False


@dataclass(frozen=True)
class FactsReasoner:
    """Writes notes about the user (Christakopoulou 2024, 3.2.2).

    Attributes:
        leaves_out: returns whether no note is made of an utterance.
    """

    model: Model
    slot: str = "facts"
    trigger: Trigger = EVERY_TURN
    timeout_s: float = 180.0
    leaves_out: Callable[[str], bool] = _leaves_out_nothing

    async def think(self, context: RunContext) -> RunResult:
        noted = [utterance for utterance in context.utterances if not self.leaves_out(utterance.text)]
        if not noted:
            return RunResult("nothing to note", self.model.name)
        context = replace(context, utterances=noted)
        known = await context.memory.latest("note", KNOWN)
        prompt = ExtractFacts(
            utterances=tuple(utterance.text for utterance in context.utterances),
            conversation=lines(context.conversation[-6:]),
            known=tuple(note.text for note in known),
            now=format_spoken(context.memory.clock.now()),
        )
        found = await ask(self.model, prompt)

        async def write() -> Writing:
            return await _notes(context, found, known, self.slot)

        thought = "; ".join(fact.text for fact in found.facts)
        return RunResult(thought, self.model.name, write=write)


async def _notes(context: RunContext, found: Facts, known: list[Record], by: str) -> Writing:
    stream, now = context.memory, context.memory.clock.now()
    there = await stream.find_same("note", [fact.text for fact in found.facts if not fact.replaces])
    corrected = [fact.text for fact in found.facts if fact.replaces]  # new, even if recalled lately: the old note ends
    there |= await stream.store.find_same(stream.key, "note", corrected, now=now)
    first = {normalised(fact.text): fact for fact in reversed(found.facts)}
    fresh = [fact for said, fact in reversed(first.items()) if said not in there]
    drafts = [context.note_draft(fact.text, fact.predicate, fact.object, by) for fact in fresh]
    records = await stream.build_records(drafts)
    new = there | {normalised(record.text): record for record in records}
    ends = {number: new[normalised(fact.text)].id for fact in found.facts for number in fact.replaces}
    revisions = [
        Revision(id=known[number - 1].id, valid_until=now, superseded_by=by_)
        for number, by_ in (ends | dict.fromkeys(found.let_go)).items()
        if 0 < number <= len(known) and known[number - 1].id != by_
    ]
    if not fresh:
        return (), revisions
    event = Remembered(count=len(records), kinds={"note": len(records)})
    return [Entry(event, by, tuple(records), distinct=True)], revisions
