"""What somebody works on these days and likes to do, and in which part of the day, read from how it is described."""

from __future__ import annotations

import re
from typing import NamedTuple

from mindstream.town.rules.habits import LONGEST, TIMES, gerund, shorten
from mindstream.town.rules.times import Stretch, read_part

MANY_WORDS = 3
"""What is said in more words needs no `and`."""
PURSUIT = re.compile(
    r"\b(?:is|are|am|be|been)(?: also| currently| now| mostly| always| usually"
    r"| busy){0,2} (?P<what>[a-z]{2,14}ing\b[^.;,\n]{0,90})"
    r"|\b(?:spends?|spending) (?:\w+ ){0,2}(?:free )?(?:time|days?|evenings?"
    r"|hours) (?P<free>[a-z]{2,14}ing\b[^.;,\n]{0,60})",
    re.IGNORECASE,
)
PLEASURE = re.compile(r"\b(?:loves?|likes?|enjoys?)(?: to)? (?P<what>[a-z]{3,14}\b[^.;,\n]{0,60})", re.IGNORECASE)
NO_PURSUIT_WORDS = """
living looking telling asking being having staying trying getting going interested curious running keen loving
liking helping making thinking hoping feeling growing becoming retiring coming leaving doing talking working's
willing knowing shopping
"""
NO_PURSUIT = frozenset(NO_PURSUIT_WORDS.split())
NO_PLEASURE_WORDS = """
help make be live meet take connect support interact see feel use find want share talk go sit the a an her his
their them themselves him it you your every this that entertain
"""
NO_PLEASURE = frozenset(NO_PLEASURE_WORDS.split())


class Pursuit(NamedTuple):
    """Something that somebody does when nothing else is to be done; `part`: of the day; None: at any time."""

    what: str
    part: Stretch | None = None

    def suits(self, start: int, end: int) -> bool:
        """Tell whether it may be done from one minute of the day to another, half of it within its part."""
        if self.part is None or self.part.start is None or self.part.end is None:
            return True
        return 2 * (min(end, self.part.end) - max(start, self.part.start)) >= end - start


def read_pursuits(text: str) -> tuple[list[Pursuit], list[Pursuit]]:
    """Return what somebody works on these days, and what it likes to do."""
    works = [(found["what"] or found["free"]).strip() for found in PURSUIT.finditer(text[:LONGEST])]
    likes = [gerund(found["what"].strip()) for found in PLEASURE.finditer(text[:LONGEST])
             if found["what"][0].islower() and found["what"].split()[0] not in NO_PLEASURE]  # fmt: skip
    works = [each for each in works if each.split()[0].lower() not in NO_PURSUIT]
    return [_pursuit(each) for each in dict.fromkeys(works)], [_pursuit(each) for each in dict.fromkeys(likes)]


def _pursuit(said: str) -> Pursuit:
    """Take the part of the day out of what is said to be done."""
    what = shorten(" ".join(TIMES.sub("", said).split()))
    first, joined, _ = what.partition(" and ")
    if joined and len(first.split()) > MANY_WORDS:
        what = first
    return Pursuit(re.sub(r" to [a-z]+$", "", what), read_part(said))
