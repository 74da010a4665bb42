"""How shall the task be solved? The whole plan is written before any tool runs (Xu 2023, 3: the Planner)."""

from __future__ import annotations

import json
from typing import ClassVar

from mindstream.errors import ToolError
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import Prompt, rule
from mindstream.tools.algebra.formula import CONSTANTS, Apply, Name, Node, read_formulas

LONGEST = 600
"""So much is said of a tool, in characters."""
NO_LIMIT = 100_000
"""A greater maximum keeps nobody from anything."""
SIGNS = str.maketrans(dict.fromkeys("[]［］【】#＃", " "))
"""What means something in a plan's own form."""


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


@rule(MakePlan)
def calculate_or_look_up(ask: MakePlan) -> str:
    """Stand in: a formula is calculated, and anything else looked up as it stands, by the first tool for a `query`."""
    takes = dict(line.split("[", 1) for line in ask.tools if "[" in line)
    if _is_formula(ask.task):
        lacks = "" if "calculator" in takes else "That is a formula, and the tool calculator is not there."
        return lacks or f"#E1 = calculator[{'; '.join(ask.task.splitlines())}]"
    search = next((name for name, arguments in takes.items() if arguments.startswith("query")), "")
    if not search:
        return (
            "Without a model a formula is calculated, as 17.5% of 2480 + 12, and the best passages are quoted where a"
            " tool searches (documents:DIR, recall, wikipedia or web)."
        )
    query = json.dumps({"query": " ".join(ask.task.translate(SIGNS).split())}, ensure_ascii=False)
    return f"Plan: Look it up.\n#E1 = {search}[{query}]"


def _is_formula(task: str) -> bool:
    """Tell whether a task is something to work out, and no word stands in it but an equation's unknowns."""
    try:
        formulas = read_formulas(task)
    except ToolError:
        return False
    sides = [side for formula in formulas for side in formula]
    is_equation = len(sides) > len(formulas)
    return is_equation or (any(isinstance(side, Apply) for side in sides) and not any(map(_has_word, sides)))


def _has_word(node: Node) -> bool:
    if isinstance(node, Name):
        return node.name not in CONSTANTS
    return isinstance(node, Apply) and any(map(_has_word, node.to))
