"""Measure whether an answer belongs to its query, by comparison with the exemplars that the owner added.

The exemplars that the owner added (seed exemplars) are the reference. Positive examples are seed queries with their
own answers; negative examples are seed queries with a foreign answer, that is, the answer to another query. A small
logistic regression, fitted in milliseconds, separates the two by these features: similarity of query and answer, shared
words (both also in contrast to similar queries and similar answers), length and script. The result is evidence, not a
verdict (see trust.py): a correct answer in unusual words gets a low score, a plausible wrong answer a high one.

`MutualInformation` measures the pointwise mutual information of query and answer (Church 1990): the log-probability of
the first tokens of the answer after the pair's own query, minus its mean after other seed queries. Two seed pairs
precede each query, so that the model knows the form. The rarity of the answer itself cancels out.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mindstream import chance
from mindstream.arrays import Doubles
from mindstream.errors import ModelRefused, SettingsError
from mindstream.memory.store.validation import MAX_TEXT
from mindstream.models.providers.address import Address, address
from mindstream.models.providers.gguf import Engine, engine
from mindstream.models.providers.openai_chat import checked_gguf, open_given_text
from mindstream.text.words import UNSPACED, plain_words, terms

WIDE = re.compile(f"[{UNSPACED}]")
MIN_SEEDS, ENOUGH_SEEDS = 12, 48
"""With fewer than MIN_SEEDS seed exemplars, the fit of answers is not measured. From MIN_SEEDS to ENOUGH_SEEDS, the
weight of the measurement grows from 0 to 1."""
MAX_SEEDS = 400
"""Maximum number of seed exemplars that are compared."""
NEAR, AROUND = 5, 20
"""Number of most similar seed pairs that a pair is compared with directly, and number of them over which its contrasts
(see `_contrast`) are computed."""
BLUR = 0.05
"""Added to the standard deviation that a contrast (see `_contrast`) is divided by, so that it stays finite."""
CHANCE, ALLOWANCE = 0.05, 0.5
"""The score that counts as log odds of zero is the lower of two: the score that a share of at most CHANCE of the
foreign answers exceeds, and the score ALLOWANCE below even odds. Even odds would be too strict, because honest offered
pairs differ from seed pairs."""
OTHERS = 6
"""Number of foreign answers (answers to other queries) that each seed query is combined with for the fit. Half of them
belong to the most similar queries; the others are drawn at random."""
RIDGE = 10.0
"""Strength of the ridge penalty in the logistic regression."""

TOKEN, NAME = re.compile(r"[\w#-]+"), re.compile(r"(?<=[\w,;] )[A-Z]\w+")
"""A word, a number or a code; a capitalised name within a sentence."""


def weigh(laid_in: int) -> float:
    """Return the weight, 0 to 1, of measurements that are based on this number of seed exemplars."""
    return min(1.0, max(0.0, (laid_in - MIN_SEEDS) / (ENOUGH_SEEDS - MIN_SEEDS)))


@dataclass(frozen=True)
class _Text:
    """The measured properties of a query or an answer: its vector, terms, length, and share of unspaced scripts."""

    vector: Doubles
    terms: frozenset[str]
    length: int
    wide: float


def _read(text: str, vector: Doubles) -> _Text:
    return _Text(vector, frozenset(terms(text)), len(text), len(WIDE.findall(text)) / max(1, len(text)))


class AnswerFit:
    """Measure how well answers fit their queries, by comparison with seed pairs (those that the owner added).

    Args:
        pairs: the seed pairs, as (query, answer); query_vectors, answer_vectors: their unit vectors.
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
    """Return how many standard deviations (plus BLUR) a value is above the mean of others; 0 if there are none."""
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
"""Maximum number of characters of a query, and of an example's query and answer each."""


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
        """Return how much likelier the query makes the answer than other queries do; None if it cannot be measured.

        The result is the difference of the log-probabilities in nats, divided by the root of the number of tokens. For
        an answer to another query it is about 0, with any model. It is None if the model cannot report
        log-probabilities of the answer (see `GivenText`), or if there are too few seed pairs to compare with.

        Args:
            alike: seed pairs, those with the most similar queries first; best are more than SHOTS + NEIGHBOURS + FAR
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
            return [
                await given.logprobs(each, tokens) for each in prompts
            ]  # one by one: the model caches the common beginning


def mutual_information(name: str) -> MutualInformation | None:
    """Return the object that measures with the model of this name; None if it is not a GGUF model, because only such a
    model runs in this process."""
    try:
        at = address(name)
    except SettingsError:
        return None
    return MutualInformation(at) if at.vendor == "gguf" else None


def _asked(query: str, most: int) -> str:
    return f"Question: {' '.join(query[:most].split())}\nAnswer:"


LONG_TEXT = 20
"""Minimum number of words of an answer for this rule: an answer is rejected if one word makes up more than half of
it."""


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
