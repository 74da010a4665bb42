"""p(not Y | …) from log-probabilities: how likely the answer's own tokens are after an example (Rubin 2022)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mindstream.errors import ModelRefused
from mindstream.models.likelihood import text_logprobs
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.retriever.corpus import Pair
from mindstream.sharing.retriever.unlikely import Basis, shortened

LONGEST_ANSWER = 400
"""So many characters of an answer are weighed at most."""


class AnswerAfterExample(Prompt[str]):
    """Answer a question after an example of how another one was: the words before an answer that is weighed."""

    role: ClassVar[str] = "labeller"
    reply_tokens: ClassVar[int] = 1

    example_question: str
    example_answer: str
    question: str


@rule(AnswerAfterExample)
def same_again(ask: AnswerAfterExample) -> str:
    """Without a model nobody finds anything likely; the example's answer is said again."""
    return ask.example_answer


class Likelihood:
    """1 - the geometric mean of the probabilities of Y's tokens after "x, y, X".

    The tag before Y is weighed with it, and is the same after each candidate.
    """

    basis: Basis = "logprobs"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def is_told(self) -> bool:
        """Tell whether the model says how likely a given text is; it is asked once for that.

        Raises:
            ModelError: it cannot be had.
        """
        try:
            await text_logprobs(
                self._model, after("How many legs has a cow?", "Four.", "And a hen?"), answer_of("Two.")
            )
        except ModelRefused:
            return False
        return True

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        found = []
        for each in candidates:
            prompt = after(shortened(each.query), shortened(each.answer), shortened(pair.query))
            told = await text_logprobs(self._model, prompt, answer_of(pair.answer))
            found.append(1 - math.exp(sum(told) / len(told)))
        return np.array(found)


def after(example_question: str, example_answer: str, question: str) -> AnswerAfterExample:
    """Return the words after which an answer is weighed."""
    return AnswerAfterExample(example_question=example_question, example_answer=example_answer, question=question)


def answer_of(text: str) -> str:
    """Return an answer as it would stand after those words."""
    return f"\n<answer>\n{text[:LONGEST_ANSWER]}"
