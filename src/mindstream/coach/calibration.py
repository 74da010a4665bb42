"""How well the Reasoner foresees what people do: each step's likelihood, said before it was told, and what came of it.

Beyond the paper (Christakopoulou 2024, future work): adherence as a forecast that the log scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mindstream.coach.belief.plan import PlanStep

BINS, LEAST = 5, 3
"""Likelihoods are gathered in so many bins; fewer steps than these say nothing."""


@dataclass
class Bin:
    """Steps that were thought about as likely: how many, how likely on average, and what share was done."""

    steps: int = 0
    thought: float = 0.0
    done: float = 0.0

    def add(self, likely: float, did: bool) -> None:
        self.thought += (likely - self.thought) / (self.steps + 1)
        self.done += (did - self.done) / (self.steps + 1)
        self.steps += 1


@dataclass
class Calibration:
    """Forecasts against what people told.

    Attributes:
        brier: the mean squared error of the likelihoods: 0 is best, always saying .5 gives .25.
        bins: by the lower end of the likelihood.
    """

    steps: int = 0
    brier: float = 0.0
    bins: dict[float, Bin] = field(default_factory=dict)

    def add(self, step: PlanStep) -> None:
        """Take in a step, if it was foreseen, told and reported on."""
        if step.likely is None or step.did is None or not step.told:
            return
        self.brier += ((step.likely - step.did) ** 2 - self.brier) / (self.steps + 1)
        self.steps += 1
        low = min(int(step.likely * BINS), BINS - 1) / BINS
        self.bins.setdefault(low, Bin()).add(step.likely, step.did)

    def __str__(self) -> str:
        """Say it to whoever foresees next; "" while there is too little to say."""
        if self.steps < LEAST:
            return ""
        thought = sum(each.thought * each.steps for each in self.bins.values()) / self.steps
        done = sum(each.done * each.steps for each in self.bins.values()) / self.steps
        return f"Of {self.steps} steps so far, which you thought {thought:.0%} likely, {done:.0%} were done."


def calibration_of(steps: Iterable[PlanStep]) -> Calibration:
    """Score the steps of a plan."""
    found = Calibration()
    for step in steps:
        found.add(step)
    return found
