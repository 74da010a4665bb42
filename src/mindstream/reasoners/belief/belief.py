"""The belief reasoner (paper 3.2.2 and 4.2): hierarchical, one mini-reasoner per phase, tools in the loop.

It infers the phase, lets that phase's mini-reasoner think with its tools, and composes what both found into the next
belief, written with the plan. It reads what the Talker heard and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from mindstream.log.events import PlanMade, Remembered
from mindstream.memory.store import Entry
from mindstream.memory.stream import New, Stream
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.packs.pack import Pack
from mindstream.packs.reading import language_of
from mindstream.reasoners.belief import plan_rules  # noqa: F401 (registers the rule)
from mindstream.reasoners.belief.infer_phase import InferPhase
from mindstream.reasoners.belief.library import resource_tool, step_tool
from mindstream.reasoners.belief.plan import Plan
from mindstream.reasoners.belief.think_in_phase import PhaseThought, ThinkInPhase
from mindstream.reasoners.conversation import Line, lines
from mindstream.reasoners.reasoner import Conclusion, Occasion, Writing
from mindstream.reasoners.trigger import EVERY_TURN, Trigger
from mindstream.tools.loop import solve
from mindstream.tools.tool import Tool

NOTES = 20
"""How many notes about the user it is shown."""


@dataclass(frozen=True)
class BeliefReasoner:
    """Forms the belief about the user and the plan; its slot is the pack's name."""

    model: Model
    pack: Pack
    tools: Sequence[Tool] = ()
    steps: int = 6
    trigger: Trigger = EVERY_TURN
    patience_s: float = 180.0

    @property
    def slot(self) -> str:
        return self.pack.name

    async def think(self, occasion: Occasion) -> Conclusion:
        stream, pack = occasion.stream, self.pack
        belief = stream.belief(self.slot, pack.belief)
        value: dict[str, JsonValue] = belief.value.model_dump(mode="json")
        phase = str(value.pop("phase"))
        utterances = tuple(utterance.text for utterance in occasion.utterances)
        conversation = _before(lines(occasion.conversation), utterances)
        language = language_of(" ".join(utterances), pack.languages)
        inferred = await ask(
            self.model,
            InferPhase(pack=pack, phase=phase, belief=value, conversation=conversation[-12:], utterances=utterances),
        )
        question = ThinkInPhase(
            pack=pack,
            phase=pack.phase(inferred.phase),
            belief=value,
            version=belief.version,
            plan=plan_of(stream, pack),
            notes=tuple(note.text for note in stream.latest("note", NOTES)),
            conversation=conversation,
            utterances=utterances,
            language=language,
        )
        tools = (
            [step_tool(pack, language), resource_tool(pack, language), *self.tools]
            if question.phase.plans
            else list(self.tools)
        )
        found = await solve(self.model, question, tools, occasion, steps=self.steps)

        async def write() -> Writing:
            return await self._entries(occasion, {"phase": inferred.phase, **found.patch}, found), ()

        thought = f"{inferred.phase}: {found.thought}"
        return Conclusion(thought, self.model.name, write, found.words, found.follow_up)

    async def _entries(self, occasion: Occasion, patch: dict[str, JsonValue], found: PhaseThought) -> list[Entry]:
        stream, evidence = occasion.stream, tuple(utterance.record for utterance in occasion.utterances)
        revision = await stream.revision(self.slot, patch, self.pack.belief, evidence=evidence, by=self.slot)
        entries = [revision] if revision else []
        if found.plan is not None and (found.words or Plan(steps=found.plan) != plan_of(stream, self.pack)):
            entries.append(await self._plan(stream, found, evidence))
        if found.feedback:
            news = [
                New(
                    text=f"{each.polarity.replace('_', ' ')}: {each.target}", kind="feedback", by="user",
                    evidence=evidence, data={"polarity": each.polarity, "target": each.target},
                )
                for each in found.feedback
            ]  # fmt: skip
            event = Remembered(count=len(news), kinds={"feedback": len(news)})
            entries.append(Entry(event, self.slot, tuple(await stream.made(news))))
        return entries

    async def _plan(self, stream: Stream, found: PhaseThought, evidence: tuple[str, ...]) -> Entry:
        plan = Plan(steps=found.plan or [])
        slot = plan_slot(self.pack)
        before = next(iter(stream.store.latest(stream.name, slot=slot)), None)
        version = (before.version or 0) + 1 if before else 1
        new = New(
            text=plan.told() or "no steps", kind="plan", by=self.slot, evidence=evidence, slot=slot, version=version,
            data={"plan": plan.model_dump(mode="json")},
        )  # fmt: skip
        event = PlanMade(version=version, text=found.words or plan.told(), changed=found.changed)
        return Entry(event, self.slot, tuple(await stream.made([new])))


def plan_slot(pack: Pack) -> str:
    """Name the slot in which a pack's plan is kept."""
    return f"{pack.name}.plan"


def plan_of(stream: Stream, pack: Pack) -> Plan:
    """Return the plan as it stands; empty before there is one."""
    record = next(iter(stream.store.latest(stream.name, slot=plan_slot(pack))), None)
    return Plan.model_validate(record.data["plan"]) if record else Plan()


def _before(conversation: tuple[Line, ...], utterances: tuple[str, ...]) -> tuple[Line, ...]:
    """Leave the newest utterances out of the conversation: they are shown by themselves."""
    newest = set(utterances)
    kept = list(conversation)
    for at in range(len(kept) - 1, max(-1, len(kept) - 3 * len(utterances) - 1), -1):
        if kept[at].by_user and kept[at].text in newest:
            del kept[at]
    return tuple(kept)
