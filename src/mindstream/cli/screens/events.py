"""Formats each event of the log as one line of text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from pydantic import JsonValue

from mindstream.cli.shell.output import short
from mindstream.clock import Moment, format_spoken
from mindstream.coach.belief.plan import CoachingPlan, PlanStep, State
from mindstream.guidance import next_step
from mindstream.life.events import (
    Answered,
    Asked,
    Beat,
    Commanded,
    Folded,
    LifeBegan,
    Noticed,
    PermissionAsked,
    PermissionGiven,
    Proposed,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import Task
from mindstream.life.schedule import known_orders
from mindstream.life.state import LifeState
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
"""Kinds of events that are not shown as a generic line (kind and fields). Other code shows some of these events."""
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
    """Return the line for an event that `aside` has no format for: the event's kind, and its text or fields. For
    dead-lettered work (`set_aside`), the line has the reason."""
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
    """Return the values of a call's arguments on one line of at most `most` characters, without JSON syntax."""
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


WORTH = 0.5
"""Minimum estimated probability, 0 to 1, that a turn is worth its price; below it, a due standing order is skipped."""
RESULT_OF_TASK = 600
"""Maximum characters shown of the result of a task when it ends."""
NOT_LIVED = "no process runs this life now; `mindstream live` continues it"


def describe_life(event: Event) -> str:
    """Return a line about an event of a life; "" for all other events."""
    match event:
        case LifeBegan():
            return f"goal: {event.goal}" + (f"; orders: {'; '.join(event.orders)}" if event.orders else "")
        case TurnBegan():
            return f"turn {event.turn}, because of: {event.because}"
        case Asked():
            return f"{event.role} is asked ({event.id}), about {event.tokens:,} tokens"
        case Replied() if event.error:
            return f"{event.role} could not answer: {event.error}"
        case Replied():
            calls = ", ".join(wish.tool for wish in event.calls)
            return f"{event.role}: {short(event.text, 400)}{f' → {calls}' if calls else ''}"
        case TurnEnded() if event.error:
            return f"turn {event.turn} failed: {event.error}"
        case TurnEnded():
            return f"turn {event.turn} is over: {event.words}"
        case Folded():
            return f"turns {event.since} to {event.upto} became a memory: {short(event.text, 400)}"
        case TaskChanged():
            return describe_task(event)
        case Questioned():
            return f"asks you{'' if event.shown else ' (without disturbing you now)'}: {event.tip}"
        case Answered():
            return f"you answered: {event.text}"
        case PermissionAsked():
            address = " or contains an address that no trusted source gave" if event.foreign else ""
            call = f"{event.tool}({event.arguments}), which may change something{address}"
            return f"wants permission for {call}{UNTRUSTED if event.foreign else ''}"
        case PermissionGiven():
            return f"you {'allowed' if event.yes else 'refused'} the call {event.id}"
        case Beat():
            return f"standing order {event.order} came due: {'' if event.worth >= WORTH else 'not '}worth a turn"
        case Proposed() if event.tasks:
            return f"proposes: {'; '.join(event.tasks)}" + (f": {event.because}" if event.because else "")
        case Proposed():
            return f"rests: {event.because or '-'}" + (
                f"; looks again {format_spoken(event.until)}" if event.until else ""
            )
        case Noticed():
            return f"noticed: {event.text}"
        case Commanded():
            done = {"pause": "paused", "resume": "continues", "stop": "stopped"}[event.order]
            return done + (f": {event.because}" if event.because else "")
        case Rested():
            return f"rests: {event.because}" if event.because else "continues: the budget has room again"
    return ""


UNTRUSTED = "; it contains untrusted text"


def describe_task(event: TaskChanged) -> str:
    """Return a line about a change of a task; "" if the task waits without an end."""
    match event.standing:
        case "waiting":
            return f"task {event.task} waits until {format_spoken(event.until)}: {event.text}" if event.until else ""
        case "done":
            result = f" → {short(event.result, RESULT_OF_TASK)}" if event.result else ""
            return f"task {event.task} is done: {event.text}{result}"
        case "stopped" if event.result:
            return f"task {event.task} is not done: {event.text} → {short(event.result, RESULT_OF_TASK)}"
        case "stopped":
            return f"task {event.task} was dropped: {event.text}"
    return f"task {event.task}: {event.text}"


def describe_standing(state: LifeState, now: Moment, wakes: Moment | None, is_lived: bool) -> str:
    """Describe the current activity of a life: working, resting or halted.

    Args:
        wakes: the time at which the life next has something to do by itself; None: it has nothing to do until a person
            acts.
    """
    halted = f"{state.halted}; {describe_way_on(state, is_lived)}" if state.halted else ""
    if state.in_turn or state.unread or state.wishes or (wakes is not None and wakes <= now):
        if halted:
            return halted
        if is_lived:
            return f"in turn {state.turn}" if state.in_turn else "works"
        return f"{NOT_LIVED} with turn {state.turn}" if state.in_turn else NOT_LIVED
    rests = describe_end(state)
    if wakes is not None:
        waits = f"; no process waits for that: {next_step('live --wait-for-input')} would"
        rests = describe_rest(wakes) + ("" if is_lived else waits)
    return f"{halted}; {rests}" if halted else rests


def describe_end(state: LifeState) -> str:
    """Return the message that nothing is left to do, with the tasks of the goal that were given up."""
    orders = {order.what for _, order in known_orders(state.orders)}
    given_up = (each for each in state.ledger.ordered() if each.standing == "stopped" and each.result)
    undone = ", ".join(str(each.number) for each in given_up if each.text not in orders)
    ended = (
        f"nothing is left to do; {next_step('life add TASK')} gives it a task, {next_step('life say TEXT')} tells it"
        f" something, {next_step('live --goal TEXT')} gives another goal"
    )
    return (
        f"not done: task {undone} ({next_step('life open NUMBER')} tries it again); otherwise {ended}"
        if undone
        else ended
    )


def describe_unknown(number: int, why: str) -> str:
    """Return the message that a standing order cannot be parsed."""
    return f"standing order {number} cannot be read: {why}; set it again with {next_step('live --every ORDER')}"


def describe_rest(wakes: Moment | None) -> str:
    """Return the message about the end of a rest."""
    return "rests until a person acts" if wakes is None else f"rests until {format_spoken(wakes)}"


def describe_way_on(state: LifeState, is_lived: bool) -> str:
    """Return a sentence with the command that lets a halted life continue."""
    if state.halted.startswith("budget"):
        return f"{next_step('live')} with a larger limit continues it"
    if is_lived or state.halted.startswith(("paused", "stopped")):
        return f"{next_step('life resume')} continues it"
    return f"{next_step('live')} tries again"


def describe_spent(state: LifeState) -> str:
    """Return as text the model calls, tokens and US dollars that a life has spent.

    Calls without any tokens were answered by rules, not by a model, unless they failed: they are called steps of rules.
    """
    spent = state.spent
    if spent.calls and not spent.tokens and not state.failed:
        return count_of(spent.calls, "step of rules")
    return f"{count_of(spent.calls, 'call of models')}, {spent.tokens:,} tokens" + (
        f", ${spent.usd:.4f}" if spent.usd else ""
    )


def describe_so_far(state: LifeState) -> str:
    """Return the number of turns of a life, and their cost."""
    return f"{count_of(state.turn, 'turn')}, {describe_spent(state)} so far"


def list_tasks(tasks: Iterable[Task], now: Moment) -> Iterator[str]:
    """Yield a line for each task, with its result."""
    for task in tasks:
        mark = {"done": " (done)", "stopped": " (given up)"}.get(task.standing, "")
        if task.standing == "waiting" and not task.can_be_done(now):
            mark = f" (waits until {format_spoken(task.until)})" if task.until else " (waits)"
        yield f"{task.number}. {task.text}{mark}" + (f" → {short(task.result, 200)}" if task.result else "")


def list_open(state: LifeState) -> Iterator[str]:
    """Yield a line for each unanswered question to the user, and for each call that needs permission."""
    for id_, question in (state.questions | state.late).items():
        if id_ not in state.answers:
            late = " (it no longer waits for the answer)" if id_ in state.late else ""
            yield f"asks you ({id_}){late}: {question.tip}"
    for id_, wish in state.wishes.items():
        call = f"{wish.tool}({short(wish.arguments, 400)})"
        yield f"wants permission ({id_}) for {call}{UNTRUSTED if wish.foreign else ''}"
