"""Compare what a resident believes with what happened: its last percepts of objects and people, and whispers that
reached it."""

from __future__ import annotations

from mindstream.log.events import Remembered
from mindstream.memory.store.record import Record
from mindstream_town.events import ObjectChanged
from mindstream_town.inspect.history import History
from mindstream_town.metrics.measures import Fact, trace_fact
from mindstream_town.state import Belief

FINE = "in order"


def beliefs_of(history: History, name: str, step: int) -> list[Belief]:
    """Return a resident's beliefs at a step about things it has seen, and about whispers that reached it."""
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
    """Return the condition of an object at a step."""
    rows = (row.event for row in history.rows[""] if isinstance(row.event, ObjectChanged))
    changes = [(each.step, each.condition) for each in rows if each.place == place and each.step <= step]
    return max(changes, key=lambda each: each[0], default=(0, ""))[1] or FINE


def _planted(history: History, name: str, step: int) -> list[Belief]:
    """Return what a resident knows from whispers, also those that another resident heard first."""
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
