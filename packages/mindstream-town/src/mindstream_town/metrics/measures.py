"""A town in numbers, one each: what ensembles compare.

From there on nothing is read: who knows it follows from what was passed on (metrics/diffusion).

Somebody knows a fact who has a memory that goes back to it: by evidence, and by what speakers passed on. No text is
read for it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from types import MappingProxyType
from typing import Literal

import leather

from mindstream.errors import InputError
from mindstream.memory.store.record import Record
from mindstream.text.words import terms
from mindstream_town.inspect.history import History
from mindstream_town.metrics.conduct import examine_conduct
from mindstream_town.metrics.counts import count_events
from mindstream_town.metrics.relationships import trace_acquaintance

ENOUGH = 0.5
"""So much of what somebody types must stand in a memory for that one to be meant."""
Key = tuple[str, str]
"""A resident and the id of one of its records."""


@dataclass(frozen=True)
class Fact:
    """A fact: what was typed of it, the first memories that it is, and what those say."""

    text: str
    records: frozenset[Key]
    says: str


def is_first(record: Record) -> bool:
    """Tell whether a memory was there before its resident heard or thought anything: it goes back to no other."""
    return record.kind == "note" and not record.evidence and "plan" not in record.keywords


def find_fact(text: str, history: History) -> Fact:
    """Return the first memory that shares most words with a text; whoever else was given the same words is meant, too.

    Raises:
        InputError: nobody began with a memory that has half of these words.
    """
    words = frozenset(terms(text))
    share, said = max(
        ((len(words & {*terms(said)}) / max(1, len(words)), said) for said in _said(history)), default=(0.0, "")
    )
    if share < ENOUGH:
        raise InputError(f"nobody began with a memory like {text.strip()!r:.99}: name it by words that stand in it")
    held = {(name, each.id) for name in history.names for each in history.records[name] if each.text == said}
    return Fact(text.strip(), frozenset(key for key in held if is_first(history.by_id[key[0]][key[1]])), said)


def _said(history: History) -> Iterator[str]:
    yield from (each.text for name in history.names for each in history.records[name] if is_first(each))


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


def measure(history: History, facts: Sequence[str] = ()) -> dict[str, float]:
    """Return what `town metrics` counts, and for each fact which share of the residents knows it.

    Raises:
        InputError: nobody began with a memory like a fact.
    """
    counts, conduct, people = count_events(history), examine_conduct(history), max(1, len(history.names))
    return {
        "talks a day": counts.talks_a_day,
        "reflections a day and resident": counts.reflections_a_day,
        "pairs that know each other": trace_acquaintance(history).density(history.step),
        "planned minutes that were kept": conduct.adherence,
        "acts where and when one may": conduct.believable_share,
    } | {f"“{fact}” is known to": len(trace_fact(history, find_fact(fact, history)).knowers) / people for fact in facts}


COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 900, 420


def hours(history: History) -> list[int]:
    """Return the steps at which an hour begins, the beginning and the last step among them."""
    an_hour = 60 * history.setting.profile.a_minute
    return sorted({*range(0, history.step + 1, an_hour), history.step})


def curves_csv(history: History, steps: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """Write curves as a table: a line for each step."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["step", "time", *curves])
    for n, step in enumerate(steps):
        table.writerow([step, history.clock(step), *(f"{values[n]:g}" for values in curves.values())])
    return out.getvalue()


@dataclass(frozen=True)
class Mark:
    """A stretch of time that is marked."""

    start: int
    end: int
    text: str


def draw_curves(
    history: History,
    steps: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    title: str,
    *,
    said: Mapping[str, str] = MappingProxyType({}),
    mark: Mark | None = None,
) -> str:
    """Draw shares (0 to 1) over the days as stairs; `said`: what the last of a curve stands for, as `12 of 25`."""
    chart = leather.Chart(title)
    shown = {
        f"{name}: {said.get(name, f'{values[-1]:.0%}')}": list(zip(steps, values, strict=True))
        for name, values in curves.items()
    }
    if mark is not None and mark.start <= steps[-1]:
        shown[mark.text] = [(steps[0], 0.0), (mark.start, 1.0), (min(mark.end, steps[-1]), 0.0), (steps[-1], 0.0)]
    for (name, points), colour in zip(shown.items(), cycle(COLOURS), strict=False):
        before = [points[0][1], *(share for _, share in points)]
        stairs = [(step, share) for (step, new), old in zip(points, before, strict=False) for share in (old, new)]
        days = [(history.setting.when(step).replace(tzinfo=None), 100 * share) for step, share in stairs]
        chart.add_line(days, name=name, stroke_color=colour)
    chart.add_y_scale(0, 100)
    chart.add_y_axis(name="%")
    return str(chart.to_svg(width=WIDTH, height=HEIGHT))
