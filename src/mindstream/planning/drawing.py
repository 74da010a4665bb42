"""A plan drawn, as a Mermaid flowchart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindstream.planning.arguments import find_references

if TYPE_CHECKING:
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
