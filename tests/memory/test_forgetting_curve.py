"""The decay rules: every transition, with any clock."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindstream.clock import HOUR_S
from mindstream.errors import InputError
from mindstream.memory.forgetting_curve import (
    Strength,
    StrengthState,
    after_passing_over,
    after_return,
    after_sleep,
    curve,
    rehearsals,
)

LAWS = Strength()
some_laws = st.builds(
    Strength,
    first_s=st.floats(1, 1e5),
    base=st.floats(1.1, 10),
    cap_s=st.floats(2e5, 1e8),
    passed_over_s=st.floats(0, 1e7),
    asleep_s=st.floats(0, 1e7),
)
spans = st.floats(0, 1e8)


@st.composite
def held(draw: st.DrawFn, laws: Strength, lasting: bool = False) -> StrengthState:
    level = laws.lasting_level if lasting else draw(st.integers(0, laws.lasting_level - 1))
    return StrengthState(level, lasting, draw(st.floats(0, 2e9)))


@given(some_laws, st.data(), spans)
def test_a_returned_record_rises_at_level_0_or_after_its_interval(
    laws: Strength, data: st.DataObject, later: float
) -> None:
    before = data.draw(held(laws))
    now = before.time + later
    after = after_return(before, now, laws)
    rises = before.level == 0 or now - before.time > laws.interval_s(before.level)
    assert after.level == before.level + rises
    assert after.time == now
    assert after.lasting == (after.level >= laws.lasting_level)


@given(some_laws, st.data(), spans, st.sampled_from([after_return, after_passing_over, after_sleep]))
def test_a_long_term_record_never_changes_its_level(
    laws: Strength, data: st.DataObject, later: float, law: type
) -> None:
    before = data.draw(held(laws, lasting=True))
    after = law(before, before.time + later, laws)
    assert (after.level, after.lasting) == (before.level, True)


@given(some_laws, st.data(), spans)
def test_decay_by_recall_or_sleep_has_its_own_threshold(laws: Strength, data: st.DataObject, later: float) -> None:
    before = data.draw(held(laws))
    now = before.time + later
    for law, threshold in ((after_passing_over, laws.passed_over_s), (after_sleep, laws.asleep_s)):
        assert law(before, now, laws) == before._replace(level=before.level - (now - before.time > threshold))


@given(some_laws, spans, st.sampled_from([after_return, after_passing_over, after_sleep]))
def test_an_archived_record_stays_unchanged(laws: Strength, later: float, law: type) -> None:
    gone = StrengthState(-1, False, 1e9)
    assert gone.faded
    assert law(gone, 1e9 + later, laws) == gone


@given(some_laws)
def test_intervals_grow_with_the_level_up_to_the_cap(laws: Strength) -> None:
    intervals = [laws.interval_s(level) for level in range(laws.lasting_level + 3)]
    assert intervals == sorted(intervals)
    assert intervals[0] == laws.first_s
    assert intervals[laws.lasting_level :] == [laws.cap_s] * 3
    assert all(interval < laws.cap_s for interval in intervals[: laws.lasting_level])


def test_a_clock_that_goes_backwards_changes_nothing() -> None:
    before = StrengthState(2, False, 1e9)
    assert after_return(before, 1e9 - 500, LAWS) == before
    assert after_sleep(before, 1e9 - 500, LAWS) == before


def test_by_default_five_returns_over_thirty_hours_make_a_record_long_term() -> None:
    times = rehearsals(LAWS)
    assert [time / HOUR_S for time in times] == [0, 2, 6, 14, 30]
    now = StrengthState(0, False, 0.0)
    for number, time in enumerate(times):
        assert not now.lasting
        now = after_return(now, time + 1 + number, LAWS)
    assert now.lasting


def test_the_retention_curve_falls_after_the_threshold_and_later_at_higher_levels() -> None:
    curves = [curve(LAWS, level, days=60) for level in range(LAWS.lasting_level + 1)]
    for lower, higher in itertools.pairwise(curves):
        assert all(a.kept <= b.kept + 1e-12 for a, b in zip(lower, higher, strict=True))
    first = [point.kept for point in curves[0]]
    assert first[:15] == [1.0] * 15
    assert first == sorted(first, reverse=True)
    assert first[60] == pytest.approx(0.9**46)
    assert {point.kept for point in curves[-1]} == {1.0}


@pytest.mark.parametrize(
    "wrong", [{"first_s": 0.0}, {"base": 1.0}, {"cap_s": HOUR_S}, {"asleep_s": -1.0}, {"passed_over_s": float("nan")}]
)
def test_invalid_strength_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="strength needs"):
        Strength(**wrong)  # type: ignore[arg-type]
