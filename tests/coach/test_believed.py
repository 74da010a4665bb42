"""What the rules believe: topics, answers to a question, wishes."""

from __future__ import annotations

from typing import Any

import pytest

from mindstream.coach.belief.belief_rules import patch_by_rules
from mindstream.coach.packs.load import load
from mindstream.coach.packs.reading import read_utterance

SLEEP = load("sleep")


def patch(text: str, said: str = "", language: str = "en") -> dict[str, Any]:
    return patch_by_rules(SLEEP, [read_utterance(SLEEP, text)], language, said)[0]


def test_the_answer_to_a_question_is_believed_in_the_users_words() -> None:
    assert patch(
        "Around eleven, up at six.", "I see. What time do you usually go to bed, and what time do you get up?"
    ) == {"schedule": "Around eleven, up at six"}
    assert patch("大概五年了", "这种情况有多久了？", "zh") == {"duration": "大概五年了"}


@pytest.mark.parametrize(
    ("answer", "hours"),
    [
        ("Six and a half, I'd say", 6.5),
        ("maybe 5 hours", 5.0),
        ("差不多六个小时", 6.0),
        ("六个半小时", 6.5),
        ("it's often bad", None),
        ("none", None),
        ("I can't tell", None),
    ],
)
def test_a_number_is_read_where_one_was_asked_for(answer: str, hours: float | None) -> None:
    chinese = answer[0] > "z"
    asked = (
        "平常一晚上，你估计自己大概睡了几个小时？"
        if chinese
        else "Roughly how many hours do you think you sleep on a usual night?"
    )
    assert patch(answer, asked, "zh" if chinese else "en").get("sleep_hours") == hours


def test_a_wish_is_a_goal_wherever_it_comes() -> None:
    assert patch("I'd like to be asleep by half past eleven")["goals"]["add"] == ["be asleep by half past eleven"]
    assert patch("我希望能多陪陪女儿", "", "zh")["goals"]["add"] == ["能多陪陪女儿"]


@pytest.mark.parametrize("text", ["Why do you ask?", "I don't know", "hello", "Can you make me a plan?", "lol"])
def test_what_is_no_answer_is_not_believed(text: str) -> None:
    assert "duration" not in patch(text, "How long has it been like this?") and "goals" not in patch(text)


def test_goals_come_from_wishes_only_even_where_they_were_asked_for() -> None:
    assert patch("Since I changed jobs", "What would a good enough night look like for you?") == {}
