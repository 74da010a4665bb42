"""The recogniser that alarms may name: a classifier that hears danger to life in whatever words it comes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from mindstream.caches import remember
from mindstream.text.classifier import TOKEN, Classifier, View, views
from mindstream.text.words import sentences, windows

FILE = Path(__file__).with_name("danger.npz")
"""Written by benchmarks/train_recogniser.py."""
LONG = 120
"""A sentence longer than this, in characters, is read in windows: its end is not to be drowned by its beginning."""
MANY = 64
"""Of so many pieces at most each two are read together."""
WHOLE = 400
"""A text longer than this is read in its parts only."""
ABOVE = 0.0
"""The log odds that must be left when any one word is taken out of a text, before the recogniser speaks up.

No single word may carry it, so short texts of common words need more.
"""
STRONGEST = 8
"""Of so many parts of a text, those that a recogniser is surest of, it is asked what is left without a word."""
SURER = 1.0
"""How much surer it must be of a part than of the whole: torn from the rest, many a sentence sounds darker."""
REMEMBERED = 64


@remember(REMEMBERED)
def recognises_danger(text: str) -> bool:
    """Tell whether a text, or a part of it, sounds like danger to life."""
    if len(text) <= WHOLE and _holds(text, ABOVE):
        return True
    seen = {part: _odds(views(part)) for part in dict.fromkeys(parts(text))}
    surest = heapq.nlargest(STRONGEST, seen, key=seen.__getitem__)
    return any(_holds(part, ABOVE + SURER) for part in surest)


def _holds(text: str, above: float) -> bool:
    """Tell whether the log odds of a text stay above a mark, whichever of its words is taken out."""
    if _odds(views(text)) <= above:
        return False
    plain = text.lower()
    without = (f"{plain[: word.start()]}{plain[word.end() :]}" for word in TOKEN.finditer(plain))
    return all(_odds(views(less)) > above for less in without)


def parts(text: str) -> Iterator[str]:
    """Give the sentences of a text of several, and each two that follow each other; windows of what never ends.

    Of very many sentences not each two are read together, but short neighbours, as many as fill a window.
    """
    pieces = [piece for sentence in sentences(text) for piece in windows(sentence, LONG)]
    if len(pieces) > 1:
        yield from pieces
        together = pieces if len(pieces) <= MANY else _gathered(pieces)
        yield from (f"{one} {two}" for one, two in pairwise(together))


def _gathered(pieces: Iterable[str]) -> Iterator[str]:
    """Put short neighbours together until they are half as long as a window."""
    together = ""
    for piece in pieces:
        together = f"{together} {piece}" if together else piece
        if len(together) * 2 > LONG:
            yield together
            together = ""
    if together:
        yield together


def _odds(seen: Sequence[View]) -> float:
    return _classifier().log_odds(seen)


@cache
def _classifier() -> Classifier:
    return Classifier(FILE)
