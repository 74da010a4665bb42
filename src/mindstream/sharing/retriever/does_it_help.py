"""p(not Y | …) as a model states it: does this example help to answer? All candidates of a pair in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from mindstream.errors import ReplyInvalid
from mindstream.models.ask import ask
from mindstream.models.model import JsonSchema, Model
from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.retriever.corpus import Pair
from mindstream.sharing.retriever.unlikely import Basis, shortened

MOST = 100


class Helps(BaseModel):
    """How likely the wanted answer is after each example, in percent."""

    model_config = ConfigDict(frozen=True)

    likely: tuple[Annotated[int, Field(ge=0, le=MOST)], ...]


class DoesItHelp(Prompt[Helps]):
    """How likely does each of some examples make the wanted answer?"""

    role: ClassVar[str] = "labeller"

    question: str
    wanted: str
    examples: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        schema = super().reply_schema() or {}
        wanted = {**schema["properties"]["likely"], "minItems": len(self.examples), "maxItems": len(self.examples)}
        return {**schema, "properties": {"likely": wanted}}

    def parse(self, text: str) -> Helps:
        """Read a number for each example."""
        reply = super().parse(text)
        if len(reply.likely) != len(self.examples):
            raise ReplyInvalid(
                f"There are {len(self.examples)} examples, and {len(reply.likely)} numbers. Give one each."
            )
        return reply


@rule(DoesItHelp)
def not_known(ask: DoesItHelp) -> Helps:
    """Without a model nobody has read them."""
    return Helps(likely=(MOST // 2,) * len(ask.examples))


class Stated:
    """What a model says in numbers."""

    basis: Basis = "stated"

    def __init__(self, model: Model) -> None:
        self._model = model

    async def p_not(self, pair: Pair, candidates: Sequence[Pair]) -> NDArray[np.float64]:
        found = await ask(self._model, does_it_help(pair, candidates))
        return 1 - np.array(found.likely, np.float64) / MOST


def does_it_help(pair: Pair, candidates: Sequence[Pair]) -> DoesItHelp:
    """Return what a model is asked of a pair's candidates."""
    shown = tuple(f"{shortened(each.query)}\n{shortened(each.answer)}" for each in candidates)
    return DoesItHelp(question=shortened(pair.query), wanted=shortened(pair.answer), examples=shown)
