"""Is an answer right? Compared as the sets' own scorers do: bare words, numbers, yes or no.

Compared is the last line of an answer: before it somebody may have thought aloud.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["words", "trivia", "number", "yes_no"]
"""How answers are compared: as HotpotQA's scorer does, as TriviaQA's, by the number, by yes or no."""

YES, NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
ARTICLES = frozenset({"a", "an", "the"})
TYPED = "‘’´`"
"""What TriviaQA's scorer takes for punctuation, too."""
NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


@dataclass(frozen=True, slots=True)
class Score:
    """How right an answer is.

    Attributes:
        exact: it is one of the expected ones. contained: it holds one of them.
        f1: the harmonic mean of the words that it shares, over its own and over the expected ones.
    """

    exact: bool = False
    contained: bool = False
    f1: float = 0.0


def score(kind: Kind, expected: Sequence[str], answer: str) -> Score:
    """Compare an answer with those that are expected; the best of them counts."""
    line = last_line(answer)
    found = [_compared(kind, line, wanted) for wanted in expected]
    return Score(*(max(getattr(each, name) for each in found) for name in ("exact", "contained", "f1")))


def last_line(answer: str) -> str:
    """Return the last line of an answer that says something."""
    return next((line.strip() for line in reversed(answer.splitlines()) if line.strip()), "")


def _compared(kind: Kind, line: str, wanted: str) -> Score:
    if kind == "number":
        numbers, value = find_numbers(line), find_numbers(wanted)[-1]
        exact = numbers[-1:] == [value]
        return Score(exact, value in numbers, float(exact))
    said, expected = (words_of(text, spaced=kind == "trivia") for text in (line, wanted))
    if kind == "yes_no" or (set(expected) <= YES | NO and len(expected) == 1):
        positive = expected[0] in YES
        decided = next((word for word in said if word in YES | NO), "")
        contained = bool(decided) and (decided in YES) == positive
        exact = contained and len(said) == 1
        return Score(exact, contained, float(exact))
    if not expected:  # an alias of signs alone: nothing is an answer to it
        return Score()
    return Score(said == expected, _holds(said, expected), _f1(said, expected))


def words_of(text: str, *, spaced: bool = False) -> list[str]:
    """Return a text's words in lower case without articles and punctuation; `spaced`: a sign parts words."""
    signs = string.punctuation + TYPED if spaced else string.punctuation
    bare = text.lower().translate(dict.fromkeys(map(ord, signs), " " if spaced else None))
    return [word for word in bare.split() if word not in ARTICLES]


def find_numbers(text: str) -> list[Decimal]:
    """Return the numbers of a text; commas part thousands."""
    return [Decimal(each.replace(",", "")) for each in NUMBER.findall(text)]


def is_number(text: str) -> bool:
    """Tell whether a text is a number and nothing else."""
    try:
        return Decimal(text.strip().replace(",", "")).is_finite()
    except InvalidOperation:
        return False


def _holds(said: Sequence[str], expected: Sequence[str]) -> bool:
    size = len(expected)
    return any(said[at : at + size] == expected for at in range(len(said) - size + 1))


def _f1(said: Sequence[str], expected: Sequence[str]) -> float:
    shared = (Counter(said) & Counter(expected)).total()
    return 2 * shared / (len(said) + len(expected)) if shared else 0.0
