"""The prompt of a phase's mini-reasoner, and the library that it searches."""

from __future__ import annotations

import pytest

from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.belief.think import Think, find_in, steps_in
from mindstream.coach.packs.load import load

SLEEP = load("sleep")


def asked(phase: int, waits: bool) -> Think:
    return Think(
        pack=SLEEP, phase=SLEEP.phases[phase], belief={}, plan=CoachingPlan(), conversation=(),
        utterances=("I lie awake for hours.",), waits=waits, language="en",
    )  # fmt: skip


@pytest.mark.parametrize("phase", [0, -1])
def test_the_prompt_states_whether_the_talker_waits(phase: int) -> None:
    waited, unwaited = (asked(phase, waits).messages()[-1].text for waits in (True, False))
    assert "waits for you" in waited and "does not wait" in unwaited
    assert SLEEP.phases[phase].thinking.strip() in asked(phase, True).messages()[0].text


def test_resources_are_found_by_kind_and_in_a_language_the_user_reads() -> None:
    videos = find_in(SLEEP, "insomnia", "en", 4, kinds=("video", "playlist"))
    kinds = {resource.title: resource.kind for resource in SLEEP.resources}
    assert videos and {kinds[video.title] for video in videos} <= {"video", "playlist"}
    assert all(found.language == "en" for found in find_in(SLEEP, "exams, stress, students", "en", 6))
    assert find_in(SLEEP, "孩子睡眠", "zh", 3)[0].language == "zh"


def test_a_step_states_its_audience_and_exclusions() -> None:
    """Code does not filter the library by words: the model decides."""
    found = {step["id"]: step for step in steps_in(SLEEP, "time in bed, sleep window, newborn", "en", 8)}
    steps = {step.id: step for step in SLEEP.steps}
    assert any(steps[id_].not_for for id_ in found)
    for id_, told in found.items():
        assert ("not_for" in told) == bool(steps[id_].not_for)
        assert ("only_for" in told) == bool(SLEEP.only_for(steps[id_]))
