"""Recognisers that alarms may name: classifiers for what must not be missed, in whatever words it comes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from mindstream.text.classifier import Classifier, View, views
from mindstream.text.windows import sentences, windows

FOLDER = Path(__file__).with_name("recognisers")
"""Written by benchmarks/train_classifiers.py."""
LONG = 120
"""A sentence longer than this, in characters, is read in windows: its end is not to be drowned by its beginning."""
MANY = 64
"""Of so many pieces at most each two are read together."""
WHOLE = 400
"""A text longer than this is read in its parts only."""
ABOVE = {"danger": 0.0, "apnoea": 1.0}
"""The log odds above which each recogniser speaks up; measured in docs/packs.md."""
CONTRARY = -1.5
"""The log odds below which it is sure of the contrary."""
SURER = 1.0
"""How much surer it must be of a part than of the whole: torn from the rest, many a sentence sounds darker."""


def names() -> tuple[str, ...]:
    """Name the recognisers there are."""
    return tuple(ABOVE)


def recognises(name: str, text: str) -> bool:
    """Tell whether a recogniser finds in a text what it is for."""
    if len(text) <= WHOLE and _odds(name, views(text)) > ABOVE[name]:
        return True
    return _strongest(text)[name] > ABOVE[name] + SURER


def harmless(name: str, text: str) -> bool:
    """Tell whether a recogniser is sure that a text, whole and in its parts, is not what it is for."""
    return _odds(name, views(text)) < CONTRARY and _strongest(text)[name] < CONTRARY


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


@lru_cache(200)
def _strongest(text: str) -> Mapping[str, float]:
    """Return what each recogniser makes of the part that it is surest of; minus infinity where there are no parts."""
    seen = [views(part) for part in dict.fromkeys(parts(text))]
    return {name: max((_odds(name, each) for each in seen), default=-math.inf) for name in names()}


def _odds(name: str, seen: Sequence[View]) -> float:
    return _loaded(name).log_odds(seen)[name]


@cache
def _loaded(name: str) -> Classifier:
    return Classifier(FOLDER / f"{name}.npz")
