"""A resident's stream from the associative memory of a saved simulation: its nodes as records, in their order.

An event is an observation, a thought a thought; a chat is what was said in it, a record for each utterance. What only a
node has (its own id, key, expiry) is in the record's data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC

import numpy as np
from pydantic import JsonValue

from mindstream.clock import moment_or_none
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Kind, Record, RecordDraft, Triple
from mindstream.memory.store.store import Commit, Entry
from mindstream.town.formats.nodes import AssociativeMemory, ConceptNode
from mindstream.town.formats.typed import parse_stamp

RECORDED_EMBEDDER = "text-embedding-ada-002"
"""Whose vectors the authors' saves hold."""
KINDS: Mapping[str, Kind] = {"event": "observation", "thought": "thought", "chat": "chat"}


async def import_memory(stream: Memory, memory: AssociativeMemory) -> None:
    """Write a memory's nodes into a stream; what rests on others is written after them.

    Their vectors are kept where the stream's embedder made them, else made anew.
    """
    held: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[ConceptNode, list[RecordDraft]]] = []
    vectors = memory.embeddings.by_key() if _is_recorded(stream, memory) else {}
    for node in memory.in_order():
        if any(each not in held for each in node.evidence):
            await _write(stream, waiting, held, vectors)
            waiting = []
        evidence = tuple(id_ for each in node.evidence for id_ in held.get(each, ()))
        waiting.append((node, news_of(node, evidence)))
    await _write(stream, waiting, held, vectors)


def _is_recorded(stream: Memory, memory: AssociativeMemory) -> bool:
    width = memory.embeddings.vectors.shape[1]
    return RECORDED_EMBEDDER in stream.embedder.name and width == stream.embedder.width


async def _write(
    stream: Memory,
    waiting: Sequence[tuple[ConceptNode, list[RecordDraft]]],
    held: dict[str, tuple[str, ...]],
    vectors: Mapping[str, np.typing.NDArray[np.float64]],
) -> None:
    built = iter(await stream.build_records([new for _, news in waiting for new in news]))
    records: list[Record] = []
    for node, news in waiting:
        made = [replace(next(built), accessed=moment_or_none(news[0].created) or 0.0) for _ in news]
        if node.embedding_key in vectors:
            vector = vectors[node.embedding_key].astype(np.float16)
            made = [replace(record, vector=vector, embedder=stream.embedder.name) for record in made]
        held[node.node_id] = tuple(record.id for record in made)
        records += made
    if records:
        event = Remembered(count=len(records), kinds=dict(Counter[str](record.kind for record in records)))
        entry = Entry(event, stream.name, tuple(records))
        await stream.store.commit(Commit(mind=stream.key, at=stream.clock.now(), entries=(entry,)))


def news_of(node: ConceptNode, evidence: tuple[str, ...]) -> list[RecordDraft]:
    """Return what is to be remembered of a node; the depth of a thought is that of its evidence and one."""
    data: dict[str, JsonValue] = {"node": node.node_id}
    if node.embedding_key != node.description:
        data["key"] = node.embedding_key
    if node.expiration is not None:
        data["expires"] = node.expiration
    importance = float(min(10, max(1, node.poignancy)))
    if importance != node.poignancy or isinstance(node.poignancy, bool):
        data["poignancy"] = node.poignancy
    new = RecordDraft(
        text=node.description.strip() or node.embedding_key.strip() or "nothing",
        kind=KINDS[node.type],
        by=node.subject,
        importance=importance,
        about=Triple(node.subject, node.predicate or "", node.object or ""),
        keywords=node.keywords,
        evidence=evidence,
        depth=None if node.type == "thought" and evidence else node.depth,
        created=parse_stamp(node.created).replace(tzinfo=UTC).timestamp(),
        data=data,
    )
    if node.type != "chat":
        return [new]
    said = [line for line in node.filling or () if isinstance(line, tuple) and len(line) > 1 and line[1].strip()]
    data["about"] = new.text
    episode = f"talk {node.created} {min(node.subject, node.object or '')}"
    return [replace(new, text=line[1], by=line[0], episode=episode) for line in said] or [new]
