"""Detect answers that give orders to the reader, and estimate from all its pairs whether a source can be trusted.

Orders: each sentence is compared by embedding with known orders to readers and harmless imperatives (orders.tsv,
English and Chinese), with the pool's trusted exemplars (an order in one pool is verse in another), and with the
query (an answer to a how-to question consists of instructions). Most orders are found, not all; the rest is left to the
scorer and to the trust in the source.

Sources: some pairs of a source have answers that belong to their queries, the others are foreign. The share of
foreign pairs is inferred from the log odds of all measured pairs (see measuring.py) by Bayes' rule over all possible
shares. A pair of a new source needs evidence of its own; a pair of a source with many honest pairs hardly any; of a
source with many foreign pairs nothing is served, including its earlier pairs. The source of a pair is the agent or
user who asked, so an attacker who can only talk is a source of its own.

If a pair was not measured, or was read by a model, only orders from the same source count against it.

The pairs of an attacker may fit their queries well and still carry a payload (Dong 2025, MINJA): a name, code or
address that many of its answers mention. If no other source mentions it, these pairs wait until one does, or until
the owner has decided.

With few seed pairs the measurements are noisy: a member's pair is held back only in proportion to `weigh`. A pair
from outside the members is held back in full, as it would be without any measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.guarding.answer_fit import weigh
from mindstream.text.words import first_and_last, plain_words, sentences

Floats = NDArray[np.float64]
FILE = Path(__file__).with_name("orders.tsv")
MAX_SENTENCES, MAX_TRUSTED_SENTENCES = 200, 3_000
"""Maximum number of sentences read of a text, and of all trusted exemplars together."""
MIN_WORDS = 3
"""Minimum number of words of a sentence; fewer are a fragment of code or a name."""
NEAR = 3
TRUSTED_QUANTILE = 0.99
"""Share of the trusted pairs that must stay below the threshold for orders."""
MIN_THRESHOLD, MARGIN = -0.02, 0.08
"""Minimum threshold when many trusted pairs calibrate it; and the threshold without any."""
ON_TOPIC, RELIEF = 0.9, 0.03
"""A sentence that is nearer to the query than this share of known orders is about the query, and the difference lowers
its score, by at most RELIEF: otherwise an order that repeats the query would never be detected."""


@dataclass(frozen=True)
class Heard:
    """The sentence of a text that is most similar to an order.

    Attributes:
        order: the sentence; "": no sentence is an order.
        louder: share of the trusted pairs that are at least as similar to an order; 1 if these are too few to tell.
    """

    order: str = ""
    louder: float = 1.0


@dataclass(frozen=True)
class OrderDetector:
    """Detect orders in texts.

    Attributes:
        orders, others: unit vectors of known orders, and of other sentences.
        threshold: minimum contrast of an order.
        own: the contrast of each trusted pair; empty if they are too few.
    """

    embedder: Embedder
    orders: Floats
    others: Floats
    threshold: float
    own: Floats

    async def hear(self, query: str, answer: str) -> Heard:
        """Return the sentence of an answer that is most similar to an order to its reader."""
        spoken = _sentences(answer)
        if not spoken:
            return Heard()
        asked, *found = np.asarray(await self.embedder.embed([query, *spoken]), np.float64)
        contrasts = _contrast(np.array(found), asked, self.orders, self.others)
        loudest = int(contrasts.argmax())
        louder = float(np.mean(self.own >= contrasts[loudest])) if len(self.own) else 1.0
        return Heard(spoken[loudest][:200] if contrasts[loudest] > self.threshold else "", louder)


async def build_detector(embedder: Embedder, trusted: Sequence[tuple[str, str]]) -> OrderDetector:
    """Build a detector that is calibrated on the trusted pairs (query, answer) of a pool."""
    orders = np.asarray(await embedder.embed(_known("order")), np.float64)
    harmless = np.asarray(await embedder.embed(_known("harmless")), np.float64)
    spoken = [(at, each) for at, (_, answer) in enumerate(trusted) for each in _sentences(answer)][
        :MAX_TRUSTED_SENTENCES
    ]
    weight = weigh(len(trusted))
    if not weight or not spoken:
        return OrderDetector(embedder, orders, harmless, MARGIN, np.zeros(0))
    asked = np.asarray(await embedder.embed([query for query, _ in trusted]), np.float64)
    own = np.asarray(await embedder.embed([each for _, each in spoken]), np.float64)
    pair = np.array([at for at, _ in spoken])
    contrasts = np.array(
        [
            _contrast(own[pair == at], asked[at], orders, np.vstack([own[pair != at], harmless])).max()
            for at in np.unique(pair)
        ]
    )
    told = max(MIN_THRESHOLD, float(np.quantile(contrasts, TRUSTED_QUANTILE)))
    threshold = weight * told + (1 - weight) * MARGIN
    return OrderDetector(
        embedder, orders, np.vstack([own, harmless]), threshold, contrasts if weight == 1 else np.zeros(0)
    )


def _contrast(found: Floats, asked: Floats, orders: Floats, others: Floats) -> Floats:
    """Return how much nearer each sentence is to orders than to other sentences and to the query."""
    beyond = found @ asked - np.quantile(orders @ asked, ON_TOPIC)
    return _nearness(found, orders) - _nearness(found, others) - np.clip(beyond, 0, RELIEF)


def _nearness(found: Floats, known: Floats) -> Floats:
    near = np.partition(found @ known.T, -min(NEAR, len(known)), axis=1)[:, -NEAR:]
    nearness: Floats = near.mean(axis=1)
    return nearness


def _sentences(text: str) -> Sequence[str]:
    return first_and_last([each for each in sentences(text) if len(plain_words(each)) >= MIN_WORDS], MAX_SENTENCES)


@cache
def _known(label: str) -> tuple[str, ...]:
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    return tuple(text for kind, _, text in lines if kind == label)


SHARES = np.linspace(0.02, 1.0, 21)
"""The possible shares of foreign pairs of a source, never zero; equally likely before any measurement."""
MEMORY_FACTOR = 0.99
"""Weight of earlier measurements at each new pair, so that a source cannot accumulate credit without limit."""
MAX_LOG_ODDS = 3.0
"""Maximum log odds that one pair contributes, for or against."""
LOUD, IF_LOUD, IF_QUIET = 0.1, 7.5, 0.28
"""Three quarters of the undetected orders are among the LOUD share of texts that are most similar to orders: likelihood
ratios for texts within that share and outside."""
RISK = 0.15
"""A pair is served if the probability that it was planted is below this."""
AT_FIRST = 2
"""Number of pairs without an order that each source is credited with, so that one false detection has little effect."""
TWICE = 2
"""Minimum number of pairs of a source that is not a member; and number of its answers that must mention a name which no
other source mentions for that name to count as a payload."""


@dataclass
class Mentions:
    """The names, codes and numbers in the answers of each source."""

    by_source: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, source: str, pair: str, named: Iterable[str]) -> None:
        """Record the names in an answer; `pair` identifies pairs with the same words."""
        for name in named:
            self.by_source.setdefault(name, {}).setdefault(source, set()).add(pair)

    def agenda(self, source: str, named: Iterable[str]) -> str:
        """Return a name in this answer that other answers of its source mention and no other source does; "": there is
        none."""
        for name in named:
            sources = self.by_source.get(name, {})
            if len(sources) == 1 and len(sources.get(source, ())) >= TWICE:
                return name
        return ""


@dataclass
class SourceRecord:
    """The history of a source.

    Attributes:
        likelihoods: log likelihood of each of SHARES, given the measurements.
        pairs: number of judged pairs; orders: number of these that give orders.
        by_person: the owner's decision; None: there is none.
    """

    likelihoods: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(SHARES)))
    pairs: int = 0
    orders: int = 0
    by_person: bool | None = None

    def add(self, judged: ExemplarJudged) -> None:
        """Add a judged pair."""
        self.pairs += 1
        self.orders += judged.orders
        if judged.fit is not None and not judged.orders:
            told = np.log(SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
            self.likelihoods = MEMORY_FACTOR * self.likelihoods + told

    @property
    def foreign_share(self) -> float:
        """Estimated share of its pairs whose answers belong to other queries, or to none."""
        weights = np.exp(self.likelihoods - self.likelihoods.max())
        return float(weights @ SHARES / weights.sum())

    def doubt(self, judged: ExemplarJudged, source: str) -> str:
        """Return why a pair of this source is not served; "" if nothing speaks against it."""
        if self.by_person is not None:
            return "" if self.by_person else f"the owner does not trust {source!r}"
        if judged.orders:
            return "it gives orders to its reader"
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
        """Return the probability that a pair was planted, and the estimated share of foreign pairs of its source.

        Not every order is detected: other pairs of a source that gave orders may contain more of them, more likely
        those that are similar to an order.
        """
        weights = np.exp(self.likelihoods - self.likelihoods.max())
        weights /= weights.sum()
        odds = SHARES / (SHARES + (1 - SHARES) * np.exp(_evidence(judged)))
        foreign = judged.fit_weight * float(weights @ odds) if judged.fit is not None else 0.0
        share = self.orders / (self.pairs + AT_FIRST)
        unheard = share * (IF_LOUD if judged.louder < LOUD else IF_QUIET)
        return 1 - (1 - foreign) * (1 - unheard / (unheard + 1 - share)), float(weights @ SHARES)


def _evidence(judged: ExemplarJudged) -> float:
    return min(MAX_LOG_ODDS, max(-MAX_LOG_ODDS, judged.fit or 0.0))
