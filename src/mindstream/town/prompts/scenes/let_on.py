"""What would somebody let on of what they keep to themselves? Asked alone; the talk sees no more than that."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule


class Briefing(BaseModel):
    """What may be known in a talk of somebody who keeps something to themselves."""

    model_config = ConfigDict(frozen=True)

    lets_on: list[Annotated[str, Field(max_length=300)]] = Field(default_factory=list, max_length=3)
    bearing: str = Field("", max_length=100)
    plan: list[int] = Field(default_factory=list, max_length=20)


class LetOn(Prompt[Briefing]):
    """What does somebody let on to another?"""

    role: ClassVar[str] = "talker"

    who: str
    identity: str
    secrets: tuple[str, ...]
    memories: tuple[str, ...] = ()
    other: str
    relation: str
    when: str
    place: str
    near: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    """What lies before it today, numbered from 1: the talk sees of it what the reply names."""


@rule(LetOn)
def keep_it(ask: LetOn) -> Briefing:  # noqa: ARG001
    """Stand in where no model talks: it is kept."""
    return Briefing()
