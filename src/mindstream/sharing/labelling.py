"""Label candidate exemplars by how likely each makes the right answer to a question (Gao 2024, eq. 1).

The probability is computed from log-probabilities if the model returns those of a given text; otherwise the model
states it as a number. Labels are written to the pool's log, so any process can continue an interrupted labelling.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from mindstream.arrays import Doubles
from mindstream.errors import ModelRefused, ReplyInvalid
from mindstream.frozen import Frozen
from mindstream.models.model import JsonSchema, Model, estimate_tokens
from mindstream.models.prompt import Prompt, ask, rule, text_logprobs
from mindstream.sharing.events import CandidatesLabelled
from mindstream.sharing.retriever import Basis, Corpus, Labels, Pair, Unlikely, shortened
from mindstream.sharing.state import PoolState
from mindstream.together import together

if TYPE_CHECKING:
    from mindstream.sharing.exemplar import Exemplar
    from mindstream.sharing.pool import Pool

MAX_ANSWER = 400
"""Maximum number of characters of a right answer whose log-probabilities are measured."""


class AnswerAfterExample(Prompt[str]):
    """Answer a question after one example pair. A given answer follows the prompt, and its probability is measured."""

    role: ClassVar[str] = "labeller"
    reply_tokens: ClassVar[int] = 1

    example_question: str
    example_answer: str
    question: str


@rule(AnswerAfterExample)
def same_again(ask: AnswerAfterExample) -> str:
    """Return the example's answer unchanged; without a model, no probabilities can be measured."""
    return ask.example_answer


class Likelihood:
    """Label the candidates of a pair by log-probabilities. Candidates are exemplars that may help as examples.

    The prompt is "x, y, X", where (x, y) is the candidate and (X, Y) the pair. The label is 1 minus the geometric mean
    of the probabilities of the tokens of Y after this prompt. The mean includes the tokens of the tag `<answer>` before
    Y; the tag is the same for each candidate.
    """

    basis: Basis = "logprobs"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def is_supported(self) -> bool:
        """Call the model once; return whether it returns the log-probabilities of a given text.

        Raises:
            ModelError: the model is not available.
        """
        try:
            await text_logprobs(
                self._model, after("How many legs has a cow?", "Four.", "And a hen?"), answer_of("Two.")
            )
        except ModelRefused:
            return False
        return True

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> Doubles:
        found = []
        for each in candidates:
            prompt = after(shortened(each.query), shortened(each.answer), shortened(pair.query))
            told = await text_logprobs(self._model, prompt, answer_of(pair.answer))
            found.append(1 - math.exp(sum(told) / len(told)))
        return np.array(found)


def after(example_question: str, example_answer: str, question: str) -> AnswerAfterExample:
    """Return the prompt that precedes the answer whose probability is measured."""
    return AnswerAfterExample(example_question=example_question, example_answer=example_answer, question=question)


def answer_of(text: str) -> str:
    """Return an answer as the text that continues the prompt `AnswerAfterExample`; the answer is shortened to
    MAX_ANSWER characters."""
    return f"\n<answer>\n{text[:MAX_ANSWER]}"


PERCENT = 100


class Helps(Frozen):
    """How likely the wanted answer is after each example, in percent."""

    likely: tuple[Annotated[int, Field(ge=0, le=PERCENT)], ...]


class DoesItHelp(Prompt[Helps]):
    """Ask how likely each of several examples makes the wanted answer."""

    role: ClassVar[str] = "labeller"

    question: str
    wanted: str
    examples: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        schema = super().reply_schema() or {}
        wanted = {**schema["properties"]["likely"], "minItems": len(self.examples), "maxItems": len(self.examples)}
        return {**schema, "properties": {"likely": wanted}}

    def parse(self, text: str) -> Helps:
        """Parse the reply; it must have one number for each example."""
        reply = super().parse(text)
        if len(reply.likely) != len(self.examples):
            raise ReplyInvalid(
                f"There are {len(self.examples)} examples, but {len(reply.likely)} numbers. Give one per example."
            )
        return reply


@rule(DoesItHelp)
def not_known(ask: DoesItHelp) -> Helps:
    """Return 50 percent for each example; without a model, no example is read."""
    return Helps(likely=(PERCENT // 2,) * len(ask.examples))


class Stated:
    """Label the candidates of a pair by numbers that a model states. Candidates are exemplars that may help as examples
    for the pair."""

    basis: Basis = "stated"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> Doubles:
        found = await ask(self._model, does_it_help(pair, candidates))
        return 1 - np.array(found.likely, np.float64) / PERCENT


def does_it_help(pair: Pair, candidates: Sequence[Pair]) -> DoesItHelp:
    """Return the prompt that asks how likely each candidate, as an example, makes the pair's answer."""
    shown = tuple(f"{shortened(each.query)}\n{shortened(each.answer)}" for each in candidates)
    return DoesItHelp(question=shortened(pair.query), wanted=shortened(pair.answer), examples=shown)


AMONG, WEIGHED = 60, 16
"""WEIGHED: number of candidates of each exemplar: other exemplars that are labelled by how much they help as examples.
AMONG: number of most relevant exemplars (by BM25) over which the candidates are evenly spread.

The WEIGHED most relevant exemplars would be too similar to one another. They would not show which properties, besides
relevance, make an exemplar helpful.
"""
CONCURRENT = 4
"""Maximum number of concurrent model calls for labelling."""


@dataclass(frozen=True)
class Labeller:
    """A model that labels how much each exemplar, as an example in the prompt, helps to answer the queries of others.

    Attributes:
        source: computes the labels, from log-probabilities or from numbers that the model states. `find_labeller`
            chooses one of the two.
    """

    model: Model
    source: Unlikely

    @property
    def key(self) -> tuple[str, str]:
        """The key of this labeller's labels in `PoolState.labels`."""
        return self.source.basis, self.model.name

    def labels(self, state: Callable[[], PoolState]) -> Labels:
        """Return this labeller's labels, which are read from `state()` at each use."""
        return Labels(self.source.basis, self.model.name, lambda id_: state().labels.get(self.key, {}).get(id_, {}))


@dataclass(frozen=True)
class LabelCost:
    """The estimated cost of labelling `pairs` exemplars, in model calls and tokens.

    To label an exemplar means to rate how much other exemplars help as its examples.
    """

    pairs: int
    calls: int
    tokens_in: int
    tokens_out: int


async def find_labeller(model: Model) -> Labeller:
    """Return a labeller that uses log-probabilities if the model supports them, else stated numbers.

    The model is called once to find out.

    Raises:
        ModelError: the model is not available.
    """
    likely = Likelihood(model)
    return Labeller(model, likely if await likely.is_supported() else Stated(model))


def known_labeller(model: Model, basis: str) -> Labeller:
    """Return a labeller with a known basis: `logprobs`, or else `stated`; the model is not called."""
    return Labeller(model, Likelihood(model) if basis == Likelihood.basis else Stated(model))


def unlabelled(pool: Pool, state: PoolState, labeller: Labeller) -> dict[str, list[str]]:
    """Return the ids of exemplars whose candidates are to be labelled, each with the ids of these candidates.

    These are the exemplars for which the labeller has no labels yet; {} if there are none.
    """
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
    """Estimate the cost of labelling which pairs help as examples for other pairs.

    `wanted`: the result of `unlabelled`: ids of pairs, each with the ids of its possible examples.
    """
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
    return estimate_tokens(exemplar.query) + estimate_tokens(exemplar.answer[:MAX_ANSWER])


async def label(
    pool: Pool, labeller: Labeller, wanted: dict[str, list[str]], tell: Callable[[int], None] = lambda _: None
) -> None:
    """Label the candidates of exemplars. Labels of an exemplar are written to the pool's log once they are known.

    Args:
        wanted: the result of `unlabelled`.
        tell: called with the number of exemplars whose candidates have been labelled so far.

    Raises:
        ModelError: the model failed; labels that were already written are kept.
    """
    state, done, room = pool.last_state, 0, asyncio.Semaphore(CONCURRENT)
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
        await together(*(one(id_, candidates) for id_, candidates in wanted.items()))
    finally:
        await pool.state()
