"""A resident's stream as the associative memory of a saved simulation: its records as nodes, in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np

from mindstream.memory.store.record import Record
from mindstream.town.formats.nodes import (
    AssociativeMemory,
    ConceptNode,
    Embeddings,
    Filling,
    KeywordStrength,
    plain_strength,
)
from mindstream.town.formats.typed import STAMP, parse_as

EXPIRES = timedelta(days=30)
SAID = 60
"""So many characters of a text stand for its object where no triple is known."""
Type = Literal["event", "thought", "chat"]


@dataclass
class _Nodes:
    """Nodes as they are made.

    Attributes:
        of: the node that each record went into, by the record's id.
        of_episode: the node of each talk.
    """

    who: str
    nodes: list[ConceptNode] = field(default_factory=list)
    counts: Counter[Type] = field(default_factory=Counter)
    of: dict[str, ConceptNode] = field(default_factory=dict)
    vectors: dict[str, Sequence[float]] = field(default_factory=dict)

    def add(self, records: Sequence[Record], type_: Type, about: str) -> None:
        """Add the node of a record, or of all that was said in a talk."""
        first = records[0]
        text = str(first.data.get("about") or about) if type_ == "chat" else first.text
        filling: Filling = tuple((record.by, record.text) for record in records)
        evidence = tuple(dict.fromkeys(self.of[each].node_id for each in first.evidence if each in self.of))
        if type_ != "chat":
            filling = evidence
        self.counts[type_] += 1
        number = len(self.nodes) + 1
        created = datetime.fromtimestamp(first.created, UTC)
        deepest = max((self.of[each].depth for each in first.evidence if each in self.of), default=-1)
        node = ConceptNode(
            node_id=f"node_{number}",
            node_count=number,
            type_count=self.counts[type_],
            type=type_,
            depth=1 + deepest if type_ == "thought" and evidence else max(1, first.depth) if type_ == "thought" else 0,
            created=created.strftime(STAMP),
            expiration=_expiration(first, type_, created),
            **self._triple(first, text),
            description=text,
            embedding_key=str(first.data.get("key") or text),
            poignancy=_poignancy(first),
            keywords=first.keywords,
            filling=filling,
            extra={},
        )
        self.nodes.append(node)
        self.of.update(dict.fromkeys((record.id for record in records), node))
        if first.vector is not None:
            self.vectors.setdefault(node.embedding_key, first.vector.astype(np.float64).tolist())

    def _triple(self, record: Record, text: str) -> dict[str, Any]:
        about = record.about
        if about is not None:
            return {"subject": about.subject, "predicate": about.predicate or None, "object": about.object or None}
        if record.kind == "chat":
            return {"subject": self.who, "predicate": "chat with", "object": _partner(record, self.who)}
        return {"subject": self.who, "predicate": "remember", "object": text[:SAID]}

    def memory(self) -> AssociativeMemory:
        width = max(map(len, self.vectors.values()), default=0)
        rows = np.array(list(self.vectors.values()), dtype=np.float64).reshape(len(self.vectors), width)
        kept = parse_as(KeywordStrength, plain_strength(self.nodes), "kw_strength")
        return AssociativeMemory(tuple(reversed(self.nodes)), Embeddings(tuple(self.vectors), rows), kept)


def export_memory(who: str, records: Sequence[Record]) -> AssociativeMemory:
    """Return what records come to as nodes: a talk is one, what was seen is an event, all else a thought.

    Their vectors must be of one embedder; a record without one leaves its node without.
    """
    talks: dict[str, list[Record]] = {}
    about: dict[str, str] = {}
    for record in records:
        if record.kind == "chat":
            talks.setdefault(record.episode or record.id, []).append(record)
        elif record.kind == "observation":
            about |= dict.fromkeys(record.evidence, record.text)
    nodes = _Nodes(who)
    for record in records:
        if record.id in nodes.of:
            continue
        if record.kind == "chat":
            nodes.add(talks[record.episode or record.id], "chat", about.get(record.id, record.text))
        else:
            nodes.add([record], "event" if record.kind == "observation" else "thought", "")
    return nodes.memory()


def _poignancy(record: Record) -> int | float:
    kept = record.data.get("poignancy")
    return kept if isinstance(kept, int | float) else round(record.importance or 1)


def _expiration(record: Record, type_: Type, created: datetime) -> str | None:
    if isinstance(expires := record.data.get("expires"), str):
        return expires
    return (created + EXPIRES).strftime(STAMP) if type_ == "thought" else None


def _partner(record: Record, who: str) -> str:
    to = str(record.data.get("to") or "")
    return to if record.by == who else record.by
