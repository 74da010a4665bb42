"""Telling a kind of text from others without a model: logistic regression on n-grams of words and characters.

The weights come from a file that `benchmarks/train_recogniser.py` wrote from labelled sentences; reading one takes
a fraction of a millisecond and needs nothing but numpy. It knows the languages it was trained on (English, Chinese).
"""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream.caches import remember

TOKEN = re.compile(r"[a-z']+|[0-9]+|[\u3400-\u9fff]")
WORDS, CHARACTERS = 3, (2, 5)
"""How long the n-grams are: up to three words (or Chinese characters), two to five characters within a word. The text's
beginning and end count as words: "I just want to sleep" is not the beginning of something worse.
"""


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The n-grams of one kind in a text: by their hashes, each once, and 1 + ln of how often it stands there.

    The hash is of the n-gram with the view's name before it, so that views never meet.
    """

    name: str
    hashes: NDArray[np.uint32]
    sizes: NDArray[np.float32]


@remember(64)
def views(text: str) -> tuple[View, ...]:
    """Return a text's n-grams of words ("w") and of characters ("c")."""
    plain = _plain(text)
    return _view("w", _words(plain)), _view("c", _characters(plain))


def hash_gram(gram: str) -> int:
    """Return the number by which an n-gram, its view's name before it, is known in a file of weights."""
    return zlib.crc32(gram.encode())


class Classifier:
    """Tells whether a text is of a kind.

    Args:
        path: an .npz file with `hashes` (K, rising), `rarity` (K: inverse document frequency), `rarest` (that of an
            n-gram never seen: what is unknown makes the rest count less), `weights` (K) and `bias`.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as kept:
            # One place more at the end, for what is not known: it weighs nothing.
            self._hashes: NDArray[np.uint32] = np.append(kept["hashes"], np.uint32(2**32 - 1))
            self._rarity = np.append(kept["rarity"], kept["rarest"]).astype(np.float32)
            self._weights = np.append(kept["weights"].astype(np.float32), np.float32(0))
            self._bias = float(kept["bias"])

    def log_odds(self, seen: Sequence[View]) -> float:
        """Return the log odds of the kind; above 0: more likely than not."""
        total = self._bias
        for view in seen:
            at = self._hashes.searchsorted(view.hashes)
            at[self._hashes[at] != view.hashes] = -1
            values = view.sizes * self._rarity[at]
            if length := math.sqrt(values @ values):
                total += float(self._weights.take(at) @ values) / length
        return total


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


def _view(name: str, grams: Iterable[str]) -> View:
    counted = Counter(grams)
    hashes = np.array([zlib.crc32((name + gram).encode()) for gram in counted], dtype=np.uint32)
    counts = np.array(list(counted.values()), dtype=np.float32)
    return View(name, hashes, 1 + np.log(counts))


def _words(plain: str) -> Iterator[str]:
    tokens = ["^", *TOKEN.findall(plain), "$"]
    yield from tokens
    for size in range(2, WORDS + 1):
        yield from map(" ".join, zip(*(tokens[at:] for at in range(size)), strict=False))


def _characters(plain: str) -> list[str]:
    shortest, longest = CHARACTERS
    grams: list[str] = []
    for word in plain.split():
        framed, length = f" {word} ", len(word) + 2
        for size in range(shortest, longest + 1):
            grams += [framed[at : at + size] for at in range(length - size + 1)] or [framed]
    return grams
