"""M2: plan in a loop and reach the goal while staying alive (the M0, M1, M2 system)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.clock import Moment
from mindstream.life.ledger import Task
from mindstream.models.prompt import Prompt


class Live(Prompt[str]):
    """Do what is to be done next: call tools, or end the turn with a word on what was done.

    Attributes:
        earlier: what became of the turns before those that follow.
        tasks, now, because: the ledger and the time as the turn began, and what woke it, for rules; a model reads them
            in the turn's words.
        news: what others did, as it was told in this turn, for rules.
        begins: where among the messages this turn begins, for rules.
    """

    role: ClassVar[str] = "M2"

    goal: str
    orders: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    language: str = "en"
    tasks: tuple[Task, ...] = ()
    now: Moment = 0.0
    because: str = ""
    news: tuple[str, ...] = ()
    begins: int = 0
