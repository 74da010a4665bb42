"""How much does a memory matter? From 1, mundane, to 10, what changes a life (Park 2023, 4.1)."""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.errors import ReplyInvalid
from mindstream.models.model import JsonSchema
from mindstream.models.prompt import Prompt, rule


class Importance(BaseModel):
    """A rating for each memory, in their order."""

    model_config = ConfigDict(frozen=True)

    ratings: list[Annotated[int, Field(ge=1, le=10)]] = Field(max_length=1_000)


class RateImportance(Prompt[Importance]):
    """How much do these memories matter to who has them?"""

    role: ClassVar[str] = "importance"

    who: str
    memories: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        """Return a schema of as many ratings as there are memories."""
        schema = deepcopy(super().reply_schema() or {})
        schema["properties"]["ratings"] |= dict.fromkeys(("minItems", "maxItems"), len(self.memories))
        return schema

    def parse(self, text: str) -> Importance:
        reply = super().parse(text)
        if len(reply.ratings) != len(self.memories):
            raise ReplyInvalid(
                f"There are {len(self.memories)} memories and {len(reply.ratings)} ratings: rate each once."
            )
        return reply


MIDDLE = 4
"""Of what nobody has weighed."""


@rule(RateImportance)
def rate_alike(ask: RateImportance) -> Importance:
    """Stand in for a model: all the same, for words are not weighed without one; who knows better says so itself."""
    return Importance(ratings=[MIDDLE] * len(ask.memories))
