"""The facts reasoner: what users say of themselves becomes notes, superseding what is no longer so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mindstream.clock import format_spoken
from mindstream.log.events import Remembered
from mindstream.memory.store.record import Record, RecordDraft, Triple, normalised
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.reasoners.conversation import lines
from mindstream.reasoners.facts.extract_facts import ExtractFacts, Facts
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, Trigger, Writing

KNOWN = 40
"""How many known facts the model is shown, newest last."""


def _leaves_out_nothing(_: str) -> bool:
    return False


@dataclass(frozen=True)
class FactsReasoner:
    """Writes notes about the user (Christakopoulou 2024, 3.2.2).

    Attributes:
        leaves_out: tells which utterances no note is made of.
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

        told = "; ".join(fact.text for fact in found.facts)
        return RunResult(told, self.model.name, write=write)


async def _notes(context: RunContext, found: Facts, known: list[Record], by: str) -> Writing:
    stream, now = context.memory, context.memory.clock.now()
    there = await stream.find_same("note", [fact.text for fact in found.facts if not fact.replaces])
    corrected = [fact.text for fact in found.facts if fact.replaces]  # news, even where recall gave it lately: it ended
    there |= await stream.store.find_same(stream.key, "note", corrected, now=now)
    first = {normalised(fact.text): fact for fact in reversed(found.facts)}
    fresh = [fact for said, fact in reversed(first.items()) if said not in there]
    evidence = tuple(utterance.record for utterance in context.utterances)
    news = [
        RecordDraft(
            text=fact.text,
            kind="note",
            by=by,
            evidence=evidence,
            depth=1,
            about=Triple("user", fact.predicate, fact.object),
            created=context.utterances[-1].at,
        )
        for fact in fresh
    ]
    records = await stream.build_records(news)
    new = there | {normalised(record.text): record for record in records}
    ends = {number: new[normalised(fact.text)].id for fact in found.facts for number in fact.replaces} | dict.fromkeys(
        found.let_go, None
    )
    revisions = [
        Revision(id=known[number - 1].id, valid_until=now, superseded_by=by_)
        for number, by_ in ends.items()
        if 0 < number <= len(known) and known[number - 1].id != by_
    ]
    if not fresh:
        return (), revisions
    event = Remembered(count=len(records), kinds={"note": len(records)})
    return [Entry(event, by, tuple(records), distinct=True)], revisions
