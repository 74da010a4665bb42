"""M2 looks for work where its ledger is empty: its goal, and what it remembers (the M0, M1, M2 system)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule

MOST = 3


class WorkFound(BaseModel):
    """What there is to do, or why there is nothing.

    Attributes:
        until: when to look again, where there is nothing.
    """

    model_config = ConfigDict(frozen=True)

    because: str
    tasks: list[str] = Field(default_factory=list)
    until: str = ""


class ProposeWork(Prompt[WorkFound]):
    """What is worth doing for the goal now, of all that is known?

    Attributes:
        memories: what R gives for the goal.
        over: tasks that are over, with what came of them; waiting: those whose time has not come.
        room: what may still be spent today.
    """

    role: ClassVar[str] = "M2"

    goal: str
    now: str
    orders: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    room: str = ""
    language: str = "en"


@rule(ProposeWork)
def propose_nothing(ask: ProposeWork) -> WorkFound:
    """Rest: to see what is worth doing wants a model."""
    return WorkFound(
        because="没有配置模型，看不出还有什么值得做。" if ask.language == "zh" else "no model looks for work"
    )
