"""Rank the exemplars of a pool with a projection ("head") that is trained on labels of which exemplars help.

The mean question vector and the mean exemplar vector of the pool are subtracted before projection, because contextual
embedders place all texts close together. On six genres with shared topics, training without the subtraction gains half
as much.

loss = -1/v Σ [y log σ(s) + (1 - y) log(1 - σ(s))], where s is the head's score and y the label (Gao 2024, 3.2).

Each update starts from the untrained head and takes few steps, so that a matrix of 65,000 numbers does not memorise a
few hundred pairs. Gradient descent with momentum is used because Adam did worse on held-out pairs.

Labels have three sources, best first: log-probabilities of a model (`Likelihood`), a model's own estimates
(`Stated`), and `StandIn`, which needs no model: it assumes that a candidate helps if its answer resembles the answer of
the pair.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypedDict

import numpy as np
from numpy.random import Generator
from pydantic import BaseModel, Field, model_validator
from rapidfuzz.distance import LCSseq

from mindstream.arrays import Doubles, Floats, Ints, Mask
from mindstream.caches import remember
from mindstream.errors import InputError
from mindstream.memory.recall.ranking import Candidates, Cosine, Policy, Ranking, best
from mindstream.models.embedders.embedder import Embedder, unit
from mindstream.text.lexical import GrowingArray, Lexical
from mindstream.text.words import terms

LEARNED = 2 / 3
"""Weight of the trained part of the score. With a weight of 1, exemplars of the right genre are found as often, but
answers written from them are worse in a pool of one style (ROUGE-L .17 instead of .19 on the published pairs)."""
ONE_THREAD = 1 << 18
"""OpenBLAS computes a matrix product with at most this number of multiplications on one thread."""
STEPS = 127
"""Quantisation: the difference of each matrix entry from the identity matrix is stored as an integer from -STEPS to
STEPS."""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The function that scores an exemplar (vector m) for a question (vector x): s = scale · near + bias.

    near = ⅔ cos((x - x̄)W, (m - m̄)W) + ⅓ cos(x - x̄, m - m̄). The first term is trained and learns the style of an
    answer. The second term is never trained and keeps the topic of an answer.

    Attributes:
        matrix: W, width by width; read-only.
        means: x̄ and m̄ as two rows, the mean vectors of questions and of embedded exemplars; None: near = cos(xW, mW).
    """

    matrix: Floats
    scale: float = 10.0
    bias: float = -4.0
    means: Floats | None = None

    @classmethod
    def untrained(cls, width: int) -> Head:
        """Return the head that ranks by plain cosine."""
        return cls(np.eye(width, dtype=np.float32))

    @property
    def width(self) -> int:
        return len(self.matrix)

    def ask(self, questions: Floats) -> Floats:
        """Return unit vectors of questions.

        The dot product of a question's vector and an exemplar's vector (`project`) is their similarity.
        """
        return self._both(questions, 0)

    def project(self, vectors: Floats) -> Floats:
        """Return unit vectors of exemplars, for dot products with vectors of `ask`; zero vectors stay zero."""
        return self._both(vectors, 1)

    def _both(self, vectors: Floats, of: int) -> Floats:
        if self.means is None:
            return unit(multiply(vectors, self.matrix))
        plain = apart(vectors, self.means[of])
        return np.concatenate(
            [LEARNED**0.5 * unit(multiply(plain, self.matrix)), (1 - LEARNED) ** 0.5 * plain], axis=1, dtype=np.float32
        )

    def weights(self) -> StoredWeights:
        """Return the head (the projection that ranks exemplars) as plain data. The difference of its matrix from the
        identity is stored in 8 bits a number, compressed."""
        change = self.matrix - np.eye(self.width, dtype=np.float32)
        step = np.float32(max(float(np.abs(change).max(initial=0.0)) / STEPS, 1e-12))
        packed = zlib.compress(step.tobytes() + np.rint(change / step).astype(np.int8).tobytes(), 6)
        return {
            "width": self.width,
            "matrix": base64.b64encode(packed).decode(),
            "scale": self.scale,
            "bias": self.bias,
            "means": "" if self.means is None else base64.b64encode(self.means.tobytes()).decode(),
        }


class StoredWeights(TypedDict):
    """The weights of a head in storage: numbers, and arrays in base64. `means`: "" if there are no means."""

    width: int
    matrix: str
    scale: float
    bias: float
    means: str


def apart(vectors: Floats, mean: Floats) -> Floats:
    """Subtract a mean from vectors and normalise the result; zero vectors stay zero."""
    return unit(np.where(vectors.any(axis=1, keepdims=True), vectors - mean, vectors))


def multiply(left: Floats, right: Floats) -> Floats:
    """Return the product of two matrices, computed in portions small enough for one OpenBLAS thread each.

    Several threads of OpenBLAS wait for each other in busy loops. On a busy machine a product then takes a hundred
    times as long, and delays recalls that run during training.
    """
    rows = max(1, ONE_THREAD // right.size)
    found = np.empty((len(left), right.shape[1]), np.float32)
    for start in range(0, len(left), rows):
        np.matmul(left[start : start + rows], right, out=found[start : start + rows])
    return found


MIN_FOR_MEAN = 12
"""Minimum number of vectors for a mean; a mean of fewer mostly reflects individual texts."""


class AboutMean:
    """Rank by cosine after subtracting the mean of all exemplars that may be served; used while a pool is untrained. If
    fewer than MIN_FOR_MEAN exemplars have a vector, or the question has none, rank by plain cosine.
    """

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        rows = candidates.rows
        vectors = candidates.vectors(rows)
        known = vectors[vectors.any(axis=1)]
        if len(known) < MIN_FOR_MEAN or not candidates.question.any():
            return Cosine().rank(candidates, n)
        mean = known.mean(axis=0)
        question = apart(candidates.question[None, :], mean)[0]
        return best(rows, np.vecdot(apart(vectors, mean), question), n)


class ByHead:
    """Rank by the head all exemplars that may be served, without a shortlist by plain cosine. If the question has no
    vector that the head can read, rank by plain cosine.

    There is one instance per version and pool. It caches the projected vectors of the pool, and the vectors that they
    were computed from, since a vector may change.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._kept: tuple[Floats, Floats] = (np.zeros((0, head.width), np.float32),) * 2

    def rank(self, candidates: Candidates, n: int) -> Ranking:
        if len(candidates.question) != self._head.width or not candidates.question.any():
            return Cosine().rank(candidates, n)  # vectors of another embedder, or none: the head cannot read them
        rows = candidates.rows
        question = self._head.ask(candidates.question[None, :])[0]
        return best(rows, np.vecdot(self._projected(candidates.vectors(rows)), question), n)

    def _projected(self, vectors: Floats) -> Floats:
        before, projected = self._kept
        known = min(len(before), len(vectors))
        if not np.array_equal(before[:known], vectors[:known]):
            known = 0
        if known < len(vectors):
            new = self._head.project(vectors[known:])
            projected = np.concatenate([projected[:known], new]) if known else new
            self._kept = vectors, projected
        return projected[: len(vectors)]


RATE, MOMENTUM = np.float32(1), np.float32(0.9)
TINY = np.float32(1e-8)


class Vectors(NamedTuple):
    """The vectors of a pool, row by row: of the questions, and of the embedded texts of the pairs."""

    asked: Floats
    texts: Floats

    def means(self) -> Floats:
        """Return the mean vector of `asked` and the mean vector of `texts`, as two rows."""
        return np.stack([self.asked.mean(axis=0), self.texts.mean(axis=0)])


class Batch(NamedTuple):
    """A training batch, in rows.

    Attributes:
        asked: the number of the question of each row.
        candidates: the number of the candidate of each row: a pair that may be an example for the question.
        helps: 1 if the candidate helps with the question, else 0.
    """

    asked: Ints
    candidates: Ints
    helps: Floats


class Learner:
    """Trains a head (the projection that ranks exemplars), starting from the untrained one.

    Args:
        means: two mean vectors as rows, which are subtracted from the vectors of questions and of exemplars.
    """

    def __init__(self, means: Floats) -> None:
        self._means = means
        start = Head.untrained(means.shape[1])
        self._matrix = start.matrix.copy()
        self._line = np.array([start.scale, start.bias], np.float32)
        self._speeds = np.zeros_like(self._matrix), np.zeros_like(self._line)
        self.taken = 0

    def step(self, vectors: Vectors, batch: Batch) -> None:
        """Take one training step on the rows of a batch; `vectors`: the vectors of the whole pool."""
        questions, asked = np.unique(batch.asked, return_inverse=True)
        texts, candidates = np.unique(batch.candidates, return_inverse=True)
        used = (apart(vectors.asked[questions], self._means[0]), apart(vectors.texts[texts], self._means[1]))
        given, candidates = np.concatenate(used), candidates + len(questions)
        n = len(given)
        ours, lengths = _units(multiply(given, self._matrix))
        plain = np.vecdot(given[asked], given[candidates])
        cosines = LEARNED * np.vecdot(ours[asked], ours[candidates]) + (1 - LEARNED) * plain
        scale, bias = self._line
        off = (_sigmoid(scale * cosines + bias) - batch.helps) / np.float32(len(asked))
        pull = np.bincount(asked * n + candidates, off * scale * LEARNED, n * n).astype(np.float32).reshape(n, n)
        pulled = multiply(pull + pull.T, ours)
        pulled = (pulled - np.vecdot(pulled, ours)[:, None] * ours) / lengths
        _move(self._matrix, self._speeds[0], multiply(np.ascontiguousarray(given.T), pulled))
        _move(self._line, self._speeds[1], np.array([off @ cosines, off.sum()], np.float32))
        self.taken += 1

    def head(self) -> Head:
        """Return the head with the weights trained so far; its matrix is not copied."""
        return Head(self._matrix, float(self._line[0]), float(self._line[1]), self._means)


def _move(numbers: Floats, speed: Floats, slope: Floats) -> None:
    speed *= MOMENTUM
    speed += slope
    numbers -= RATE * speed


def _units(rows: Floats) -> tuple[Floats, Floats]:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    units: Floats = rows / lengths
    return units, lengths


def _sigmoid(scores: Floats) -> Floats:
    likely: Floats = np.divide(1, 1 + np.exp(-scores), dtype=np.float32)
    return likely


SAME_PROBLEM = 0.98
"""Questions with at least this cosine count as the same problem."""


class Pair(Protocol):
    """A question and its answer; `id` is unique."""

    @property
    def id(self) -> str: ...

    @property
    def query(self) -> str: ...

    @property
    def answer(self) -> str: ...


class Corpus:
    """Pairs, numbered from 0 in the order of addition."""

    def __init__(self, width: int) -> None:
        self.pairs: list[Pair] = []
        self._asked: GrowingArray[np.float32] = GrowingArray(np.float32, width)
        self._texts: GrowingArray[np.float32] = GrowingArray(np.float32, width)
        self._lexical = Lexical()
        self._numbers: dict[str, int] = {}
        self._problems: list[tuple[frozenset[str], str]] = []
        self._withdrawn: set[int] = set()  # withdrawn pairs, and pairs without an answer

    def __len__(self) -> int:
        return len(self.pairs)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._numbers

    @property
    def vectors(self) -> Vectors:
        """Return all vectors: views, valid until the next `add`."""
        return Vectors(self._asked.values, self._texts.values)

    def add(self, pair: Pair, asked_as: Floats, vector: Floats) -> int:
        """Add a pair with the vector of its question and the vector of its embedded text; return its number."""
        at = self._numbers[pair.id] = len(self.pairs)
        asked, answered = terms(pair.query), terms(pair.answer)
        self.pairs.append(pair)
        self._asked.append(asked_as)
        self._texts.append(vector)
        self._lexical.add(asked + answered)
        if not pair.answer.strip():
            self._withdrawn.add(at)
        self._problems.append((frozenset(asked), " ".join(answered) or pair.answer.strip()))
        return at

    def withdraw(self, ids: Iterable[str]) -> list[int]:
        """Exclude pairs from learning, and from the candidates (possible examples) of other pairs; return their
        numbers."""
        gone = [self._numbers[id_] for id_ in ids if id_ in self._numbers]
        self._withdrawn.update(gone)
        return gone

    def number(self, id_: str) -> int | None:
        """Return the number of a pair; None if it is unknown or may not be learned from (see `teaches`)."""
        at = self._numbers.get(id_)
        return at if at is not None and self.teaches(at) else None

    def teaches(self, at: int) -> bool:
        """Return whether a pair may be learned from, that is, it was not withdrawn and has an answer."""
        return at not in self._withdrawn

    def candidates(self, at: int, n: int) -> Ints:
        """Return the numbers of up to n candidates for a pair, best first by BM25.

        Candidates are other pairs that may be examples for this pair. Pairs that were withdrawn or have no answer, and
        pairs with the same question or answer as this pair, are excluded. Ties are broken by random numbers whose seed
        is the pair's id: repeated calls agree.
        """
        pair = self.pairs[at]
        chance = np.random.default_rng(zlib.crc32(pair.id.encode())).random(len(self))
        scores = self._lexical.scores(terms(pair.query)) + chance * 1e-6
        allowed = np.vecdot(self._asked.values, self._asked.values[at]) < SAME_PROBLEM
        allowed[[at, *self._withdrawn]] = False
        order = np.argsort(-scores, kind="stable")
        others = [row for row in order[allowed[order]][: 2 * n].tolist() if not self._is_same_problem(at, row)]
        return np.array(others[:n], np.int64)

    def _is_same_problem(self, one: int, other: int) -> bool:
        (asked, answered), (asked_too, answered_too) = self._problems[one], self._problems[other]
        return (bool(asked) and asked == asked_too) or (bool(answered) and answered == answered_too)


Basis = Literal["logprobs", "stated", "stand-in"]
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
MAX_COMPARED = 4_000
"""Maximum number of characters of an answer that ROUGE compares."""


MAX_SHOWN = 1_500
"""Maximum number of characters of a query, and of an answer, in a prompt for labelling. In it, a model labels which
pairs help as examples."""


def shortened(text: str) -> str:
    """Return the part of a query or an answer that a prompt for labelling contains: its first MAX_SHOWN characters."""
    return text[:MAX_SHOWN].strip()


class Unlikely(Protocol):
    """A source of labels. A label tells how unlikely the right answer to a question is if the prompt shows a candidate
    (another pair) as an example."""

    @property
    def basis(self) -> Basis:
        """Name of the source of labels; it is recorded with each version."""

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> Doubles:
        """Return for each candidate p(not Y | candidate, X), where X is the pair's query and Y its answer.

        Raises:
            ModelError: the model is not available.
        """


class StandIn:
    """Label the candidates of a pair (its possible examples) by text similarity, without a language model.

    The label of a candidate is 1 - (½ ROUGE-L + ½ cosine) of its answer and the pair's answer. It can exceed 1 if the
    cosine is negative, so the least helpful candidates stay distinguishable.
    """

    basis: Basis = "stand-in"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Floats] = {}

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> Doubles:
        await self._embed([pair, *candidates])
        near = np.array([self._vectors[each.id] for each in candidates]) @ self._vectors[pair.id]
        overlap = [rouge_l(each.answer, pair.answer) for each in candidates]
        return 1 - (0.5 * np.array(overlap) + 0.5 * near.astype(np.float64))

    def forget(self, ids: Sequence[str]) -> None:
        """Drop the cached vectors of these pairs' answers."""
        for id_ in ids:
            self._vectors.pop(id_, None)

    async def _embed(self, pairs: Sequence[Pair]) -> None:
        new = list({each.id: each for each in pairs if each.id not in self._vectors}.values())
        if new:
            rows = await self._embedder.embed([each.answer for each in new])
            self._vectors |= {each.id: row for each, row in zip(new, rows, strict=True)}


def rouge_l(one: str, other: str) -> float:
    """Return the ROUGE-L F-score of two texts (Lin 2004); tokens are words, or characters in scripts without spaces."""
    first, second = tokens(one), tokens(other)
    if not first or not second:
        return 0.0
    return 2 * LCSseq.similarity(first, second) / (len(first) + len(second))


@remember(1 << 12)
def tokens(text: str) -> tuple[str, ...]:
    """Return the tokens that ROUGE compares, from the first MAX_COMPARED characters of a text."""
    return tuple(WORD.findall(text[:MAX_COMPARED].lower()))


@dataclass(frozen=True)
class Labels:
    """Labels by one model and one method (`basis`).

    Attributes:
        of: function from the id of a pair to the known labels, by candidate id. For a pair with query X and answer Y,
            the label is the probability p(not Y | candidate, X): X is not answered with Y if the prompt has the
            candidate as an example.
    """

    basis: Basis
    model: str
    of: Callable[[str], Mapping[str, float]]


MAX_CHECKED = 48
"""Maximum number of lessons (the newest ones) that are held out to check an update. A lesson is the labelled possible
examples of one pair."""
MIN_CHECKED, ENOUGH_CHECKED = 8, 24
"""Numbers of held-out lessons.

- Fewer than 3 · MIN_CHECKED lessons: none is held out, and every update is accepted.
- More lessons: a third is held out, but at most ENOUGH_CHECKED.
- If the share `Recipe.held_out` of the lessons is greater than this number, the share is held out, but at most
  MAX_CHECKED.

When only 8 of 66 lessons were held out, one good update in three was rejected by chance.
"""
MAX_WHOLE, BATCH = 192, 48
"""With up to MAX_WHOLE lessons to learn from, each training step uses all of them. With more lessons, each step draws
BATCH of them at random."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """The labelled candidates (possible examples) of one pair, as training data.

    A `sharing.lesson.Lesson` is something else: a text.

    Attributes:
        candidates: numbers of the candidates.
        helps: whether each candidate is among the most helpful candidates.
        taken: numbers of the candidates that are learned from: the most helpful and the least helpful ones.
    """

    candidates: Ints
    helps: Mask
    taken: Ints


class Checked(NamedTuple):
    """How well a head (the trained part of a retriever) ranks the candidates of held-out lessons.

    A lesson has the labelled candidates (possible examples) of one pair. Results compare as tuples: the greater result
    is the better one.

    Attributes:
        first: share of lessons in which the candidate ranked first is among the most helpful.
        above: share of (helpful, not helpful) pairs of candidates that are ranked in the right order. It decides
            between results with equal `first`. Without `above`, many updates that change no first place could add up
            to a worse ranking.
    """

    first: float
    above: float


class Lessons:
    """The training data: one lesson per pair. A newer lesson of a pair replaces the older one.

    If there are enough lessons (see MIN_CHECKED), the newest lessons are held out to check updates. A held-out lesson
    is learned from later, when newer lessons are held out. An update is therefore checked with lessons that it was not
    trained on. The version that the update would replace was not trained on these lessons either, except at the first
    such check.
    """

    def __init__(self, taken: int, held_out: float) -> None:
        self._half = max(1, taken // 2)
        self._labels = np.repeat(np.array([1, 0], np.float32), self._half)
        self._held_out = held_out
        self._known: dict[int, Lesson] = {}  # in the order of learning
        self._whole: Batch | None = None

    def __len__(self) -> int:
        """Return the number of lessons that are learned from (not held out)."""
        known = len(self._known)
        if known < 3 * MIN_CHECKED:
            return known
        return known - min(MAX_CHECKED, max(min(ENOUGH_CHECKED, known // 3), int(self._held_out * known)))

    def add(self, at: int, candidates: Ints, p_not: Doubles) -> None:
        """Add the lesson of the pair number `at`: which of its candidates (possible examples) help most and least.

        `p_not`: the label of each candidate; a low label means that the candidate helps much.
        """
        order = np.argsort(p_not, kind="stable")
        taken = candidates[np.concatenate([order[: self._half], order[-self._half :]])]
        self._known[at] = Lesson(candidates, p_not <= p_not[order[self._half - 1]], taken)
        self._whole = None

    def withdraw(self, rows: Iterable[int]) -> None:
        """Remove the lessons of these pairs, and the lessons that learn from one of these pairs as a candidate. In all
        other lessons, these pairs are no longer candidates.
        """
        gone = np.array(list(rows), np.int64)
        for at, lesson in list(self._known.items()):
            left = ~np.isin(lesson.candidates, gone)
            if at in gone or np.isin(lesson.taken, gone).any():
                del self._known[at]
            elif not left.all():
                self._known[at] = Lesson(lesson.candidates[left], lesson.helps[left], lesson.taken)
        self._whole = None

    def draw(self, chance: Generator) -> Batch:
        """Return the batch of one training step: all lessons if they are at most MAX_WHOLE, otherwise BATCH random
        ones."""
        if self._whole is None:
            learned = list(self._known.items())[: len(self)]
            pairs = np.array([at for at, _ in learned], np.int64)
            candidates = np.concatenate([lesson.taken for _, lesson in learned])
            self._whole = Batch(np.repeat(pairs, 2 * self._half), candidates, np.tile(self._labels, len(pairs)))
        if len(self) <= MAX_WHOLE:
            return self._whole
        lessons = chance.choice(len(self), BATCH, replace=False)
        rows = (lessons[:, None] * 2 * self._half + np.arange(2 * self._half)).ravel()
        return Batch(*(each[rows] for each in self._whole))

    def check(self, head: Head, vectors: Vectors) -> Checked:
        """Return how well a head ranks the candidates (possible examples) of the held-out lessons; zeros if none are
        held out."""
        trials = list(self._known.items())[len(self) :]
        if not trials:
            return Checked(0.0, 0.0)
        used = np.unique(np.concatenate([each.candidates for _, each in trials]))
        projected = head.project(vectors.texts[used])
        questions = head.ask(vectors.asked[[at for at, _ in trials]])
        hits, above = 0, 0.0
        for question, (_, trial) in zip(questions, trials, strict=True):
            near = projected[np.searchsorted(used, trial.candidates)] @ question
            hits += int(trial.helps[int(near.argmax())])
            above += float(np.mean(near[trial.helps][:, None] > near[~trial.helps]))
        return Checked(hits / len(trials), above / len(trials))


MAX_WIDTH = 4096
"""Maximum number of dimensions of an embedder's vectors."""


class Version(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """A trained head as it is stored, its origin, and its result on held-out exemplars.

    Attributes:
        number: 0 is the untrained version.
        parent: the number of the version that this version was compared with and replaced.
        embedder: the name of the embedder whose vectors the head reads.
        width, matrix, scale, bias, means: the weights (`Head.weights`).
        admitted: the id of the exemplar whose admission led to this version; "" for the untrained version.
        learned_from: number of exemplars whose labelled candidates the head was trained on.
        basis: the source of the labels: `logprobs`, `stated`, or `stand-in`.
        held_out: share of held-out exemplars for which the candidate ranked first is helpful.
        before: the same share for the parent.
    """

    number: int = Field(ge=0)
    parent: int = Field(ge=0)
    embedder: str
    width: int = Field(ge=1, le=MAX_WIDTH)
    matrix: str
    scale: float
    bias: float
    means: str = ""
    admitted: str = ""
    learned_from: int = Field(0, ge=0)
    basis: str = ""
    held_out: float = 0.0
    before: float = 0.0

    @classmethod
    def untrained(cls, embedder: str, width: int) -> Version:
        """Return the version that every pool starts with."""
        return cls(number=0, parent=0, embedder=embedder, **Head.untrained(width).weights())

    @model_validator(mode="after")
    def _can_rank(self) -> Version:
        try:
            self.head  # noqa: B018 (reading it decodes and caches the weights)
        except (IndexError, zlib.error) as error:
            raise ValueError(f"the weights cannot be read: {error}") from None
        return self

    @cached_property
    def head(self) -> Head:
        """The head, built from the weights stored in this version. Every process builds the same head."""
        size = self.width**2
        raw = zlib.decompressobj().decompress(base64.b64decode(self.matrix, validate=True), 4 + size + 1)
        step = np.frombuffer(raw[:4], np.float32)[0]
        steps = np.frombuffer(raw[4:], np.int8).reshape(self.width, self.width)
        means = np.frombuffer(base64.b64decode(self.means, validate=True), np.float32).reshape(-1, self.width)
        if len(means) not in (0, 2) or not np.isfinite([step, *means.ravel()]).all():
            raise ValueError("expected weights of finite numbers, and 0 or 2 mean vectors")
        matrix = np.eye(self.width, dtype=np.float32) + steps.astype(np.float32) * step
        matrix.flags.writeable = False
        return Head(matrix, self.scale, self.bias, means if len(means) else None)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Training parameters.

    Attributes:
        candidates: maximum number of candidates labelled for each pair (n in the paper). The paper's value, 10, lowers
            P@1, the share of queries whose first-ranked exemplar helps.
        taken: number of candidates that are learned from (v in the paper): half of them the most helpful, half of them
            the least helpful.
        again: number of earlier exemplars whose candidates are labelled again at each admission, in turn. Better
            candidates may have been admitted in the meantime.
        steps: number of training steps per admission.
        update: number of training steps that make a new version. They start from the untrained head. With more steps
            the head memorises the training data.
        held_out: minimum share of the pairs (the newest ones) that are held out to check a new version. It applies from
            24 pairs on, up to 48 held-out pairs.
    """

    candidates: int = 60
    taken: int = 6
    again: int = 6
    steps: int = 2
    update: int = 10
    held_out: float = 0.1


class LearnedRetriever:
    """Learn from admissions, one at a time, and provide the current ranking policy.

    Args:
        unlikely: computes the labels; None: `StandIn`.
        labels: existing labels by a model, used instead of `unlikely`. Nothing is learned from a pair without labels.
        text_of: function from a pair to the text that is embedded; by default the query.
        on_version: called with each new version.
        on_weighing: called before `unlikely` labels the candidates of a pair. If `on_weighing` raises, training ends.
    """

    def __init__(
        self,
        embedder: Embedder,
        width: int,
        unlikely: Unlikely | None = None,
        *,
        recipe: Recipe | None = None,
        labels: Labels | None = None,
        text_of: Callable[[Pair], str] = lambda pair: pair.query,
        seed: int = 0,
        on_version: Callable[[Version], None] = lambda _: None,
        on_weighing: Callable[[], None] = lambda: None,
    ) -> None:
        self.recipe = recipe or Recipe()
        self._embedder, self._text_of, self._on_version = embedder, text_of, on_version
        self._on_weighing = on_weighing
        self._unlikely, self.labels = unlikely or StandIn(embedder), labels
        self._corpus = Corpus(width)
        self._lessons = Lessons(self.recipe.taken, self.recipe.held_out)
        self._learner: Learner | None = None
        self._chance = np.random.default_rng(seed)
        self._next_again = 0
        self._take(Version.untrained(embedder.name, width))

    @property
    def policy(self) -> Policy:
        """The ranking policy of the current version."""
        return self._policy

    def adopt(self, version: Version) -> None:
        """Continue from a stored version, or from one that another process made.

        Raises:
            InputError: the version belongs to another embedder.
        """
        if (version.embedder, version.head.width) != (self._embedder.name, self.version.head.width):
            raise InputError(
                f"version {version.number} of the retriever was trained with the embedder {version.embedder}"
                f" and cannot be used with {self._embedder.name}"
            )
        self._take(version)

    def _take(self, version: Version) -> None:
        self.version = version
        self._policy = ByHead(version.head)

    async def seed_with(self, pairs: Iterable[Pair]) -> None:
        """Add the initial pairs of a pool. Then label for each pair how much other pairs help as examples, and
        train."""
        new = [pair for pair in pairs if pair.id not in self._corpus]
        rows = await self._add(new)
        for at in self._chance.permutation(rows).tolist():
            await self._weigh(at)
        for _ in range(-(-self.recipe.update // self.recipe.steps) if rows else 0):
            self._learn(new[-1].id)

    async def admitted(self, pair: Pair) -> None:
        """Learn from one admitted exemplar."""
        if pair.id not in self._corpus:
            (at,) = await self._add([pair])
            for row in (at, *self._again(at)):
                await self._weigh(row)
            self._learn(pair.id)

    def relearn(self, ids: Iterable[str]) -> None:
        """Train once more for each of these pairs, because the version that was trained with them was not stored."""
        for id_ in ids:
            self._learn(id_)

    def withdraw(self, ids: Iterable[str]) -> None:
        """Stop learning from these pairs. The current head (the trained scoring function) keeps what it learned from
        them."""
        gone = list(ids)
        self._lessons.withdraw(self._corpus.withdraw(gone))
        self._learner = None
        if isinstance(self._unlikely, StandIn):
            self._unlikely.forget(gone)

    async def _add(self, pairs: list[Pair]) -> list[int]:
        if not pairs:
            return []
        questions, texts = [pair.query for pair in pairs], [self._text_of(pair) for pair in pairs]
        asked = await self._embedder.embed(questions)
        vectors = asked if texts == questions else await self._embedder.embed(texts)
        return [self._corpus.add(*each) for each in zip(pairs, asked, vectors, strict=True)]

    def _again(self, below: int) -> list[int]:
        """Return the numbers of the pairs whose turn it is to be labelled again; all are below `below`. The next call
        returns the pairs after them."""
        turns = [(self._next_again + i) % below for i in range(min(self.recipe.again, below))] if below else []
        self._next_again += len(turns)
        return turns

    def _learn(self, admitted: str) -> None:
        if (version := self.learn(admitted)) is not None:
            self._take(version)
            self._on_version(version)

    async def _weigh(self, at: int) -> None:
        """Label a pair's candidates (possible examples), and add its lesson if at least `Recipe.taken` candidates have
        labels."""
        if not self._corpus.teaches(at):
            return
        candidates, p_not = await self._weighed(at)
        if len(candidates) >= self.recipe.taken:
            self._lessons.add(at, candidates, p_not)

    async def _weighed(self, at: int) -> tuple[Ints, Doubles]:
        pair = self._corpus.pairs[at]
        if self.labels is not None:
            known = {self._corpus.number(id_): p for id_, p in self.labels.of(pair.id).items()}
            known.pop(None, None)
            return np.array(list(known), np.int64), np.array(list(known.values()), np.float64)
        self._on_weighing()
        rows = self._corpus.candidates(at, self.recipe.candidates)
        if len(rows) < self.recipe.taken:
            return rows, np.zeros(len(rows))
        return rows, await self._unlikely.p_not(pair, [self._corpus.pairs[row] for row in rows])

    def learn(self, admitted: str) -> Version | None:
        """Take `Recipe.steps` training steps; return a new version if they complete an update that passes the check.

        An update is complete after `Recipe.update` steps. Return None in these cases:

        - the update needs more steps;
        - the updated head ranks the held-out lessons worse than the current version does;
        - there are no lessons.

        The method may run in a thread if nothing else changes this retriever at the same time.
        """
        if not len(self._lessons):
            return None
        vectors = self._corpus.vectors
        self._learner = self._learner or Learner(vectors.means())
        for _ in range(self.recipe.steps):
            self._learner.step(vectors, self._lessons.draw(self._chance))
        if self._learner.taken < self.recipe.update:
            return None
        weights, self._learner = self._learner.head().weights(), None
        made = Version(
            number=self.version.number + 1,
            parent=self.version.number,
            embedder=self._embedder.name,
            admitted=admitted,
            learned_from=len(self._lessons),
            basis=self.labels.basis if self.labels else self._unlikely.basis,
            **weights,
        )
        before, after = self._lessons.check(self.version.head, vectors), self._lessons.check(made.head, vectors)
        return None if after < before else made.model_copy(update={"before": before.first, "held_out": after.first})
