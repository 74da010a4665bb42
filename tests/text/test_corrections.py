"""Corrections: what is put right, what is taken back, what is to be forgotten; and what only sounds like it."""

from __future__ import annotations

import pytest

from mindstream.text.corrections import read_correction
from mindstream.text.revise import revise


@pytest.mark.parametrize(
    ("said", "correction", "standing"),
    [
        ("I sleep about four hours.", "No, three, not four.", ["I sleep about three hours."]),
        ("My niece is nine.", "sorry, I meant eleven", ["My niece is eleven."]),
        ("I swim on Mondays.", "I said Mondays but I meant Sundays", ["I swim on Sundays."]),
        ("The cat wakes me at two.", "that's wrong, it's the baby who wakes me", ["The baby wakes me at two."]),
        ("I have a goat.", "Never mind the goat, it was sold.", []),
        ("我养了三只鸡。", "说错了，是五只。", ["我养了五只鸡。"]),
        ("我周二游泳。", "不是周二，是周六。", ["我周六游泳。"]),
        ("我喝茶。", "别管茶了", []),
        ("I have 3 goats.", "oh wait, 2 goats not 3", ["I have 2 goats."]),
        ("I have a dog.", "Well, two dogs actually", ["I have two dogs."]),
    ],
)
def test_what_is_put_right_stands_as_corrected(said: str, correction: str, standing: list[str]) -> None:
    assert revise([said, correction]) == standing


@pytest.mark.parametrize(
    "text",
    [
        "I'd rather forget today",
        "I forget to drink water",
        "don't forget my dog",
        "我忘了吃药",
        "别忘了我的狗",
        "forget it",
    ],
)
def test_a_figure_of_speech_forgets_nothing(text: str) -> None:
    found = read_correction(text)
    assert found is None or not found.forgets


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("forget that I said I drink", "drink"),
        ("please forget what I told you about my sister", "my sister"),
        ("forget the coffee thing, I quit", "the coffee"),
        ("忘了我说的咖啡的事", "咖啡"),
        ("forget what I just said", ""),
    ],
)
def test_what_is_to_be_forgotten_is_named(text: str, what: str) -> None:
    found = read_correction(text)
    assert found is not None and found.forgets and (found.old, found.new) == (what, "")


def test_a_preference_is_no_correction_of_something_else() -> None:
    assert revise(["I take pills at night.", "I want sleep, not pills."]) == [
        "I take pills at night.",
        "I want sleep, not pills.",
    ]
