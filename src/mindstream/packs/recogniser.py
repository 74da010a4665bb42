"""Recognisers that alarms may name: classifiers for what must not be missed, in whatever words it comes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from mindstream.language.classifier import Classifier, views
from mindstream.language.windows import sentences, windows

FOLDER = Path(__file__).with_name("recognisers")
"""Written by benchmarks/train_classifiers.py."""
LONG = 120
"""A sentence longer than this, in characters, is read in windows: its end is not to be drowned by its beginning."""
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
    if len(text) <= WHOLE and _odds(name, text) > ABOVE[name]:
        return True
    return any(_odds(name, part) > ABOVE[name] + SURER for part in parts(text))


def harmless(name: str, text: str) -> bool:
    """Tell whether a recogniser is sure that a text, whole and in its parts, is not what it is for."""
    return all(_odds(name, part) < CONTRARY for part in (text, *parts(text)))


def parts(text: str) -> Iterator[str]:
    """Give the sentences of a text of several, and each two that follow each other; windows of what never ends."""
    pieces = [piece for sentence in sentences(text) for piece in windows(sentence, LONG)]
    if len(pieces) > 1:
        yield from pieces
        yield from (f"{one} {two}" for one, two in pairwise(pieces))


def _odds(name: str, text: str) -> float:
    return _loaded(name).log_odds(views(text))[name]


@cache
def _loaded(name: str) -> Classifier:
    return Classifier(FOLDER / f"{name}.npz")
