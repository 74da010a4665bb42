"""Other names of those who speak: short forms, misspelt ones, and what the other one calls them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from mindstream.memory.columns import KIND_CODES, Columns
from mindstream.text.words import STOP, terms

CHAT = KIND_CODES["chat"]
SHORT, LONG = 3, 5
"""A short form has so many letters at least; a name that is recognised though it is misspelt, so many."""
OFTEN = 5
BY_ONE, EPISODES = 0.9, 0.5
"""What one of two is called by the other: a word said so often, in so large a part by one of them, and in so large a
part of that one's episodes."""


def find_bearer(word: str, columns: Columns, begins_sentence: bool = False) -> int:
    """Return the number of the speaker whose name a capitalised word is in another form; -1: nobody's, or several."""
    lower = word.lower()
    if lower in STOP or lower in columns.named:
        return -1
    holds = columns.lexical.matches(next(iter(terms(word)), ""))[0]
    if len(holds) >= OFTEN and not begins_sentence and (called := _find_called(holds, columns)) >= 0:
        return called
    return _find_resembling(lower, columns, is_used=bool(len(holds)))


def _find_resembling(word: str, columns: Columns, is_used: bool) -> int:
    """Return whose first name begins with a word, or is it but for one letter if the stream does not use the word."""
    firsts = [first for first in columns.named if len(word) >= SHORT and first.startswith(word)]
    if not firsts and not is_used and len(word) >= LONG:
        long = [first for first in columns.named if len(first) >= LONG]
        firsts = [found[0] for found in extract(word, long, scorer=OSA.distance, score_cutoff=1, limit=2)]
    bearers = {columns.names[name] for first in firsts for name in columns.named[first]}
    return bearers.pop() if len(bearers) == 1 else -1


def _find_called(holds: NDArray[np.int64], columns: Columns) -> int:
    """Return whom of two the other calls by a word: nobody else says it, and that one does whenever they talk."""
    talk = columns.kind.values == CHAT
    by, group = columns.by.values, columns.group.values
    two, said = columns.speakers.taking_part(), by[holds[talk[holds]]]
    if len(two) != 2:
        return -1
    caller, called = sorted(two, key=lambda each: -int(np.count_nonzero(said == each)))
    if np.count_nonzero(said == caller) < BY_ONE * len(holds):
        return -1
    episodes = len(np.unique(group[talk & (by == caller)]))
    if episodes < 2 or len(np.unique(group[holds])) < EPISODES * episodes:
        return -1
    return called
