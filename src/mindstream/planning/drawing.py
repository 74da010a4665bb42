"""A plan drawn: as a Mermaid flowchart, or as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import JsonValue

from mindstream.planning.arguments import fill, find_references

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mindstream.planning.plan import Plan

LONGEST = 80
ESCAPES = str.maketrans({'"': "#quot;", "#": "#35;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\n": " "})


def draw(plan: Plan) -> str:
    """Return a flowchart: an arrow where a step takes what another found, a dotted one where it only waits for it."""
    lines = ["flowchart TD"]
    for step in plan.steps:
        why = f"<br/>{_escape(step.why)}" if step.why.strip() else ""
        lines.append(f'    {step.id}["{step.id} · {_escape(step.tool)}{why}"]')
    for step in plan.steps:
        taken = {reference.step for reference in find_references(step.arguments)}
        lines += [f"    {need} {'-->' if need in taken else '-.->'} {step.id}" for need in step.needs]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return shown.translate(ESCAPES)


def outline(plan: Plan) -> str:
    """Return a plan as lines: each step is indented as deep as the chain of steps that it waits for is long."""
    depth: dict[str, int] = {}
    lines = []
    for step in plan.steps:
        depth[step.id] = 1 + max((depth[need] for need in step.needs if need in depth), default=-1)
        after = f"  ← {', '.join(step.needs)}" if step.needs else ""
        indent = "   " * depth[step.id]
        lines.append(f"{indent}{step.id} {step.tool}[{describe_arguments(step.arguments)}]{after}")
        if step.why.strip():
            lines.append(f"{indent}   {' '.join(step.why.split())}")
    return "\n".join(lines)


def table_rows(plan: Plan) -> list[tuple[str, str, str, str, str]]:
    """Return of each step its id, tool, arguments, what it waits for, and why."""
    return [
        (step.id, step.tool, describe_arguments(step.arguments), ", ".join(step.needs), step.why) for step in plan.steps
    ]


def describe_arguments(arguments: Mapping[str, JsonValue]) -> str:
    """Return arguments in a line for people, references as `#E1`; their names only where there are several."""
    shown = {name: fill(value, str) for name, value in arguments.items()}
    if len(shown) == 1:
        return " ".join(str(next(iter(shown.values()))).split())
    return " ".join(", ".join(f"{name}={value}" for name, value in shown.items()).split())
