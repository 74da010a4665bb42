"""The plan: a step that goes on beside the one that is now stays, is shown, and is nobody's to begin."""

from __future__ import annotations

from pathlib import Path

from mindstream import Mind
from mindstream.cli.commands import plan_told
from mindstream.coach.belief.belief import plan_slot
from mindstream.coach.belief.plan import Plan, PlanStep, StepEdit, read_plan
from mindstream.coach.events import PlanMade
from mindstream.coach.packs.load import load
from mindstream.memory.record import New

KEPT = "Get up at seven"
PLAN = Plan(steps=[PlanStep(title=KEPT, do="Also on Sundays."), PlanStep(title="Lights out at eleven", state="now")])


def states(plan: Plan) -> dict[str, str]:
    return {step.title: step.state for step in plan.steps}


def test_a_habit_goes_on_while_the_next_step_begins() -> None:
    plan = PLAN.edit([StepEdit(title=KEPT, state="going_on"), StepEdit(title="A walk at noon", state="now")])
    assert states(plan) == {KEPT: "going_on", "Lights out at eleven": "later", "A walk at noon": "now"}
    assert read_plan(plan.model_dump(mode="json")) == plan
    assert f"{KEPT} (going on beside it)" in plan.written() and "Also on Sundays." in plan.written(full=True)
    assert f"↻ {KEPT}: Also on Sundays." in plan_told(plan)
    crowd = plan.edit([StepEdit(title=f"Step {n}") for n in range(60)])
    assert states(crowd)[KEPT] == "going_on", "it is not closed, and makes no room for steps to come"


async def test_rules_keep_what_goes_on_as_it_is(folder: Path) -> None:
    pack = load("sleep")
    plan = PLAN.edit([StepEdit(title=KEPT, state="going_on")]).mark_as_told()
    async with Mind.open(folder, user="ann", pack=pack) as mind:
        for text in ("The noise from the street keeps me awake.", "Can you make me a plan?"):
            await mind.say(text)
            await mind.settled()
        held = {"plan": plan.model_dump(mode="json")}
        record = New(text="a plan", kind="plan", slot=plan_slot(pack), version=2, data=held)
        await mind.notice(PlanMade(version=2, text=""), [record])
        for text in ("Did it. Next, please.", "I don't like that step", "Can you make me a plan?"):
            await mind.say(text)
            await mind.settled()
            assert states(mind.plan)[KEPT] == "going_on" and mind.plan.now.title != KEPT
        assert states(mind.plan)["Lights out at eleven"] == "dropped", "the rules did change the plan"
