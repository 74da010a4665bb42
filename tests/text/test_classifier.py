"""Telling kinds of text apart by n-grams; and recognisers on long texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mindstream.coach.packs.recogniser import names, recognises
from mindstream.text.classifier import Classifier, hash_gram, views, words

TIRED = "I was up late with the neighbours' party. We had pizza afterwards. The dog was sick on the carpet too. "


@pytest.fixture
def of_tea(folder: Path) -> Classifier:
    """A classifier that knows three words."""
    known = sorted(
        (hash_gram(gram), weight) for gram, weight in (("wtea", 4.0), ("wcoffee", -4.0), ("wnot tea", -12.0))
    )
    folder.mkdir(exist_ok=True)
    np.savez(
        folder / "tea.npz", kinds=np.array(["tea"]), named=np.array(["thirst"]), named_weights=np.array([[2.0]]),
        hashes=np.array([gram for gram, _ in known], dtype=np.uint32), rarity=np.ones(3), rarest=1.0,
        weights=np.array([[weight for _, weight in known]]), bias=np.array([0.0]),
    )  # fmt: skip
    return Classifier(folder / "tea.npz")


def test_words_numbers_and_what_stands_together_count(of_tea: Classifier) -> None:
    def odds(text: str, **named: float) -> float:
        return of_tea.log_odds(views(text), named)["tea"]

    assert odds("Tea!") > 0 > odds("coffee") and odds("not tea") < 0 and odds("") == 0.0
    assert odds("", thirst=1.0) == 2.0 and odds("", hunger=1.0) == 0.0


def test_what_is_unknown_makes_the_rest_count_less(of_tea: Classifier) -> None:
    odds = [of_tea.log_odds(views(text))["tea"] for text in ("tea", "tea please", "tea please for all of my friends")]
    assert odds == sorted(odds, reverse=True) and odds[-1] > 0


def test_views_do_not_meet() -> None:
    assert not set(words("tea", "s", 2).hashes) & set(views("tea")[0].hashes)
    assert {hash_gram("w喝"), hash_gram("w喝 茶"), hash_gram("w茶 $"), hash_gram("w^ 喝 茶")} <= set(
        views("喝茶")[0].hashes.tolist()
    )


@pytest.mark.parametrize("name", names())
def test_nothing_is_recognised_where_nothing_is_said(name: str) -> None:
    assert not recognises(name, "") and not recognises(name, "Good morning!")


@pytest.mark.parametrize(
    "text", ["I can't sleep", "have a look at it", "it doesn't matter", "i just want one good night"]
)
def test_no_single_word_carries_a_recogniser(text: str) -> None:
    """The log odds of each of these were above 0, for the sake of one or two common words."""
    assert not recognises("danger", text)


@pytest.mark.parametrize("text", ["I keep thinking they'd be better off if I was gone", "如果哪天我不在了，你们别难过"])
def test_one_sentence_among_many_is_not_drowned(text: str) -> None:
    assert recognises("danger", text) and not recognises("danger", TIRED * 4)
    assert recognises("danger", f"{TIRED * 2}{text}. {TIRED * 3}")
