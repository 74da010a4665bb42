"""How a fact spreads: who knows it since when, and from whom (Park 2023, 7.1: measured by asking; here by looking).

Somebody knows a fact who has a memory that goes back to it: by evidence, and by what speakers passed on. No text is
read for it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from mindstream.memory.store.record import Record
from mindstream.town.inspect.history import History
from mindstream.town.metrics.fact import Fact, Key, is_first


@dataclass(frozen=True)
class Knower:
    """Somebody who knows a fact.

    Attributes:
        step, time: since when.
        how: from the beginning, or told by somebody. by: who told it.
        record: the id of the first memory that goes back to it. text: what that says.
        chain: from whom to whom it came, the first who knew first.
    """

    name: str
    step: int
    time: str
    how: Literal["beginning", "told"]
    by: str
    record: str
    text: str
    chain: tuple[str, ...]


@dataclass(frozen=True)
class Diffusion:
    """Who knows a fact, the first first; of how many residents.

    Attributes:
        records: every memory that goes back to it.
    """

    fact: str
    residents: int
    knowers: tuple[Knower, ...]
    records: frozenset[Key]

    def count(self, step: int) -> int:
        """Return how many knew it after a step."""
        return sum(knower.step <= step for knower in self.knowers)

    def by_how(self) -> dict[str, int]:
        """Count how it came to those who know it."""
        return dict(sorted(Counter(knower.how for knower in self.knowers).items()))


def trace_fact(history: History, fact: Fact) -> Diffusion:
    """Find who knows a fact since when."""
    origins, knowers = _descent(history, fact), dict[str, Knower]()
    for name, id_ in origins:  # in the order of time
        if name not in knowers:
            chain, record = _chain(origins, (name, id_)), history.by_id[name][id_]
            step, by = history.step_of(record.created), chain[-2] if len(chain) > 1 else ""
            how: Literal["beginning", "told"] = "told" if by else "beginning"
            knowers[name] = Knower(name, step, history.clock(step), how, by, id_, record.text, chain)
    ordered = sorted(knowers.values(), key=lambda each: (each.step, each.name))
    return Diffusion(fact.text, len(history.names), tuple(ordered), frozenset(origins))


def _descent(history: History, fact: Fact) -> dict[Key, Key | None]:
    """Return which records go back to a fact, each with the one that it came from.

    What is passed on was there before, so that one pass in the order of time finds all.
    """
    origins: dict[Key, Key | None] = {}
    for name, record in _in_order(history):
        if (name, record.id) in fact.records:
            origins[name, record.id] = None
            continue
        parents = [*((name, id_) for id_ in record.evidence), *((record.by, id_) for id_ in _told(record))]
        parent = next((each for each in parents if each in origins), None)
        if parent is not None:
            origins[name, record.id] = parent
    return origins


def count_knowers(history: History) -> dict[str, int]:
    """Return each memory with which somebody began, and how many know it by now; what was passed on most first."""
    facts: dict[Key, frozenset[str]] = {}
    knowers: dict[str, set[str]] = {}
    for name, record in _in_order(history):
        if is_first(record):
            known = frozenset({record.text})
        else:
            parents = [*((name, id_) for id_ in record.evidence), *((record.by, id_) for id_ in _told(record))]
            known = frozenset[str]().union(*(facts.get(each, ()) for each in parents))
        if known:
            facts[name, record.id] = known
        for fact in known:
            knowers.setdefault(fact, set()).add(name)
    return {fact: len(names) for fact, names in sorted(knowers.items(), key=lambda each: -len(each[1]))}


def _in_order(history: History) -> Iterator[tuple[str, Record]]:
    every = ((name, n, record) for name in history.names for n, record in enumerate(history.records[name]))
    for name, _, record in sorted(every, key=lambda each: (each[2].created, each[0], each[1])):
        yield name, record


def _told(record: Record) -> tuple[str, ...]:
    """Return the ids of the speaker's memories that a line of a talk passes on."""
    told = record.data.get("told")
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


def _chain(origins: Mapping[Key, Key | None], key: Key) -> tuple[str, ...]:
    """Name from whom to whom something came."""
    names: list[str] = []
    at: Key | None = key
    while at is not None:
        if not names or names[-1] != at[0]:
            names.append(at[0])
        at = origins[at]
    return tuple(reversed(names))


def write_csv(diffusion: Diffusion) -> str:
    """Write who knows it since when, a line each."""
    out = io.StringIO()
    fields = ("name", "step", "time", "how", "by", "chain", "record", "text")
    table = csv.DictWriter(out, fields, lineterminator="\n")
    table.writeheader()
    for knower in diffusion.knowers:
        table.writerow(asdict(knower) | {"chain": " > ".join(knower.chain)})
    return out.getvalue()
