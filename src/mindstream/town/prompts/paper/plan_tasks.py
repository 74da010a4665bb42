"""What does somebody do in the minutes that begin now? (Park 2023, 4.3: chunks of 5 to 15 minutes)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mindstream import chance
from mindstream.models.prompt import Prompt, rule
from mindstream.town.events import MENDED
from mindstream.town.prompts.where import Where

SHORTEST, LONGEST = 5, 15
"""Minutes of a task."""


def _within(given: Any) -> Any:
    """Take what is shorter or longer for the nearest that a task may last; what follows fills the time."""
    return min(max(int(given), SHORTEST), LONGEST) if isinstance(given, int | float) and given > 0 else given


class PaperTask(BaseModel):
    """A task of 5 to 15 minutes."""

    model_config = ConfigDict(frozen=True)

    minutes: Annotated[int, Field(ge=SHORTEST, le=LONGEST), BeforeValidator(_within)]
    what: str = Field(min_length=1, max_length=200)
    thing: Where = []
    state: str = Field("", max_length=60)
    leaves: str = Field("", max_length=80)
    danger: bool = False
    mends: bool = False

    @property
    def condition(self) -> str:
        """In which condition it leaves that thing, as acts keep it: "" as it was, MENDED as it should be."""
        return MENDED if self.mends else self.leaves.strip()


class PaperTasks(BaseModel):
    """Tasks, one after the other."""

    model_config = ConfigDict(frozen=True)

    tasks: list[PaperTask] = Field(min_length=1, max_length=30)


class PlanTasks(Prompt[PaperTasks]):
    """What does somebody do in the minutes that begin now?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    when: str
    minutes: int
    things: tuple[str, ...]
    """The things of the house that it knows, as paths, numbered from 1; those of the place itself first."""
    here: int = 0
    """So many of them are at the place itself."""
    plan: tuple[str, ...] = ()
    """This part of the day, hour by hour."""
    done: tuple[str, ...] = ()
    """The last of what it has done today."""
    lately: tuple[str, ...] = ()
    """The newest of what it remembers."""
    present: tuple[str, ...] = ()
    """Who is in sight, and doing what."""
    surroundings: str = ""
    """Who lives there, weather and light."""


@rule(PlanTasks)
def go_round_in_tasks(ask: PlanTasks) -> PaperTasks:
    """Stand in for a model: what the plan says, a quarter of an hour each, at a thing of the place."""
    tasks = []
    for left in range(ask.minutes, 0, -LONGEST):
        at = chance.pick(range(1, ask.here + 1), ask.who, ask.what, ask.when, left) if ask.here else 0
        tasks.append(PaperTask(minutes=min(left, LONGEST), what=ask.what, thing=[str(at)] if at else []))
    return PaperTasks(tasks=tasks[:30])
