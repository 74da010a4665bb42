"""Topics by plain words: in any inflection, in both languages, in any context."""

from __future__ import annotations

import pytest

from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import topics_in
from mindstream.text.words import language_of

SLEEP = load("sleep")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The neighbours are so noisy", {"noise"}),
        ("We have a newborn and I live on espresso", {"newborn", "caffeine"}),
        ("the worrying at night", {"racing_thoughts"}),
        ("我晚上喝咖啡，枕頭也不舒服", {"caffeine", "mattress"}),
        ("It was quite nice at the lake", set()),
    ],
)
def test_topics_are_detected_only_by_their_words(text: str, named: set[str]) -> None:
    assert set(topics_in(SLEEP, text)) == named


def test_languages_are_detected_by_script() -> None:
    assert language_of("我睡不着 because of noise") == "zh"
    assert language_of("I said 你好 to my neighbour yesterday evening") == language_of("???") == "en"
