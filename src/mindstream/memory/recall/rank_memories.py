"""Put memories into the order in which they answer a question: the second stage of recall (the M0, M1, M2 system)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from mindstream.models.prompt import Prompt, rule


class Ranked(BaseModel):
    """The numbers of the memories that answer, the best first."""

    model_config = ConfigDict(frozen=True)

    best: list[int]


class RankMemories(Prompt[Ranked]):
    """Which of these memories answer the question, the best first?"""

    role: ClassVar[str] = "reranker"

    query: str
    memories: tuple[str, ...]


@rule(RankMemories)
def leave_order(ask: RankMemories) -> Ranked:
    """Leave them as they are."""
    return Ranked(best=list(range(1, len(ask.memories) + 1)))
