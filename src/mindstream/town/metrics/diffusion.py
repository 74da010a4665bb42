"""How a fact spreads: who knows it since when, and from whom (Park 2023, 7.1: measured by asking; here by looking).

Somebody knows a fact who has a memory that says it, or one that was drawn from such a memory. Beside that stands what
is certain without any reading: which memories go back, by evidence and by what speakers passed on, to a first memory.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from mindstream.memory.record import Record
from mindstream.town.history import History
from mindstream.town.metrics.fact import Fact

How = Literal["beginning", "told", "saw", "said", "thought"]
Key = tuple[str, str]
"""A resident and the id of one of its records."""


@dataclass(frozen=True)
class Knower:
    """Somebody who knows a fact.

    Attributes:
        step, time: since when.
        how: from the beginning, told by somebody, seen, said before it was ever heard (made up), or thought.
        by: who told it.
        record: the id of the first memory that says it. text: what it says.
        chain: from whom to whom it came, the first who knew first; empty where no trace leads to a first memory.
        heard: since which step by word: from the beginning or told; None: only by what was seen, as the event itself.
        traced: the step of the first memory that goes back to a first memory; None: none does.
    """

    name: str
    step: int
    time: str
    how: How
    by: str
    record: str
    text: str
    chain: tuple[str, ...]
    traced: int | None
    heard: int | None


@dataclass(frozen=True)
class Diffusion:
    """Who knows a fact, the first first; of how many residents."""

    fact: str
    residents: int
    knowers: tuple[Knower, ...]

    def count(self, step: int) -> int:
        """Return how many knew it after a step."""
        return sum(knower.step <= step for knower in self.knowers)

    def heard(self, step: int) -> int:
        """Return how many knew it by word after a step, and not only by what they saw."""
        return sum(knower.heard is not None and knower.heard <= step for knower in self.knowers)

    def traced(self, step: int) -> int:
        """Return to how many it could be traced from a first memory, after a step."""
        return sum(knower.traced is not None and knower.traced <= step for knower in self.knowers)

    def since(self, name: str) -> int | None:
        """Return since which step somebody knows it; None: never."""
        return next((knower.step for knower in self.knowers if knower.name == name), None)

    def by_how(self) -> dict[str, int]:
        """Count how it came to those who know it."""
        return dict(sorted(Counter(knower.how for knower in self.knowers).items()))


def trace_fact(history: History, fact: Fact) -> Diffusion:
    """Find who knows a fact since when."""
    holding = {name: _holding(records, fact) for name, records in history.records.items()}
    origins = _descent(history, holding)
    traced: dict[str, int] = {}
    for name, id_ in origins:
        step = history.step_of(history.by_id[name][id_].created)
        traced[name] = min(step, traced.get(name, step))
    knowers = []
    for name in history.names:
        held = [record for record in history.records[name] if record.id in holding[name]]
        if held:
            knowers.append(_knower(history, origins, name, held, traced.get(name)))
    return Diffusion(fact.text, len(history.names), tuple(sorted(knowers, key=lambda each: (each.step, each.name))))


def _knower(
    history: History, origins: Mapping[Key, Key | None], name: str, held: Sequence[Record], traced: int | None
) -> Knower:
    """Say since when, how and from whom somebody knows it, by the memories that say it."""
    first, (how, by) = held[0], _how(history, name, held[0])
    step = history.step_of(first.created)
    word = next((each for each in held if _how(history, name, each)[0] in ("beginning", "told")), None)
    return Knower(
        name, step, history.clock(step), how, by, first.id, first.text, _chain(origins, (name, first.id)),
        traced, None if word is None else history.step_of(word.created),
    )  # fmt: skip


def _holding(records: Sequence[Record], fact: Fact) -> frozenset[str]:
    """Return the ids of the records that say a fact, or are drawn from one that does."""
    holding: set[str] = set()
    for record in records:
        if fact.is_in(record.text, record.by) or not holding.isdisjoint(record.evidence):
            holding.add(record.id)
    return frozenset(holding)


def _how(history: History, name: str, record: Record) -> tuple[How, str]:
    if record.kind == "chat":
        return ("told", record.by) if record.by != name else ("said", "")
    if record.kind == "note" and not record.evidence:
        return "beginning", ""
    for id_ in record.evidence:
        other = history.by_id[name].get(id_)
        if other is not None and other.kind == "chat" and other.by != name:
            return "told", other.by
    return ("saw", "") if record.kind == "observation" else ("thought", "")


def _descent(history: History, holding: Mapping[str, frozenset[str]]) -> dict[Key, Key | None]:
    """Return which records go back to a first memory that says the fact, each with the one that it came from.

    What is passed on was there before, so that one pass in the order of time finds all.
    """
    origins: dict[Key, Key | None] = {}
    for name, record in _in_order(history):
        if record.kind == "note" and not record.evidence:
            if record.id in holding[name]:
                origins[name, record.id] = None
            continue
        parents = [*((name, id_) for id_ in record.evidence), *((record.by, id_) for id_ in _told(record))]
        parent = next((each for each in parents if each in origins), None)
        if parent is not None:
            origins[name, record.id] = parent
    return origins


def _in_order(history: History) -> Iterator[tuple[str, Record]]:
    every = ((name, n, record) for name in history.names for n, record in enumerate(history.records[name]))
    for name, _, record in sorted(every, key=lambda each: (each[2].created, each[0], each[1])):
        yield name, record


def _told(record: Record) -> tuple[str, ...]:
    told = record.data.get("told")
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


def _chain(origins: Mapping[Key, Key | None], key: Key) -> tuple[str, ...]:
    """Name from whom to whom something came."""
    names: list[str] = []
    at: Key | None = key if key in origins else None
    while at is not None:
        if not names or names[-1] != at[0]:
            names.append(at[0])
        at = origins[at]
    return tuple(reversed(names))


def write_csv(diffusion: Diffusion) -> str:
    """Write who knows it since when, a line each."""
    out = io.StringIO()
    fields = ("name", "step", "time", "how", "by", "heard", "traced", "chain", "record", "text")
    table = csv.DictWriter(out, fields, lineterminator="\n")
    table.writeheader()
    for knower in diffusion.knowers:
        table.writerow(asdict(knower) | {"chain": " > ".join(knower.chain)})
    return out.getvalue()
