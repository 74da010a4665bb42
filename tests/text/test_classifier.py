"""Text classification by n-grams, and recognisers on long texts."""

from __future__ import annotations

import pytest

from mindstream.coach.packs.safety import recognises_danger
from mindstream.text.classifier import SHORT, is_cached

TIRED = "I was up late with the neighbours' party. We had pizza afterwards. The dog was sick on the carpet too. "


@pytest.mark.parametrize(
    "text", ["I can't sleep", "have a look at it", "it doesn't matter", "i just want one good night"]
)
def test_no_single_word_decides_a_classification(text: str) -> None:
    """The log odds of each of these texts were above 0 because of one or two common words."""
    assert not recognises_danger(text)


@pytest.mark.parametrize("text", ["I keep thinking they'd be better off if I was gone", "如果哪天我不在了，你们别难过"])
def test_one_relevant_sentence_among_many_is_recognised(text: str) -> None:
    assert recognises_danger(text) and not recognises_danger(TIRED * 4)
    assert recognises_danger(f"{TIRED * 2}{text}. {TIRED * 3}")


def test_words_with_digits_are_not_cached() -> None:
    """A server reads a new number in nearly each message; caching their n-grams took megabytes."""
    assert all(map(is_cached, ("sleep", "can't", "(good)", "睡不着")))
    assert not any(map(is_cached, ("22:15", "(12.34)", "a1", "٣٤", "x" * (SHORT + 1))))
