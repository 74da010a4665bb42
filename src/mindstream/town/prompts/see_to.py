"""What does somebody do about what it has just seen, before the plan goes on?"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.break_down import Task


class Remedy(BaseModel):
    """What is done about it.

    Attributes:
        waits: it does not mend anything; it waits, or leaves it to others.
        resumes: afterwards it takes up what it was about to do; False: this is done in its place.
    """

    model_config = ConfigDict(frozen=True)

    tasks: list[Task] = Field(min_length=1, max_length=8)
    waits: bool = False
    resumes: bool = True


class SeeTo(Prompt[Remedy]):
    """What does somebody do about a thing that is not as it should be?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    sees: str
    """Such as `the shower is leaking`."""
    danger: bool = False
    """It is a danger."""
    taken: bool = False
    """Another is at it, and there is room for no more."""
    doing: str
    """What it was about to do."""
    when: str
    at: int
    """The number of the thing that it sees."""
    around: tuple[str, ...]
    """Things that it knows, numbered from 1."""
    sells: tuple[int, ...] = ()
    """The numbers of those where one can buy something now."""
    serves: tuple[int, ...] = ()
    """The numbers of those where one can eat out now."""
    aside: int = 0
    """The number of one in another room of the same house; 0: there is none."""
    in_charge: bool = True
    """It lives or works there."""
    others: tuple[str, ...] = ()
    """Who sees to it already."""
    present: tuple[str, ...] = ()
    """Who else is there."""
    waited: int = 0
    """So many minutes of the last hour it has waited for it."""
    memories: tuple[str, ...] = ()


PATIENCE = 15
"""So many minutes somebody waits for what is in use."""


@rule(SeeTo)
def see_to_by_charge(ask: SeeTo) -> Remedy:
    """Stand in for a model: end a danger, wait for what is in use, mend what is one's own, tell of the rest."""
    if ask.danger:
        return Remedy(tasks=[Task(minutes=3, what=f"ending a danger: {ask.sees}"[:200], place=ask.at, mends=True)])
    if ask.taken or ask.others:
        if ask.waited >= PATIENCE:
            return Remedy(tasks=[Task(minutes=20, what="doing without")], waits=True, resumes=False)
        return Remedy(tasks=[Task(minutes=5, what=f"waiting: {ask.sees}"[:200], place=ask.aside)], waits=True)
    if not ask.in_charge:
        return Remedy(tasks=[Task(minutes=5, what=f"telling who looks after it: {ask.sees}"[:200])], waits=True)
    return Remedy(
        tasks=[Task(minutes=20, what=f"mending what is not in order: {ask.sees}"[:200], place=ask.at, mends=True)]
    )
