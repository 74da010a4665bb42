"""Each policy ranks all candidates by its own score: compared with scoring every one of them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mindstream.arrays import Doubles
from mindstream.memory.recall.ranking import (
    Bounded,
    Candidates,
    Cosine,
    Generative,
    Policy,
    Rows,
    Signals,
    highest_rows,
    nth_highest,
)

NOW, DAY, HOUR = 1_700_000_000.0, 86_400.0, 3_600.0
NAN = float("nan")


NO_VECTORS = (np.zeros(4, np.float32), lambda rows: np.zeros((len(rows), 4), np.float32))


def candidates(
    relevance: list[float], age_s: list[float], importance: list[float], strength: list[float] | None = None
) -> Candidates:
    given_ = Signals(
        relevance=np.array(relevance),
        accessed=NOW - np.array(age_s),
        importance=np.array(importance),
        strength=np.array(strength or [0.5] * len(relevance)),
    )

    def signals(rows: Rows) -> Signals:
        return Signals(given_.relevance[rows], given_.accessed[rows], given_.importance[rows], given_.strength[rows])

    def cosines(rows: Rows) -> Doubles:
        found: Doubles = np.sin(rows * 7.0)
        return found

    return Candidates(np.array(relevance, np.float32), NOW, signals, cosines, *NO_VECTORS)


numbers = st.floats(-60, 60, width=32) | st.sampled_from([0.0, 1.0, 1.5, 30.0])
records = st.lists(
    st.tuples(
        numbers,
        st.floats(0, 1e9),
        st.floats(1, 10) | st.just(NAN),
        st.sampled_from([0.5, 0.75, 0.875, 1.0, 0.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=40,
)


def rated(importance: float) -> float:
    return 0.5 if math.isnan(importance) else (importance - 1) / 9


def spread(values: list[float]) -> list[float]:
    low, high = min(values), max(values)
    return [0.5 if high - low < 1e-12 else (value - low) / (high - low) for value in values]


def by_bounded(policy: Bounded, rows: list[tuple[float, float, float, float]]) -> list[float]:
    def factor(age: float, importance: float, strength: float) -> float:
        recency: float = 1 + policy.recency * (2 * 0.5 ** (age / policy.half_life_s) - 1)
        return recency * (1 + policy.importance * (2 * rated(importance) - 1)) * (
            1 + policy.strength * (2 * strength - 1)
        )  # fmt: skip

    return [each + abs(each) * (factor(*more) - 1) for each, *more in rows]


def by_generative(policy: Generative, rows: list[tuple[float, float, float, float]]) -> list[float]:
    parts = zip(
        spread([policy.decay ** (age / HOUR) for _, age, _, _ in rows]),
        spread([rated(importance) for _, _, importance, _ in rows]),
        spread([relevance for relevance, *_ in rows]),
        strict=True,
    )
    return [policy.recency * a + policy.importance * b + policy.relevance * c for a, b, c in parts]


BOUNDED = [Bounded(), Bounded(0, 0, 0), Bounded(0.5, 0.2, 0.1), Bounded(-0.1, 0.1, 0), Bounded(0.9, 0.9, 2.0)]
GENERATIVE = [Generative(), Generative(0.5, 2, 3, 0.99)]


@settings(max_examples=60)
@given(records, st.integers(1, 12), st.sampled_from([*BOUNDED, *GENERATIVE, Cosine()]))
def test_a_policy_ranks_like_scoring_every_candidate(
    drawn: list[tuple[float, float, float, float, bool]], n: int, policy: Policy
) -> None:
    relevance = [each if passes else -math.inf for each, *_, passes in drawn]
    columns = list(zip(*(each[1:4] for each in drawn), strict=True))
    asked = candidates(relevance, *(list(column) for column in columns))
    ranking = policy.rank(asked, n)

    rows = [row for row, each in enumerate(drawn) if each[4]]
    signals = [(drawn[row][0], *drawn[row][1:4]) for row in rows]
    if isinstance(policy, Bounded):
        scores = by_bounded(policy, signals)
    elif isinstance(policy, Generative):
        scores = by_generative(policy, signals) if rows else []
    else:
        scores = [math.sin(row * 7.0) for row in rows]
    wanted = sorted(scores, reverse=True)[:n]
    assert np.allclose(ranking.scores, wanted, rtol=1e-9, atol=1e-9)
    of = dict(zip(rows, scores, strict=True))
    assert np.allclose([of[row] for row in ranking.rows.tolist()], wanted, rtol=1e-9, atol=1e-9)
    assert len(set(ranking.rows.tolist())) == len(wanted)
    for one, other in zip(ranking.rows, ranking.rows[1:], strict=False):
        assert of[int(one)] > of[int(other)] - 1e-9


@given(st.floats(0.1, 100), st.floats(0, 1e9), st.floats(1, 10) | st.just(NAN))
def test_the_bounded_policy_changes_relevance_within_limits(relevance: float, age: float, importance: float) -> None:
    score = Bounded().rank(candidates([relevance], [age], [importance]), 1).scores
    assert 0.95 * 0.9**2 * relevance <= score[0] + 1e-9
    assert score[0] - 1e-9 <= 1.05 * 1.1**2 * relevance


@given(st.integers(1, 40), st.integers(0, 1000), st.integers(1, 50), st.booleans())
def test_the_nth_highest_value_is_that_of_a_sorted_list(n: int, more: int, distinct: int, holes: bool) -> None:
    drawn = np.random.default_rng(more).integers(distinct, size=n + more).astype(np.float32)
    values = np.where(drawn % 3 == 0, -np.inf, drawn) if holes else drawn
    assert nth_highest(values, n) == sorted(values.tolist())[-n]


@given(st.integers(1, 400), st.integers(1, 4000), st.sampled_from([3, 60, 1_000_000]), st.booleans())
def test_the_highest_rows_are_those_of_a_partition_of_all_values(n: int, more: int, distinct: int, holes: bool) -> None:
    drawn = np.random.default_rng(more).integers(distinct, size=n + more).astype(np.float32)
    values = np.where(drawn % 3 == 0, -np.inf, drawn).astype(np.float32) if holes else drawn
    assert sorted(highest_rows(values, n)) == sorted(np.argpartition(-values, n)[:n])


def test_the_nth_highest_value_is_found_among_values_that_are_not_numbers() -> None:
    values = np.full(1000, np.nan)
    values[:5] = 1.0
    assert np.isnan(nth_highest(values, 3))
