"""Which high-level questions can these memories answer? (Park 2023, 4.2). Without a model nobody asks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt


class Questions(BaseModel):
    """High-level questions, the most salient first."""

    model_config = ConfigDict(frozen=True)

    questions: list[Annotated[str, Field(max_length=1_000)]] = Field(max_length=20)


class SalientQuestions(Prompt[Questions]):
    """The most salient high-level questions that these memories can answer."""

    who: str
    memories: tuple[str, ...]
    count: int = 3
