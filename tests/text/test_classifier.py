"""Telling kinds of text apart by n-grams; and recognisers on long texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindstream.coach.packs.recogniser import recognises_danger
from mindstream.text.classifier import Classifier, hash_gram, views

TIRED = "I was up late with the neighbours' party. We had pizza afterwards. The dog was sick on the carpet too. "


@pytest.fixture
def of_tea(folder: Path) -> Classifier:
    """A classifier that knows three words."""
    known = sorted(
        (hash_gram(gram), weight) for gram, weight in (("wtea", 4.0), ("wcoffee", -4.0), ("wnot tea", -12.0))
    )
    folder.mkdir(exist_ok=True)
    np.savez(
        folder / "tea.npz", hashes=np.array([gram for gram, _ in known], dtype=np.uint32),
        rarity=np.ones(3), rarest=1.0, weights=np.array([weight for _, weight in known]), bias=0.0,
    )  # fmt: skip
    return Classifier(folder / "tea.npz")


def test_words_and_what_stands_together_count(of_tea: Classifier) -> None:
    tea, coffee, not_tea, nothing = (of_tea.log_odds(views(text)) for text in ("Tea!", "coffee", "not tea", ""))
    assert tea > 0 > coffee and not_tea < 0 and nothing == 0.0


def test_what_is_unknown_makes_the_rest_count_less(of_tea: Classifier) -> None:
    odds = [of_tea.log_odds(views(text)) for text in ("tea", "tea please", "tea please for all of my friends")]
    assert odds == sorted(odds, reverse=True) and odds[-1] > 0


def test_the_ends_of_a_text_count_as_words() -> None:
    grams = {hash_gram("w喝"), hash_gram("w喝 茶"), hash_gram("w茶 $"), hash_gram("w^ 喝 茶")}
    assert grams <= set(views("喝茶")[0].hashes.tolist())


def test_nothing_is_recognised_where_nothing_is_said() -> None:
    assert not recognises_danger("") and not recognises_danger("Good morning!")


@pytest.mark.parametrize(
    "text", ["I can't sleep", "have a look at it", "it doesn't matter", "i just want one good night"]
)
def test_no_single_word_carries_a_recogniser(text: str) -> None:
    """The log odds of each of these were above 0, for the sake of one or two common words."""
    assert not recognises_danger(text)


@pytest.mark.parametrize("text", ["I keep thinking they'd be better off if I was gone", "如果哪天我不在了，你们别难过"])
def test_one_sentence_among_many_is_not_drowned(text: str) -> None:
    assert recognises_danger(text) and not recognises_danger(TIRED * 4)
    assert recognises_danger(f"{TIRED * 2}{text}. {TIRED * 3}")
