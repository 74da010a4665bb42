"""Measure whether an answer belongs to its query, and whether it gives orders to its reader.

`AnswerFit` compares an answer with the seed exemplars (those that the owner added). Positive examples are seed queries
with their own answers; negative examples are seed queries with a foreign answer, that is, the answer to another query.
A small logistic regression, fitted in milliseconds, separates the two by these features: similarity of query and
answer, shared words (both also in contrast to similar queries and similar answers), length and script. The result is
evidence, not a verdict (see trust.py): a correct answer in unusual words gets a low score, a plausible wrong answer a
high one.

`MutualInformation` measures the pointwise mutual information of query and answer (Church 1990): the log-probability of
the first tokens of the answer after the pair's own query, minus its mean after other seed queries. Two seed pairs
precede each query, so that the model knows the form. The rarity of the answer itself cancels out.

`OrderDetector` finds answers that give orders to the reader (the agent that is shown them as examples). Each sentence
of an answer is compared by embedding with known orders to readers and with harmless imperatives (orders.tsv, English
and Chinese). It is also compared with the pool's trusted exemplars, since a sentence that is an order in one pool can
be verse in another, and with the query, since an answer to a how-to question consists of instructions. Not every order
is detected; the scorer and the trust in the source (trust.py) have to catch the others.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mindstream import chance
from mindstream.arrays import Doubles
from mindstream.errors import ModelRefused, SettingsError
from mindstream.memory.store.record import MAX_TEXT
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.providers.address import Address, address
from mindstream.models.providers.gguf import Engine, engine
from mindstream.models.providers.openai_chat import checked_gguf, open_given_text
from mindstream.sharing.exemplar import Exemplar
from mindstream.text.words import UNSPACED, first_and_last, plain_words, sentences, terms

__path__: list[str] = []  # so that moved.py can redirect imports of former submodules

WIDE = re.compile(f"[{UNSPACED}]")
MIN_SEEDS, ENOUGH_SEEDS = 12, 48
"""Numbers of seed exemplars (exemplars that the owner added). With fewer than MIN_SEEDS, the fit of answers to their
queries is not measured. From MIN_SEEDS to ENOUGH_SEEDS, the weight of the measurement grows from 0 to 1."""
MAX_SEEDS = 400
"""Maximum number of seed exemplars (those that the owner added) with which a pair is compared."""
NEAR, AROUND = 5, 20
"""Maximum numbers of the most similar seed pairs (pairs that the owner added) with which a new pair is compared: NEAR
for its similarities, AROUND for its contrasts (see `_contrast`).
"""
BLUR = 0.05
"""Value added to the standard deviation by which a contrast (see `_contrast`) is divided. The contrast stays finite."""
CHANCE, ALLOWANCE = 0.05, 0.5
"""The zero of the log odds is the lower of two scores. One is the score that the share CHANCE of the answers to other
queries exceeds. The other is ALLOWANCE below even odds. Even odds would be too strict, because honest offered pairs
differ from seed pairs."""
OTHERS = 6
"""Number of foreign answers (answers to other queries) per seed query. They are the negative examples when the logistic
regression is trained. Half of them belong to the most similar queries; the other half are drawn at random."""
RIDGE = 10.0
"""Strength of the ridge penalty in the logistic regression."""

TOKEN, NAME = re.compile(r"[\w#-]+"), re.compile(r"(?<=[\w,;] )[A-Z]\w+")
"""TOKEN matches a word, a number or a code. NAME matches a capitalised name within a sentence."""


def weigh(laid_in: int) -> float:
    """Return the weight, 0 to 1, of measurements that are based on a number of seed exemplars (added by the owner)."""
    return min(1.0, max(0.0, (laid_in - MIN_SEEDS) / (ENOUGH_SEEDS - MIN_SEEDS)))


@dataclass(frozen=True)
class _Text:
    """The measured properties of a query or an answer: vector, terms, length, and the share of the characters that
    belong to scripts without spaces (`wide`).
    """

    vector: Doubles
    terms: frozenset[str]
    length: int
    wide: float


def _read(text: str, vector: Doubles) -> _Text:
    return _Text(vector, frozenset(terms(text)), len(text), len(WIDE.findall(text)) / max(1, len(text)))


class AnswerFit:
    """Measure how well answers fit their queries, by comparison with seed pairs (those that the owner added).

    Args:
        pairs: the seed pairs, as (query, answer).
        query_vectors, answer_vectors: unit vectors of the queries, and of the answers, in the order of `pairs`.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], query_vectors: Doubles, answer_vectors: Doubles) -> None:
        self._pairs, self._query_vectors, self._answer_vectors = pairs, query_vectors, answer_vectors
        self._queries = [_read(query, vector) for (query, _), vector in zip(pairs, query_vectors, strict=True)]
        self._answers = [_read(answer, vector) for (_, answer), vector in zip(pairs, answer_vectors, strict=True)]
        both = zip(self._queries, self._answers, strict=True)
        self._counts = Counter(term for query, answer in both for term in query.terms | answer.terms)
        self._lengths = np.array([math.log1p(answer.length) for answer in self._answers])
        self._fit()

    def log_odds(self, query: str, answer: str, query_vector: Doubles, answer_vector: Doubles) -> float:
        """Return the log odds that the answer belongs to this query and not to another query."""
        found = self._features(_read(query, query_vector), _read(answer, answer_vector))
        return float(((found - self._mean) / self._spread) @ self._weights + self._bias)

    def alike(self, query_vector: Doubles) -> list[tuple[str, str]]:
        """Return all seed pairs, those with the most similar queries first."""
        return [self._pairs[at] for at in np.argsort(-(self._query_vectors @ query_vector))]

    def _fit(self) -> None:
        count, rows, labels = len(self._pairs), list[Doubles](), list[float]()
        near = self._query_vectors @ self._query_vectors.T
        np.fill_diagonal(near, -2.0)
        for at in range(count):
            alike = np.argsort(-near[at])[: count - 1]
            drawn = [int(alike[int(chance.fraction("guard", at, n) * len(alike))]) for n in range(OTHERS // 2)]
            for other in (at, *map(int, alike[: OTHERS // 2]), *drawn):
                rows.append(self._features(self._queries[at], self._answers[other], (at, other)))
                labels.append(float(other == at))
        matrix, wanted = np.array(rows), np.array(labels)
        self._mean, self._spread = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
        scaled = (matrix - self._mean) / self._spread
        self._weights, even = _logistic(scaled, wanted)
        foreign = scaled[wanted == 0] @ self._weights
        self._bias = max(even + ALLOWANCE, -float(np.quantile(foreign, 1 - CHANCE)))

    def _features(self, query: _Text, answer: _Text, without: tuple[int, ...] = ()) -> Doubles:
        """Compute the features of a pair, in comparison with the seed pairs.

        `without`: the rows of seed pairs that are ignored, because the pair itself was combined from them.
        """
        queries, answers = self._query_vectors, self._answer_vectors
        near_queries, near_answers = queries @ query.vector, answers @ answer.vector
        near_queries[list(without)] = near_answers[list(without)] = -np.inf
        many = min(AROUND, len(near_queries) - len(set(without)))
        asked, said = np.argsort(-near_queries)[:many], np.argsort(-near_answers)[:many]
        likeness = answers[asked[:NEAR]] @ answer.vector
        cosine, shared = float(query.vector @ answer.vector), self._shared(query, answer)
        return np.array(
            [
                cosine,
                _contrast(cosine, queries[asked] @ answer.vector),
                _contrast(cosine, answers[said] @ query.vector),
                likeness.mean(),
                likeness.max(),
                (queries[said[:NEAR]] @ query.vector).mean(),
                shared,
                _contrast(shared, np.array([self._shared(self._queries[each], answer) for each in asked])),
                _contrast(shared, np.array([self._shared(query, self._answers[each]) for each in said])),
                abs(math.log1p(answer.length) - float(np.median(self._lengths[asked[:NEAR]]))),
                abs(query.wide - answer.wide),
            ]
        )

    def _shared(self, query: _Text, answer: _Text) -> float:
        """Return how many words a query and an answer share, weighted by rarity and normalised by the answer."""
        rarity = {term: math.log((1 + len(self._pairs)) / (0.5 + self._counts[term])) for term in answer.terms}
        return sum(rarity[term] for term in query.terms & answer.terms) / math.sqrt(sum(rarity.values()) + 1e-6)


def _contrast(own: float, others: Doubles) -> float:
    """Return how far a value (`own`) is above the mean of other values; 0 if there are no others. The unit is the
    standard deviation of the other values plus BLUR, which prevents division by almost 0."""
    return float((own - others.mean()) / (others.std() + BLUR)) if len(others) else 0.0


def particulars(text: str) -> set[str]:
    """Return the numbers, codes (words with a digit) and names (capitalised words within a sentence) in a text."""
    return {each for each in TOKEN.findall(text) if any(map(str.isdigit, each))} | set(NAME.findall(text))


def _logistic(rows: Doubles, labels: Doubles) -> tuple[Doubles, float]:
    """Fit a logistic regression by Newton's method; return its weights and its bias.

    Both classes have equal weight, so a score of 0 means even odds.
    """
    matrix = np.column_stack([rows, np.ones(len(rows))])
    share = labels.mean()
    importance = np.where(labels > 0, 0.5 / share, 0.5 / (1 - share))
    weights, ridge = np.zeros(matrix.shape[1]), np.diag([RIDGE] * rows.shape[1] + [1e-6])
    for _ in range(25):
        odds = 1 / (1 + np.exp(-np.clip(matrix @ weights, -30, 30)))
        slope = matrix.T @ (importance * (odds - labels)) + ridge @ weights
        curve = matrix.T @ (matrix * (importance * odds * (1 - odds))[:, None]) + ridge
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights[:-1], float(weights[-1])


TOKENS = 24
"""Maximum number of tokens of an answer whose log-probabilities are measured."""
SHOTS, NEIGHBOURS, FAR = 2, 2, 2
"""SHOTS: number of example pairs before a query. NEIGHBOURS, FAR: number of other queries that a query is compared
with: the most similar ones, and less similar ones."""
QUERY, EXAMPLE = 600, 200
"""Maximum numbers of characters in the prompt after which an answer is measured. QUERY: of the query. EXAMPLE: of the
query of an example pair, and of its answer."""


class MutualInformation:
    """Measure the mutual information of queries and answers, with the model of a GGUF file."""

    def __init__(self, at: Address) -> None:
        """Check the address of the file. The file is loaded at the first measurement and stays loaded.

        Raises:
            ModelRefused: the address is not that of a GGUF file.
        """
        self.name = at.name
        self._at = checked_gguf(at)
        self._engine: Engine | None = None

    async def measure(self, query: str, answer: str, alike: Sequence[tuple[str, str]]) -> float | None:
        """Return how much likelier the answer is after its query than after other queries; None if it cannot be
        measured.

        The result is the difference of the log-probabilities in nats, divided by the root of the number of tokens. For
        an answer to another query the result is about 0, with any model. The result is None if the model cannot report
        log-probabilities of the answer (see `GivenText`), or if there are too few seed pairs to compare with.

        Args:
            alike: seed pairs, those with the most similar queries first; preferably more than SHOTS + NEIGHBOURS + FAR
                pairs.

        Raises:
            ModelUnavailable: the model failed.
        """
        shots, others = alike[:SHOTS], alike[SHOTS:]
        before = "".join(f"{_asked(q, EXAMPLE)} {said[:EXAMPLE]}\n\n" for q, said in reversed(shots))
        apart = others[NEIGHBOURS:]
        step = max(1, len(apart) // FAR)
        against = [q for q, _ in (*others[:NEIGHBOURS], *apart[step // 2 :: step][:FAR])]
        if not against:
            return None
        try:
            own, *rest = await self._weigh(answer, [before + _asked(each, QUERY) for each in (query, *against)])
        except ModelRefused:
            return None
        gained = sum(own) - sum(map(sum, rest)) / len(rest)
        return gained / math.sqrt(len(own))

    async def _weigh(self, answer: str, prompts: Sequence[str]) -> list[list[float]]:
        self._engine = self._engine or await asyncio.to_thread(engine, self._at)
        async with open_given_text(self._at, self._engine) as given:
            tokens = await given.tokens(" " + answer, TOKENS)
            # one by one, because the model caches the beginning that the prompts share
            return [await given.logprobs(each, tokens) for each in prompts]


def mutual_information(name: str) -> MutualInformation | None:
    """Return the object that measures with the model of this name. None if the model is not a GGUF model: other models
    do not run in this process."""
    try:
        at = address(name)
    except SettingsError:
        return None
    return MutualInformation(at) if at.vendor == "gguf" else None


def _asked(query: str, most: int) -> str:
    return f"Question: {' '.join(query[:most].split())}\nAnswer:"


LONG_TEXT = 20
"""An answer with at least this number of words is rejected if one word makes up more than half of the answer."""


def find_faults(query: str, answer: str) -> tuple[str, ...]:
    """Return the faults in the form of a pair, such as an empty answer; () if there are none. Quality is not judged."""
    return tuple(_faults(query, answer))


def _faults(query: str, answer: str) -> Iterator[str]:
    asked, words = plain_words(query), plain_words(answer)
    if not asked:
        yield "the query has no words"
    if not words:
        yield "the answer has no words"
        return
    if asked == words or (len(words) >= len(asked) > 3 and not set(words) - set(asked)):
        yield "the answer only repeats the query"
    if len(words) >= LONG_TEXT and Counter(words).most_common(1)[0][1] > len(words) / 2:
        yield "more than half of the answer is one repeated word"
    if len(answer) + len(query) > MAX_TEXT:
        yield f"query and answer have {len(answer) + len(query):,} characters together; the maximum is {MAX_TEXT:,}"


FILE = Path(__file__).with_name("orders.tsv")
MAX_SENTENCES, MAX_TRUSTED_SENTENCES = 200, 3_000
"""Maximum number of sentences that are read of one text, and of all trusted exemplars together."""
MIN_WORDS = 3
"""Minimum number of words of a sentence; shorter ones are ignored, as fragments of code or names."""
NEAREST_SENTENCES = 3
"""The similarity of a sentence to known sentences is the mean over this number of the most similar ones."""

TRUSTED_QUANTILE = 0.99
"""Quantile of the trusted pairs' contrasts (see `OrderDetector`) from which the threshold for orders is computed, so
that nearly all trusted pairs stay below it."""
MIN_THRESHOLD, MARGIN = -0.02, 0.08
"""Thresholds of a sentence's contrast (see `OrderDetector`) above which the sentence counts as an order. With enough
trusted pairs, the threshold is calibrated on these pairs, and is at least MIN_THRESHOLD. With too few, the
threshold is MARGIN. In between, the threshold is a weighted mean of both."""
ON_TOPIC, RELIEF = 0.9, 0.03
"""If a sentence is more similar to the query than the share ON_TOPIC of the known orders, the sentence is considered to
be about the query. Its contrast is then lowered by the excess similarity, but by at most RELIEF. Without this limit, an
order that repeats the query would never be detected."""


@dataclass(frozen=True)
class Heard:
    """The result of the search for orders in an answer: the sentence that is most like an order, and how unusual its
    similarity to orders is.

    Attributes:
        order: the sentence; "": no sentence is similar enough to count as an order.
        louder: share of the trusted pairs whose answers sound at least as much like an order to the reader as this
            answer; 1 if there are too few trusted pairs.
    """

    order: str = ""
    louder: float = 1.0


@dataclass(frozen=True)
class OrderDetector:
    """Detect orders in answers by the contrast of each sentence: its similarity to orders minus its similarity to other
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
        """Find the sentence of an answer that is most like an order to the reader. The result contains the sentence
        only if its contrast is above `threshold`."""
        spoken = _sentences(answer)
        if not spoken:
            return Heard()
        asked, *found = np.asarray(await self.embedder.embed([query, *spoken]), np.float64)
        contrasts = _order_contrast(np.array(found), asked, self.orders, self.others)
        loudest = int(contrasts.argmax())
        louder = float(np.mean(self.own >= contrasts[loudest])) if len(self.own) else 1.0
        return Heard(spoken[loudest][:200] if contrasts[loudest] > self.threshold else "", louder)


async def build_detector(embedder: Embedder, trusted: Sequence[tuple[str, str]]) -> OrderDetector:
    """Build a detector of orders (sentences in answers that tell the reader to do something), calibrated on a pool's
    trusted pairs of a query and its answer."""
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
            _order_contrast(own[pair == at], asked[at], orders, np.vstack([own[pair != at], harmless])).max()
            for at in np.unique(pair)
        ]
    )
    told = max(MIN_THRESHOLD, float(np.quantile(contrasts, TRUSTED_QUANTILE)))
    threshold = weight * told + (1 - weight) * MARGIN
    return OrderDetector(
        embedder, orders, np.vstack([own, harmless]), threshold, contrasts if weight == 1 else np.zeros(0)
    )


def _order_contrast(found: Doubles, asked: Doubles, orders: Doubles, others: Doubles) -> Doubles:
    """Return the contrast of each sentence: how much more similar it is to orders than to other sentences.

    The contrast of a sentence that is similar to the query is lowered (see ON_TOPIC).
    """
    beyond = found @ asked - np.quantile(orders @ asked, ON_TOPIC)
    return _nearness(found, orders) - _nearness(found, others) - np.clip(beyond, 0, RELIEF)


def _nearness(found: Doubles, known: Doubles) -> Doubles:
    near = np.partition(found @ known.T, -min(NEAREST_SENTENCES, len(known)), axis=1)[:, -NEAREST_SENTENCES:]
    nearness: Doubles = near.mean(axis=1)
    return nearness


def _sentences(text: str) -> Sequence[str]:
    return first_and_last([each for each in sentences(text) if len(plain_words(each)) >= MIN_WORDS], MAX_SENTENCES)


@cache
def _known(label: str) -> tuple[str, ...]:
    lines = [line.split("\t") for line in FILE.read_text("utf-8").splitlines()]
    return tuple(text for kind, _, text in lines if kind == label)


MAX_RULE_ODDS = 3.0
"""Maximum absolute value of the log odds from the rules (`AnswerFit`), if a model measures as well."""
SLOPE, MIDDLE, LOW, HIGH = 2.0, 0.75, -1.5, 3.0
"""Conversion of mutual information to log odds. SLOPE: the factor. MIDDLE: the mutual information that means even odds.
LOW, HIGH: the range to which the mutual information is clipped before the conversion."""


@dataclass(frozen=True)
class Fit:
    """The log odds that an answer belongs to its query. `by`: how the log odds were measured, as text for display."""

    log_odds: float
    by: str


@dataclass(frozen=True)
class Measures:
    """The instruments of a pool, built from its seed exemplars (those that the owner added).

    Attributes:
        guard: measures the fit of answers; None if there are too few seed exemplars.
        detector: detects orders to the reader.
        weight: how much the measurements count for a pair whose writer also wrote the query, 0 to 1.
    """

    embedder: Embedder
    guard: AnswerFit | None
    detector: OrderDetector
    weight: float

    async def fit(self, query: str, answer: str, likely: MutualInformation | None = None) -> Fit | None:
        """Return how well an answer belongs to its query; None if it cannot be measured.

        Args:
            likely: a model in this process; its measurement is added to the measurement of the rules. If the model
                cannot measure the pair, or for None, only the rules count.
        """
        if self.guard is None:
            return None
        asked, said = np.asarray(await self.embedder.embed([query, answer]), np.float64)
        odds = self.guard.log_odds(query, answer, asked, said)
        gained = await likely.measure(query, answer, self.guard.alike(asked)) if likely else None
        if likely is None or gained is None:
            return Fit(odds, "rules")
        told = SLOPE * (min(HIGH, max(LOW, gained)) - MIDDLE)
        return Fit(
            min(MAX_RULE_ODDS, max(-MAX_RULE_ODDS, odds)) + told, f"rules and the log-probabilities of {likely.name}"
        )


async def build_measures(embedder: Embedder, exemplars: Sequence[Exemplar]) -> Measures:
    """Build the measures of new pairs from the seed exemplars (exemplars that the owner added). If there are more than
    MAX_SEEDS, use an evenly spread sample of them."""
    some = exemplars[:: len(exemplars) // MAX_SEEDS + 1]
    pairs = [(each.query, each.answer) for each in some]
    detector = await build_detector(embedder, pairs)
    if len(some) < MIN_SEEDS:
        return Measures(embedder, None, detector, 0.0)
    vectors = np.asarray(
        await embedder.embed([text for texts in zip(*pairs, strict=True) for text in texts]), np.float64
    )
    guard = AnswerFit(pairs, vectors[: len(some)], vectors[len(some) :])
    return Measures(embedder, guard, detector, weigh(len(some)))
