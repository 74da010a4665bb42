"""Estimate from all pairs of a source whether it can be trusted.

A pair is foreign if its answer does not belong to its query. The share of foreign pairs of a source is inferred from
the log odds of all its measured pairs (see guarding.py) by Bayes' rule over all possible shares. A pair of a new
source is served only if its own measurement speaks for it; a pair of a source with many honest pairs needs hardly any
evidence. From a source with many foreign pairs nothing is served, earlier pairs included. The source of a pair is the
agent or user who wrote the query, so an attacker who can only ask questions is a source of its own.

If a pair was not measured, only orders (instructions to its reader) in pairs of the same source count against the
pair. If the query of such a pair has another author than the writer, the pair is served only if a model graded it, or
if the owner trusts the source.

The pairs of an attacker may fit their queries well and still carry a payload (Dong 2025, MINJA): a name, code or
address that several of the attacker's answers mention. If no other source mentions it, these pairs are not served until
another source does, or until the owner has decided. This applies only to sources that are not the writer.

With few seed pairs the measurements are noisy, so their weight for a pair whose writer also wrote the query grows with
the number of seed pairs (`weigh`). For a pair with another author of the query (`asked_by`) they count fully.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from mindstream.arrays import Doubles
from mindstream.sharing.events import ExemplarJudged
from mindstream.text.words import count_of

SHARES = np.linspace(0.02, 1.0, 21)
"""The possible shares of foreign pairs among the pairs of a source; never zero. A foreign pair's answer does not belong
to its query. Before any measurement, all shares are equally likely."""
MEMORY_FACTOR = 0.99
"""Factor by which each new measurement of a source reduces the weight of all earlier ones. So a source cannot
accumulate credit without limit."""
MAX_LOG_ODDS = 3.0
"""Maximum absolute value of the log odds that one pair contributes to the estimate of its source's trustworthiness."""
LOUD, IF_LOUD, IF_QUIET = 0.1, 7.5, 0.28
"""Constants for orders that `OrderDetector` misses. An order is a text that tells the reading agent what to do, as a
planted pair does.

Of texts sorted by their similarity to known orders, the most similar tenth (the share LOUD) contains three quarters of
the missed orders. IF_LOUD is the likelihood ratio of a missed order for texts in this tenth, and IF_QUIET for all other
texts.
"""
RISK = 0.15
"""A pair is not served if the probability that it was planted is this or more."""
AT_FIRST = 2
"""Number of imaginary pairs without an order that are added to the pairs of each source. So one false detection has
little effect."""
TWICE = 2
"""A limit for a source that is neither the writer of its pairs nor trusted by the owner.

- No pair of the source is served before this number of its pairs is judged.
- A name counts as planted if at least this number of the source's answers mention the name, and no other source does.
"""


@dataclass
class Mentions:
    """The names, codes and numbers that the answers of each source mention."""

    by_source: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, source: str, pair: str, named: Iterable[str]) -> None:
        """Note that an answer of `source` mentions these names.

        `pair`: the id of the answer's pair. Pairs with the same words have the same id, so that they count once.
        """
        for name in named:
            self.by_source.setdefault(name, {}).setdefault(source, set()).add(pair)

    def agenda(self, source: str, named: Iterable[str]) -> str:
        """Return the first of these names that the source may have planted; "": there is none.

        At least two answers (`TWICE`) of the source mention such a name, and no answer of another source does.
        """
        for name in named:
            sources = self.by_source.get(name, {})
            if len(sources) == 1 and len(sources.get(source, ())) >= TWICE:
                return name
        return ""


@dataclass
class SourceRecord:
    """The history of a source of pairs, and the trust in it that follows.

    Attributes:
        likelihoods: for each of SHARES, its log likelihood given the measurements of the source's pairs.
        pairs: number of the source's judged pairs.
        orders: number of the judged pairs whose answers give orders to their readers.
        by_person: the owner's decision whether to trust the source; None: not decided.
    """

    likelihoods: Doubles = field(default_factory=lambda: np.zeros(len(SHARES)))
    pairs: int = 0
    orders: int = 0
    by_person: bool | None = None

    def add(self, judged: ExemplarJudged) -> None:
        """Count a judged pair. If its fit was measured and its answer gives no orders, update the likelihoods by the
        fit."""
        self.pairs += 1
        self.orders += judged.orders
        if judged.fit is not None and not judged.orders:
            told = np.log(SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
            self.likelihoods = MEMORY_FACTOR * self.likelihoods + told

    @property
    def _posterior(self) -> Doubles:
        """For each share in SHARES, the probability that it is the share of foreign pairs among those of the source."""
        weights = np.exp(self.likelihoods - self.likelihoods.max())
        posterior: Doubles = weights / weights.sum()
        return posterior

    @property
    def foreign_share(self) -> float:
        """Estimated share of the source's pairs whose answers belong to other queries, or to none."""
        return float(self._posterior @ SHARES)

    def doubt(self, judged: ExemplarJudged, source: str) -> str:
        """Return why a pair of this source is not served; "" if there is no reason."""
        if self.by_person is not None:
            return "" if self.by_person else f"the owner does not trust {source!r}"
        if judged.orders:
            return "its answer gives orders to its reader"
        risk = self._risk(judged)
        if risk < RISK:
            return ""
        known = f"orders in {self.orders} of {count_of(self.pairs, 'pair')} of {source!r}"
        if judged.fit is None:
            return f"its answer may also give orders to its reader ({known}): a risk of {risk:.0%}"
        own = f"log odds {judged.fit:.1f} by {judged.fit_by or 'rules'}"
        known = f"{own}; {known}, answers to other queries in about {self.foreign_share:.0%}"
        return f"its answer may not belong to its query ({known}): a risk of {risk:.0%}"

    def _risk(self, judged: ExemplarJudged) -> float:
        """Return the probability that a pair was planted.

        An order is an instruction to the agent that reads the pair. Not every order is detected: if orders were found
        in pairs of this source, its other pairs may contain undetected orders. This is more likely for a pair that is
        similar to known orders.
        """
        odds = SHARES / (SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
        foreign = judged.fit_weight * float(self._posterior @ odds) if judged.fit is not None else 0.0
        share = self.orders / (self.pairs + AT_FIRST)
        unheard = share * (IF_LOUD if judged.louder < LOUD else IF_QUIET)
        return 1 - (1 - foreign) * (1 - unheard / (unheard + 1 - share))


def _evidence(judged: ExemplarJudged) -> float:
    return min(MAX_LOG_ODDS, max(-MAX_LOG_ODDS, judged.fit or 0.0))
