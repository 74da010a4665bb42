"""Which high-level questions can these memories answer? (Park 2023, 4.2), and the rule that asks about what recurs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.reflect.recurring import recurring


class Questions(BaseModel):
    """High-level questions, the most salient first."""

    model_config = ConfigDict(frozen=True)

    questions: list[Annotated[str, Field(max_length=1_000)]] = Field(max_length=20)


class SalientQuestions(Prompt[Questions]):
    """The most salient high-level questions that these memories can answer."""

    who: str
    memories: tuple[str, ...]
    count: int = 3


@rule(SalientQuestions)
def recurring_questions(ask: SalientQuestions) -> Questions:
    """Ask about the words that most memories share."""
    topics = recurring(ask.memories, besides=ask.who)[: ask.count]
    return Questions(questions=[f"What about {topic.word} matters to {ask.who}?" for topic in topics])
