"""What does somebody do minute by minute? (Park 2023, 4.3: chunks of 5 to 15 minutes)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream import chance
from mindstream.models.prompt import Prompt, rule
from mindstream.town.events import MENDED


class Task(BaseModel):
    """A task of some minutes."""

    model_config = ConfigDict(frozen=True)

    minutes: int = Field(ge=1, le=240)
    what: str = Field(min_length=1, max_length=200)
    place: int = Field(0, ge=0, le=10_000, description="The number of the thing it is done at; 0: none.")
    leaves: str = Field("", max_length=80, description="The condition in which it leaves that thing; mostly empty.")
    danger: bool = Field(False, description="That condition is a danger to people, as a fire is.")
    mends: bool = Field(False, description="With it that thing is as it should be again.")

    @property
    def condition(self) -> str:
        """In which condition it leaves that thing, as acts keep it: "" as it was, MENDED as it should be."""
        return MENDED if self.mends else self.leaves.strip()


class Tasks(BaseModel):
    """Tasks, one after the other."""

    model_config = ConfigDict(frozen=True)

    tasks: list[Task] = Field(min_length=1, max_length=60)


class BreakDown(Prompt[Tasks]):
    """What does somebody do in this part of the day, in tasks of 5 to 15 minutes?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    what: str
    where: str = ""
    """The place, in words."""
    is_home: bool = False
    """The place is the person's home."""
    when: str
    already: int = 0
    """So many minutes of it are done."""
    minutes: int
    around: tuple[str, ...]
    """Things that it can be done at, numbered from 1."""
    here: tuple[int, ...] = ()
    """The numbers of those at the place itself."""
    day: tuple[str, ...] = ()


A_TASK = 15


@rule(BreakDown)
def go_round(ask: BreakDown) -> Tasks:
    """Stand in for a model: what the plan says, a quarter of an hour each at a thing of the place, as it is drawn.

    At home, where a day says no more than that, at none: nobody has breakfast in the shower.
    """
    tasks, left = list[Task](), ask.minutes
    things = () if ask.is_home and len(ask.here) > 1 else ask.here
    while left > 0:
        minutes = A_TASK if len(things) > 1 and left >= 2 * A_TASK else left
        at = chance.pick(things, ask.who, ask.what, ask.when, left) if things else 0
        tasks.append(Task(minutes=min(minutes, 240), what=ask.what, place=at))
        left -= tasks[-1].minutes
    return Tasks(tasks=tasks[:60])
