"""Results of an evaluation: accuracy and cost of each strategy, and paired comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from mindstream.significance import holm, mcnemar, wilson
from mindstream_evals.planning.evaluate import Outcome
from mindstream_evals.planning.questions import Question, Score, score

Judged = Mapping[tuple[str, str], bool]


@dataclass(frozen=True)
class Share:
    """A number of hits among a total, and the 95 % interval of their share."""

    hits: int
    of: int
    low: float
    high: float

    def __str__(self) -> str:
        """Return the hits and the 95 % interval: `3 of 4, 30% to 95%`; `-` if the total is 0."""
        return f"{self.hits} of {self.of}, {self.low:.0%} to {self.high:.0%}" if self.of else "-"


@dataclass(frozen=True)
class WayFound:
    """The result of one strategy.

    Attributes:
        judged: share that the judge called right; None without a judge.
        tokens, tokens_at_a_tenth, calls, tool_calls, seconds: means per question; `tokens_at_a_tenth` counts tokens
            from a cache at a tenth.
        usd: cost of all questions; None without a price.
        no_answer: number of questions without an answer.
        failed: number of tool calls that the evaluation made fail (`--fail`).
    """

    way: str
    exact: Share
    contained: Share
    judged: Share | None
    f1: float
    tokens: float
    tokens_at_a_tenth: float
    calls: float
    tool_calls: float
    seconds: float
    usd: float | None
    no_answer: int
    failed: int


@dataclass(frozen=True)
class PairFound:
    """A comparison of two strategies on the same questions.

    Attributes:
        only_first, only_second: number of questions that only the first, or only the second strategy answered right.
        p: p-value (McNemar); adjusted: p after Holm's correction over all pairs.
        tokens: ratio of the first strategy's tokens to the second's.
    """

    first: str
    second: str
    only_first: int
    only_second: int
    p: float
    adjusted: float
    tokens: float | None


@dataclass(frozen=True)
class Findings:
    """The results. `by`: the measure that pairs are compared by; `control`: scores of answers to other questions."""

    ways: tuple[WayFound, ...]
    pairs: tuple[PairFound, ...]
    by: str
    control: tuple[WayFound, ...]


def report(
    questions: Sequence[Question],
    outcomes: Sequence[Outcome],
    control: Sequence[Outcome],
    judged: Judged | None = None,
    judged_control: Judged | None = None,
) -> Findings:
    """Combine the strategies' answers, the verdicts on them, and the verdicts on the control."""
    by_id = {each.id: each for each in questions}
    ways = list(dict.fromkeys(each.way for each in outcomes))
    found = tuple(_way(way, by_id, outcomes, judged) for way in ways)
    lost = tuple(_way(way, by_id, control, judged_control) for way in ways if control)
    return Findings(found, _pairs(ways, by_id, outcomes, judged), "judged" if judged else "contained", lost)


def _score(by_id: Mapping[str, Question], outcome: Outcome) -> Score:
    question = by_id[outcome.question]
    return score(question.kind, question.answers, outcome.answer)


def _share(hits: Sequence[bool]) -> Share:
    return Share(sum(hits), len(hits), *wilson(sum(hits), len(hits)))


def _way(way: str, by_id: Mapping[str, Question], outcomes: Sequence[Outcome], judged: Judged | None) -> WayFound:
    own = [each for each in outcomes if each.way == way]
    scores = [_score(by_id, each) for each in own]
    verdicts = [judged[key] for each in own if (key := (each.question, way)) in judged] if judged is not None else None
    paid = [each.usd for each in own]
    return WayFound(
        way,
        _share([each.exact for each in scores]),
        _share([each.contained for each in scores]),
        None if verdicts is None else _share(verdicts),
        fmean(each.f1 for each in scores),
        fmean(each.tokens for each in own),
        fmean(each.tokens_at_a_tenth for each in own),
        fmean(each.calls for each in own),
        fmean(each.tool_calls for each in own),
        fmean(each.seconds for each in own),
        None if None in paid else sum(each or 0.0 for each in paid),
        sum(not each.answer for each in own),
        sum(each.failed for each in own),
    )


def _pairs(
    ways: Sequence[str], by_id: Mapping[str, Question], outcomes: Sequence[Outcome], judged: Judged | None
) -> tuple[PairFound, ...]:
    """Compare pairs of strategies, each pair on the questions for which both have a verdict."""
    right = judged or {(each.question, each.way): _score(by_id, each).contained for each in outcomes}
    took = {way: sum(each.tokens for each in outcomes if each.way == way) for way in ways}
    found = []
    for one, two in combinations(ways, 2):
        both = [(right[id, one], right[id, two]) for id in by_id if (id, one) in right and (id, two) in right]
        only = both.count((True, False)), both.count((False, True))
        found.append((one, two, *only, mcnemar(*only), took[one] / took[two] if took[two] else None))
    adjusted = holm([p for *_, p, _ in found])
    return tuple(PairFound(*each[:5], q, each[5]) for each, q in zip(found, adjusted, strict=True))
