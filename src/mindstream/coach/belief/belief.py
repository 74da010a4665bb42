"""The belief reasoner: hierarchical, one mini-reasoner per phase, tools in the loop.

Source: Christakopoulou 2024, 3.2.2 and 4.2.

It infers the phase, lets that phase's mini-reasoner think with its tools, and composes what both found into the next
belief, written with the plan. It reads what the Talker heard and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from mindstream.clock import format_spoken
from mindstream.coach.belief import stand_in  # noqa: F401 (registers the rule)
from mindstream.coach.belief.infer_phase import InferPhase
from mindstream.coach.belief.interim_belief import InterimBelief, with_belief
from mindstream.coach.belief.library import resource_tool, step_tool
from mindstream.coach.belief.plan import CoachingPlan, read_coaching_plan
from mindstream.coach.belief.think_in_phase import PhaseThought, ThinkInPhase
from mindstream.coach.open_question import open_question
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.safety import find_hint, look_over
from mindstream.log.events import PlanChanged, Remembered
from mindstream.memory.belief import Belief
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record, RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.reasoners.conversation import lines, note
from mindstream.reasoners.reasoner import RunContext, RunResult, Writing
from mindstream.reasoners.trigger import EVERY_TURN, Trigger
from mindstream.text.language import language_of
from mindstream.tools.loop import run_tool_loop
from mindstream.tools.tool import Tool

NOTES = 20
"""How many notes about the user it is shown."""


@dataclass(frozen=True)
class BeliefReasoner:
    """Forms the belief about the user and the plan; its slot is the pack's name."""

    model: Model
    pack: Pack
    steps: int = 8
    trigger: Trigger = EVERY_TURN
    timeout_s: float = 180.0

    @property
    def slot(self) -> str:
        return self.pack.name

    async def think(self, context: RunContext) -> RunResult:
        belief = await context.memory.belief(self.slot, self.pack.belief)
        question = await self._question(context, belief)
        believing = InterimBelief(context, belief, question)
        tools = with_belief(self._tools(question, context.tools), believing)
        found = await run_tool_loop(self.model, question, tools, context, steps=self.steps)
        plan = question.plan.edit(found.plan)
        words = found.words if context.waits else ""
        if found.tells_step and (words or found.follow_up):
            plan = plan.mark_as_told()

        async def write() -> Writing:
            patch = {"phase": question.phase.name, **believing.compose(*found.patches)}
            return await self._entries(context, patch, found, plan if plan != question.plan else None), ()

        thought = f"{question.phase.name}: {found.thought}"
        return RunResult(
            thought, self.model.name, write=write, words=words, follow_up=found.follow_up, ask_next=found.ask_next
        )

    async def _question(self, context: RunContext, belief: Belief[Any]) -> ThinkInPhase:
        """Infer the phase, and gather what its mini-reasoner thinks from."""
        stream, pack = context.memory, self.pack
        value: dict[str, JsonValue] = belief.value.model_dump(mode="json")
        phase = str(value.pop("phase"))
        held = {name: each for name, each in value.items() if each not in (None, [], "")}
        utterances = tuple(utterance.text for utterance in context.utterances)
        for text in utterances:
            await look_over(pack, text)
        hints = (find_hint(pack, text) for text in utterances)
        hint = next((found.alarm.id for found in hints if found), "")
        talk = lines(context.conversation)
        inferred = await ask(
            self.model,
            InferPhase(pack=pack, phase=phase, belief=held, conversation=talk[-10:], utterances=utterances),
        )
        return ThinkInPhase(
            pack=pack,
            phase=pack.phase(inferred.phase),
            belief=held,
            version=belief.version,
            plan=await plan_of(stream, pack),
            notes=tuple(str(note(record)) for record in await stream.latest("note", NOTES)),
            conversation=talk,
            utterances=utterances,
            reply=context.reply,
            waits=context.waits,
            open_question=await open_question(stream, self.slot, inferred.phase),
            hint=hint,
            language=language_of(" ".join(utterances), pack.languages),
            now=format_spoken(stream.clock.now()),
        )

    def _tools(self, question: ThinkInPhase, minds: Sequence[Tool]) -> list[Tool]:
        """Give the mini-reasoner its tools: the mind's, and in a planning phase the pack's library."""
        if not question.phase.plans:
            return list(minds)
        planned = [step.title for step in question.plan.steps]
        library = step_tool(self.pack, question.language, planned)
        return [library, resource_tool(self.pack, question.language), *minds]

    async def _entries(
        self, context: RunContext, patch: dict[str, JsonValue], found: PhaseThought, plan: CoachingPlan | None
    ) -> list[Entry]:
        stream, evidence = context.memory, tuple(utterance.record for utterance in context.utterances)
        revision = await stream.revision(self.slot, patch, self.pack.belief, evidence=evidence, by=self.slot)
        entries = [revision] if revision else []
        if plan is not None:
            entries.append(await self._plan(stream, plan, found, evidence))
        if found.feedback:
            news = [
                RecordDraft(
                    text=f"{each.polarity.replace('_', ' ')}: {each.target}", kind="feedback", by="user",
                    evidence=evidence, data={"polarity": each.polarity, "target": each.target},
                )
                for each in found.feedback
            ]  # fmt: skip
            event = Remembered(count=len(news), kinds={"feedback": len(news)})
            entries.append(Entry(event, self.slot, tuple(await stream.build_records(news))))
        return entries

    async def _plan(self, stream: Memory, plan: CoachingPlan, found: PhaseThought, evidence: tuple[str, ...]) -> Entry:
        slot = plan_slot(self.pack)
        before = await stream.version(slot)
        version = (before.version or 0) + 1 if before else 1
        new = RecordDraft(
            text=plan.written() or "no steps", kind="plan", by=self.slot, evidence=evidence, slot=slot, version=version,
            data={"plan": plan.model_dump(mode="json")},
        )  # fmt: skip
        event = PlanChanged(version=version, text=found.words or plan.written(), changed=found.changed)
        return Entry(event, self.slot, tuple(await stream.build_records([new])))


def plan_slot(pack: Pack) -> str:
    """Name the slot in which a pack's plan is kept."""
    return f"{pack.name}.plan"


async def plan_of(stream: Memory, pack: Pack) -> CoachingPlan:
    """Return the plan as it stands; empty before there is one."""
    return plan_from(await stream.version(plan_slot(pack)))


def plan_from(record: Record | None) -> CoachingPlan:
    """Return the plan that a version of its slot holds; empty where there is none."""
    return read_coaching_plan(record.data.get("plan")) if record else CoachingPlan()
