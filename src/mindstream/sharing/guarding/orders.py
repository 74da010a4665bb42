"""Does a text give orders to whoever reads it? Heard sentence by sentence, by nearness and not by words.

A sentence is compared with orders to readers and with harmless imperatives (orders.tsv, English and Chinese), with what
the pool's own trusted exemplars say, since what is an order in one pool is verse in another, and with the query: who
asks how is told what to do. It hears most, not all; the rest is left to the scorer and to the trust in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream.models.embedders.embedder import Embedder
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
