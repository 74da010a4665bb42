"""Who is somebody by now, drawn from memory? (Park 2023, 4.1 and appendix A: the agent summary description)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule


class Identity(BaseModel):
    """Who somebody is."""

    model_config = ConfigDict(frozen=True)

    summary: str = Field(min_length=1, max_length=1_200)


class RenewIdentity(Prompt[Identity]):
    """Who is this person by now?"""

    role: ClassVar[str] = "reasoner"

    who: str
    person: str
    """What does not change: name, age, traits."""
    before: str = ""
    """The summary until now."""
    memories: tuple[str, ...] = ()
    """What comes to mind of its core disposition, its occupation, and its feeling about recent progress."""
    date: str


@rule(RenewIdentity)
def stay_the_same(ask: RenewIdentity) -> Identity:
    """Stand in for a model: who one was."""
    return Identity(summary=(ask.before or ask.person)[:1_200])
