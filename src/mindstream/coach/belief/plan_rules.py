"""The rule that stands in for a phase's mini-reasoner: notes topics in the belief, plans from the pack's library."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from mindstream.coach.belief.belief_rules import patch_by_rules
from mindstream.coach.belief.corrections import correct_belief
from mindstream.coach.belief.plan import OPEN, NamedResource, Plan, PlanStep, StepEdit
from mindstream.coach.belief.rank_steps import (
    known_topics,
    needed_topics,
    newest_topics,
    rank_steps,
    spoken_lines,
    topics_with,
)
from mindstream.coach.belief.think_in_phase import (
    LONGEST_QUOTE,
    LONGEST_WORDS,
    MOST_EDITS,
    Feedback,
    PhaseThought,
    ThinkInPhase,
    compose_patches,
)
from mindstream.coach.moves.moves import ABOUT_A_STEP, PUTS_OFF
from mindstream.coach.packs.pack import Step, in_language
from mindstream.coach.packs.reading import Reading, read_utterance
from mindstream.coach.packs.safety import find_alarm
from mindstream.coach.packs.saying import fresh, list_in, phrases
from mindstream.coach.packs.translate import translate
from mindstream.models.fence import CUT_NOTE, cut
from mindstream.models.model import Call, Message
from mindstream.models.prompt import rule
from mindstream.models.reply import first_json
from mindstream.text.language import Language

QUOTED = 100
"""So much of each utterance is named as what a belief rests on."""
AHEAD = 4
"""How many steps a new plan has."""
IN_LANGUAGE = {"en": {"zh": "英文"}, "zh": {"en": "in Chinese"}}
"""How it is said that something is not in the user's language."""


@rule(ThinkInPhase)
def think_with_library(ask: ThinkInPhase, turns: Sequence[Message]) -> PhaseThought | list[Call]:
    """Fill the belief from the topics that were named; in a planning phase choose, change or move on the plan."""
    readings = [read_utterance(ask.pack, text) for text in ask.utterances]
    if any(alarm.stops for text in ask.utterances if (alarm := find_alarm(ask.pack, text))):
        return PhaseThought(thought="an alarm: nothing is believed of it, nothing planned")
    if ask.hint:
        return PhaseThought(thought=f"a hint at {ask.hint}: nothing is believed of it, nothing planned")
    corrected = correct_belief(ask.pack, ask.belief, spoken_lines(ask), ask.notes, ask.utterances, ask.language)
    readings = [reading for reading in readings if reading.text not in corrected.used]
    patch, told = patch_by_rules(ask.pack, readings, ask.language, next(reversed(_said(ask)), ""))
    patch = compose_patches([corrected.patch, patch])
    heard = "…".join(text[:QUOTED] for text in ask.utterances)[:LONGEST_QUOTE]
    told = [*(f"corrected: {text[:QUOTED]}" for text in ask.utterances if text in corrected.used), *told]
    thought = cut(f"noted: {', '.join(told)}", 1_000) if told else "nothing new to believe"
    found = PhaseThought(thought=thought, patch=patch, rests_on=heard, feedback=_feedback(ask, readings))
    if not ask.phase.plans:
        return found
    moves = {move for reading in readings for move in reading.moves}
    change = _change(ask, readings, moves, set() if corrected.forgets else corrected.gone)
    if change is None:
        return found
    plan, intro, changed = change
    if plan.now and "resources" in moves:  # nobody is given a reading list unasked
        if not turns:
            return [_search(ask, plan, plan.now)]
        plan = _with_resources(plan, turns[-1].text)
    return found.model_copy(update=_planning(ask, plan, intro, changed, thought))


def _with_resources(plan: Plan, given: str) -> Plan:
    found = TypeAdapter(list[NamedResource]).validate_python(first_json(given, list) if "[" in given else [])
    steps = [step.model_copy(update={"resources": found}) if step.state == "now" else step for step in plan.steps]
    return Plan(steps=steps)


def _planning(ask: ThinkInPhase, plan: Plan, intro: Intro, changed: str, thought: str) -> dict[str, Any]:
    """Return what a thought says of a plan that changed."""
    edits = {"plan": _edits(ask.plan, plan), "changed": cut(changed, 900)}
    if plan.now is None:
        return {**edits, "words": fresh(phrases(ask.pack, "plan_empty", ask.language), _said(ask)), "feedback": []}
    words = cut(_words(ask, intro, plan.now), LONGEST_WORDS - CUT_NOTE)
    follow_up = words if intro[0] in UNASKED and not ask.waits else ""
    return {
        **edits, "words": words, "follow_up": follow_up,
        "thought": cut(f"{thought}; the step now: {plan.now.title}", 1_900),
    }  # fmt: skip


ELSE = re.compile(
    r"\b(?:else|another|other|instead|different|easier|cheaper|simpler|shorter|swap|replace|change|drop|skip)\b|换|别的|其他",
    re.IGNORECASE,
)
"""Words by which something in place of the step is asked for."""
UNASKED = ("anew_intro",)
"""What introduces a step that nobody asked for: it is told after the Talker's answer, where that did not wait."""
Intro = tuple[str, dict[str, str]]
Change = tuple[Plan, Intro, str]
"""The new plan, the move that introduces its step (with what fills the phrase), and what changed."""


def _change(ask: ThinkInPhase, readings: Sequence[Reading], moves: set[str], gone: set[str]) -> Change | None:
    """Decide what the utterances do to the plan; None: nothing. `gone`: topics that turned out not to be the case."""
    steps, now = list(ask.plan.steps), ask.plan.now
    if gone and (change := _without(ask, gone)):
        return change
    if now and now.told and moves & set(ABOUT_A_STEP):  # "does it work?" asks for nothing new, nor reports that it did
        return None
    if "dislike" in moves and any(_wonders(reading) for reading in readings):
        moves = moves - {"dislike"}
    seen = {step.source for step in steps}
    if "dislike" in moves and now:
        steps = [_state(step, "dropped") if step is now else step for step in steps]
        new = _begin(ask, steps, seen, fresh_first=bool(readings[-1].topics))
        here = Plan(steps=new).now
        changed = f"dropped “{now.title}”, because the user did not want it; " + (
            f"now “{here.title}”" if here else "nothing left"
        )
        return Plan(steps=new), ("instead_intro", {"old": _shown(ask, now.title)}), changed
    if now and not now.told and (moves & {"next", "done", "yes", "like", "stepwise", "plan", "resources"}):
        further = any(step.told for step in steps if step is not now)
        return Plan(steps=steps), ("next_intro" if further else "step_intro", {}), ""
    if {"next", "done"} & moves and now:
        steps = [_state(step, "done" if "done" in moves else "later") if step is now else step for step in steps]
        if "done" not in moves:  # skipped for the moment: to the end
            steps = [s for s in steps if s.title != now.title] + [s for s in steps if s.title == now.title]
        new = _begin(ask, steps, seen, fresh_first=False)
        return Plan(steps=new), ("next_intro", {}), f"went on from “{now.title}”"
    if now and (change := _for_new_trouble(ask, readings, now)):
        return change
    if now and now.told and moves & {"stepwise", "plan", "resources"} == {"stepwise"} and not _plannable(ask, readings):
        return Plan(steps=steps), ("one_at_a_time", {"title": _shown(ask, now.title)}), ""
    return _as_asked(ask, steps, now, seen, {"plan", "stepwise", "resources"} & moves)


def _as_asked(
    ask: ThinkInPhase, steps: list[PlanStep], now: PlanStep | None, seen: set[str], wants: set[str]
) -> Change | None:
    """Make a first plan, or put first what the newest words ask for."""
    if now is None and (wants or not steps):
        best = [_planned(step, ask.language) for step in rank_steps(ask, seen)[:AHEAD]]
        return (
            Plan(steps=_first_is_now([*steps, *best])),
            ("step_intro", {}),
            "the first plan" if not steps else "new steps",
        )
    if wants and now:
        best_now = next(iter(rank_steps(ask, {s.source for s in steps if s.state not in OPEN})), None)
        if best_now and newest_topics(ask) & set(best_now.topics) and best_now.id != now.source:
            steps = [_state(step, "later") for step in steps if step.source != best_now.id]
            steps = _first_is_now(
                [s for s in steps if s.state != "later"]
                + [_planned(best_now, ask.language)]
                + [s for s in steps if s.state == "later"]
            )
            first = f"“{in_language(best_now.title, ask.language)}” comes first, as asked"
            return Plan(steps=steps), ("step_intro", {}), first
        if now.told and wants == {"plan"}:  # they have it already, and ask for something more
            kept = [_state(step, "going_on") if step is now else step for step in steps]
            more = _begin(ask, kept, seen, fresh_first=False)
            return Plan(steps=more), ("next_intro", {}), f"something more beside “{now.title}”"
        return Plan(steps=steps), ("step_intro", {}), ""
    return None


def _about(ask: ThinkInPhase, step: PlanStep) -> set[str]:
    return next((set(each.topics) for each in ask.pack.steps if each.id == step.source), set())


def _without(ask: ThinkInPhase, gone: set[str]) -> Change | None:
    """Leave out the open steps that were only about what is not the case; None where the present one stays."""
    now, known = ask.plan.now, known_topics(ask) - gone
    steps = [
        _state(step, "not_needed") if (about := _about(ask, step)) & gone and not about & known else step
        for step in ask.plan.steps
    ]
    if now is None or now in steps:
        return None
    steps = _begin(ask, steps, {step.source for step in steps}, fresh_first=False)
    here = Plan(steps=steps).now
    changed = f"“{now.title}” is not needed: it was about something that is not so; "
    changed += f"now “{here.title}”" if here else "nothing left"
    return Plan(steps=steps), ("instead_intro", {"old": _shown(ask, now.title)}), changed


def _for_new_trouble(ask: ThinkInPhase, readings: Sequence[Reading], now: PlanStep) -> Change | None:
    """Choose the step anew for a trouble that was not known; the one before is for later."""
    told = {topic for each in readings if not each.moves & (PUTS_OFF | {"question"}) for topic in each.topics}
    new = (told & needed_topics(ask)) - topics_with(ask, ())
    if not new or _about(ask, now) & new:
        return None
    steps = list(ask.plan.steps)
    best = next((step for step in steps if step.state == "later" and _about(ask, step) & new), None)
    if best is None:
        ranked = rank_steps(ask, {step.source for step in steps})
        best = next((_planned(step, ask.language) for step in ranked if set(step.topics) & new), None)
    if best is None:
        return None
    closed = [step for step in steps if step.state not in OPEN]
    waiting = [step for step in steps if step.state in OPEN and step.title != best.title]
    names = list_in(ask.language, [in_language(t.name, ask.language) for t in ask.pack.topics if t.id in new])
    plan = Plan(steps=_first_is_now([*closed, best, *waiting]))
    told_as = {"old": _shown(ask, now.title), "topics": names}
    return plan, ("anew_intro", told_as), f"“{best.title}” comes first, because of {names}; “{now.title}” is for later"


def _shown(ask: ThinkInPhase, text: str) -> str:
    return translate(ask.pack, text, ask.language)


def _wonders(reading: Reading) -> bool:
    """Tell whether a refusal is only a question: "what if I can't do it every day?", and no wish for something else."""
    return "question" in reading.moves and not ELSE.search(reading.text)


def _plannable(ask: ThinkInPhase, readings: Sequence[Reading]) -> set[str]:
    """Name the topics of the newest words that there are steps about."""
    about = {topic for step in ask.pack.steps for topic in step.topics}
    return about & {topic for reading in readings for topic in reading.topics}


def _edits(before: Plan, after: Plan) -> list[StepEdit]:
    """Tell what changed, step by step; the present one last, so that it is the one that stays."""
    old = {step.title: step for step in before.steps}
    changed = [step for step in after.steps if step != old.get(step.title)]
    last = sorted(changed, key=lambda step: step.state == "now")[-MOST_EDITS:]
    return [StepEdit.of(step) for step in last]


def _begin(ask: ThinkInPhase, steps: list[PlanStep], seen: set[str], fresh_first: bool) -> list[PlanStep]:
    """Make the next step the present one: one that is planned already, or the best of the library."""
    best = next(iter(rank_steps(ask, seen)), None)
    waiting = any(step.state == "later" for step in steps)
    if best and (fresh_first or not waiting):
        done = [step for step in steps if step.state != "later"]
        steps = [*done, _planned(best, ask.language), *(step for step in steps if step.state == "later")]
    return _first_is_now(steps)


def _first_is_now(steps: Sequence[PlanStep]) -> list[PlanStep]:
    first = next((step for step in steps if step.state in ("now", "later")), None)
    return [step if step.state not in OPEN else _state(step, "now" if step is first else "later") for step in steps]


def _state(step: PlanStep, state: str) -> PlanStep:
    if step.state not in OPEN:
        return step
    return step.model_copy(update={"state": state})


def _planned(step: Step, language: Language) -> PlanStep:
    return PlanStep(
        title=in_language(step.title, language),
        do=in_language(step.do, language),
        why=in_language(step.why, language),
        caution=in_language(step.caution, language),
        evidence=step.evidence,
        source=step.id,
    )


def _search(ask: ThinkInPhase, plan: Plan, step: PlanStep) -> Call:
    source = next((s for s in ask.pack.steps if s.id == step.source), None)
    about = " ".join(source.topics) if source else ""
    given = [resource.title for each in plan.steps if each.told for resource in each.resources]
    asks_again = bool(step.resources)
    arguments = {"query": f"{step.title} {about}".strip(), "count": 2, "besides": given if asks_again else []}
    return Call("find_resources", json.dumps(arguments, ensure_ascii=False))


def _words(ask: ThinkInPhase, intro: Intro, step: PlanStep) -> str:
    def say(move: str, **filled: str) -> str:
        return fresh(phrases(ask.pack, move, ask.language), _said(ask), move, len(ask.conversation)).format(**filled)

    if intro[0] == "one_at_a_time":
        return say(*intro[:1], **intro[1])
    named = [_named(n, resource, ask.language) for n, resource in enumerate(step.resources, 1)]
    if named and _only_resources(ask, step):
        return "\n".join([say("resources_intro"), *named])
    title, do, why, caution = (_shown(ask, text) for text in (step.title, step.do, step.why, step.caution))
    parts = [say(intro[0], **intro[1]), f"**{title}**", do, say("step_why", why=why)]
    if caution:
        parts.append(say("step_caution", caution=caution))
    if step.resources:
        parts += [say("resources_intro"), *named]
    return "\n".join(part for part in parts if part)


def _only_resources(ask: ThinkInPhase, step: PlanStep) -> bool:
    """Tell whether the user knows the step and only asks what there is to read or hear about it."""
    now, moves = ask.plan.now, {move for text in ask.utterances for move in read_utterance(ask.pack, text).moves}
    known = now is not None and now.told and now.title == step.title
    return known and "resources" in moves and not moves & {"plan", "stepwise"}


def _named(number: int, resource: NamedResource, language: Language) -> str:
    other = IN_LANGUAGE.get(resource.language, {}).get(language, "") if resource.language != language else ""
    link = f" {resource.link}" if resource.link else ""
    by = [part for part in (resource.publisher, other) if part]
    if language == "zh":
        return f"{number}. 《{resource.title}》（{'，'.join(by)}）：{resource.why}{link}"
    return f"{number}. “{resource.title}” ({', '.join(by)}): {resource.why}{link}"


def _feedback(ask: ThinkInPhase, readings: Sequence[Reading]) -> list[Feedback]:
    now = ask.plan.now
    if now is None:
        return []
    moves = {move for reading in readings for move in reading.moves}
    if "dislike" in moves:
        return [Feedback(polarity="dislikes", target=cut(now.title, 250))]
    if "done" in moves:
        return [Feedback(polarity="did", target=cut(now.title, 250))]
    return [Feedback(polarity="likes", target=cut(now.title, 250))] if "like" in moves else []


def _said(ask: ThinkInPhase) -> list[str]:
    return [line.text for line in ask.conversation if not line.by_user]
