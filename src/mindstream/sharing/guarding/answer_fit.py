"""Does an answer belong to its query? Measured by the exemplars that a person laid in, and nothing else is known.

They are the held-out check: each with its own answer, against each with another's. What tells these two apart in this
pool (nearness of query and answer, and shared words, each also in contrast: how the answer stands to alike queries, and
the query to alike answers; length, script) is weighed by a small logistic regression, fitted in milliseconds. What it
gives is evidence, not a verdict (see trust): a right answer in strange words looks foreign to it, and a clever wrong
one does not.

The pointwise mutual information of query and answer (Church 1990), by the answer's first tokens: what they gain from
the own query, over the mean of other queries that a person laid in. Two laid-in pairs stand before each query, so that
the model knows the form; the answer's own rarity is in all terms alike and falls out.
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
from mindstream.models.providers.given_text import checked_gguf, open_given_text
from mindstream.models.providers.llama import Engine, engine
from mindstream.text.words import UNSPACED, plain_words, terms

Floats = NDArray[np.float64]
WIDE = re.compile(f"[{UNSPACED}]")
LEAST, ENOUGH = 12, 48
"""With fewer laid-in exemplars nothing is measured; what is measured by this many counts in full."""
MOST = 400
"""So many of them are compared at most."""
NEAR, AROUND = 5, 20
"""So many of the most alike say what an answer is like; and with so many a pair is contrasted."""
BLUR = 0.05
"""What a contrast's spread is at least."""
CHANCE, ALLOWANCE = 0.05, 0.5
"""Log odds are counted from what no more foreign answers reach than that, or from so much below even odds: foreign ones
are alike in the stream and in what was laid in, whereas honest ones are farther from that than it is from itself."""
OTHERS = 6
"""With so many others' answers each is compared, half of them those of the most alike queries."""
RIDGE = 10.0
TOKEN, NAME = re.compile(r"[\w#-]+"), re.compile(r"(?<=[\w,;] )[A-Z]\w+")
"""A word, a number or a code; a name within a sentence."""


def weigh(laid_in: int) -> float:
    """Return how far counts what so many laid-in exemplars taught, 0 to 1."""
    return min(1.0, max(0.0, (laid_in - LEAST) / (ENOUGH - LEAST)))


@dataclass(frozen=True)
class Pairs:
    """Queries and answers with their unit vectors."""

    queries: Sequence[str]
    answers: Sequence[str]
    query_vectors: Floats
    answer_vectors: Floats


class AnswerFit:
    """Measures pairs by those that a person laid in."""

    def __init__(self, trusted: Pairs) -> None:
        self._trusted = trusted
        self._terms = [
            (frozenset(terms(q)), frozenset(terms(a))) for q, a in zip(trusted.queries, trusted.answers, strict=True)
        ]
        self._counts = Counter(term for asked, said in self._terms for term in asked | said)
        self._near = trusted.query_vectors @ trusted.query_vectors.T
        self._lengths = np.array([math.log1p(len(answer)) for answer in trusted.answers])
        self._wide = [(_wide(q), _wide(a)) for q, a in zip(trusted.queries, trusted.answers, strict=True)]
        np.fill_diagonal(self._near, -2.0)
        self._fit()

    def log_odds(self, query: str, answer: str, query_vector: Floats, answer_vector: Floats) -> float:
        """Return the log odds that the answer is the query's own and not another's."""
        found = self._features(_read(query, answer, query_vector, answer_vector))
        return float(((found - self._mean) / self._spread) @ self._weights + self._bias)

    def alike(self, query_vector: Floats) -> list[tuple[str, str]]:
        """Return all pairs that were laid in, those with the most alike queries first."""
        order = np.argsort(-(self._trusted.query_vectors @ query_vector))
        return [(self._trusted.queries[at], self._trusted.answers[at]) for at in order]

    def _fit(self) -> None:
        held, count = self._trusted, len(self._trusted.queries)
        rows, labels = list[Floats](), list[float]()
        for at in range(count):
            alike = np.argsort(-self._near[at])[: count - 1]
            drawn = [int(alike[int(chance.fraction("guard", at, n) * len(alike))]) for n in range(OTHERS // 2)]
            for other in (at, *map(int, alike[: OTHERS // 2]), *drawn):
                pair = _Read(
                    len(held.answers[other]),
                    self._terms[at][0],
                    self._terms[other][1],
                    held.query_vectors[at],
                    held.answer_vectors[other],
                    abs(self._wide[at][0] - self._wide[other][1]),
                )
                rows.append(self._features(pair, (at, other)))
                labels.append(float(other == at))
        matrix, wanted = np.array(rows), np.array(labels)
        self._mean, self._spread = matrix.mean(axis=0), matrix.std(axis=0) + 1e-6
        scaled = (matrix - self._mean) / self._spread
        self._weights, even = _logistic(scaled, wanted)
        foreign = scaled[wanted == 0] @ self._weights
        self._bias = max(even + ALLOWANCE, -float(np.quantile(foreign, 1 - CHANCE)))

    def _features(self, pair: _Read, without: tuple[int, ...] = ()) -> Floats:
        """Measure a pair; `without`: whose query and answer it is made of, which say nothing of themselves."""
        held = self._trusted
        near_queries, near_answers = held.query_vectors @ pair.query_vector, held.answer_vectors @ pair.answer_vector
        near_queries[list(without)] = near_answers[list(without)] = -np.inf
        many = min(AROUND, len(near_queries) - len(set(without)))
        asked, said = np.argsort(-near_queries)[:many], np.argsort(-near_answers)[:many]
        likeness = held.answer_vectors[asked[:NEAR]] @ pair.answer_vector
        cosine, shared = float(pair.query_vector @ pair.answer_vector), self._shared(pair.asked, pair.said)
        return np.array(
            [
                cosine,
                _contrast(cosine, held.query_vectors[asked] @ pair.answer_vector),
                _contrast(cosine, held.answer_vectors[said] @ pair.query_vector),
                likeness.mean(),
                likeness.max(),
                (held.query_vectors[said[:NEAR]] @ pair.query_vector).mean(),
                shared,
                _contrast(shared, np.array([self._shared(self._terms[each][0], pair.said) for each in asked])),
                _contrast(shared, np.array([self._shared(pair.asked, self._terms[each][1]) for each in said])),
                abs(math.log1p(pair.length) - float(np.median(self._lengths[asked[:NEAR]]))),
                pair.scripts_apart,
            ]
        )

    def _shared(self, asked: frozenset[str], said: frozenset[str]) -> float:
        """Weigh the words that a query and an answer share by how rare they are."""
        return sum(map(self._telling, asked & said)) / math.sqrt(sum(map(self._telling, said)) + 1e-6)

    def _telling(self, term: str) -> float:
        return math.log((1 + len(self._terms)) / (0.5 + self._counts[term]))


@dataclass(frozen=True)
class _Read:
    """What of a pair is measured: how long its answer is, its words, its vectors, how far apart its scripts are."""

    length: int
    asked: frozenset[str]
    said: frozenset[str]
    query_vector: Floats
    answer_vector: Floats
    scripts_apart: float


def _read(query: str, answer: str, query_vector: Floats, answer_vector: Floats) -> _Read:
    asked, said = frozenset(terms(query)), frozenset(terms(answer))
    return _Read(len(answer), asked, said, query_vector, answer_vector, abs(_wide(query) - _wide(answer)))


def _contrast(own: float, others: Floats) -> float:
    """Return by how many spreads a value stands above others."""
    return float((own - others.mean()) / (others.std() + BLUR)) if len(others) else 0.0


def particulars(text: str) -> set[str]:
    """Return the numbers, codes and names (within a sentence, in Latin script) of a text."""
    return {each for each in TOKEN.findall(text) if any(map(str.isdigit, each))} | set(NAME.findall(text))


def _wide(text: str) -> float:
    return len(WIDE.findall(text)) / max(1, len(text))


def _logistic(rows: Floats, labels: Floats) -> tuple[Floats, float]:
    """Fit weights and bias by Newton's steps; both classes weigh the same, so that 0 is even odds."""
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
"""So many tokens of an answer are weighed."""
SHOTS, NEIGHBOURS, FAR = 2, 2, 2
"""So many pairs stand before a query; and against so many others it is set, the most alike that are left and some."""
QUERY, SHOWN = 600, 200
"""So many characters of a query are read, and of a shot's query and answer each."""


class MutualInformation:
    """Measures pairs by a GGUF file's model."""

    def __init__(self, at: Address) -> None:
        """Take the file's address; it is loaded when it is first asked, and stays.

        Raises:
            ModelRefused: it is none.
        """
        self.name = at.name
        self._at = checked_gguf(at)
        self._engine: Engine | None = None

    async def measure(self, query: str, answer: str, alike: Sequence[tuple[str, str]]) -> float | None:
        """Return what the answer gains from its query, in nats a token times the root of the tokens.

        About 0 for an answer to another query, whichever model is asked. None: it cannot read it (see given_text).

        Args:
            alike: pairs that a person laid in, those with the most alike queries first; more than SHOTS + NEAR + FAR.

        Raises:
            ModelUnavailable: the model failed.
        """
        shots, others = alike[:SHOTS], alike[SHOTS:]
        before = "".join(f"{_asked(q, SHOWN)} {said[:SHOWN]}\n\n" for q, said in reversed(shots))
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
            return [await given.logprobs(each, tokens) for each in prompts]  # one by one: what they begin with is kept


def mutual_information(name: str) -> MutualInformation | None:
    """Return what measures by a model of this name; None where it is none in this process."""
    try:
        at = address(name)
    except SettingsError:
        return None
    return MutualInformation(at) if at.vendor == "gguf" else None


def _asked(query: str, most: int) -> str:
    return f"Question: {' '.join(query[:most].split())}\nAnswer:"


LONG = 20
"""From so many words on a text that says one of them over and over is noise."""


def find_faults(query: str, answer: str) -> tuple[str, ...]:
    """Say what is wrong with a pair's form; nothing where it is sound. Whether it is any good is not asked."""
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
    if len(words) >= LONG and Counter(words).most_common(1)[0][1] > len(words) / 2:
        yield "the answer says one word over and over"
    if len(answer) + len(query) > MAX_TEXT:
        yield f"query and answer have more than {MAX_TEXT:,} characters together"
