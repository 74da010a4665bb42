"""Formats each event of the log as one line of text."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from mindstream.cli.screens.life_lines import describe_life
from mindstream.cli.shell.output import short
from mindstream.coach.belief.plan import CoachingPlan, PlanStep, State
from mindstream.log.events import (
    BeliefChanged,
    Corrected,
    Event,
    Failed,
    ModelCalled,
    Observed,
    Opened,
    PlanChanged,
    RecallMade,
    Redacted,
    Remembered,
    Thought,
    ToolCalled,
)
from mindstream.text.words import count_of

QUIET = {
    "alarmed",
    "decided",
    "follow_up",
    "heard",
    "judged",
    "model_called",
    "opened",
    "piece",
    "reading",
    "recalled",
    "reflected",
    "said",
    "slept",
    "thought",
    "waiting",
}
"""Kinds of events without a generic line: they have a display of their own, or are shown only in some cases."""
STATES: dict[State, str] = {"now": "→", "going_on": "↻", "later": "·", "done": "✓", "dropped": "✗", "not_needed": "–"}


def aside(event: Event, *, verbose: bool = True) -> str:
    """Return a line about an event, or "" if the event is not shown.

    `verbose`: also show thoughts, model calls, tool results and openings of sessions.
    """
    match event:
        case BeliefChanged():
            return f"belief v{event.version}: {describe_patch(event.patch)}"
        case Redacted():
            return f"redacted before it was stored: {', '.join(f'{n} {kind}' for kind, n in event.kinds.items())}"
        case PlanChanged():
            return f"plan v{event.version}: {short(event.changed or 'made')}"
        case ToolCalled():
            return f"tool {event.tool}: {describe_arguments(event.arguments)}"
        case Failed():
            return (
                f"{event.where}: {short(event.text, 600)}" if event.where not in event.text else short(event.text, 600)
            )
        case Thought() if event.text == "cancelled":
            return f"{event.slot}: cancelled"
        case Remembered():
            return "remembered " + ", ".join(f"{n} {kind}{'s' * (n != 1)}" for kind, n in event.kinds.items())
        case Corrected():
            return f"corrected: {event.old} to {event.new}" if event.new else f"withdrawn: {event.old}"
        case RecallMade() if event.forgotten:
            gone = count_of(len(event.forgotten), "record")
            return (
                f"{gone} archived, because this recall found but did not return them: no recall finds them now;"
                " `memory purge` deletes them"
            )
        case Opened() | ModelCalled() | Observed() | Thought() if not verbose:
            return ""
        case Thought() if event.text:
            return f"{event.slot} thought: {short(event.text)}"
        case Observed():
            return f"{event.tool} {'failed' if event.failed else 'returned'}: {short(event.text)}"
        case ModelCalled() if event.model != "rules" and not event.error:  # a Failed event reports a failed call
            return describe_call(event)
        case Opened():
            return f"session {event.session}, pack {event.pack}"
    return "" if event.kind in QUIET else describe_life(event) or _named(event)


def _named(event: Event) -> str:
    """Return a line about an event without a line of its own: its kind and its fields."""
    if event.kind == "set_aside":
        slot, reason, attempts = (getattr(event, name, "") for name in ("slot", "reason", "attempts"))
        return f"{slot}: given up after {attempts} attempts: {short(str(reason), 300)}"
    kind = str(getattr(event, "named", "")) or event.kind
    return f"{kind.replace('_', ' ')}: {brief(event)}"


def brief(event: Event) -> str:
    """Return an event's text, or its fields if it has no text."""
    values = event.model_dump(mode="json")
    return short(str(values.get("text") or describe_patch({name: value for name, value in values.items() if value})))


def describe_patch(patch: Mapping[str, JsonValue]) -> str:
    """Return the fields of a belief on one line."""
    parts = []
    for name, value in patch.items():
        held = ", ".join(map(str, value)) if isinstance(value, list) else "nothing" if value in (None, "") else value
        parts.append(f"{name.replace('_', ' ')}: {short(str(held or 'nothing'))}")
    return "; ".join(parts)


def describe_arguments(text: str, most: int = 160, between: str = ", ") -> str:
    """Return the arguments of a call on one line, without JSON syntax."""
    try:
        values = json.loads(text or "{}").values()
    except (ValueError, AttributeError, RecursionError):
        return short(text, most)
    return short(between.join(str(value) for value in values if value not in ("", None, [])), most)


def describe_call(call: ModelCalled) -> str:
    cost = f", ${call.cost_usd:.4f}" if call.cost_usd else ""
    tokens = f", {call.input_tokens} + {call.output_tokens} tokens" if call.input_tokens else ""
    mended = ", repaired" if call.mended else ""
    return f"{call.model} {call.prompt}: {call.error or f'{call.seconds:.1f} s'}{tokens}{cost}{mended}"


def plan_told(plan: CoachingPlan) -> str:
    """Return a coaching plan, one step a line; the current step is followed by its reason and resources."""
    return "\n".join(line for step in plan.steps for line in _step(step))


def _step(step: PlanStep) -> list[str]:
    lines = [f"{STATES[step.state]} {step.title}" + (f": {step.do}" if step.do else "")]
    if step.state == "now" and step.why:
        lines.append(f"    why: {step.why}")
    if step.state == "now":
        for resource in step.resources:
            publisher = f", {resource.publisher}" if resource.publisher else ""
            link = f", {resource.link}" if resource.link else ""
            lines.append(f"    {resource.title}{publisher}{link}" + (f" ({resource.why})" if resource.why else ""))
    return lines
