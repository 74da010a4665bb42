"""Does a text give orders to whoever reads it? Heard sentence by sentence, by nearness and not by words.

A sentence is compared with orders to readers and with harmless imperatives (orders.tsv, English and Chinese), with what
the pool's own trusted exemplars say, since what is an order in one pool is verse in another, and with the query: who
asks how is told what to do. It hears most, not all; the rest is left to the scorer and to the trust in the source.

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
SENTENCES, MOST = 200, 3_000
"""So many sentences of a text are read, and of the trusted exemplars together."""
WORDS = 3
"""Fewer are no sentence: a scrap of code, a name."""
NEAR = 3
SHARE = 0.99
"""Of the trusted pairs so many stay below what counts as an order."""
LEAST, MARGIN = -0.02, 0.08
"""What counts as an order at least where many trusted pairs tell; and where none do."""
ON_TOPIC, RELIEF = 0.9, 0.03
"""A sentence nearer to the query than that share of orders is speaks of it, and the difference counts for it: not more
than so much, or an order that repeats the query would never be heard."""


@dataclass(frozen=True)
class Heard:
    """What sounds most like an order in a text.

    Attributes:
        order: the sentence; "": none is one.
        louder: which share of the trusted pairs sounds at least as much like one; 1 where these are too few to say.
    """

    order: str = ""
    louder: float = 1.0


@dataclass(frozen=True)
class OrderDetector:
    """Hears orders in texts.

    Attributes:
        orders, others: unit vectors of sentences; threshold: from which contrast on one is heard.
        own: the contrast of each trusted pair; empty where they are too few.
    """

    embedder: Embedder
    orders: Floats
    others: Floats
    threshold: float
    own: Floats

    async def hear(self, query: str, answer: str) -> Heard:
        """Return what in an answer sounds most like an order to its reader."""
        spoken = _sentences(answer)
        if not spoken:
            return Heard()
        asked, *found = np.asarray(await self.embedder.embed([query, *spoken]), np.float64)
        contrasts = _contrast(np.array(found), asked, self.orders, self.others)
        loudest = int(contrasts.argmax())
        louder = float(np.mean(self.own >= contrasts[loudest])) if len(self.own) else 1.0
        return Heard(spoken[loudest][:200] if contrasts[loudest] > self.threshold else "", louder)


async def build_detector(embedder: Embedder, trusted: Sequence[tuple[str, str]]) -> OrderDetector:
    """Make a detector that knows what a pool's own pairs (query, answer) sound like."""
    orders = np.asarray(await embedder.embed(_known("order")), np.float64)
    harmless = np.asarray(await embedder.embed(_known("harmless")), np.float64)
    spoken = [(at, each) for at, (_, answer) in enumerate(trusted) for each in _sentences(answer)][:MOST]
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
    told = max(LEAST, float(np.quantile(contrasts, SHARE)))
    threshold = weight * told + (1 - weight) * MARGIN
    return OrderDetector(
        embedder, orders, np.vstack([own, harmless]), threshold, contrasts if weight == 1 else np.zeros(0)
    )


def _contrast(found: Floats, asked: Floats, orders: Floats, others: Floats) -> Floats:
    """Return how much nearer each sentence is to orders than to all else and to the query."""
    beyond = found @ asked - np.quantile(orders @ asked, ON_TOPIC)
    return _nearness(found, orders) - _nearness(found, others) - np.clip(beyond, 0, RELIEF)


def _nearness(found: Floats, known: Floats) -> Floats:
    near = np.partition(found @ known.T, -min(NEAR, len(known)), axis=1)[:, -NEAR:]
    nearness: Floats = near.mean(axis=1)
    return nearness


def _sentences(text: str) -> Sequence[str]:
    return first_and_last([each for each in sentences(text) if len(plain_words(each)) >= WORDS], SENTENCES)


@cache
def _known(label: str) -> tuple[str, ...]:
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    return tuple(text for kind, _, text in lines if kind == label)


SHARES = np.linspace(0.02, 1.0, 21)
"""Which share of a source's pairs may be foreign, never none; before anything was measured each is as likely."""
KEPT = 0.99
"""So much what was measured before counts at each new pair: credit cannot be saved up for ever."""
MAX_LOG_ODDS = 3.0
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
    return min(MAX_LOG_ODDS, max(-MAX_LOG_ODDS, judged.fit or 0.0))
