"""Select the records of a long stream that may be among the best answers to a question. Only these are ranked, by the
same code as all records of a short stream.

The selection consists of
- the best records by their own words and those of their episode, with their neighbours,
- the records with the most similar vectors, compared by one bit per dimension,
- the newest records, and the newest records of each period that the question names.

The selected records are scored with the statistics of the whole stream: the rarity of words, how much each speaker
says, and the words of episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Array, Floats, Ints, Mask
from mindstream.identifiers import StreamKey
from mindstream.memory.recall.ranking import CHAT, OTHERS, TERMS_AT_ONCE, RecallQuery, Resistance, Weights, nth_highest
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.store import Candidates, Changes, Told
from mindstream.memory.store.vectors import Vectors
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import K1, GrowingArray, Lexical, Matches, saturated, telling
from mindstream.text.words import batches

LONG = 20_000
"""Maximum number of records in a stream for all of them to be scored."""
BY_WORDS, NEAR, NEWEST, DATED = 1_000, 1_000, 100, 400
DENSE = 8
"""If there are more matches of a question's words than records divided by DENSE, the distinct rows are found by a mask
over all records. Sorting the matches would then be slower."""
FOLLOWED = ("kind", "by", "group", "asks", "only_asks", "created")
"""Names of the columns that scoring reads. A selection copies a part of each column when the column is first used.
`before` and `after` are not among them: a selection computes these two."""

BESIDE = ThreadPoolExecutor(1, "vectors")
"""A thread that compares vectors while the caller searches for words; numpy releases the interpreter lock."""


class LookedUp(NamedTuple):
    """The result of looking up some terms in a whole stream.

    Attributes:
        found: the matches of the terms.
        groups: the scores of all episodes by these terms.
    """

    found: Matches
    groups: Floats


Looked: TypeAlias = dict[tuple[str, ...], LookedUp]


class Selection(Columns):
    """The columns of some of a stream's records, in the order of writing; `rows` are their rows in the whole stream."""

    def __init__(self, whole: Columns, chosen: Mask, rows: Ints, terms: Looked) -> None:
        self.stream, self.width = whole.stream, whole.width
        self.only_talk, self.speakers, self.names = whole.only_talk, whole.speakers, whole.names
        self.rows, self._entire = rows, whole
        for name, step in (("before", -1), ("after", 1)):
            beside, last = getattr(whole, name).values[rows], len(rows) - 1
            # a record's neighbour in its episode is usually in the adjacent row; others (`apart`) are searched for
            at = np.minimum(np.maximum(np.arange(step, len(rows) + step), 0), last)
            apart = np.flatnonzero(rows[at] != beside)
            at[apart] = np.minimum(np.searchsorted(rows, beside[apart]), last)
            setattr(self, name, _column(np.where(rows[at] == beside, at, -1).astype(np.int32)))
        self.lexical = SelectedLexical(whole.lexical, rows, chosen, terms)
        self.vectors = SelectedVectors(whole.vectors, rows)

    def __getattr__(self, name: str) -> GrowingArray[Any]:
        if name not in FOLLOWED:
            raise AttributeError(name)
        column = _column(getattr(self._entire, name).values[self.rows])
        setattr(self, name, column)
        return column

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def entire(self) -> Columns:
        return self._entire

    def in_entire(self, rows: Ints) -> Ints:
        return self.rows[rows]

    def ids_at(self, rows: Ints) -> list[str]:
        return self._entire.ids_at(self.rows[rows])


def _column(values: Array) -> GrowingArray[Any]:
    column = GrowingArray(values.dtype.type)
    column.adopt(values, len(values))
    return column


class SelectedLexical(Lexical):
    """The word index of the whole stream, limited to the selected records."""

    def __init__(self, whole: Lexical, rows: Ints, chosen: Mask, terms: Looked):
        self.postings, self.total, self.grouped = whole.postings, whole.total, whole.grouped
        self.sizes, self.group, self.group_sizes = whole.sizes, whole.group, whole.group_sizes
        self._whole, self._rows, self._chosen, self._terms = whole, rows, chosen, terms

    @property
    def documents(self) -> int:
        return len(self._rows)

    def matches_of(self, terms: list[str]) -> Matches:  # type: ignore[override]
        found = self._terms[tuple(terms)].found if tuple(terms) in self._terms else self._whole.matches_of(terms)
        there = self._chosen[found.documents]
        at = np.searchsorted(self._rows, found.documents[there])
        ends = np.concatenate(([0], np.cumsum(there)))[np.cumsum(found.counts)]
        counts = np.diff(ends, prepend=0)
        return Matches(at, found.times[there], counts, found.counts, found)

    def lengths(self, documents: Ints) -> Floats:
        return self._whole.lengths(self._rows[documents])

    def group_scores(self, found: Matches) -> Floats:
        known = next((each.groups for each in self._terms.values() if each.found is found.of), None)
        return self._whole.group_scores(found.of or found) if known is None else known


class SelectedVectors(Vectors):
    """The vectors of the selected records."""

    def __init__(self, whole: Vectors, rows: Ints) -> None:
        self._whole, self._rows = whole, rows
        self.width = whole.width

    def __len__(self) -> int:
        return len(self._rows)

    def near(
        self,
        query: Floats,
        among: Mask,
        also: Callable[[], Ints],  # noqa: ARG002 (this class compares all rows)
    ) -> tuple[Ints, Floats]:
        rows = np.flatnonzero(among)
        return rows, self._whole.nearer(query, self._rows[rows])

    def cosines(self, query: Floats, rows: Ints) -> Floats:
        return self._whole.cosines(query, self._rows[rows])

    def units(self, rows: Ints) -> Floats:
        return self._whole.units(self._rows[rows])


def select(
    columns: Columns, question: RecallQuery, vectors: Floats, passing: Mask, weights: Weights
) -> tuple[Selection, Mask]:
    """Select the records that may be among the best answers to a question, and their neighbours in their episodes.

    Args:
        vectors: the vectors of the question's wordings.
        passing: marks the records that pass the recall's filters.

    Returns:
        The selection, and a mask of the candidates in it: the records that can be returned. The other selected records
        only contribute to the scores of their neighbours.
    """
    terms: Looked = {}
    inner = np.zeros(len(columns), np.bool_)
    nearest = BESIDE.submit(_nearest, columns, vectors, passing)
    for rows in _by_words(columns, question, passing, weights, terms):
        _mark(inner, rows, columns)
    for rows in nearest.result():
        inner[rows] = True
    latest = max(0, len(passing) - 10 * NEWEST)
    inner[latest + np.flatnonzero(passing[latest:])[-NEWEST:]] = True
    for rows in _dated(columns, question, passing):
        inner[rows] = True
    chosen = inner.copy()
    _mark(chosen, np.flatnonzero(inner), columns)
    rows = np.flatnonzero(chosen)
    return Selection(columns, chosen, rows, terms), passing[rows] & inner[rows]


def _mark(mask: Mask, rows: Ints, columns: Columns) -> None:
    """Mark rows, and for each row the two records before and the two records after the row in its episode."""
    mask[rows] = True
    for step in (columns.before.values, columns.after.values):
        reached: NDArray[np.integer] = rows
        for _ in range(2):
            reached = step[reached]
            reached = reached[reached >= 0]
            mask[reached] = True


def _by_words(columns: Columns, question: RecallQuery, passing: Mask, weights: Weights, kept: Looked) -> list[Ints]:
    """Return one to three lists of rows: the records with the best word scores, of their texts and of their episodes.

    - The first list is of all records, because all records contribute to the scores of their neighbours.
    - If the question is about a speaker or a period, the scores of a second list take the speaker or period into
      account.
    - If some records do not pass the filters (`passing`), the last list is of the records that pass.

    The matches of the words are added to `kept`.
    """
    index, count = columns.lexical, len(columns)
    words = np.zeros(count, np.float32)
    episodes = np.zeros(index.groups + 1, np.float32)
    resistance = Resistance(columns, weights.verbosity)
    terms, documents = list(dict.fromkeys(question.terms)), list[Ints]()
    for some in batches(terms, TERMS_AT_ONCE):
        found = index.matches_of(some)
        documents.append(found.documents)
        kept[tuple(some)] = LookedUp(found, index.group_scores(found) if index.groups else episodes[:-1])
        episodes[:-1] += kept[tuple(some)].groups
        lengths = index.lengths(found.documents)
        own = saturated(found.times, resistance(found.documents, lengths), index.idf_of(found), K1)
        ends = np.cumsum(found.counts).tolist()
        for begins, end in zip((0, *ends[:-1]), ends, strict=True):
            words[found.documents[begins:end]] += own[begins:end]
    rows = _distinct(documents, count)
    # `words[rows]` copies these rows, so the next operations read memory that is in the processor's cache
    lends = words[rows] + weights.episode * episodes.take(index.group.values[rows])
    scores, passes, best = lends, passing[rows], [_best(rows, lends, BY_WORDS)]
    if question.who >= 0 or question.spans:
        scores = lends + _besides(columns, question, rows, weights)
        best.append(_best(rows, scores, BY_WORDS))
    return best if passes.all() else [*best, _best(rows[passes], scores[passes], BY_WORDS)]


def _distinct(documents: Sequence[Ints], count: int) -> Ints:
    """Return the documents of all lists, each once, in ascending order; all are below `count`."""
    joined = np.concatenate([np.empty(0, np.int64), *documents])
    if len(joined) > count // DENSE:
        holds = np.zeros(count, np.bool_)
        holds[joined] = True
        return np.flatnonzero(holds)
    joined.sort(kind="stable")  # merges the sorted rows of each word
    return joined[np.diff(joined, prepend=-1) > 0]


def _besides(columns: Columns, question: RecallQuery, rows: Ints, weights: Weights) -> Floats:
    """Return for each row the part of its score that depends on the speaker and on the time."""
    gains = np.zeros(len(rows), np.float32)
    if question.who >= 0:
        said = (columns.by.values[rows] == question.who) & (columns.kind.values[rows] == CHAT)
        gains += said * np.float32(weights.who * telling(1, len(columns) + OTHERS))
    for span in question.spans:
        created = columns.created.values[rows]
        inside = (created >= span.since) & (created < span.until)
        gains += inside * np.float32(weights.dates * telling(columns.written_in(question.spans), len(columns)))
    return gains


def _best(rows: Ints, scores: Floats, n: int) -> Ints:
    if len(rows) <= n:
        return rows
    among = np.flatnonzero(scores >= nth_highest(scores, n))
    if len(among) > n:  # several rows have the n-th highest score
        among = among[np.argpartition(-scores[among], n)[:n]]
    return rows[among]


def _nearest(columns: Columns, vectors: Floats, passing: Mask) -> list[Ints]:
    """Return, for each wording of the question that has a vector, about NEAR to 2 * NEAR rows with the most similar
    vectors. If there are two wordings, messages are compared with the first, other records with the second."""
    if len(vectors) == 1:
        asked = [(vectors[0], passing)]
    else:
        talk = columns.kind.values == CHAT
        asked = [(vectors[0], passing & talk), (vectors[-1], passing & ~talk)]
    return [columns.vectors.nearest_by_bits(vector, these, NEAR) for vector, these in asked if np.any(vector)]


def _dated(columns: Columns, question: RecallQuery, passing: Mask) -> list[Ints]:
    created = columns.created.values
    spans = [(created >= span.since) & (created < span.until) & passing for span in question.spans]
    return [np.flatnonzero(span)[-DATED:] for span in spans]


class Part(Columns):
    """Records of a stream as arrays (`Columns`), but only the records that the store found for a question."""

    def __init__(self, stream: StreamKey, embedder: str, width: int, found: Candidates) -> None:
        super().__init__(stream, embedder, width)
        self.take(Changes(found))
        self.behind, self._told = True, found.told
        if found.told:
            self.lexical = PartLexical(self, found.told)
            if found.told.sample:
                self.vectors.centre_on(np.array(found.told.sample, np.int64))
            self._hear(found.told.said)
        self.vectors = SelectedVectors(self.vectors, np.arange(len(self)))

    def written_in(self, spans: Sequence[DateSpan]) -> int:
        return super().written_in(spans) if self._told is None else self._told.written

    def _hear(self, said: Mapping[str, tuple[int, int]]) -> None:
        """Replace the counts of each speaker's messages and words by those of the whole stream (`said`)."""
        for name in said:
            self.number(name)
        messages, words = ([said.get(name, (0, 0))[at] for name in self.names] for at in (0, 1))
        _, _, users, agents = self.speakers.state()
        self.speakers.begin_with([messages, words, users, agents])


class PartLexical(Lexical):
    """The word index of the records of a `Part`, with word frequencies and episode scores of the whole stream."""

    def __init__(self, part: Columns, told: Told) -> None:
        index = part.lexical
        self.postings, self.sizes, self.group = index.postings, index.sizes, index.group
        self.group_sizes, self.grouped, self.total = index.group_sizes, index.grouped, told.terms
        self._told = told
        self._words = {word: at for at, word in enumerate(told.holding)}
        self._asked: list[tuple[Matches, Sequence[str]]] = []
        names = dict(zip(part.group.values.tolist(), part.episode.values.tolist(), strict=True))
        episodes = {number: name for name, number in part.episodes.items()}
        self._episodes = [told.episodes.get(episodes[names[group]]) for group in range(index.groups)]

    def __len__(self) -> int:
        return self._told.records

    @property
    def documents(self) -> int:
        return len(self.sizes)

    @property
    def all_groups(self) -> int:
        return self._told.groups

    def matches_of(self, terms: Sequence[str]) -> Matches:
        found = super().matches_of(terms)
        found = found._replace(held=np.maximum(self.counts(terms), found.counts))
        self._asked.append((found, terms))
        return found

    def counts(self, terms: Sequence[str]) -> Ints:
        return np.array([self._told.holding.get(term, self.postings.count(term)) for term in terms], np.int64)

    def group_scores(self, found: Matches) -> Floats:
        terms = next(terms for each, terms in self._asked if each is found)
        known = [self._words[term] for term in terms if term in self._words]
        scores = super().group_scores(found)
        for group, parts in enumerate(self._episodes):
            if parts is not None:
                scores[group] = parts[known].sum()
        return scores
