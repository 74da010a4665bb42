"""What will somebody do with the rest of a day that went otherwise than planned?"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.plan_day import Item, Place


class RestOfDay(BaseModel):
    """What is left of a day."""

    model_config = ConfigDict(frozen=True)

    items: list[Item] = Field(
        default_factory=list, max_length=16, description="From now to going to bed, in order; empty: as planned."
    )


class PlanRest(Prompt[RestOfDay]):
    """What will somebody do from now on?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    when: str
    done: tuple[str, ...] = ()
    """What happened last, the oldest first."""
    planned: tuple[str, ...] = ()
    """What was planned from now on, as `HH:MM what`."""
    places: tuple[Place, ...]
    """Where one can go, numbered from 1."""


@rule(PlanRest)
def keep_the_plan(ask: PlanRest) -> RestOfDay:  # noqa: ARG001
    """Stand in for a model: what was planned stays."""
    return RestOfDay()
