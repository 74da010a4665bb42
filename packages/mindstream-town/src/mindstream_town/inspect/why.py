"""Explain an act of a resident as a tree of reasons; compare what a resident believes with what happened.

A resident's beliefs are its last percepts of objects and people, and the whispers (thoughts added by users) that
reached it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from mindstream.errors import InputError, clipped
from mindstream.json_values import JsonObject
from mindstream.log.events import Remembered
from mindstream.memory.store.record import Record
from mindstream_town.events import (
    Acted,
    Block,
    DayPlanned,
    Decided,
    ObjectChanged,
    Perceived,
    SpokenLine,
    Talked,
    TasksPlanned,
)
from mindstream_town.inspect.history import History
from mindstream_town.metrics import Fact, trace_fact
from mindstream_town.residents.places import words_of
from mindstream_town.state import Belief
from mindstream_town.world.world import DAY_MINUTES, clock

LONGEST, MOST = 160, 8
SOURCES = {"plan": "plan", "talk": "a conversation", "wait": "waiting", "react": "what it saw"}


@dataclass(frozen=True)
class Reason:
    """A reason, and the reasons for it; `data`: its content as fields for programs."""

    text: str
    reasons: tuple[Reason, ...] = ()
    data: JsonObject = field(default_factory=dict)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the tree as lines of text, indented by two spaces per level."""
        yield "  " * depth + self.text
        for reason in self.reasons:
            yield from reason.lines(depth + 1)

    def as_json(self) -> JsonObject:
        reasons: list[JsonValue] = [reason.as_json() for reason in self.reasons]
        return {"text": self.text, **self.data, **({"because": reasons} if reasons else {})}


def explain(history: History, name: str, step: int) -> Reason:
    """Return the reasons for a resident's act at a step: percepts, memories, decisions and plans.

    Raises:
        InputError: there is no such resident, the town has not run up to the step, or the resident has no act at the
            step.
    """
    if name not in history.setting.people:
        raise InputError(f"{history.setting.name} has no resident {name!r}; residents: {', '.join(history.names)}")
    act = history.state(name, step).act
    if act is None or step > history.step:
        raise InputError(
            f"{name} has no known act on {history.clock(step)}; the town has run up to {history.clock(history.step)}"
        )
    began = act.since
    acted = history.events_at(name, Acted, began)
    because = acted[-1].because if acted and act.why != "talk" else ""
    reasons = [
        *_percepts(history, name, began),
        *_decisions(history, name, began),
        *(_talks(history, name, began) if act.why == "talk" else ()),
        *(_plans(history, name, began) if act.why != "talk" else ()),
    ]
    said = f"{history.clock(step)}: {name} is {act.what}{_at(act.place)}, since {history.clock(began)[-5:]}"
    data: JsonObject = {
        "who": name,
        "step": step,
        "since": began,
        "until": act.until,
        "what": act.what,
        "place": act.place,
        "why": act.why,
        **({"event": because} if because else {}),
    }
    by = SOURCES.get(act.why, "itself")
    return Reason(f"{said}, by {by}{f': {because}' if because else ''}", tuple(reasons), data)


def _at(place: str) -> str:
    return f" ({words_of(place)})" if place else ""


def _percepts(history: History, name: str, step: int) -> Iterator[Reason]:
    for event in history.events_at(name, Perceived, step):
        if event.seen:
            seen = tuple(Reason(" ".join(triple)) for triple in event.seen[:MOST])
            yield Reason(
                f"saw {len(event.seen)} new things" if len(seen) > 1 else "saw something new",
                seen,
                {"kind": "perceived"},
            )


def _decisions(history: History, name: str, step: int) -> Iterator[Reason]:
    for event in history.events_at(name, Decided, step):
        drawn = history.setting.draw("decide", event.step, name, event.about)
        memories = tuple(_memory(history, name, id_, score) for id_, score in event.recalled[:MOST])
        about = f"whether {event.about}" if event.other else f"whether to act, since {event.about}"
        if event.choice:  # one of several answers was chosen: `drawn` and `p` alone do not show why
            text = f"decided {event.about}: {event.choice} (probability {event.p:.2f})"
        else:
            text = f"decided {about}: {'yes' if event.yes else 'no'} (probability {event.p:.2f}, drawn {drawn:.2f})"
        more = {"choice": event.choice} if event.choice else {"draw": round(drawn, 4)}
        yield Reason(
            text,
            (Reason("what came to mind", memories),) if memories else (),
            {"kind": "decided", "question": event.question, "p": event.p, **more, "yes": event.yes},
        )


def _memory(history: History, name: str, id_: str, score: float) -> Reason:
    record = history.by_id[name].get(id_)
    text = record.text if record is not None else "(forgotten)"
    return Reason(f"{score:.2f}  {_short(text)}", (), {"record": id_, "score": score})


def _talks(history: History, name: str, step: int) -> Iterator[Reason]:
    """Yield the talk that began, or whose scene ended, at a step."""
    for _, event in history.events(name, Talked):
        if not event.lines or step not in (event.since or event.step, event.step):
            continue
        first = event.lines[0].by
        who = "began it" if first == name else f"{first} began it"
        yield Reason(f"talks with {event.partner}; {who}", tuple(_line(history, each) for each in event.lines))
        for reason in _decisions(history, first, step) if first != name else ():  # why the partner began the talk
            if reason.data.get("yes") and name in reason.text:
                yield Reason(f"{first} {reason.text}", reason.reasons, reason.data)


def _line(history: History, said: SpokenLine) -> Reason:
    passed_on = tuple(
        Reason(f"which comes from: {_short(record.text)}")
        for id_ in said.told
        if (record := history.by_id[said.by].get(id_))
    )
    return Reason(f"{said.by}: {said.text}", passed_on, {"kind": "line", "told": list(said.told)})


def _plans(history: History, name: str, step: int) -> Iterator[Reason]:
    """Yield the two parts of the plan behind an act.

    The first is the newest change of the day's plan for this minute; the second is the original plan of the day.
    """
    minute, day = history.setting.minute(step), history.setting.day(step)
    tasks = [e for at, e in history.events(name, TasksPlanned) if at <= step and history.setting.day(at) == day]
    for planned in reversed(tasks):
        if block := _block(planned.blocks, minute):
            because = f", since {_short(planned.because)}" if planned.because else ""
            yield Reason(
                f"planned at {history.clock(planned.step)[-5:]}{because}: {_said(block)}", (), {"kind": "tasks_planned"}
            )
            break
    for at, day_plan in reversed(list(history.events(name, DayPlanned))):
        if at <= step and day_plan.day == day:
            if block := _block(day_plan.blocks, minute):
                evidence = tuple(_evidence(history, name, day_plan))
                reasons = (Reason("based on memories recalled for the plan of the day", evidence),) if evidence else ()
                yield Reason(f"the day's plan: {_said(block)}", reasons, {"kind": "day_planned"})
            break


def _evidence(history: History, name: str, plan: DayPlanned) -> Iterator[Reason]:
    of_self = history.by_id[name]
    for record in (of_self[id_] for id_ in plan.records if id_ in of_self):
        for each in record.evidence[:MOST]:
            if each in of_self:
                yield Reason(_short(of_self[each].text), (), {"record": each})


def _block(blocks: Sequence[Block], minute: int) -> Block | None:
    return next((block for block in blocks if block.start <= minute < block.end), None)


def _said(block: Block) -> str:
    start, end = (clock(each % DAY_MINUTES) for each in (block.start, block.end))
    return f"{start}-{end} {block.what}{_at(block.place)}"


def _short(text: str) -> str:
    return clipped(" ".join(text.split()), LONGEST)


FINE = "in order"


def beliefs_of(history: History, name: str, step: int) -> list[Belief]:
    """Return a resident's beliefs at a step.

    These are beliefs about objects and people that the resident has seen, and beliefs from whispers (thoughts added by
    users) that reached the resident.
    """
    newest: dict[str, Record] = {}
    for record in history.records[name]:
        if record.about is not None and history.step_of(record.created) <= step:
            place = str(record.data.get("place", ""))
            newest[record.about.subject if record.about.subject in history.setting.people else place] = record
    newest.pop("", None)
    newest.pop(name, None)
    seen = [_seen(history, about, record, step) for about, record in sorted(newest.items())]
    return [*seen, *_planted(history, name, step)]


def _seen(history: History, about: str, record: Record, step: int) -> Belief:
    assert record.about is not None
    since = history.step_of(record.created)
    if about in history.setting.people:
        act = history.state(about, step).act
        kind, believed, happened = "resident", record.about.object, act.what if act else ""
    else:
        kind, believed, happened = "object", record.about.object, condition_at(history, about, step)
    return Belief(
        kind=kind,
        about=about,
        believed=believed,
        happened=happened,
        is_false=believed != happened,
        since=since,
        origin=f"saw it on {history.clock(since)}",
    )


def condition_at(history: History, place: str, step: int) -> str:
    """Return the condition of an object at a step, after all changes of this step."""
    rows = (row.event for row in history.rows[""] if isinstance(row.event, ObjectChanged))
    changes = [(each.step, each.condition) for each in rows if each.place == place and each.step <= step]
    return max(reversed(changes), key=lambda each: each[0], default=(0, ""))[1] or FINE


def _planted(history: History, name: str, step: int) -> list[Belief]:
    """Return what a resident knows from whispers (thoughts added by users).

    Whispers to other residents count if they were passed on to this resident.
    """
    found = []
    for first, rows in history.rows.items():
        whispers = {row.seq for row in rows if isinstance(row.event, Remembered) and row.by == "whisper"}
        for record in history.records.get(first, ()) if whispers else ():
            if record.seq in whispers:
                spread = trace_fact(history, Fact(record.text, frozenset({(first, record.id)}), record.text))
                for knower in spread.knowers:
                    if knower.name == name and knower.step <= step:
                        began = f"whispered to {first} on {history.clock(history.step_of(record.created))}"
                        way = f"; told by {' > '.join(knower.chain)}" if len(knower.chain) > 1 else ""
                        planted = {"kind": "planted", "about": first, "believed": record.text, "happened": ""}
                        found.append(Belief(**planted, is_false=None, since=knower.step, origin=began + way))
    return found
