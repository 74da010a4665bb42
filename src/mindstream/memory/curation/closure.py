"""What goes with records that are forgotten: what was drawn from them alone, and the rows of the log that say it.

An answer is drawn from the utterance that it answers; a thought of the log from the utterances that it was about, and
so is what its run asked of tools. A correction rests on what it was drawn from besides the record that it corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mindstream.log.events import Logged
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import read_all, read_log

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

ANSWERS = ("said", "follow_up")
RUNS = ("tool_called", "observed", "believed")
"""What a run of a reasoner leaves in the log before its thought."""
KINDS = ("heard", *ANSWERS, *RUNS, "thought", "set_aside", "decided", "reflected")


@dataclass
class Lineage:
    """Who was drawn from whom in a stream.

    Attributes:
        order: all of its records, by their place.
        evidence: what records were drawn from; earlier: which records a correction took the place of.
        elsewhere: evidence that is a record of another stream.
        versions: those of each slot, oldest first.
        log: the rows that tell of talk and thinking.
    """

    order: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict)
    earlier: dict[str, list[str]] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    versions: dict[str, list[Record]] = field(default_factory=dict)
    log: list[Logged] = field(default_factory=list)


@dataclass(frozen=True)
class Closure:
    """All that goes with some records.

    Attributes:
        asked: those, and earlier wordings of them; gone: with all that was drawn from them alone.
        below: what was drawn from what goes, and from other things, too.
        rows: rows of the log of which no word may stay.
        answers: what the mind itself said that stays; answered: what it said that is derived from what is asked for.
    """

    asked: frozenset[str]
    gone: frozenset[str]
    below: frozenset[str]
    rows: frozenset[int]
    answers: tuple[str, ...]
    answered: frozenset[str]
    order: dict[str, int]
    versions: dict[str, list[Record]]


async def read_lineage(stream: Stream) -> Lineage:
    """Read who was drawn from whom, all of the stream once."""
    lineage = Lineage(log=[row async for row in read_log(stream.store, stream.key, kinds=KINDS)])
    async for records in read_all(stream.store, stream.key):
        for record in records:
            _add(lineage, record)
    heard = {row.seq: str(_of(row, "record")) for row in lineage.log if row.event.kind == "heard"}
    for row in lineage.log:
        if row.event.kind in ANSWERS and (asked := heard.get(_of(row, "answers"))):
            lineage.evidence.setdefault(str(_of(row, "record")), (asked,))
    unknown = {each for some in lineage.evidence.values() for each in some} - lineage.order.keys()
    lineage.elsewhere = frozenset(await stream.store.owners(sorted(unknown)))
    for versions in lineage.versions.values():
        versions.sort(key=lambda record: record.version or 0)
    return lineage


def _add(lineage: Lineage, record: Record) -> None:
    lineage.order[record.id] = len(lineage.order)
    if record.evidence:
        lineage.evidence[record.id] = record.evidence
    if record.slot is not None:
        lineage.versions.setdefault(record.slot, []).append(record)
    elif record.superseded_by:
        lineage.earlier.setdefault(record.superseded_by, []).append(record.id)


def close(lineage: Lineage, asked: Iterable[str]) -> Closure:
    """Return all that goes with the records that are asked for."""
    roots = set(_reach(asked, lineage.earlier))
    below: dict[str, list[str]] = {}
    for id_, evidence in lineage.evidence.items():
        for each in evidence:
            below.setdefault(each, []).append(id_)
    gone, ready = set(roots), list(roots)
    while ready:
        for id_ in below.get(ready.pop(), ()):
            if id_ not in gone and id_ in lineage.order and _rests_only_on(gone, id_, lineage):
                gone.add(id_)
                ready.append(id_)
    drawn = (set(_reach(gone, below)) - gone) & lineage.order.keys()
    rows = frozenset(_bare_rows(lineage.log, gone))
    said = [str(_of(row, "record")) for row in lineage.log if row.event.kind in ANSWERS]
    answers = tuple(id_ for id_ in said if id_ in lineage.order and id_ not in gone)
    answered = frozenset(said) & gone - roots
    return Closure(
        frozenset(roots), frozenset(gone), frozenset(drawn), rows, answers, answered, lineage.order, lineage.versions
    )  # fmt: skip


def _reach(start: Iterable[str], edges: dict[str, list[str]]) -> Iterator[str]:
    seen = set(start)
    ready = list(seen)
    while ready:
        id_ = ready.pop()
        yield id_
        fresh = [each for each in edges.get(id_, ()) if each not in seen]
        seen.update(fresh)
        ready += fresh


def _rests_only_on(gone: set[str], id_: str, lineage: Lineage) -> bool:
    """Tell whether nothing that a record was drawn from is left."""
    corrects = lineage.earlier.get(id_, ())
    evidence = [each for each in lineage.evidence[id_] if each not in corrects] or lineage.evidence[id_]
    return not any(each not in gone and (each in lineage.order or each in lineage.elsewhere) for each in evidence)


def _bare_rows(log: Iterable[Logged], gone: set[str]) -> Iterator[int]:
    """Yield the rows that say only what goes: utterances, thoughts about them, the run before such a thought."""
    heard, runs, said = set[int](), dict[str, list[int]](), False
    for row in log:
        match row.event.kind:
            case "heard" if _of(row, "record") in gone:
                heard.add(row.seq)
                yield row.seq
            case "said" | "follow_up":
                said = _of(row, "record") in gone
                if said:
                    yield row.seq
            case "decided" if said:  # it holds the end of what was said before
                yield row.seq
            case "reflected":
                thoughts = _of(row, "thoughts")
                if thoughts and gone.issuperset(thoughts):
                    yield row.seq
            case "thought" | "set_aside":
                run, about = runs.pop(_of(row, "slot"), []), _of(row, "about")
                if about and heard.issuperset(about):
                    yield from (row.seq, *run)
            case kind if kind in RUNS:
                runs.setdefault(_of(row, "slot"), []).append(row.seq)


def _of(row: Logged, name: str) -> Any:
    return getattr(row.event, name, "")
