"""Labels for the retriever by a model (Gao 2024, eq. 1): p(not Y | (x, y), X) of some candidates of each exemplar.

By log-probabilities where the model tells how likely a given text is, else as it states them. What was labelled stands
in the pool's log: a run that is stopped, or whose model fails, goes on from there, in any process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mindstream.models.model import Model
from mindstream.models.shorten import estimate_tokens
from mindstream.sharing.events import CandidatesLabelled
from mindstream.sharing.retriever.corpus import Corpus
from mindstream.sharing.retriever.does_it_help import Stated, does_it_help
from mindstream.sharing.retriever.labels import Labels
from mindstream.sharing.retriever.likelihood import LONGEST_ANSWER, AnswerAfterExample, Likelihood
from mindstream.sharing.retriever.unlikely import Unlikely
from mindstream.sharing.state import PoolState

if TYPE_CHECKING:
    from mindstream.sharing.exemplar import Exemplar
    from mindstream.sharing.pool import Pool

AMONG, WEIGHED = 60, 16
"""Of so many exemplars that are most relevant by BM25, so many are weighed, spread over all of these: the nearest alone
are about the same, and do not tell what else makes an answer likely."""
AT_ONCE = 4


@dataclass(frozen=True)
class Labeller:
    """A model that labels, on one basis; `find_labeller` finds out which."""

    model: Model
    source: Unlikely

    @property
    def key(self) -> tuple[str, str]:
        """By what its labels are known from others'."""
        return self.source.basis, self.model.name

    def labels(self, state: Callable[[], PoolState]) -> Labels:
        """Return what it has said, as the state is whenever it is asked."""
        return Labels(self.source.basis, self.model.name, lambda id_: state().labels.get(self.key, {}).get(id_, {}))


@dataclass(frozen=True)
class LabelCost:
    """What labelling will take: pairs, calls of the model, and their tokens."""

    pairs: int
    calls: int
    tokens_in: int
    tokens_out: int


async def find_labeller(model: Model) -> Labeller:
    """Find out whether a model tells log-probabilities of a given text; it is asked once.

    Raises:
        ModelError: it cannot be had.
    """
    likely = Likelihood(model)
    return Labeller(model, likely if await likely.is_told() else Stated(model))


def known_labeller(model: Model, basis: str) -> Labeller:
    """Return a labeller whose basis is known from before: nobody is asked."""
    return Labeller(model, Likelihood(model) if basis == Likelihood.basis else Stated(model))


def unlabelled(pool: Pool, state: PoolState, labeller: Labeller) -> dict[str, list[str]]:
    """Return the exemplars that a labeller has not read, each with the candidates that it is to weigh."""
    known = state.labels.get(labeller.key, {})
    ids = state.teaching(pool.guarded)
    if all(id_ in known for id_ in ids):
        return {}
    corpus = Corpus(1)
    for id_ in ids:
        corpus.add(state.standings[id_].exemplar, np.zeros(1, np.float32), np.zeros(1, np.float32))
    found = {id_: _spread(corpus.candidates(at, AMONG).tolist()) for at, id_ in enumerate(ids) if id_ not in known}
    return {id_: [ids[row] for row in rows] for id_, rows in found.items() if rows}


def _spread(rows: Sequence[int]) -> list[int]:
    if len(rows) <= WEIGHED:
        return list(rows)
    return [rows[int(at)] for at in np.linspace(0, len(rows) - 1, WEIGHED).round()]


def label_cost(state: PoolState, labeller: Labeller, wanted: dict[str, list[str]]) -> LabelCost:
    """Estimate what it takes to label these."""
    pairs = {
        id_: state.standings[id_].exemplar for id_ in {*wanted, *(each for some in wanted.values() for each in some)}
    }
    weighed = sum(map(len, wanted.values()))
    if labeller.source.basis == "stated":
        asked = (does_it_help(pairs[id_], [pairs[each] for each in some]) for id_, some in wanted.items())
        tokens = sum(estimate_tokens("".join(each.text for each in prompt.messages())) for prompt in asked)
        return LabelCost(len(wanted), len(wanted), tokens, 4 * weighed + 10 * len(wanted))
    before = estimate_tokens(AnswerAfterExample.words())
    tokens = sum(before + _tokens(pairs[each]) + _tokens(pairs[id_]) for id_, some in wanted.items() for each in some)
    return LabelCost(len(wanted), weighed, tokens, weighed)


def _tokens(exemplar: Exemplar) -> int:
    return estimate_tokens(exemplar.query) + estimate_tokens(exemplar.answer[:LONGEST_ANSWER])


async def label(
    pool: Pool, labeller: Labeller, wanted: dict[str, list[str]], tell: Callable[[int], None] = lambda _: None
) -> None:
    """Have exemplars labelled, and keep it in the pool's log as it comes.

    Args:
        tell: told how many are labelled.

    Raises:
        ModelError: the model failed; what it labelled until then is kept.
    """
    state, done, room = pool.last_state, 0, asyncio.Semaphore(AT_ONCE)
    pairs = {id_: each.exemplar for id_, each in state.standings.items()}

    async def one(id_: str, candidates: list[str]) -> None:
        nonlocal done
        async with room:
            p_not = await labeller.source.p_not(pairs[id_], [pairs[each] for each in candidates])
        basis, model = labeller.key
        told = tuple(round(float(p), 6) for p in p_not)
        row = CandidatesLabelled(id=id_, candidates=tuple(candidates), p_not=told, basis=basis, model=model)
        await pool.write(row, "labeller")
        done += 1
        tell(done)

    try:
        async with asyncio.TaskGroup() as group:
            for id_, candidates in wanted.items():
                group.create_task(one(id_, candidates))
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    finally:
        await pool.state()
