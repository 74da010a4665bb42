"""How shall the task be solved? The whole plan is written before any tool runs (Xu 2023, 3: the Planner)."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt

LONGEST = 300
"""So much is said of a tool, in characters."""
NO_LIMIT = 100_000
"""A greater maximum keeps nobody from anything."""


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
    """Say in a line how a tool is called and what it does: `Search[query=…, count?=3 (max 10)]: …`."""
    required = spec.parameters.get("required", [])
    given = {name: _bounds(schema) for name, schema in spec.parameters.get("properties", {}).items()}
    words = " ".join(spec.description.split("\n\n")[0].split())
    names = [f"{name}{'' if name in required else '?'}={bounds or '…'}" for name, bounds in given.items()]
    shown = next(iter(given)) if len(given) == 1 and not any(given.values()) else ", ".join(names)
    return f"{spec.name}[{shown}]: {words if len(words) <= LONGEST else words[: LONGEST - 1] + '…'}"


def _bounds(schema: object) -> str:
    """Say which number an argument has where it is not given, and the greatest that it may have."""
    schemas = [schema, *(schema.get("anyOf") or ())] if isinstance(schema, dict) else []
    default, most = (
        next((each[key] for each in schemas if isinstance(each, dict) and type(each.get(key)) in (int, float)), None)
        for key in ("default", "maximum")
    )
    limit = f" (max {most})" if most is not None and most <= NO_LIMIT else ""
    return f"{'…' if default is None else default}{limit}" if limit or default is not None else ""
