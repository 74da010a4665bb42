"""What is to be done next, or what is the answer? (Yao 2023: thought, action, observation, again and again.)"""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt


class ActOnTask(Prompt[str]):
    """Call tools, or answer; nobody stands in. `exemplars`: tasks with their thoughts, actions and observations."""

    role: ClassVar[str] = "worker"

    task: str
    exemplars: tuple[str, ...] = ()
