"""A pool's retriever: it learns from every admission, beside recall, and ranks by the last version that held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import InputError
from mindstream.memory.recall.policies import Policy
from mindstream.models.embedders.embedder import Embedder
from mindstream.sharing.retriever.corpus import Corpus, Pair
from mindstream.sharing.retriever.head import Head
from mindstream.sharing.retriever.labels import Labels
from mindstream.sharing.retriever.learner import Learner, Rows
from mindstream.sharing.retriever.lessons import Lessons
from mindstream.sharing.retriever.ranking import ByHead
from mindstream.sharing.retriever.unlikely import StandIn, Unlikely
from mindstream.sharing.retriever.version import Version


@dataclass(frozen=True, slots=True)
class Recipe:
    """How it learns.

    Attributes:
        candidates: so many of the pool are weighed at an admission (the source's n; its 10 lowers P@1).
        taken: of these, half so many that help most and half so many that help least are learned from (the source's v).
        again: so many exemplars of before are weighed anew at each admission, in turn, since the pool has grown.
        steps: so many steps of training are taken at an admission.
        update: so many steps, always from the untrained head, are an update; more learn the lessons by heart.
        held_out: the share of lessons, the newest, that tell whether an update helps and are learned from later.
    """

    candidates: int = 60
    taken: int = 6
    again: int = 6
    steps: int = 2
    update: int = 10
    held_out: float = 0.1


class LearnedRetriever:
    """Learns from admissions, one at a time, and hands out the policy that ranks now.

    Args:
        unlikely: who says how much a candidate helps, without a model; None: the stand-in.
        labels: what a model has said, instead: a pair that it has not read teaches nothing.
        text_of: what of a pair is embedded; its query as it is unless told otherwise.
        on_version: told of each new version, to write it where the pool is.
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
    ) -> None:
        self.recipe = recipe or Recipe()
        self._embedder, self._text_of, self._on_version = embedder, text_of, on_version
        self._unlikely, self._labels = unlikely or StandIn(embedder), labels
        self._corpus = Corpus(width)
        self._lessons = Lessons(self.recipe.taken, self.recipe.held_out)
        self._learner: Learner | None = None
        self._chance = np.random.default_rng(seed)
        self._admitting = asyncio.Lock()
        self._next_again = 0
        self._take(Version.untrained(embedder.name, width))

    @property
    def policy(self) -> Policy:
        """How the pool is ranked now: of one version, which never changes."""
        return self._policy

    def adopt(self, version: Version) -> None:
        """Go on from a version that was kept, or that another process made.

        Raises:
            InputError: it is of another embedder.
        """
        if (version.embedder, version.head.width) != (self._embedder.name, self.version.head.width):
            raise InputError(
                f"version {version.number} of the retriever is for {version.embedder}, not {self._embedder.name}"
            )
        self._take(version)

    def _take(self, version: Version) -> None:
        self.version = version
        self._policy = ByHead(version.head)

    async def seed_with(self, pairs: Iterable[Pair]) -> None:
        """Take in what a pool begins with, then learn from each of it: every one may help every other."""
        new = [pair for pair in pairs if pair.id not in self._corpus]
        async with self._admitting:
            rows = await self._add(new)
            for at in self._chance.permutation(rows).tolist():
                await self._weigh(at)
            for _ in range(-(-self.recipe.update // self.recipe.steps) if rows else 0):
                await self._learn(new[-1].id)

    async def admitted(self, pair: Pair) -> None:
        """Learn from an exemplar that was admitted; recall goes on by the version of before meanwhile."""
        async with self._admitting:
            if pair.id not in self._corpus:
                (at,) = await self._add([pair])
                for row in (at, *self._again(at)):
                    await self._weigh(row)
                await self._learn(pair.id)

    async def relearn(self, ids: Iterable[str]) -> None:
        """Take a step more for each of these, which are known: what was learned from them was lost with a version."""
        async with self._admitting:
            for id_ in ids:
                await self._learn(id_)

    async def withdraw(self, ids: Iterable[str]) -> None:
        """Learn no more from these pairs; what the head has of them already, it keeps."""
        gone = list(ids)
        async with self._admitting:
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
        """Return whose turn it is to be weighed anew."""
        turns = [(self._next_again + i) % below for i in range(min(self.recipe.again, below))] if below else []
        self._next_again += len(turns)
        return turns

    async def _learn(self, admitted: str) -> None:
        version = await asyncio.to_thread(self.learn, admitted)
        if version is not None:
            self._take(version)
            self._on_version(version)

    async def _weigh(self, at: int) -> None:
        """Find how much a pair's candidates help; it teaches nothing where too few are known."""
        if not self._corpus.teaches(at):
            return
        candidates, p_not = await self._weighed(at)
        if len(candidates) >= self.recipe.taken:
            self._lessons.add(at, candidates, p_not)

    async def _weighed(self, at: int) -> tuple[Rows, NDArray[np.float64]]:
        pair = self._corpus.pairs[at]
        if self._labels is not None:
            known = {self._corpus.number(id_): p for id_, p in self._labels.of(pair.id).items()}
            known.pop(None, None)
            return np.array(list(known), np.int64), np.array(list(known.values()), np.float64)
        rows = self._corpus.candidates(at, self.recipe.candidates)
        if len(rows) < self.recipe.taken:
            return rows, np.zeros(len(rows))
        return rows, await self._unlikely.p_not(pair, [self._corpus.pairs[row] for row in rows])

    def learn(self, admitted: str) -> Version | None:
        """Train on what was weighed; return the new version, or None where an update is not whole or not good enough.

        It reads what nobody else changes meanwhile, so it may run in a thread.
        """
        if not len(self._lessons):
            return None
        vectors = self._corpus.vectors
        self._learner = self._learner or Learner(vectors.means())
        for _ in range(self.recipe.steps):
            self._learner.step(vectors, self._lessons.draw(self._chance))
        if self._learner.taken < self.recipe.update:
            return None
        head, self._learner = self._learner.head(), None
        before, after = self._lessons.check(self.version.head, vectors), self._lessons.check(head, vectors)
        return None if after < before else self._next(head, admitted, before.first, after.first)

    def _next(self, head: Head, admitted: str, before: float, after: float) -> Version:
        return Version(
            self.version.number + 1,
            self.version.number,
            self._embedder.name,
            head,
            admitted,
            len(self._lessons),
            self._labels.basis if self._labels else self._unlikely.basis,
            after,
            before,
        )
