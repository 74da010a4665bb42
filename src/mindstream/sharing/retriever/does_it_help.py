"""p(not Y | …) as a model states it: does this example help to answer?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.models.calibration import coin
from mindstream.models.decide import Question, decide
from mindstream.models.model import Model
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo
from mindstream.sharing.retriever.corpus import Pair
from mindstream.sharing.retriever.unlikely import Basis


class DoesItHelp(YesNo, Question):
    """Does an example help to give the wanted answer?"""

    example: str
    question: str
    wanted: str


@rule(DoesItHelp)
def not_known(ask: DoesItHelp) -> dict[str, float]:
    """Without a model nobody has read them."""
    return coin(ask.answers())


class Stated:
    """The probability of "no", of any model: by its first token where that is told, else by its word."""

    basis: Basis = "stated"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        return np.array([await self._one(pair, each) for each in candidates])

    async def _one(self, pair: Pair, candidate: Pair) -> float:
        example = f"{candidate.query}\n{candidate.answer}"
        likely = await decide(self._model, DoesItHelp(example=example, question=pair.query, wanted=pair.answer))
        return likely["no"]
