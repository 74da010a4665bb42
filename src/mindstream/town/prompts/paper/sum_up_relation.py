"""How does somebody stand to another? (Park 2023, 4.3.2: the summary that stands before a dialogue)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule


class Standing(BaseModel):
    """How somebody stands to another."""

    model_config = ConfigDict(frozen=True)

    relation: str = Field(min_length=1, max_length=600)


class SumUpRelation(Prompt[Standing]):
    """How does this person stand to the other?"""

    role: ClassVar[str] = "reasoner"

    who: str
    other: str
    relation: str = ""
    memories: tuple[str, ...]


@rule(SumUpRelation)
def stand_as_told(ask: SumUpRelation) -> Standing:
    """Stand in for a model: as what one knows the other, or the first thing that comes to mind."""
    return Standing(relation=(ask.relation or ask.memories[0])[:600])
