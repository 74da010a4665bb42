"""Controls and comparisons for benchmarks/sharing.py: sources that score how much a candidate helps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mindstream.models.embedders.embedder import Embedder
from mindstream.models.providers.provider import provider
from mindstream.sharing.labelling import Likelihood, Stated
from mindstream.sharing.retriever import (
    Basis,
    Batch,
    Checked,
    Corpus,
    LearnedRetriever,
    Pair,
    StandIn,
    Unlikely,
)

SAMPLE, CANDIDATES = 12, 16


class Shuffled:
    """The rule-based scores, assigned to other candidates: labels without information."""

    basis: Basis = "stand-in"

    def __init__(self, source: StandIn) -> None:
        self._source = source
        self._chance = np.random.default_rng(0)

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        return self._chance.permutation(await self._source.p_not(pair, candidates))


def shuffled(retriever: LearnedRetriever) -> None:
    """Let a retriever learn labels without information, in training and in its check."""
    retriever._unlikely = Shuffled(StandIn(retriever._embedder))


def scrambled(retriever: LearnedRetriever) -> None:
    """Train as the published code does: each prompt of a batch is paired with the next prompt, under the labels.

    Its collation makes ((p1, p2, …), (c1, c2, …)) of pairs, and its model reads (p1, p2), (p3, p4), …, (c1, c2), …
    """
    draw, lessons = retriever._lessons.draw, retriever._lessons

    def mixed(chance: np.random.Generator) -> Batch:
        drawn = draw(chance)
        paired = np.concatenate([drawn.asked, drawn.candidates]).reshape(-1, 2)
        return Batch(paired[:, 0], paired[:, 1], drawn.helps)

    lessons.draw = mixed  # type: ignore[method-assign]
    lessons.check = lambda *_: Checked(1.0, 1.0)  # type: ignore[method-assign]  # the published code has none


async def compare_sources(name: str, embedder: Embedder, items: Sequence[Pair]) -> dict[str, Any]:
    """Score the candidates of some pairs with all three sources; return rank correlations and the time of each."""
    corpus = Corpus(embedder.width)
    for item, vector in zip(items, await embedder.embed([each.query for each in items]), strict=True):
        corpus.add(item, vector, vector)
    english = [i for i, item in enumerate(items) if item.answer.isascii()]
    chosen = np.random.default_rng(0).choice(english, SAMPLE, replace=False)
    model = provider(name)
    sources: list[Unlikely] = [StandIn(embedder), Likelihood(model), Stated(model)]
    told: dict[str, list[NDArray[np.float64]]] = {each.basis: [] for each in sources}
    took: dict[str, float] = {}
    for source in sources:
        start = time.perf_counter()
        for row in chosen:
            rows = corpus.candidates(int(row), 60)[:: 60 // CANDIDATES]
            told[source.basis].append(await source.p_not(items[row], [items[i] for i in rows]))
        took[source.basis] = (time.perf_counter() - start) * 1000 / sum(map(len, told[source.basis]))
    await model.aclose()
    names = list(told)
    return {
        "rank_correlation": {
            f"{a} / {b}": round(float(np.mean([_spearman(x, y) for x, y in zip(told[a], told[b], strict=True)])), 3)
            for i, a in enumerate(names)
            for b in names[i + 1 :]
        },
        "ms_a_candidate": {basis: round(ms, 2) for basis, ms in took.items()},
        "admissions": SAMPLE,
    }


def _spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    first, second = (np.argsort(np.argsort(each)) for each in (one, other))
    return float(np.corrcoef(first, second)[0, 1])
