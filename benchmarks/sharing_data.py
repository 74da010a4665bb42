"""The published pairs of memory sharing, and the project's own genres, for benchmarks/sharing.py.

Genres are used for scoring only; training never sees them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mindstream_evals.sharing.agents import read_published

OWN = Path(__file__).with_name("sharing_genres.json")
POOL_EACH, STREAM_EACH = 7, 13


class Item(NamedTuple):
    """A pair and its genre."""

    id: str
    genre: str
    query: str
    answer: str


@dataclass(frozen=True)
class Experiment:
    """A pool, the stream of problems, and tests whose question and answer occur in neither."""

    pool: list[Item]
    stream: list[Item]
    tests: list[Item]

    def shuffled(self, seed: int) -> list[Item]:
        """Return the stream in the order drawn by a seed."""
        order = np.random.default_rng(seed).permutation(len(self.stream))
        return [self.stream[at] for at in order]


def clean(pool: list[Item], stream: list[Item], tests: Sequence[Item]) -> Experiment:
    """Remove tests that leak, and repeated tests."""
    asked = {each.query for each in (*pool, *stream)}
    answered = {each.answer for each in (*pool, *stream)}
    kept = {
        (each.query, each.answer): each for each in tests if each.query not in asked and each.answer not in answered
    }
    return Experiment(pool, stream, list(kept.values()))


def _items(genre: str, kind: str, pairs: Sequence[tuple[str, str]]) -> list[Item]:
    return [Item(f"{kind}-{genre}-{i}", genre, *pair) for i, pair in enumerate(pairs)]


def load(data: Path) -> tuple[Experiment, dict[str, Experiment]]:
    """Return the single pool of nine genres, and the domain pools.

    The single pool has the first 7 pairs of each genre's pool, its stream the first 13 of each genre's problems: the
    published sizes (63 and 117). A domain pool has all 20 of each genre (60), its stream the same 13.
    """
    pool: list[Item] = []
    stream: list[Item] = []
    tests: list[Item] = []
    domains = {}
    agents = list(read_published(data))
    for domain in dict.fromkeys(each["domain"] for each in agents):
        some = [each for each in agents if each["domain"] == domain]
        own = [_items(each["name"], "pool", _told(each["seeds"])) for each in some]
        new = [_items(each["name"], "stream", _told(each["stream"])[:STREAM_EACH]) for each in some]
        asked = [_items(each["name"], "test", _told(each["tests"])) for each in some]
        domains[domain] = clean(list(chain(*own)), list(chain(*new)), list(chain(*asked)))
        pool += chain(*(each[:POOL_EACH] for each in own))
        stream += chain(*new)
        tests += chain(*asked)
    return clean(pool, stream, tests), domains


def _told(pairs: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    return [(each["query"], each["answer"]) for each in pairs]


def load_own() -> Experiment:
    """Return the project's own genres: a third of each is the pool, a third the stream, a third the tests."""
    pool, stream, tests = [], [], []
    for genre, pairs in json.loads(OWN.read_text("utf-8")).items():
        items = _items(genre, "own", [(each["query"], each["answer"]) for each in pairs])
        pool += items[0::3]
        stream += items[1::3]
        tests += items[2::3]
    return clean(pool, stream, tests)


def read_genres(files: Sequence[Path]) -> list[Item]:
    """Read genres from files, without repeated questions."""
    found = dict[str, Item]()
    for file in files:
        for genre, pairs in json.loads(file.read_text("utf-8")).items():
            for each in _items(genre, file.stem, [(pair["query"], pair["answer"]) for pair in pairs]):
                found.setdefault(each.query, each)
    return list(found.values())


def load_streams(data: Path, domain: str) -> tuple[list[Item], list[Item], list[Item]]:
    """Return a domain's pool, all of its problems, and its tests, without repeated or empty questions and answers."""
    some = [each for each in read_published(data) if each["domain"] == domain]
    pool = chain(*(_items(each["name"], "pool", _told(each["seeds"])) for each in some))
    stream = chain(*(_items(each["name"], "stream", _told(each["stream"])) for each in some))
    tests = chain(*(_items(each["name"], "test", _told(each["tests"])) for each in some))
    known = set[str]()
    return _fresh(pool, known), _fresh(stream, known), _fresh(tests, known)


def _fresh(items: Iterable[Item], known: set[str]) -> list[Item]:
    """Return the items that are neither empty nor `known`, and add them to `known`."""
    kept = list[Item]()
    for each in items:
        texts = {each.query.strip(), each.answer.strip()}
        if all(texts) and len(texts) == 2 and not texts & known:
            kept.append(each)
            known |= texts
    return kept
