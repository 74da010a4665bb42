from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mindstream.memory.policies import Bounded, Cosine, Found, Generative, Policy, Ranking, Signals

NOW, DAY, HOUR = 1_700_000_000.0, 86_400.0, 3_600.0


def signals(relevance: list[float], age_s: list[float], importance: list[float]) -> Signals:
    return Signals(
        relevance=np.array(relevance),
        accessed=NOW - np.array(age_s),
        importance=np.array(importance),
        strength=np.full(len(relevance), 0.5),
    )


def ranked(policy: Policy, found: Signals, among: Signals | None = None) -> Ranking:
    cosine = np.arange(len(found.relevance)) / 10
    return policy.rank(Found(**asdict(found), cosine=cosine, now=NOW, candidates=lambda: among or found))


@given(st.floats(0.1, 100), st.floats(0, 1e9), st.one_of(st.floats(1, 10), st.just(float("nan"))))
def test_bounded_never_moves_relevance_far(relevance: float, age: float, importance: float) -> None:
    score, _ = ranked(Bounded(), signals([relevance], [age], [importance]))
    assert 0.95 * 0.9**2 * relevance <= score[0] + 1e-9
    assert score[0] - 1e-9 <= 1.05 * 1.1**2 * relevance


def test_bounded_prefers_the_newer_of_two_alike() -> None:
    score, _ = ranked(Bounded(), signals([1, 1], [300 * DAY, 0], [5, 5]))
    assert score[1] > score[0]


def test_generative_is_the_formula_of_the_paper() -> None:
    score, parts = ranked(Generative(), signals([0, 1, 2], [0, HOUR, 2 * HOUR], [1, 10, 5.5]))
    assert np.allclose(parts["relevance"], [0, 0.5, 1])
    assert np.allclose(parts["importance"], [0, 1, 0.5])
    assert np.allclose(parts["recency"], [1, (0.995 - 0.995**2) / (1 - 0.995**2), 0])
    assert np.allclose(score, parts["relevance"] + parts["importance"] + parts["recency"])


def test_generative_gives_a_half_where_all_are_equal() -> None:
    score, _ = ranked(Generative(), signals([3, 3], [DAY, DAY], [4, 4]))
    assert np.allclose(score, 1.5)


def test_generative_measures_against_all_candidates_not_only_what_was_found() -> None:
    _, parts = ranked(Generative(), signals([1, 2], [0, 0], [1, 1]), signals([0, 1, 2], [0, 0, 0], [1, 1, 1]))
    assert np.allclose(parts["relevance"], [0.5, 1])


def test_cosine_is_the_cosine() -> None:
    given_ = signals([1, 2], [0, 0], [1, 1])
    assert np.array_equal(ranked(Cosine(), given_)[0], [0, 0.1])
