"""The published pairs of memory sharing, and genres of our own, for benchmarks/sharing.py.

Genres are known here for scoring only; nothing of them reaches training.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

OWN = Path(__file__).with_name("sharing_genres.json")
DOMAINS = {
    "literature": ("Literal_Creation", "LiteralPool", "Literalproblem", ("wuyanlushi", "limerick", "sonnet")),
    "logic": ("Logic_Problem_Solving", "LogicPool", "LogicProblem", ("puzzle", "pun", "riddle")),
    "plans": ("Plan_Generation", "PlanPool", "PlanProblem", ("travel", "study", "fitness")),
}
TESTS = {
    "wuyanlushi": "lvshiTest", "limerick": "limerickTest", "sonnet": "sonnetTest", "puzzle": "puzzleTest",
    "pun": "punsTest", "riddle": "riddlesTest", "travel": "travelTest", "study": "studyTest", "fitness": "fitnessTest",
}  # fmt: skip
POOL_EACH, POOL_OF_DOMAIN, STREAM_EACH = 7, 20, 13


class Item(NamedTuple):
    """A pair and its genre."""

    id: str
    genre: str
    query: str
    answer: str


@dataclass(frozen=True)
class Experiment:
    """A pool, the problems that stream in, and tests of which neither question nor answer stands in them."""

    pool: list[Item]
    stream: list[Item]
    tests: list[Item]

    def shuffled(self, seed: int) -> list[Item]:
        """Return the stream in the order of a seed."""
        order = np.random.default_rng(seed).permutation(len(self.stream))
        return [self.stream[at] for at in order]


def clean(pool: list[Item], stream: list[Item], tests: Sequence[Item]) -> Experiment:
    """Leave out each test that leaks, and tests that stand there twice."""
    asked = {each.query for each in (*pool, *stream)}
    answered = {each.answer for each in (*pool, *stream)}
    kept = {
        (each.query, each.answer): each for each in tests if each.query not in asked and each.answer not in answered
    }
    return Experiment(pool, stream, list(kept.values()))


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = (json.loads(line)["messages"] for line in path.read_text("utf-8").splitlines() if line.strip())
    return [
        (texts["user"], texts["assistant"]) for texts in ({each["role"]: each["content"] for each in m} for m in lines)
    ]


def _items(genre: str, kind: str, pairs: Sequence[tuple[str, str]]) -> list[Item]:
    return [Item(f"{kind}-{genre}-{i}", genre, *pair) for i, pair in enumerate(pairs)]


def _stream_by_genre(domain: str, pairs: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Cut a domain's problems into genres: they stand in blocks of 40, but for one limerick that comes first."""
    if domain == "literature":
        return {"limerick": pairs[:1] + pairs[41:80], "wuyanlushi": pairs[1:41], "sonnet": pairs[80:]}
    names = ("riddle", "pun", "puzzle") if domain == "logic" else ("travel", "study", "fitness")
    return {name: pairs[40 * i : 40 * i + 40] for i, name in enumerate(names)}


def load(data: Path) -> tuple[Experiment, dict[str, Experiment]]:
    """Return the single pool of nine genres, and the domain pools.

    The single pool has the first 7 pairs of each genre's pool, its stream the first 13 of each genre's problems: the
    published sizes (63 and 117). A domain pool has all 20 of each genre (60), its stream the same 13.
    """
    pool: list[Item] = []
    stream: list[Item] = []
    tests: list[Item] = []
    domains = {}
    for domain, (folder, pooled, problems, genres) in DOMAINS.items():
        whole = _pairs(data / folder / f"{pooled}.jsonl")
        coming = _stream_by_genre(domain, _pairs(data / folder / f"{problems}.jsonl"))
        own = [_items(genre, "pool", whole[20 * i : 20 * i + POOL_OF_DOMAIN]) for i, genre in enumerate(genres)]
        new = [_items(genre, "stream", coming[genre][:STREAM_EACH]) for genre in genres]
        asked = [_items(genre, "test", _pairs(data / folder / f"{TESTS[genre]}.jsonl")) for genre in genres]
        domains[domain] = clean(list(chain(*own)), list(chain(*new)), list(chain(*asked)))
        pool += chain(*(each[:POOL_EACH] for each in own))
        stream += chain(*new)
        tests += chain(*asked)
    return clean(pool, stream, tests), domains


def load_own() -> Experiment:
    """Return the genres of our own: of each genre a third is the pool, a third streams in, a third is asked."""
    pool, stream, tests = [], [], []
    for genre, pairs in json.loads(OWN.read_text("utf-8")).items():
        items = _items(genre, "own", [(each["query"], each["answer"]) for each in pairs])
        pool += items[0::3]
        stream += items[1::3]
        tests += items[2::3]
    return clean(pool, stream, tests)


def load_streams(data: Path, domain: str) -> tuple[list[Item], list[Item], list[Item]]:
    """Return a domain's pool, all of its problems, and its tests: no question and no answer twice, none empty."""
    folder, pooled, problems, genres = DOMAINS[domain]
    whole = _pairs(data / folder / f"{pooled}.jsonl")
    coming = _stream_by_genre(domain, _pairs(data / folder / f"{problems}.jsonl"))
    pool = chain(*(_items(genre, "pool", whole[20 * i : 20 * i + POOL_OF_DOMAIN]) for i, genre in enumerate(genres)))
    stream = chain(*(_items(genre, "stream", coming[genre]) for genre in genres))
    tests = chain(*(_items(genre, "test", _pairs(data / folder / f"{TESTS[genre]}.jsonl")) for genre in genres))
    known = set[str]()
    return _fresh(pool, known), _fresh(stream, known), _fresh(tests, known)


def _fresh(items: Iterable[Item], known: set[str]) -> list[Item]:
    """Leave out what is empty or `known`, and know the rest."""
    kept = list[Item]()
    for each in items:
        texts = {each.query.strip(), each.answer.strip()}
        if all(texts) and len(texts) == 2 and not texts & known:
            kept.append(each)
            known |= texts
    return kept
