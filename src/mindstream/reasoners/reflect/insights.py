"""What do these memories show when they are taken together? (Park 2023, 4.2), and the rule: what holds between them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.reflect.memories import Memory
from mindstream.reasoners.reflect.recurring import find_recurring
from mindstream.reasoners.reflect.relations import find_relations

LONGEST, MOST = 500, 100
"""So many characters an insight may have, and so many memories may support it."""
FEW = 2
"""So many insights a rule gives for a question."""


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
    records: tuple[Memory, ...] = ()
    """The memories as records, and what earlier reflections said: for the rule."""
    known: tuple[str, ...] = ()


@rule(Insights)
def relate_memories(ask: Insights) -> Found:
    """Say what holds between the memories that the question is about, and was not said before."""
    found: list[Insight] = []
    asked, said = ask.question.casefold(), "\n".join(ask.known)
    for relation in (*find_relations(ask.who, ask.records), *find_recurring(ask.who, ask.records)):
        is_known = any(each in said for each in (relation.text, *relation.signs))
        if is_known or len(relation.text) > LONGEST or not any(each.casefold() in asked for each in relation.about):
            continue
        found.append(Insight(text=relation.text, because=list(relation.because[:MOST])))
        said = f"{said}\n{relation.text}"
    return Found(insights=found[: min(ask.count, FEW)])
