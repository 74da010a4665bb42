"""Calibration of the reasoner's forecasts: the stated likelihood that the user does a step, compared with the outcome.

This goes beyond the paper (Christakopoulou 2024, future work).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mindstream.coach.belief.plan import PlanStep

BINS, LEAST = 5, 3
"""Number of bins of likelihoods; minimum number of steps for a summary."""


@dataclass
class Bin:
    """Steps of similar likelihood: their number, mean likelihood, and the share that was done."""

    steps: int = 0
    thought: float = 0.0
    done: float = 0.0

    def add(self, likely: float, did: bool) -> None:
        self.thought += (likely - self.thought) / (self.steps + 1)
        self.done += (did - self.done) / (self.steps + 1)
        self.steps += 1


@dataclass
class Calibration:
    """Forecasts compared with outcomes.

    Attributes:
        steps: number of counted steps.
        brier: the mean squared error of the likelihoods: 0 is best; stating .5 for every step gives .25.
        bins: the bins by the lower limit of their likelihoods.
    """

    steps: int = 0
    brier: float = 0.0
    bins: dict[float, Bin] = field(default_factory=dict)

    def add(self, step: PlanStep) -> None:
        """Count a step if it has a forecast and a report and the user was told of it."""
        if step.likely is None or step.did is None or not step.told:
            return
        self.brier += ((step.likely - step.did) ** 2 - self.brier) / (self.steps + 1)
        self.steps += 1
        low = min(int(step.likely * BINS), BINS - 1) / BINS
        self.bins.setdefault(low, Bin()).add(step.likely, step.did)

    def __str__(self) -> str:
        """Return a summary for the next forecast; "" if there are too few steps."""
        if self.steps < LEAST:
            return ""
        thought = sum(each.thought * each.steps for each in self.bins.values()) / self.steps
        done = sum(each.done * each.steps for each in self.bins.values()) / self.steps
        return f"Of {self.steps} steps so far, which you thought {thought:.0%} likely, {done:.0%} were done."


def calibration_of(steps: Iterable[PlanStep]) -> Calibration:
    """Return the calibration of a plan's steps."""
    found = Calibration()
    for step in steps:
        found.add(step)
    return found
