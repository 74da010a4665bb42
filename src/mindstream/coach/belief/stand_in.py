"""The rule that replaces the mini-reasoners without a language model: it notes topics and plans steps by topic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mindstream.coach.belief.plan import PlanStep, StepEdit
from mindstream.coach.belief.think import LONGEST_QUOTE, Think, Thinking
from mindstream.coach.packs.load import phrases, say
from mindstream.coach.packs.pack import Phase, Step, Topic, all_texts, in_language, topics_in
from mindstream.coach.packs.safety import find_alarm, spoke_of_danger
from mindstream.models.model import Message
from mindstream.models.prompt import rule
from mindstream.text.words import sentences

AHEAD = 4
"""Number of steps in a new plan."""


@rule(Think)
def note_topics_and_plan_steps(ask: Think, _: Sequence[Message]) -> Thinking:
    """Think without a model: note the topics that statements name; in a planning phase, plan library steps on them.

    Topics are recognised by their words alone, so a denial is not understood.
    """
    alarms = [alarm for text in ask.utterances if (alarm := find_alarm(ask.pack, text))]
    said = [line.text for line in ask.conversation if not line.by_user]
    if ask.hint or any(alarm.stops for alarm in alarms) or spoke_of_danger(ask.pack, said):
        return Thinking(
            thought=f"{f'a hint at {ask.hint}' if ask.hint else 'danger'}: nothing is believed of it, nothing planned"
        )
    stated = [each for text in ask.utterances for each in sentences(text) if not each.endswith(("?", "？"))]
    named = set(topics_in(ask.pack, "\n".join(stated)))
    patch: dict[str, Any] = {}
    for topic in ask.pack.topics:
        spec = ask.pack.fields.get(topic.field)
        if topic.id not in named or spec is None or (spec.of and topic.id not in spec.of) or _held(ask) & _names(topic):
            continue
        value = topic.id if spec.of else in_language(topic.name, ask.language)
        if spec.type == "list":
            patch.setdefault(topic.field, []).append(value)
        elif spec.type == "text":
            patch[topic.field] = value
    thought = f"by stand-in: named were {', '.join(sorted(named)) or 'no topics'}"
    phase = _phase(ask)
    noted = Thinking(thought=thought, phase=phase.name, patch=patch, rests_on=ask.utterances[-1][:LONGEST_QUOTE])
    return noted.model_copy(update=_plan(ask, named)) if phase.plans else noted


def _phase(ask: Think) -> Phase:
    """Return the first phase, from the current one on, that has an unknown required field or makes plans.

    In all phases but the first, a field also counts as known once the pack's question about it was asked.
    """
    phases, fields = ask.pack.phases, ask.pack.fields
    known = {name for name, held in ask.belief.items() if held not in (None, [], "")}
    named = {id_ for text in ask.utterances for id_ in topics_in(ask.pack, text)}
    known |= {topic.field for topic in ask.pack.topics if topic.id in named}
    said = "\n".join(line.text for line in ask.conversation if not line.by_user)
    asked = {name for name, spec in fields.items() if any(each in said for each in all_texts(spec.ask))}
    phase = ask.phase
    for follower in phases[phases.index(phase) + 1 :]:
        met = known if phase is phases[0] else known | asked
        if phase.plans or not phase.needs or not set(phase.needs) <= met:
            break
        phase = follower
    return phase


def _plan(ask: Think, named: set[str]) -> dict[str, Any]:
    """Return the changes of the plan, and the text for its current step if the user was not told of it.

    If the user says the pack's phrase for continuing (`next_word`), the next step becomes the current one.
    """
    plan, words = ask.plan, [each.casefold() for each in phrases(ask.pack, "next_word", ask.language)]
    goes_on = any(text.strip(' .!。！“”"').casefold() in words for text in ask.utterances)
    if plan.now and plan.now.told and goes_on:
        plan = plan.edit([StepEdit(title=plan.now.title, state="going_on")])
    if plan.now is None:
        ahead = [*plan.open, *_steps(ask, named)][:AHEAD]
        if not ahead:
            return {"offer": say(ask.pack, "plan_empty", ask.language)}
        first = ahead[0].model_copy(update={"state": "now"})
        plan = plan.edit([*map(StepEdit.of, ahead[1:]), StepEdit.of(first)])
    told = _words(ask, plan.now) if ask.waits and plan.now and not plan.now.told else ""
    if told and plan.now:
        plan = plan.edit([StepEdit(title=plan.now.title, told=True)])
    edits = [StepEdit.of(step) for step in plan.steps if step not in ask.plan.steps]
    return {"plan": edits, "offer": told, "changed": "steps by topic" if edits else ""}


def _steps(ask: Think, named: set[str]) -> list[PlanStep]:
    """Return suitable library steps on the known topics, the best first, without those in the plan."""
    known = named | {topic.id for topic in ask.pack.topics if _held(ask) & _names(topic)}

    def fit(step: Step) -> float:
        return len(known & set(step.topics)) / math.sqrt(len(step.topics))

    had = {step.source for step in ask.plan.steps}
    found = [step for step in ask.pack.steps if step.id not in had and fit(step) and ask.pack.suits(step, known)]
    texts = ("title", "do", "why", "caution")
    return [
        PlanStep(
            **{name: in_language(getattr(step, name), ask.language) for name in texts},
            source=step.id,
        )
        for step in sorted(found, key=fit, reverse=True)
    ]


def _words(ask: Think, step: PlanStep) -> str:
    """Return the text that tells the user of a step, with its reason and caution."""
    parts = [say(ask.pack, "step_intro", ask.language), f"**{step.title}**", step.do]
    parts += [say(ask.pack, "step_why", ask.language, why=step.why)] if step.why else []
    parts += [say(ask.pack, "step_caution", ask.language, caution=step.caution)] if step.caution else []
    return "\n".join(parts)


def _held(ask: Think) -> set[str]:
    return {str(item) for value in ask.belief.values() for item in (value if isinstance(value, list) else [value])}


def _names(topic: Topic) -> set[str]:
    return {topic.id, *all_texts(topic.name)}
