"""The plan: an ongoing step next to the current one stays, is shown, and cannot be started again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.cli.screens.events import plan_told
from mindstream.coach.belief.plan import CoachingPlan, PlanStep, StepEdit, read_coaching_plan
from mindstream.models.rules import Rules

KEPT = "Get up at seven"
PLAN = CoachingPlan(
    steps=[PlanStep(title=KEPT, do="Also on Sundays."), PlanStep(title="Lights out at eleven", state="now")]
)


def states(plan: CoachingPlan) -> dict[str, str]:
    return {step.title: step.state for step in plan.steps}


def test_an_ongoing_step_stays_when_the_next_step_starts() -> None:
    plan = PLAN.edit([StepEdit(title=KEPT, state="going_on"), StepEdit(title="A walk at noon", state="now")])
    assert states(plan) == {KEPT: "going_on", "Lights out at eleven": "later", "A walk at noon": "now"}
    assert read_coaching_plan(plan.model_dump(mode="json")) == plan
    assert f"{KEPT} (going on)" in plan.written() and "Also on Sundays." in plan.written(full=True)
    assert f"↻ {KEPT}: Also on Sundays." in plan_told(plan)
    crowd = plan.edit([StepEdit(title=f"Step {n}") for n in range(60)])
    assert states(crowd)[KEPT] == "going_on", "an ongoing step is not dropped for new steps"


@pytest.mark.parametrize(
    ("said", "did"),
    [
        ("No, I did not try the noise thing at all.", False),
        ("My mother fell ill, I drive to her every day.", None),
        ("我没试那个。", False),
    ],
)
async def test_a_models_reply_sets_the_outcome_of_a_step(folder: Path, said: str, did: bool | None) -> None:
    told = [{"title": "Listen for the noise", "did": did, "report": "not at all"}] if did is not None else []
    plan = [{"title": "Listen for the noise", "state": "now", "do": "Lie down and listen.", "told": True}]
    thoughts = [
        {"thought": "a", "patch": {"sleep_concern": ["noise"]}, "rests_on": "The noise", "plan": plan,
         "follow_up": "Tonight, listen."},
        {"thought": "b", "plan": told},
    ]  # fmt: skip
    reasoner = FakeModel({"think": list(map(json.dumps, thoughts))})
    models = Models(Rules(), {"reasoner": reasoner, "talker": FakeModel({"talk": ["Hm."] * 2}), "facts": Rules()})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(gate="belief")) as mind:
        for text in ("The noise keeps me awake.", said):
            await mind.send(text)
            await mind.settled()
        held = [record.data["did"] for record in await mind.memory.latest("feedback", 9)]
        assert held == ([did] if told else [])
        made = Coach.of(mind).plan
        assert made.now and made.now.told and made.now.did is did and bool(made.now.reports) == bool(told)
        assert states(made) == {"Listen for the noise": "now"}
        assert Coach.of(mind).belief.value.sleep_concern == ["noise"]
