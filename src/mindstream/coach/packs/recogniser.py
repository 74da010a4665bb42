"""Recognisers that alarms may name: classifiers that hear danger or a sign for a doctor in whatever words they come."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from mindstream.caches import remember
from mindstream.text.classifier import TOKEN, Classifier, View, views
from mindstream.text.windows import sentences, windows

FOLDER = Path(__file__).with_name("recognisers")
"""Written by benchmarks/train_classifiers.py."""
LONG = 120
"""A sentence longer than this, in characters, is read in windows: its end is not to be drowned by its beginning."""
MANY = 64
"""Of so many pieces at most each two are read together."""
WHOLE = 400
"""A text longer than this is read in its parts only."""
IN_PARTS = {"danger": 0, "medical": LONG}
"""A text longer than this is read in its parts too."""
KINDS: dict[str, tuple[str, ...]] = {
    "danger": (),
    "medical": (
        "acting_out_dreams", "acts_on_a_sleeping_pill", "cataplexy", "chest_pain", "drowsy_driving", "mania",
        "more_pills_than_prescribed", "morning_headache_and_thirst", "night_sweats_and_weight_loss",
        "pills_and_alcohol", "restless_legs", "seizures_at_night", "sleep_apnoea", "sleep_attacks", "sleep_paralysis",
        "sleepwalking_outside",
    ),
}  # fmt: skip
"""What a recogniser tells apart, once it has found that a text is of its kind at all."""
ABOVE = {"danger": 0.0, "medical": -0.75}
"""The log odds that must be left when any one word is taken out of a text, before a recogniser speaks up.

No single word may carry it, so short texts of common words need more. No harmless sentence of the shipped packs' lists
reaches it, and of the 14,000 in benchmarks/training six reach that of danger.
"""
LIKELY = -1.0
"""The log odds that the likeliest kind must have: a text of no kind in particular is of none."""
STRONGEST = 8
"""Of so many parts of a text, those that a recogniser is surest of, it is asked what is left without a word."""
SURER = 1.0
"""How much surer it must be of a part than of the whole: torn from the rest, many a sentence sounds darker."""
REMEMBERED = 64


def names() -> tuple[str, ...]:
    """Name what an alarm can have recognised: `danger`, `medical/cataplexy`."""
    return tuple(f"{name}/{kind}" if kind else name for name, kinds in KINDS.items() for kind in kinds or ("",))


def recognises(name: str, text: str) -> bool:
    """Tell whether a recogniser finds in a text, or in a part of it, what it is for; of several kinds, this one."""
    whole, _, kind = name.partition("/")
    found = _find(whole, text)
    if found is None or not kind:
        return found is not None
    odds = _loaded(whole).log_odds(views(found))
    return odds[kind] > LIKELY and kind == max(KINDS[whole], key=odds.__getitem__)


@remember(REMEMBERED)
def _find(name: str, text: str) -> str | None:
    """Return the text, or the part of it, in which a recogniser finds what it is for."""
    if len(text) <= WHOLE and _holds(name, text, ABOVE[name]):
        return text
    if len(text) <= IN_PARTS[name]:
        return None
    seen = {part: _odds(name, views(part)) for part in dict.fromkeys(parts(text))}
    surest = heapq.nlargest(STRONGEST, seen, key=seen.__getitem__)
    return next((part for part in surest if _holds(name, part, ABOVE[name] + SURER)), None)


def _holds(name: str, text: str, above: float) -> bool:
    """Tell whether the log odds of a text stay above a mark, whichever of its words is taken out."""
    if _odds(name, views(text)) <= above:
        return False
    plain = text.lower()
    without = (f"{plain[: word.start()]}{plain[word.end() :]}" for word in TOKEN.finditer(plain))
    return all(_odds(name, views(less)) > above for less in without)


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


def _odds(name: str, seen: Sequence[View]) -> float:
    return _loaded(name).log_odds(seen)[name]


@cache
def _loaded(name: str) -> Classifier:
    return Classifier(FOLDER / f"{name}.npz")
