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
        tasks, now, because: the ledger, the time and what woke it, for rules; a model reads them in the turn's words.
    """

    role: ClassVar[str] = "M2"

    goal: str
    orders: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    language: str = "en"
    tasks: tuple[Task, ...] = ()
    now: Moment = 0.0
    because: str = ""
