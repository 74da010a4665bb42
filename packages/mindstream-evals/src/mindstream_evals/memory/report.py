"""Summarise an evaluation by condition and question type: accuracy with its interval, tokens, seconds, evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from mindstream.significance import wilson
from mindstream_evals.memory.arms import Arm
from mindstream_evals.memory.evaluate import GivenAnswer


@dataclass(frozen=True)
class ArmStanding:
    """The result of one condition, for all questions or for those of one type.

    Attributes:
        type: the type of the questions; "": all types.
        right, judged: number of right answers, and of judged answers.
        low, high: ends of Wilson's 95 % interval.
        overlap, evidence: means over the answers that have a value.
        left: share of the answers that were given without the whole conversation.
    """

    arm: Arm
    type: str
    answered: int
    judged: int
    right: int
    low: float
    high: float
    overlap: float | None
    evidence: float | None
    tokens: float
    seconds: float
    left: float

    @property
    def accuracy(self) -> float | None:
        """Share of right answers; None: no answer was judged."""
        return self.right / self.judged if self.judged else None


def report(answers: Sequence[GivenAnswer]) -> list[ArmStanding]:
    """Return the result of each condition, for all questions and for those of each type."""
    types = ["", *sorted({each.question.type for each in answers})]
    arms = list(dict.fromkeys(each.arm for each in answers))
    found = []
    for kind in types if len(types) > 2 else types[:1]:
        for arm in arms:
            some = [each for each in answers if each.arm == arm and kind in ("", each.question.type)]
            if some:
                found.append(_standing(arm, kind, some))
    return found


def _standing(arm: Arm, kind: str, some: Sequence[GivenAnswer]) -> ArmStanding:
    judged = [each.right for each in some if each.right is not None]
    low, high = wilson(sum(judged), len(judged))
    return ArmStanding(
        arm,
        kind,
        len(some),
        len(judged),
        sum(judged),
        low,
        high,
        _mean([each.overlap for each in some]),
        _mean([each.evidence for each in some]),
        fmean(each.tokens for each in some),
        median(each.seconds for each in some),
        sum(each.left > 0 for each in some) / len(some),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    there = [each for each in values if each is not None]
    return fmean(there) if there else None
