"""Telling kinds of text apart without a model: logistic regression on n-grams of words and characters.

The weights come from a file that `benchmarks/train_classifiers.py` wrote from labelled sentences; reading one takes
a fraction of a millisecond and needs nothing but numpy. It knows the languages it was trained on (English, Chinese).
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

TOKEN = re.compile(r"[a-z']+|[0-9]+|[\u3400-\u9fff]")
WORDS, CHARACTERS = 3, (2, 5)
"""How long the n-grams are: up to three words (or Chinese characters), two to five characters within a word."""

View = Mapping[str, int]
"""How often each n-gram stands in a text; its first letter names the view, so that views never meet."""


def views(text: str) -> list[View]:
    """Return a text's n-grams of words and of characters."""
    plain = " ".join(text.lower().replace("’", "'").split())
    return [_words(plain, "w", WORDS), Counter("c" + gram for gram in _characters(plain))]


def words(text: str, name: str, longest: int) -> View:
    """Return n-grams of words as a view of this name (one letter)."""
    return _words(" ".join(text.lower().replace("’", "'").split()), name, longest)


def hashed(gram: str) -> int:
    """Return the number by which an n-gram is known in a file of weights."""
    return zlib.crc32(gram.encode())


class Classifier:
    """Tells whether a text is of a kind.

    Args:
        path: an .npz file with `hashes` (K), `rarity` (K: inverse document frequency), `rarest` (that of an n-gram
            never seen: what is unknown makes the rest count less), `weights` (kinds, K), `bias` (kinds), `kinds` (their
            names); for numbers beside the text `named` (names), `named_weights` (kinds, names).

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as kept:
            self.kinds: tuple[str, ...] = tuple(map(str, kept["kinds"]))
            self.named: tuple[str, ...] = tuple(map(str, kept["named"]))
            self._at = {int(gram): n for n, gram in enumerate(kept["hashes"])}
            self._rarity: list[float] = kept["rarity"].tolist()
            self._rarest = float(kept["rarest"])
            self._weights = kept["weights"].astype(np.float32)
            self._bias, self._named_weights = kept["bias"].astype(np.float32), kept["named_weights"].astype(np.float32)

    def log_odds(self, seen: Sequence[View], named: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the log odds of each kind; above 0: more likely than not."""
        total: NDArray[np.float32] = self._bias.copy()
        for view in seen:
            places, values, length = [], [], 0.0
            for gram, count in view.items():
                place = self._at.get(hashed(gram))
                value = (1 + math.log(count)) * (self._rarest if place is None else self._rarity[place])
                length += value * value
                if place is not None:
                    places.append(place)
                    values.append(value)
            if places:
                total += self._weights[:, places] @ np.array(values, dtype=np.float32) / math.sqrt(length)
        if named:
            total += self._named_weights @ np.array([named.get(name, 0.0) for name in self.named], dtype=np.float32)
        return dict(zip(self.kinds, map(float, total), strict=True))


def _words(plain: str, name: str, longest: int) -> View:
    tokens = TOKEN.findall(plain)
    return Counter(
        name + " ".join(tokens[at : at + size])
        for size in range(1, longest + 1)
        for at in range(len(tokens) - size + 1)
    )


def _characters(plain: str) -> Iterator[str]:
    shortest, longest = CHARACTERS
    for word in plain.split():
        framed = f" {word} "
        for size in range(shortest, longest + 1):
            yield from (framed[at : at + size] for at in range(max(1, len(framed) - size + 1)))
