"""What do these memories show when they are taken together? (Park 2023, 4.2). Without a model nobody says."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt

LONGEST, MOST = 500, 100
"""So many characters an insight may have, and so many memories may support it."""


class Insight(BaseModel):
    """One insight."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=LONGEST, description="One sentence that stands on its own.")
    because: list[int] = Field(max_length=MOST, description="The numbers of the memories that support it.")


class Found(BaseModel):
    """The insights, the best first."""

    model_config = ConfigDict(frozen=True)

    insights: list[Insight] = Field(max_length=20)


class Insights(Prompt[Found]):
    """What follows from these memories, for a question?"""

    who: str
    question: str
    memories: tuple[str, ...]
    count: int = 5
