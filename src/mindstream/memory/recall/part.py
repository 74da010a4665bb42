"""Columns of the candidates that a store found. They are scored with the statistics of the whole stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mindstream.log.names import StreamKey
from mindstream.memory.recall.selection import SelectedVectors
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.store import Candidates, Changes, Told
from mindstream.text.dates import DateSpan
from mindstream.text.lexical import Floats, Ints, Lexical, Matches


class Part(Columns):
    """The records of a stream that a store found as candidates."""

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
        """Use how much each speaker says in the whole stream."""
        for name in said:
            self.number(name)
        messages, words = ([said.get(name, (0, 0))[at] for name in self.names] for at in (0, 1))
        _, _, users, agents = self.speakers.state()
        self.speakers.begin_with([messages, words, users, agents])


class PartLexical(Lexical):
    """The word index of the candidates, with word frequencies and episode scores of the whole stream."""

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
