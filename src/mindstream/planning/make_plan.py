"""How shall the task be solved? The whole plan is written before any tool runs (Xu 2023, 3: the Planner)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt

LONGEST = 300
"""So much is said of a tool, in characters."""


class MakePlan(Prompt[str]):
    """Write the plan, in the form `Plan: …` and `#E1 = Tool[input]`.

    `exemplars`: tasks with their plans, in the same form. `known`: what is known already that the plan can rest on.
    """

    role: ClassVar[str] = "planner"
    reply_tokens: ClassVar[int] = 2_000

    task: str
    tools: tuple[str, ...]
    """A line each, by `describe`."""
    exemplars: tuple[str, ...] = ()
    known: str = ""


def describe(spec: ToolSpec) -> str:
    """Say in a line how a tool is called and what it does: `Search[query, count?]: …`."""
    arguments = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", [])
    names = [name if name in required else f"{name}?" for name in arguments]
    words = " ".join(spec.description.split("\n\n")[0].split())
    shown = names[0].rstrip("?") if len(names) == 1 else ", ".join(f"{name}=…" for name in names)
    return f"{spec.name}[{shown}]: {words if len(words) <= LONGEST else words[: LONGEST - 1] + '…'}"
