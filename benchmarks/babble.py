"""Made-up texts with the word frequencies of a language, for timing only."""

from __future__ import annotations

import numpy as np

SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "du", "fa", "ge", "po", "sha", "tre", "wen")


class Babble:
    """Sentences of made-up words ; the n-th word has frequency 1/n; a seed gives the same sentences."""

    def __init__(self, seed: int, words: int = 30_000) -> None:
        self._chance = np.random.default_rng(seed)
        spoken = np.random.default_rng(0).integers(len(SYLLABLES), size=(words, 4))
        self._words = ["".join(SYLLABLES[i] for i in row[: 2 + number % 3]) for number, row in enumerate(spoken)]
        share = 1 / (np.arange(words) + 10)
        self._shares = np.cumsum(share / share.sum())

    def sentences(self, count: int, shortest: int = 6, longest: int = 24) -> list[str]:
        """Return `count` sentences."""
        lengths = self._chance.integers(shortest, longest + 1, size=count)
        drawn = np.searchsorted(self._shares, self._chance.random(int(lengths.sum())))
        pieces = np.split(drawn, np.cumsum(lengths)[:-1])
        return [" ".join(self._words[i] for i in piece) + "." for piece in pieces]
