"""How rules read utterances; with the sleep pack, but not with its dialogue."""

from __future__ import annotations

import pytest

from mindstream.coach.moves.moves import moves_of
from mindstream.coach.packs.load import load
from mindstream.coach.packs.reading import read_utterance
from mindstream.text.language import language_of

SLEEP = load("sleep")


def topics(text: str) -> set[str]:
    return set(read_utterance(SLEEP, text).topics)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The neighbours are so noisy", {"noise"}),
        ("too much cofee and a nosie street", {"caffeine", "noise"}),
        ("We have a newborn and I live on espresso", {"newborn", "caffeine"}),
        ("I wake at three and my thoughts race", {"waking_night", "racing_thoughts"}),
        ("宝宝老是哭，我喝很多咖啡", {"newborn", "caffeine"}),
        ("My cousin paints boats", set()),
        ("It was quite nice at the lake", set()),
    ],
)
def test_topics_are_found_in_any_form_of_their_words(text: str, named: set[str]) -> None:
    assert named <= topics(text) and (named or not topics(text))


@pytest.mark.parametrize("text", ["I don't drink coffee", "no alcohol for me", "I never nap", "我不喝咖啡", "没有噪音"])
def test_what_is_denied_is_not_the_case(text: str) -> None:
    reading = read_utterance(SLEEP, text)
    assert reading.mentions and not reading.topics


@pytest.mark.parametrize(
    "text", ["I can't stand the noise", "I don't sleep because of the noise", "I don't like the noise"]
)
def test_a_complaint_is_no_denial(text: str) -> None:
    assert "noise" in topics(text)


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("can u make me a plan", "plan"),
        ("what should I do", "plan"),
        ("怎么办", "plan"),
        ("any good videos on that?", "resources"),
        ("I don't like that step", "dislike"),
        ("that's not for me", "dislike"),
        ("换一个吧", "dislike"),
        ("what do you remember about me", "recall"),
        ("你还记得我吗", "recall"),
        ("are you a robot", "who"),
        ("I did it", "done"),
        ("next please", "next"),
        ("idk", "unsure"),
        ("no", "no"),
        ("yes", "yes"),
    ],
)
def test_moves_are_recognised(text: str, move: str) -> None:
    assert move in moves_of(text, language_of(text))


@pytest.mark.parametrize("text", ["I read a book at night", "the planet is warm", "I like green tea"])
def test_ordinary_statements_make_no_wish(text: str) -> None:
    assert not moves_of(text, "en") & {"plan", "dislike", "recall", "next", "done"}


def test_languages_are_told_by_their_script() -> None:
    assert language_of("我睡不着 because of noise") == "zh"
    assert language_of("I said 你好 to my neighbour yesterday evening") == "en"
    assert language_of("???") == "en"


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("My doctor gave me a plan last year, but I never kept to it.", "plan"),
        ("I plan to go to bed at ten but it never happens.", "plan"),
        ("I watch videos on my phone until two.", "resources"),
        ("我晚上老是刷视频刷到一两点", "resources"),
        pytest.param(
            "I can't sleep when it is too quiet",
            "dislike",
            marks=pytest.mark.xfail(strict=True, reason="to the classifier a complaint in these words is a dislike"),
        ),
        ("I wake at three and then lie awake", "next"),
        ("我不知道该怎么说", "recall"),
        ("haha my boss shouted at me all day", "okay"),
    ],
)
def test_telling_of_something_is_not_asking_for_it(text: str, move: str) -> None:
    assert move not in moves_of(text, language_of(text))


@pytest.mark.parametrize(
    ("text", "move"),
    [
        ("wat shoud i do", "plan"),
        ("do u have recources on this", "resources"),
        ("waht is teh next stpe", "next"),
        ("pls sugest smth for my husband", "plan"),
    ],
)
def test_wishes_typed_in_haste_are_understood(text: str, move: str) -> None:
    assert move in moves_of(text, "en")
