"""Measure whether an answer belongs to its query, by comparison with the exemplars that the owner added.

The seed exemplars are the reference: each with its own answer, against each with another's. A small logistic
regression, fitted in milliseconds, weighs what separates the two in this pool: nearness of query and answer, shared
words (both also in contrast to similar queries and similar answers), length and script. The result is evidence, not
a verdict (see trust.py): a correct answer in unusual words looks foreign to it, and a clever wrong one does not.

`MutualInformation` is the pointwise mutual information of query and answer (Church 1990), over the first tokens of
the answer: their gain from the pair's own query, compared with the mean over other seed queries. Two seed
pairs precede each query, so that the model knows the form. The rarity of the answer itself cancels out.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream import chance
from mindstream.errors import ModelRefused, SettingsError
from mindstream.memory.store.validation import MAX_TEXT
from mindstream.models.providers.address import Address, address
from mindstream.models.providers.gguf import Engine, engine
from mindstream.models.providers.text_logprobs import checked_gguf, open_given_text
from mindstream.text.words import UNSPACED, plain_words, terms

Floats = NDArray[np.float64]
WIDE = re.compile(f"[{UNSPACED}]")
MIN_SEEDS, ENOUGH_SEEDS = 12, 48
"""With fewer seed exemplars than MIN_SEEDS nothing is measured; from ENOUGH_SEEDS on, the measurement counts fully."""
MAX_SEEDS = 400
"""Maximum number of seed exemplars that are compared."""
NEAR, AROUND = 5, 20
"""NEAR similar pairs show what a fitting answer looks like; a pair is contrasted with AROUND similar pairs."""
BLUR = 0.05
"""Added to the standard deviation in a contrast."""
CHANCE, ALLOWANCE = 0.05, 0.5
"""Zero log odds is set where at most CHANCE of the foreign answers score higher, or ALLOWANCE below even odds,
the lower of both. Foreign answers look alike among offered and seed pairs, whereas honest offered pairs differ
from the seed ones."""
OTHERS = 6
"""Number of foreign answers that each query is compared with; half of them belong to the most similar queries."""
RIDGE = 10.0
TOKEN, NAME = re.compile(r"[\w#-]+"), re.compile(r"(?<=[\w,;] )[A-Z]\w+")
"""A word, a number or a code; a capitalised name within a sentence."""


def weigh(laid_in: int) -> float:
    """Return the weight of measurements that are based on this many seed exemplars, 0 to 1."""
    return min(1.0, max(0.0, (laid_in - MIN_SEEDS) / (ENOUGH_SEEDS - MIN_SEEDS)))


@dataclass(frozen=True)
class _Text:
    """The measured properties of a query or an answer: its vector, terms, length, and share of unspaced scripts."""

    vector: Floats
    terms: frozenset[str]
    length: int
    wide: float


def _read(text: str, vector: Floats) -> _Text:
    return _Text(vector, frozenset(terms(text)), len(text), len(WIDE.findall(text)) / max(1, len(text)))


class AnswerFit:
    """Measure pairs by those that the owner added.

    Args:
        pairs: queries with their answers; query_vectors, answer_vectors: their unit vectors.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], query_vectors: Floats, answer_vectors: Floats) -> None:
        self._pairs, self._query_vectors, self._answer_vectors = pairs, query_vectors, answer_vectors
        self._queries = [_read(query, vector) for (query, _), vector in zip(pairs, query_vectors, strict=True)]
        self._answers = [_read(answer, vector) for (_, answer), vector in zip(pairs, answer_vectors, strict=True)]
        both = zip(self._queries, self._answers, strict=True)
        self._counts = Counter(term for query, answer in both for term in query.terms | answer.terms)
        self._lengths = np.array([math.log1p(answer.length) for answer in self._answers])
        self._fit()

    def log_odds(self, query: str, answer: str, query_vector: Floats, answer_vector: Floats) -> float:
        """Return the log odds that the answer belongs to the query and not to another one."""
        found = self._features(_read(query, query_vector), _read(answer, answer_vector))
        return float(((found - self._mean) / self._spread) @ self._weights + self._bias)

    def alike(self, query_vector: Floats) -> list[tuple[str, str]]:
        """Return all seed pairs, those with the most similar queries first."""
        return [self._pairs[at] for at in np.argsort(-(self._query_vectors @ query_vector))]

    def _fit(self) -> None:
        count, rows, labels = len(self._pairs), list[Floats](), list[float]()
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

    def _features(self, query: _Text, answer: _Text, without: tuple[int, ...] = ()) -> Floats:
        """Compute the features of a pair; `without`: the seed pairs that it is made of, which are left out."""
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
        """Return the words that a query and an answer share, weighted by rarity."""
        rarity = {term: math.log((1 + len(self._pairs)) / (0.5 + self._counts[term])) for term in answer.terms}
        return sum(rarity[term] for term in query.terms & answer.terms) / math.sqrt(sum(rarity.values()) + 1e-6)


def _contrast(own: float, others: Floats) -> float:
    """Return how many standard deviations a value is above others."""
    return float((own - others.mean()) / (others.std() + BLUR)) if len(others) else 0.0


def particulars(text: str) -> set[str]:
    """Return the numbers, codes and names (capitalised words within a sentence, Latin script) of a text."""
    return {each for each in TOKEN.findall(text) if any(map(str.isdigit, each))} | set(NAME.findall(text))


def _logistic(rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """Fit weights and bias by Newton's method; both classes have equal weight, so that 0 means even odds."""
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
"""Maximum number of tokens of an answer that are measured."""
SHOTS, NEIGHBOURS, FAR = 2, 2, 2
"""Number of example pairs before a query; number of most similar other queries, and of dissimilar ones, to compare
with."""
QUERY, EXAMPLE = 600, 200
"""Maximum number of characters of a query, and of an example's query and answer each."""


class MutualInformation:
    """Measure pairs with the model of a GGUF file."""

    def __init__(self, at: Address) -> None:
        """Take the address of the file; it is loaded at the first measurement and stays loaded.

        Raises:
            ModelRefused: it is not a GGUF file.
        """
        self.name = at.name
        self._at = checked_gguf(at)
        self._engine: Engine | None = None

    async def measure(self, query: str, answer: str, alike: Sequence[tuple[str, str]]) -> float | None:
        """Return the gain of the answer from its query, in nats per token times the root of the number of tokens.

        About 0 for an answer to another query, with any model. None: the model cannot read the pair (see
        given_text).

        Args:
            alike: seed pairs, those with the most similar queries first; more than SHOTS + NEIGHBOURS + FAR.

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
    """Return the measurement by a model of this name; None: the model does not run in this process."""
    try:
        at = address(name)
    except SettingsError:
        return None
    return MutualInformation(at) if at.vendor == "gguf" else None


def _asked(query: str, most: int) -> str:
    return f"Question: {' '.join(query[:most].split())}\nAnswer:"


LONG_TEXT = 20
"""From this many words on, a text that is mostly one repeated word is noise."""


def find_faults(query: str, answer: str) -> tuple[str, ...]:
    """Return the faults in the form of a pair; empty if it is sound. Its quality is not judged."""
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
        yield "the answer says one word over and over"
    if len(answer) + len(query) > MAX_TEXT:
        yield f"query and answer have more than {MAX_TEXT:,} characters together"
