"""Saying back what was said."""

from __future__ import annotations

import pytest

from mindstream.coach.packs.mirror import goes_on, mirror


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It takes me ages to drop off, an hour at least", "It takes you ages to drop off, an hour at least"),
        ("I'm tired of my alarm clock.", "You're tired of your alarm clock"),
        ("because I was up with our son", "You were up with your son"),
        ("Well, I still am the one who wakes first", "You still are the one who wakes first"),
        ("My son was ill. I was up all night.", "Your son was ill. You were up all night"),
        ("No one in my family sleeps well", "No one in your family sleeps well"),
        ("no alcohol for me", "No alcohol for you"),
        ("No, I sleep badly", "You sleep badly"),
        ("我最近总是半夜醒", "你最近总是半夜醒"),
        ("不想去上班", "不想去上班"),
        ("对我来说很难", "对你来说很难"),
        ("因为我们楼上太吵", "你们楼上太吵"),
    ],
)
def test_the_first_person_becomes_the_second(text: str, said: str) -> None:
    assert mirror(text, "zh" if text[0] > "z" else "en") == said


@pytest.mark.parametrize(
    "text",
    [
        "Do I snore?",
        "I told you that",
        "Since I changed jobs",
        "Why me? I don't know",
        "<b>I</b> am",
        "你说我该睡了",
        "ok",
        "I " * 80,
    ],
)
def test_what_would_not_read_well_is_not_said_back(text: str) -> None:
    assert mirror(text, "zh" if text[0] > "z" else "en") == ""


def test_a_name_keeps_its_capital_where_the_sentence_goes_on() -> None:
    assert goes_on("Ann snores", "en") == "Ann snores" and goes_on("You snore", "en") == "you snore"
