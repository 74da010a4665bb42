"""Ratings and tests of an evaluation, compared with the packages trueskill, scipy and scikit-posthocs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindstream_evals.town.report import Game, Rating, chi2_above, dunn, kruskal_wallis, rate, rate_game

from mindstream.significance import holm

TAU = 25 / 300
A, B = Rating(29.182, 4.782), Rating(27.174, 4.922)


@pytest.mark.parametrize(
    ("winner", "loser", "drawn", "expected"),
    [
        (Rating(), Rating(), False, (29.396, 7.171, 20.604, 7.171)),
        (Rating(), Rating(), True, (25.0, 6.458, 25.0, 6.458)),
        (A, B, False, (30.980, 4.360, 25.270, 4.460)),
        (A, B, True, (28.622, 4.061, 27.767, 4.132)),
        (B, A, False, (29.855, 4.385, 26.651, 4.291)),
        (B, A, True, (27.767, 4.132, 28.622, 4.061)),
    ],
)
def test_ratings_after_a_game_equal_the_trueskill_package(
    winner: Rating, loser: Rating, drawn: bool, expected: tuple[float, ...]
) -> None:
    one, two = rate_game(winner, loser, drawn, tau=TAU)
    assert (one.mu, one.sigma, two.mu, two.sigma) == pytest.approx(expected, abs=0.0006)


def test_an_extreme_upset_gives_finite_ratings() -> None:
    for drawn in (False, True):
        for each in rate_game(Rating(0.0, 0.1), Rating(90.0, 0.1), drawn):
            assert math.isfinite(each.mu) and each.sigma > 0


def test_ratings_follow_wins_and_hardly_depend_on_the_order_of_games() -> None:
    games = [Game(one, two, 1.0) for one, two in ("ab", "bc", "ac") for _ in range(8)] + [Game("b", "a", 1.0)] * 2
    found, turned = rate(games), rate(games[::-1])
    assert found["a"].mu > found["b"].mu > found["c"].mu
    assert found["a"].interval[0] > found["c"].interval[1]
    for name in "abc":
        assert abs(found[name].mu - turned[name].mu) < 0.3
    assert rate([Game("a", "b", 0.5)] * 5)["a"].mu == pytest.approx(25)


# scipy 1.16 and scikit-posthocs 0.17; SHARES has many ties, as shares of won pairs have. HAND has none: it is worked
# out by ranks, 12/(6*7) * (6²/3 + 15²/3) - 3*7 = 27/7.

PLAIN = {"a": [27, 2, 4, 18, 7, 9], "b": [20, 8, 14, 36, 21, 22], "c": [34, 31, 3, 23, 30, 6]}
SHARES = {
    "a": [1, 0.5, 1, 1, 0, 1, 1], "b": [0.5, 0.5, 0, 1, 0.5, 0, 0.5], "c": [0, 0, 0.5, 0, 0.5, 0, 0.5],
    "d": [0, 0.5, 0, 0, 0, 0.5, 0.25],
}  # fmt: skip
HAND = {"low": [1.0, 2.0, 3.0], "high": [4.0, 5.0, 6.0]}


@pytest.mark.parametrize(
    ("groups", "h", "p"),
    [(PLAIN, 2.853801169590639, 0.240051790590007), (SHARES, 9.640471773124828, 0.021882989606738668),
     (HAND, 27 / 7, 0.049534613435626915)],
)  # fmt: skip
def test_kruskal_wallis_equals_scipy(groups: dict[str, list[float]], h: float, p: float) -> None:
    found = kruskal_wallis(groups)
    assert found is not None and (found.h, found.p) == pytest.approx((h, p))
    assert (found.df, found.n) == (len(groups) - 1, sum(map(len, groups.values())))


def test_dunn_with_holm_equals_scikit_posthocs() -> None:
    found = {(each.first, each.second): (each.p, each.adjusted) for each in dunn(SHARES)}
    assert found["a", "b"] == pytest.approx((0.133024, 0.532095), abs=1e-5)
    assert found["a", "c"] == pytest.approx((0.010086, 0.050428), abs=1e-5)
    assert found["a", "d"] == pytest.approx((0.005730, 0.034382), abs=1e-5)
    assert found["b", "c"] == pytest.approx((0.284352, 0.622427), abs=1e-5)
    assert found["c", "d"] == pytest.approx((0.849353, 0.849353), abs=1e-5)
    assert {each.first: each.z > 0 for each in dunn(SHARES)}["a"], "the first ranks higher"


def test_equal_or_single_groups_show_no_difference() -> None:
    same = kruskal_wallis({"a": [0.5, 0.5], "b": [0.5, 0.5]})
    assert same is not None and (same.h, same.p) == (0.0, 1.0)
    assert [each.adjusted for each in dunn({"a": [0.5, 0.5], "b": [0.5, 0.5]})] == [1.0]
    assert kruskal_wallis({"a": [1.0], "b": []}) is None and dunn({"a": [1.0]}) == ()


def test_chi_squared_has_known_quantiles() -> None:
    for df, x in ((1, 3.841459), (2, 5.991465), (3, 7.814728), (4, 9.487729), (5, 11.070498)):
        assert chi2_above(x, df) == pytest.approx(0.05, abs=1e-7)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_a_p_value(ps: list[float]) -> None:
    mended = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, mended, strict=True))
    order = sorted(range(len(ps)), key=lambda at: ps[at])
    assert [mended[at] for at in order] == sorted(mended)
