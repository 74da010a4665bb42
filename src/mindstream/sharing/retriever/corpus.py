"""What a retriever knows of its pool: pairs in the order of their admission, their words, their vectors."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mindstream.sharing.retriever.head import Floats
from mindstream.sharing.retriever.learner import Vectors
from mindstream.text.growing_array import GrowingArray
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms

Rows = NDArray[np.int64]
ALIKE = 0.98
"""Prompts with a higher cosine put the same problem."""


class Pair(Protocol):
    """A question and its answer; `id` is nobody else's."""

    @property
    def id(self) -> str: ...

    @property
    def query(self) -> str: ...

    @property
    def answer(self) -> str: ...


class Corpus:
    """Pairs by number: 0, 1, 2 … as they came."""

    def __init__(self, width: int) -> None:
        self.pairs: list[Pair] = []
        self._asked: GrowingArray[np.float32] = GrowingArray(np.float32, width)
        self._texts: GrowingArray[np.float32] = GrowingArray(np.float32, width)
        self._lexical = Lexical()
        self._numbers: dict[str, int] = {}
        self._problems: list[tuple[frozenset[str], str]] = []
        self._withdrawn: set[int] = set()  # and those without an answer

    def __len__(self) -> int:
        return len(self.pairs)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._numbers

    @property
    def vectors(self) -> Vectors:
        """Return all vectors: views, not to be kept across `add`."""
        return Vectors(self._asked.values, self._texts.values)

    def add(self, pair: Pair, asked_as: Floats, vector: Floats) -> int:
        """Add a pair with the vector of its question, and that of what is embedded of it; return its number."""
        at = self._numbers[pair.id] = len(self.pairs)
        asked, answered = terms(pair.query), terms(pair.answer)
        self.pairs.append(pair)
        self._asked.append(asked_as)
        self._texts.append(vector)
        self._lexical.add(asked + answered)
        if not pair.answer.strip():
            self._withdrawn.add(at)
        self._problems.append((frozenset(asked), " ".join(answered) or pair.answer.strip()))
        return at

    def withdraw(self, ids: Iterable[str]) -> list[int]:
        """Take pairs out: they are no candidates any more; return their numbers."""
        gone = [self._numbers[id_] for id_ in ids if id_ in self._numbers]
        self._withdrawn.update(gone)
        return gone

    def number(self, id_: str) -> int | None:
        """Return the number of a pair that can be learned from; None: there is no such."""
        at = self._numbers.get(id_)
        return at if at is not None and self.teaches(at) else None

    def teaches(self, at: int) -> bool:
        """Tell whether a pair may be learned from: it was not taken out, and has an answer."""
        return at not in self._withdrawn

    def candidates(self, at: int, n: int) -> Rows:
        """Return up to n pairs that may help with one: the nearest by BM25, none of the same problem.

        Where words do not tell, chance does, keyed by the pair.
        """
        pair = self.pairs[at]
        chance = np.random.default_rng(zlib.crc32(pair.id.encode())).random(len(self))
        scores = self._lexical.scores(terms(pair.query)) + chance * 1e-6
        allowed = np.vecdot(self._asked.values, self._asked.values[at]) < ALIKE
        allowed[[at, *self._withdrawn]] = False
        order = np.argsort(-scores, kind="stable")
        others = [row for row in order[allowed[order]][: 2 * n].tolist() if not self._is_same_problem(at, row)]
        return np.array(others[:n], np.int64)

    def _is_same_problem(self, one: int, other: int) -> bool:
        (asked, answered), (asked_too, answered_too) = self._problems[one], self._problems[other]
        return (bool(asked) and asked == asked_too) or (bool(answered) and answered == answered_too)
