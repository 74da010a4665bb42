"""What recurs in a handful of texts: the words that most of them share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mindstream.text.words import STOP, plain_words, stem, terms

OF_REFLECTION = frozenset(terms("keeps coming up with, go together, what matters to, day today time thing"))
"""Words of our own thoughts, and words that tell nothing: no topics."""
LONGEST = 100
"""The longest word that is taken for one, in characters."""


@dataclass(frozen=True, slots=True)
class RecurringWord:
    """A word that recurs.

    Attributes:
        word: as it is written most often.
        within: the numbers of the texts that have it, from 1.
    """

    stem: str
    word: str
    within: list[int]


def stems(text: str) -> set[str]:
    """Return what a text is about, as stems."""
    return set(terms(text)) - OF_REFLECTION


def recurring(texts: Sequence[str], besides: str = "") -> list[RecurringWord]:
    """Return the words that two texts or more share, the most shared first; those of `besides` left out."""
    within: defaultdict[str, list[int]] = defaultdict(list)
    written: defaultdict[str, Counter[str]] = defaultdict(Counter)
    left_out = OF_REFLECTION | set(terms(besides))
    for number, text in enumerate(texts, 1):
        words = plain_words(text)
        for word in words:
            written[stem(word)][word] += 1
        for each in {stem(word) for word in words if word not in STOP}:
            within[each].append(number)
    topics = [
        RecurringWord(each, written[each].most_common(1)[0][0], numbers)
        for each, numbers in within.items()
        if len(numbers) > 1 and each not in left_out and not each.isdigit() and 1 < len(each) <= LONGEST
    ]
    return sorted(topics, key=lambda topic: (-len(topic.within), topic.stem))
