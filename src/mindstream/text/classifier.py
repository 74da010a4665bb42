"""Classify texts without a language model: logistic regression on n-grams of words and characters.

`benchmarks/train_recogniser.py` trains the weights from labelled sentences. Loading them takes a fraction of a
millisecond and needs only numpy. The classifier knows the languages it was trained on (English, Chinese).
"""

from __future__ import annotations

import math
import re
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Floats
from mindstream.caches import remember
from mindstream.text.words import terms

TOKEN = re.compile(r"[a-z']+|[0-9]+|[\u3400-\u9fff]")
MAX_WORD_GRAM, CHARACTER_GRAMS = 3, (2, 5)
"""Lengths of n-grams: up to three words (or Chinese characters), and two to five characters within a word.

The beginning and the end of the text count as words, so that "I just want to sleep" differs from the beginning of a
longer sentence.
"""


SHORT = 24
"""Maximum length, in characters, of a word whose n-grams are cached."""
DIGIT = re.compile(r"\d")


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The n-grams of one kind in a text: their hashes, each once, and 1 + ln of their counts.

    The name of the view is part of the hash, so that equal n-grams of different views have different hashes.
    """

    name: str
    hashes: NDArray[np.uint32]
    sizes: Floats


@remember(64)
def views(text: str) -> tuple[View, ...]:
    """Return the n-grams of words ("w") and of characters ("c") of a text."""
    plain = _plain(text)
    words = Counter(zlib.crc32(f"w{gram}".encode()) for gram in _words(plain))
    return _view("w", words), _view(
        "c",
        Counter(
            hashed
            for word in plain.split()
            for hashed in (_characters_of_cached(word) if is_cached(word) else _characters(word))
        ),
    )


class Classifier:
    """A binary classifier.

    Args:
        path: an .npz file for K n-grams. It contains `hashes` (K, ascending), `rarity` (K inverse document
            frequencies), `weights` (K), `bias`, and `rarest`, the inverse document frequency of an unknown n-gram. An
            unknown n-gram has weight 0, but lowers the share of the known n-grams.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path) as kept:
            # An additional last entry, for unknown n-grams, with weight 0.
            self._hashes: NDArray[np.uint32] = np.append(kept["hashes"], np.uint32(2**32 - 1))
            self._rarity = np.append(kept["rarity"], kept["rarest"]).astype(np.float32)
            self._weights = np.append(kept["weights"].astype(np.float32), np.float32(0))
            self._bias = float(kept["bias"])

    def log_odds(self, seen: Sequence[View]) -> float:
        """Return the log odds of the class; above 0: more likely than not."""
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


def _view(name: str, counted: Counter[int]) -> View:
    hashes = np.fromiter(counted, np.uint32, len(counted))
    counts = np.fromiter(counted.values(), np.float32, len(counted))
    return View(name, hashes, 1 + np.log(counts))


def _words(plain: str) -> Iterator[str]:
    tokens = ["^", *TOKEN.findall(plain), "$"]
    yield from tokens
    for size in range(2, MAX_WORD_GRAM + 1):
        yield from map(" ".join, zip(*(tokens[at:] for at in range(size)), strict=False))


def is_cached(word: str) -> bool:
    """Return whether a word's n-grams are cached. Words with digits, such as dates and amounts, are not: too many
    different ones occur."""
    return len(word) <= SHORT and (word.isalpha() or DIGIT.search(word) is None)


def _characters(word: str) -> array[int]:
    """Return the hashes of a word's n-grams of characters."""
    shortest, longest = CHARACTER_GRAMS
    framed, length = f" {word} ", len(word) + 2
    grams: list[str] = []
    for size in range(shortest, longest + 1):
        grams += [framed[at : at + size] for at in range(length - size + 1)] or [framed]
    return array("I", [zlib.crc32(f"c{gram}".encode()) for gram in grams])


_characters_of_cached = remember(1 << 13)(_characters)
"""`_characters` with a cache: most texts consist of the same few thousand words. An array takes a fifth of a tuple's
memory."""


SHARE = 0.5
"""Minimum share of a text's words that must occur in the sources. A text that quotes no source counts as supported from
this share on, if all its numbers occur, too."""
MIN_QUOTATION = 4
"""Minimum number of letters of a quotation that may be a part of a message. The letters of a quotation with
non-ASCII letters count double."""
MAX_COMPLAINT = 400
GAPS = re.compile(r"\.{3}|[…;；|/\n]")
"""Marks between the parts of a quotation."""


class Support:
    """The texts that a belief may be based on: messages of users, results of tools, records.

    Quotations are searched literally, except for letter case, spaces and punctuation.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)

    @cached_property
    def _letters(self) -> str:
        return "\n".join(["", *map(_letters, self._texts), ""])

    @cached_property
    def _terms(self) -> frozenset[str]:
        return frozenset(term for text in self._texts for term in terms(text))

    def has_quotation(self, quoted: str) -> bool:
        """Return whether a quotation occurs in the sources.

        If the quotation has several parts with GAPS between them, each part must occur. In a quotation of fewer than
        MIN_QUOTATION letters, such as "no", each part must be a whole message. The letters of a part with non-ASCII
        letters count double.
        """
        parts = [letters for part in GAPS.split(quoted) if (letters := _letters(part))]
        long = sum(len(part) * (1 if part.isascii() else 2) for part in parts) >= MIN_QUOTATION
        wanted = parts if long else [f"\n{part}\n" for part in parts]
        return bool(parts) and all(part in self._letters for part in wanted)

    def has_most_words(self, text: str) -> bool:
        """Return whether at least half of a text's words, and all its numbers, occur in the sources."""
        wanted = set(terms(text))
        if not wanted:
            return False
        said = wanted & self._terms
        return len(said) >= SHARE * len(wanted) and all(term in said for term in wanted if term.isdigit())


def named(unsupported: Iterable[str]) -> str:
    """Return unsupported items as a list in quotation marks, cut at MAX_COMPLAINT characters."""
    return ", ".join(f"“{each}”" for each in unsupported)[:MAX_COMPLAINT]


def complaint(unsupported: Iterable[str]) -> str:
    """Return the message to a model about unsupported items, and what to do."""
    return (
        f"Nobody said this, and no tool gave it: {named(unsupported)}. Copy the words that it rests on into "
        '"rests_on", as they stand; leave out what rests on none.'
    )


def _letters(text: str) -> str:
    """Return the letters and digits of a text, in the form in which they are compared. `&lt;` counts as `<`, because
    prompts write it so."""
    plain = unicodedata.normalize("NFKC", text.replace("&lt;", "<")).casefold()
    return re.sub(r"[\W_]+", "", plain)
