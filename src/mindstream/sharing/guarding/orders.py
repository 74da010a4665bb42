"""Detect answers that give orders to the reader (the agent that is shown them as examples).

Each sentence of an answer is compared by embedding with known orders to readers and with harmless imperatives
(orders.tsv, English and Chinese). It is also compared with the pool's trusted exemplars, since a sentence that is an
order in one pool can be verse in another, and with the query, since an answer to a how-to question consists of
instructions. Not every order is detected; the scorer and the trust in the source (trust.py) have to catch the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mindstream.arrays import Doubles
from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.guarding.answer_fit import weigh
from mindstream.text.words import first_and_last, plain_words, sentences

FILE = Path(__file__).with_name("orders.tsv")
MAX_SENTENCES, MAX_TRUSTED_SENTENCES = 200, 3_000
"""Maximum number of sentences read of a text, and of all trusted exemplars together."""
MIN_WORDS = 3
"""Minimum number of words of a sentence; shorter ones are ignored, as fragments of code or names."""
NEAR = 3
"""The similarity of a sentence to known sentences is the mean over this number of the most similar ones."""

TRUSTED_QUANTILE = 0.99
"""Quantile of the trusted pairs' contrasts (see `OrderDetector`) that becomes the threshold for orders: nearly all
trusted pairs stay below it."""
MIN_THRESHOLD, MARGIN = -0.02, 0.08
"""MIN_THRESHOLD: minimum of the threshold that is calibrated by trusted pairs. MARGIN: the threshold if there are too
few trusted pairs; if there are only some, the two thresholds are mixed."""
ON_TOPIC, RELIEF = 0.9, 0.03
"""If a sentence is more similar to the query than a share ON_TOPIC of the known orders is, it counts as being about the
query, and its contrast to other sentences is lowered by the excess similarity. It is lowered by at most RELIEF:
without this limit, an order that repeats the query would never be detected."""


@dataclass(frozen=True)
class Heard:
    """The result for an answer: its sentence that is most similar to an order, and how unusual that similarity is.

    Attributes:
        order: the sentence; "": no sentence is similar enough to count as an order.
        louder: share of the trusted pairs whose answers sound at least as much like an order to the reader as this
            answer; 1 if there are too few trusted pairs.
    """

    order: str = ""
    louder: float = 1.0


@dataclass(frozen=True)
class OrderDetector:
    """Detect orders in answers by the contrast of each sentence: its similarity to orders minus that to other
    sentences.

    Attributes:
        orders, others: unit vectors of known orders, and of other sentences.
        threshold: contrast above which a sentence counts as an order.
        own: the highest contrast in each trusted pair; empty if there are too few trusted pairs.
    """

    embedder: Embedder
    orders: Doubles
    others: Doubles
    threshold: float
    own: Doubles

    async def hear(self, query: str, answer: str) -> Heard:
        """Find the sentence of an answer that is most similar to an order to its reader."""
        spoken = _sentences(answer)
        if not spoken:
            return Heard()
        asked, *found = np.asarray(await self.embedder.embed([query, *spoken]), np.float64)
        contrasts = _contrast(np.array(found), asked, self.orders, self.others)
        loudest = int(contrasts.argmax())
        louder = float(np.mean(self.own >= contrasts[loudest])) if len(self.own) else 1.0
        return Heard(spoken[loudest][:200] if contrasts[loudest] > self.threshold else "", louder)


async def build_detector(embedder: Embedder, trusted: Sequence[tuple[str, str]]) -> OrderDetector:
    """Build a detector, calibrated on the trusted pairs (query, answer) of a pool."""
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


def _contrast(found: Doubles, asked: Doubles, orders: Doubles, others: Doubles) -> Doubles:
    """Return the contrast of each sentence: how much more similar it is to orders than to other sentences.

    The contrast of a sentence that is similar to the query is lowered (see ON_TOPIC).
    """
    beyond = found @ asked - np.quantile(orders @ asked, ON_TOPIC)
    return _nearness(found, orders) - _nearness(found, others) - np.clip(beyond, 0, RELIEF)


def _nearness(found: Doubles, known: Doubles) -> Doubles:
    near = np.partition(found @ known.T, -min(NEAR, len(known)), axis=1)[:, -NEAR:]
    nearness: Doubles = near.mean(axis=1)
    return nearness


def _sentences(text: str) -> Sequence[str]:
    return first_and_last([each for each in sentences(text) if len(plain_words(each)) >= MIN_WORDS], MAX_SENTENCES)


@cache
def _known(label: str) -> tuple[str, ...]:
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    return tuple(text for kind, _, text in lines if kind == label)
