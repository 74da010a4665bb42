"""The facts reasoner: it extracts notes from what users say about themselves (memory/facts)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mindstream.memory.facts import SHOWN_LINES, facts_to_write, find_facts
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream.models.model import Model
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult, Trigger, Writing


@dataclass(frozen=True)
class FactsReasoner:
    """Extract facts about the user from utterances, and write them as notes (Christakopoulou 2024, 3.2.2).

    Attributes:
        leaves_out: a function that returns True for an utterance from which no facts are noted.
    """

    model: Model
    slot: str = "facts"
    trigger: Trigger = EVERY_TURN
    timeout_s: float = 180.0
    leaves_out: Callable[[str], bool] = lambda _: False

    async def think(self, context: RunContext) -> RunResult:
        noted = [utterance for utterance in context.utterances if not self.leaves_out(utterance.text)]
        if not noted:
            return RunResult("nothing to note", self.model.name)
        context = replace(context, utterances=noted)
        said = [utterance.text for utterance in noted]
        found, known = await find_facts(context.memory, self.model, said, context.conversation[-SHOWN_LINES:])

        def draft(text: str, about: Triple) -> RecordDraft:
            return context.note_draft(text, about.predicate, about.object, self.slot)

        async def write() -> Writing:
            return await facts_to_write(context.memory, found, known, draft, self.slot)

        return RunResult("; ".join(fact.text for fact in found.facts), self.model.name, write=write)
