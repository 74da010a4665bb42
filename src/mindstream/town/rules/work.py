"""Where somebody works and what it does there: by how near the words for it are to those of a place and its things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream import caches
from mindstream.models.embedders.wordllama import vectors
from mindstream.text.words import STOP, plain_words, terms
from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.habits import TIMES, gerund
from mindstream.town.rules.where import purposes_of, serves

MOST_WORDS = 12
RELATED = 0.36
"""What is nearer than this belongs together."""
NEAR_THING = 0.3
AT_HOME = 0.8
"""A room at home is where somebody works only if it has the very thing."""
OWN, SERVED = 0.37, 0.45
CHANCE = 0.22
FOR_GUESTS = frozenset(("eat", "drink", "shop"))
"""A thing that stands there is for those who come, and nobody's work."""
ASIDE = 0.4
"""How much what stands before the noun of a job counts: a village doctor is no village."""
SENTENCES = re.compile(r"(?<=[a-z\d)])[.!;](?:\s|$)")
JOB = re.compile(r"(?:is|works as|am|as) (?:also |now )?(?:an?|the) (?P<job>.{2,80})", re.IGNORECASE)
BOUND = re.compile(r" (?:who|that|of|at|in|on|for|from|and|with) ")
TWO = re.compile(r" and (?=\w{2,12}s \w)")
"""A second thing that is done: one is named."""
NO_WORK_WORDS = """
is are am was were has have had lives live loves likes enjoys wants needs thinks wonders hopes does did will can feels
knows wakes gets sleeps used moved grew dreams hates misses wishes
"""
NO_WORK = frozenset(NO_WORK_WORDS.split())
KEEPS = frozenset(("works", "runs", "keeps", "owns", "manages", "has"))
EMPTY_WORDS = """
works work working runs keeps owns own makes has day days night nights morning evening evenings late every until town
village little big young old new good room house small hours
"""
EMPTY = STOP | frozenset(EMPTY_WORDS.split())
"""Words that are near to no place."""


class Work(NamedTuple):
    """What somebody does for a living: `is` it, or a verb and what goes with it."""

    said: str
    is_job: bool

    @property
    def activity(self) -> str:
        """Say it as something that is being done: who is something, runs or keeps something, works."""
        verb = self.said.partition(" ")[0]
        if self.is_job or verb in KEEPS:
            doing = BOUND.split(self.said, maxsplit=1)[-1] if self.is_job and " who " in self.said else ""
            return gerund(doing)[:70] if doing else "working"
        return gerund(TWO.split(TIMES.sub("", self.said), maxsplit=1)[0])[:70]

    @property
    def words(self) -> tuple[tuple[str, float], ...]:
        """Return the words that tell where, each with its weight."""
        head, bound, rest = self.said, "", ""
        if self.is_job and (found := BOUND.search(self.said)):
            head, bound, rest = self.said[: found.start()], found[0], self.said[found.end() :]
        first = plain_words(head)
        weighed = [(each, 1.0 if not self.is_job or n == len(first) - 1 else ASIDE) for n, each in enumerate(first)]
        weighed += [(each, 1.0) for each in plain_words(rest) if bound]
        return tuple((each, weight) for each, weight in weighed if each not in EMPTY)[:MOST_WORDS]


def read_work(text: str, who: str) -> list[Work]:
    """Return what somebody does for a living, as its description begins: its first line."""
    found = []
    names = set(who.split())
    for sentence in SENTENCES.split(text.partition("\n")[0]):
        words = sentence.split()
        while words and (words[0] in names or words[0] in ("He", "She", "They", "You", "I")):
            words.pop(0)
        said = " ".join(words).strip(" .,")
        if job := JOB.match(said):
            found.append(Work(re.split(r"[,;]", job["job"])[0], is_job=True))
        elif words and words[0][0].islower() and words[0] not in NO_WORK:
            found.append(Work(re.split(r"[,;]", said)[0], is_job=False))
    return found


def work_of(identity: str, who: str) -> list[Work]:
    """Return what somebody does for a living, from how it is described in a prompt."""
    lines = [each for each in identity.split("\n")[1:] if not each.startswith(("Traits: ", "Knows: "))]
    return read_work(lines[0], who) if lines else []


def find_work(works: Sequence[Work], places: Sequence[Place]) -> tuple[int, Work | None]:
    """Return the number of the place where somebody works, and what of its work is done there; 0: none is related."""
    for work in works:
        if work.said.endswith(" at home"):
            return 0, work
        scored = [(_related(work, place), -number) for number, place in enumerate(places, 1)]
        best, number = max(scored, default=(0.0, 0))
        if best >= RELATED:
            return -number, work
    return 0, works[0] if works else None


def _related(work: Work, place: Place) -> float:
    words = [(word, weight) for word, weight in work.words]
    inner = place.words.partition(" of ")[0] if place.home else place.words
    is_served = serves(place, frozenset(terms(work.said)))
    guests = not (is_served or place.own) and bool(FOR_GUESTS & set(purposes_of(place)))
    names = _content(" ".join((inner, *(() if guests else place.things))))
    if not words or not names:
        return OWN * place.own
    nearness = _matrix(names) @ _matrix(tuple(word for word, _ in words)).T * np.array([weight for _, weight in words])
    each = np.sort(nearness.max(axis=1))[::-1]
    best = float(each[0])
    if place.home:
        return best if best >= AT_HOME else 0.0
    near = best * 0.8 + 0.6 * float(each[:3].mean()) * (best > CHANCE)
    return near + SERVED * is_served + OWN * place.own


def nearest_thing(works: Sequence[Work], names: Sequence[str]) -> int:
    """Return the position of the thing that is nearest to somebody's work; -1 where none is near."""
    words = [each for work in works[:3] for each in work.words]
    scores = [
        float((_matrix(_content(name)) @ _matrix(tuple(word for word, _ in words)).T).max())
        if words and _content(name) else 0.0
        for name in names
    ]  # fmt: skip
    best = max(scores, default=0.0)
    return scores.index(best) if best >= NEAR_THING else -1


@caches.remember(4_096)
def _content(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in plain_words(text) if word not in EMPTY))


@caches.remember(4_096)
def _matrix(words: tuple[str, ...]) -> NDArray[np.float32]:
    return vectors(words)
