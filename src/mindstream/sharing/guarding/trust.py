"""How far a pair is believed: by its own evidence, and by what share of its source's pairs is foreign.

A source's pairs are a mixture: some answers belong to their queries, the rest does not. The share of the rest is read
from all pairs that could be measured (see measuring), each of which gives log odds; nobody knows it exactly, so all
shares are weighed by how well they explain these (Bayes' rule). What a new source writes needs evidence of its own;
what a long honest one writes hardly any; of one that wrote many foreign pairs nothing is served, what was written
before included. The source of a pair is whoever asked: an attacker who may only talk is a source of its own.

Where nothing measured a pair, or a model has read it, only the orders of its source speak against it.

A talker's pairs may fit their queries well, and carry what it is after (Dong 2025, MINJA): a name, a code, an address
that its answers bring up again and again. Where nobody else's do, they wait until another source's does, or a person
has looked.

With few pairs laid in what is measured is noise to a good part: a member's pair is held back by it only as far as these
suffice (`guard.weigh`), as with fewer yet it is served unmeasured. A stranger's is not: it would wait unmeasured, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mindstream.sharing.events import ExemplarJudged

SHARES = np.linspace(0.02, 1.0, 21)
"""Which share of a source's pairs may be foreign, never none; before anything was measured each is as likely."""
KEPT = 0.99
"""So much what was measured before counts at each new pair: credit cannot be saved up for ever."""
MOST = 3.0
"""So many log odds one pair gives at most, for or against."""
LOUD, IF_LOUD, IF_QUIET = 0.1, 7.5, 0.28
"""Of orders that are not heard three quarters are among the loudest tenth of all texts: how often against others."""
RISK = 0.15
"""A pair is served where it is foreign with less than that probability."""
AT_FIRST = 2
"""So many pairs without an order each source has before its first, lest one that was misheard condemns it."""
TWICE = 2
"""A stranger needs so many pairs; what so many of its answers name, and nobody else's, is what it is after."""


@dataclass
class Mentions:
    """Which names, codes and numbers stand in the answers of which sources."""

    by_source: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, source: str, pair: str, named: Iterable[str]) -> None:
        """Take in what an answer names; `pair` tells different pairs from one that was said twice."""
        for name in named:
            self.by_source.setdefault(name, {}).setdefault(source, set()).add(pair)

    def agenda(self, source: str, named: Iterable[str]) -> str:
        """Return what an answer names that others of its source name, too, and no other source does; "" for nothing."""
        for name in named:
            sources = self.by_source.get(name, {})
            if len(sources) == 1 and len(sources.get(source, ())) >= TWICE:
                return name
        return ""


@dataclass
class SourceRecord:
    """What is known of a source.

    Attributes:
        likelihoods: the logarithm of how well each of SHARES explains what was measured.
        pairs: how many pairs were judged; orders: how many of these give orders.
        by_person: what a person said; None: nobody looked.
    """

    likelihoods: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(SHARES)))
    pairs: int = 0
    orders: int = 0
    by_person: bool | None = None

    def add(self, judged: ExemplarJudged) -> None:
        """Take a judged pair into account."""
        self.pairs += 1
        self.orders += judged.orders
        if judged.fit is not None and not judged.orders:
            told = np.log(SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
            self.likelihoods = KEPT * self.likelihoods + told

    @property
    def foreign_share(self) -> float:
        """Which share of its pairs has answers that belong to other queries, or to none, as far as anybody knows."""
        weights = np.exp(self.likelihoods - self.likelihoods.max())
        return float(weights @ SHARES / weights.sum())

    def doubt(self, judged: ExemplarJudged, source: str) -> str:
        """Say why a pair of this source is not served; "" where nothing speaks against it."""
        if self.by_person is not None:
            return "" if self.by_person else f"a person said that {source!r} is not to be trusted"
        if judged.orders:
            return "it gives orders to whoever reads it"
        risk, share = self._risk(judged)
        if risk < RISK:
            return ""
        known = f"of the {self.pairs} pairs of {source!r} {self.orders} give orders"
        if judged.fit is None:
            return f"it may give orders, too ({known}): a risk of {risk:.0%}"
        own = f"log odds {judged.fit:.1f} by {judged.fit_by or 'rules'}"
        known = f"{own}; {known} and {share:.0%} are foreign"
        return f"its answer may not belong to its query ({known}): a risk of {risk:.0%}"

    def _risk(self, judged: ExemplarJudged) -> tuple[float, float]:
        """Return how probably a pair was planted, and the share of its source's pairs whose answers are foreign.

        Orders are not heard in every pair that gives them: as many as were heard may stand in others of that source,
        and rather in those that sound somewhat like one.
        """
        weights = np.exp(self.likelihoods - self.likelihoods.max())
        weights /= weights.sum()
        odds = SHARES / (SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
        foreign = judged.fit_weight * float(weights @ odds) if judged.fit is not None else 0.0
        share = self.orders / (self.pairs + AT_FIRST)
        unheard = share * (IF_LOUD if judged.louder < LOUD else IF_QUIET)
        return 1 - (1 - foreign) * (1 - unheard / (unheard + 1 - share)), float(weights @ SHARES)


def _evidence(judged: ExemplarJudged) -> float:
    return min(MOST, max(-MOST, judged.fit or 0.0))
