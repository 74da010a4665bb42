"""A question about the step the user was given is answered at once where the plan holds the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream import Mind
from mindstream.coach.belief.plan import PlanStep
from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.gate import Situation
from mindstream.coach.gates.learned import LearnedGate
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.packs.load import load
from mindstream.log.events import Said, Waiting

SLEEP = load("sleep")
QUICK = QuickGate(SLEEP)
STEP = PlanStep(
    title="Turn the clock away", do="Turn it to the wall for two weeks.", why="Counting keeps you awake.",
    caution="Not if you must wake up for a child.", evidence="moderate", source="clock_away", state="now", told=True,
)  # fmt: skip
ASKED = {
    "why should that help?": {"why": ""},
    "how many nights till it works?": {"do": "Turn it to the wall."},
    "how long should I do this for?": {"do": "Turn it to the wall."},
    "any side effects?": {"caution": ""},
    "有副作用吗": {"caution": ""},
    "is there proof?": {"evidence": ""},
    "show me my plan again": {"do": ""},
}
"""Questions, and how the step is without the answer."""


def asked(text: str, told: PlanStep | None) -> Situation:
    said = "Shall I give you the next step?"
    return Situation(text, SLEEP.phases[-1], {"sleep_concern": ["noise"]}, True, said, told=told)


@pytest.mark.parametrize(("text", "without"), ASKED.items(), ids=ASKED)
def test_it_waits_only_where_the_plan_does_not_hold_the_answer(text: str, without: dict[str, str]) -> None:
    held, lacking = asked(text, STEP), asked(text, STEP.model_copy(update=without))
    decision = QUICK.decide(held)
    assert not decision.waits and decision.thinks and decision.why == "the plan answers it"
    assert QUICK.decide(lacking).waits and QUICK.decide(asked(text, None)).waits
    assert not LearnedGate(SLEEP).decide(held).waits
    assert BeliefGate().decide(held).waits, "the paper's rule goes by the phase"


@pytest.mark.parametrize("more", ["Give me another one.", "I take pills for my heart.", "A new plan, please, and"])
def test_who_says_more_is_not_answered_by_the_plan_alone(more: str) -> None:
    text = f"{more} any side effects?"
    assert QUICK.decide(asked(text, STEP)) == QUICK.decide(asked(text, None))


async def test_in_a_talk_the_caution_comes_at_once(folder: Path) -> None:
    async with Mind.open(folder, user="ann") as mind:
        for text in ("I lie awake for hours and drink coffee at night.", "Can you make me a plan about the coffee?"):
            await mind.say(text)
            await mind.settled()
        step = mind.plan.now
        assert step and step.told and step.caution
        events = [logged.event async for logged in mind.hear("any side effects?")]
    assert not any(isinstance(event, Waiting) for event in events)
    assert any(step.caution in event.text for event in events if isinstance(event, Said))
