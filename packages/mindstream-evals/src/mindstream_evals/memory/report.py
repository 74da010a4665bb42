"""What came of an evaluation: by arm and by type, accuracy with its interval, tokens, seconds; evidence beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from mindstream.significance import wilson
from mindstream_evals.memory.arms import Arm
from mindstream_evals.memory.evaluate import GivenAnswer


@dataclass(frozen=True)
class ArmStanding:
    """How an arm did, with all questions or with those of a type.

    Attributes:
        type: "": all.
        right, judged: of these, so many.
        low, high: Wilson's interval of 95 %.
        overlap, evidence: means, where there is something to compare.
        left: the share of the answers that were given without the whole talk.
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
        """The share that is right; None: nobody judged."""
        return self.right / self.judged if self.judged else None


def report(answers: Sequence[GivenAnswer]) -> list[ArmStanding]:
    """Return how each arm did, with all questions and with those of each type."""
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
