"""What is to be done next, or what is the answer? (Yao 2023: thought, action, observation, again and again.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mindstream.models.model import Call, Message
from mindstream.models.prompt import Prompt, rule


class ActOnTask(Prompt[str]):
    """Call tools, or answer. `exemplars`: tasks with their thoughts, actions and observations."""

    role: ClassVar[str] = "worker"

    task: str
    exemplars: tuple[str, ...] = ()


@rule(ActOnTask)
def act_by_plan(ask: ActOnTask, turns: Sequence[Message]) -> str | list[Call]:  # noqa: ARG001
    """Say that rules cannot: they plan everything at once."""
    return "Without a model there is nobody to act step by step; rules can plan: --how rewoo."
