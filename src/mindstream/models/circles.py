"""Does a text go in circles? Small models fall into one and do not come out."""

from __future__ import annotations

import re
from collections import Counter

WINDOW = 4_000
"""So much of a text's end is looked at, in characters."""
PROBE = 24
TIMES, SHORTEST = 12, 48
"""A few words are a circle when they come so often one after the other, in so many characters."""
LONG_UNIT, LONG_TIMES = 40, 4
"""Something as long as a line is one when it comes so often one after the other."""
SIGNS_SHORTEST = 400
"""Signs without a letter, such as a table's rules, are one when they are so many."""
LINE_TIMES, LINE_LETTERS = 8, 12
"""A line of so many letters is one when it comes so often, whatever its number and whatever stands between."""
WORDS, NEW = 150, 0.12
"""Of so many words, at least this share of the sequences of three must be new."""
NUMBER = re.compile(r"^\s*(?:\d+[.):]|[-*•])\s*")


def goes_in_circles(text: str) -> bool:
    """Say whether a text says the same again and again; blocks of code may repeat a line."""
    tail = text[-WINDOW:]
    if repeats_its_end(tail):
        return True
    return text.count("```") % 2 == 0 and (_repeats_a_line(tail) or _says_little_new(tail))


def repeats_its_end(text: str) -> bool:
    """Say whether a text ends in the same, one after the other, too often; the cheaper question (a microsecond)."""
    tail = text[-WINDOW:]
    probe = tail[-PROBE:]
    before = tail.rfind(probe, 0, len(tail) - 1)
    if len(probe) < PROBE or before < 0:
        return False
    period = len(tail) - PROBE - before
    unit, times = tail[-period:], 1
    while tail.endswith(unit, 0, len(tail) - times * period):
        times += 1
    if not any(sign.isalpha() for sign in unit):
        return times * period >= SIGNS_SHORTEST
    if period >= LONG_UNIT:
        return times >= LONG_TIMES
    return times >= TIMES and times * period >= SHORTEST


def _repeats_a_line(tail: str) -> bool:
    counted = Counter(NUMBER.sub("", line).strip() for line in tail.split("\n"))
    often = (line for line, times in counted.items() if times >= LINE_TIMES)
    return any(sum(map(str.isalpha, line)) >= LINE_LETTERS for line in often)


def _says_little_new(tail: str) -> bool:
    words = re.findall(r"\w+", tail)
    if len(words) < WORDS:
        return False
    threes = list(zip(words, words[1:], words[2:], strict=False))[-2 * WORDS :]
    return len(set(threes)) < NEW * len(threes)
