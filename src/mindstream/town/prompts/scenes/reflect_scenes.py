"""What does somebody think at the end of a day, and what are its days about now? (Park 2023, 4.2; in one reply.)"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule


class SceneInsight(BaseModel):
    """One insight."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=400)
    because: list[int] = Field(max_length=20, description="The numbers of the memories on which it rests.")
    weight: int = Field(5, ge=1, le=10)
    secret: bool = False


class Evening(BaseModel):
    """What somebody thinks, and what its days are about."""

    model_config = ConfigDict(frozen=True)

    insights: list[SceneInsight] = Field(default_factory=list, max_length=5)
    currently: str = Field("", max_length=600)


class ReflectScenes(Prompt[Evening]):
    """What follows from a day?"""

    who: str
    identity: str
    memories: tuple[str, ...]
    when: str


@rule(ReflectScenes)
def think_nothing(ask: ReflectScenes) -> Evening:  # noqa: ARG001
    """Stand in where no model reasons: nobody reflects."""
    return Evening()
