"""Forecasts of users' actions, scored by their reports."""

from __future__ import annotations

import pytest

from mindstream.coach.belief.plan import PlanStep, calibration_of


def steps(*pairs: tuple[float, bool]) -> list[PlanStep]:
    return [PlanStep(title=f"{n}", told=True, likely=likely, did=did) for n, (likely, did) in enumerate(pairs)]


def test_calibration_reports_brier_score_and_share_done() -> None:
    found = calibration_of(steps((1.0, True), (0.9, False), (0.5, True), (0.1, False)))
    assert found.steps == 4 and found.brier == pytest.approx((0 + 0.81 + 0.25 + 0.01) / 4)
    assert found.bins[0.8].steps == 2 and found.bins[0.8].thought == pytest.approx(0.95)
    assert found.bins[0.8].done == pytest.approx(0.5)
    assert str(found) == "Of 4 steps so far, which you thought 62% likely, 50% were done."


def test_steps_without_a_prediction_or_report_do_not_count() -> None:
    told = PlanStep(title="a", told=True, likely=0.5)
    others = [told, told.model_copy(update={"likely": None, "did": True}), told.model_copy(update={"told": False})]
    assert calibration_of(others).steps == 0 and str(calibration_of(steps((0.5, True)))) == ""
