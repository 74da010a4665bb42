"""What do these memories show when they are taken together? (Park 2023, 4.2), and the rule that groups what recurs."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.reflect.recurring import RecurringWord, recurring, stems

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


@rule(Insights)
def recurring_insights(ask: Insights) -> Found:
    """Say what recurs in the memories that the question is about, and what goes together with it."""
    topics = recurring(ask.memories, besides=ask.who)
    asked = [topic for topic in topics if topic.stem in stems(ask.question)]
    found = [
        Insight(text=f"{_upper(topic.word)} keeps coming up with {ask.who}."[:LONGEST], because=topic.within[:MOST])
        for topic in asked
    ]
    for topic in asked:
        partner = max(
            (other for other in topics if other is not topic), key=lambda other: len(_both(topic, other)), default=None
        )
        if partner and len(both := _both(topic, partner)) > 1:
            text = f"With {ask.who}, {topic.word} and {partner.word} go together."
            found.append(Insight(text=text[:LONGEST], because=both[:MOST]))
    return Found(insights=found[: ask.count])


def _both(one: RecurringWord, other: RecurringWord) -> list[int]:
    return sorted(set(one.within) & set(other.within))


def _upper(word: str) -> str:
    return word[:1].upper() + word[1:]
