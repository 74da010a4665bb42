"""A resident's associative memory as stored by Park 2023: nodes, embeddings, and keyword strengths, a file each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import JsonValue, Strict

from mindstream.arrays import Doubles
from mindstream.errors import InputError
from mindstream.json_values import JsonObject
from mindstream_town.formats.files import load_object
from mindstream_town.formats.town_file import Number, StampText, Whole, parse_as, to_plain

EMBEDDINGS, STRENGTH = "embeddings.json", "kw_strength.json"
Filling = tuple[str, ...] | tuple[tuple[str, ...], ...] | str | None


@dataclass(frozen=True)
class ConceptNode:
    """A memory (a node of the file). Times are texts in the form of `parse_time`.

    Attributes:
        node_id: "node_N", where N is `node_count`.
        filling: ids of the evidence (for events and thoughts), or pairs of speaker and utterance (for chats).
    """

    node_id: str
    node_count: Whole
    type_count: Whole
    type: Literal["event", "thought", "chat"]
    depth: Whole
    created: StampText
    expiration: StampText | None
    subject: str
    predicate: str | None
    object: str | None
    description: str
    embedding_key: str
    poignancy: Number | Annotated[bool, Strict()]
    keywords: tuple[str, ...]
    filling: Filling
    extra: Mapping[str, JsonValue]

    @property
    def evidence(self) -> tuple[str, ...]:
        """The ids of the nodes that the node is based on."""
        if isinstance(self.filling, str):
            return (self.filling,) if self.filling else ()
        return () if self.type == "chat" else tuple(each for each in self.filling or () if isinstance(each, str))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors by their text; row i of `vectors` belongs to `keys[i]`."""

    keys: tuple[str, ...]
    vectors: Doubles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Embeddings) and self.keys == other.keys and np.array_equal(self.vectors, other.vectors)

    __hash__ = None  # type: ignore[assignment]

    def by_key(self) -> dict[str, Doubles]:
        return dict(zip(self.keys, self.vectors, strict=True))


@dataclass(frozen=True)
class KeywordStrength:
    """Number of occurrences of each keyword, in events and in thoughts."""

    kw_strength_event: Mapping[str, Whole]
    kw_strength_thought: Mapping[str, Whole]
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class AssociativeMemory:
    """The memory of a resident: nodes in the order of the file, newest first.

    Attributes:
        absent: names of files that were missing; their content can be computed from the nodes.
    """

    nodes: tuple[ConceptNode, ...]
    embeddings: Embeddings
    strength: KeywordStrength
    absent: frozenset[str] = frozenset()

    def in_order(self) -> list[ConceptNode]:
        """Return the nodes in the order of their creation."""
        return sorted(self.nodes, key=lambda node: node.node_count)


def read_memory(folder: Path) -> AssociativeMemory:
    """Read an `associative_memory` folder.

    Raises:
        InputError: nodes or evidence are missing, or a file is invalid; the message has file and node.
    """
    nodes = _read_nodes(folder / "nodes.json")
    absent = frozenset(name for name in (EMBEDDINGS, STRENGTH) if not (folder / name).exists())
    held: JsonValue = load_object(folder / STRENGTH) if STRENGTH not in absent else plain_strength(nodes)
    strength = parse_as(KeywordStrength, held, str(folder / STRENGTH))
    return AssociativeMemory(nodes, _read_embeddings(folder / EMBEDDINGS, EMBEDDINGS in absent), strength, absent)


def plain_strength(nodes: Sequence[ConceptNode]) -> JsonObject:
    """Count keywords as the published code does, which ignores idle objects and chats."""
    strength: dict[str, Counter[str]] = {"event": Counter(), "thought": Counter()}
    for node in nodes:
        if node.type != "chat" and f"{node.predicate} {node.object}" != "is idle":
            strength[node.type].update(word.lower() for word in node.keywords)
    return {f"kw_strength_{kind}": dict(counted) for kind, counted in strength.items()}


def plain_memory(memory: AssociativeMemory) -> JsonObject:
    """Return the content of the memory's files by file name, without the files in `absent`."""
    vectors = zip(memory.embeddings.keys, memory.embeddings.vectors, strict=True)
    files: JsonObject = {
        "nodes.json": {node.node_id: to_plain(node, frozenset({"node_id"})) for node in memory.nodes},
        EMBEDDINGS: {key: vector.tolist() for key, vector in vectors},
        STRENGTH: to_plain(memory.strength),
    }
    return {name: data for name, data in files.items() if name not in memory.absent}


def _read_nodes(path: Path) -> tuple[ConceptNode, ...]:
    nodes = {
        id: parse_as(ConceptNode, data, f"{path}: {id!r:.60}", node_id=id) for id, data in load_object(path).items()
    }
    for number in range(1, len(nodes) + 1):
        if f"node_{number}" not in nodes:
            raise InputError(f"{path}: node_{number} is missing: the {len(nodes)} nodes must be numbered from 1")
    for id, node in nodes.items():
        if id != f"node_{node.node_count}":
            raise InputError(f"{path}: {id}: node_count must be the number in the node's name, found {node.node_count}")
        if missing := [each for each in node.evidence if each not in nodes]:
            raise InputError(
                f"{path}: {id}: its evidence {missing[0]!r:.60} is missing: add that node, or remove it from filling"
            )
    return tuple(nodes.values())


def _read_embeddings(path: Path, absent: bool) -> Embeddings:
    data = {} if absent else load_object(path)
    width: int | None = None
    rows = []
    for key, numbers in data.items():
        if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
            raise InputError(f"{path}: {key!r:.60}: expected a list of numbers")
        width = len(numbers) if width is None else width
        if len(numbers) != width or not width:
            raise InputError(f"{path}: {key!r:.60}: expected {width or 'some'} numbers, found {len(numbers)}")
        rows.append(numbers)
    vectors = np.array(rows, dtype=np.float64).reshape(len(rows), width or 0)
    if not np.isfinite(vectors).all():
        key = list(data)[int(np.argmin(np.isfinite(vectors).all(axis=1)))]
        raise InputError(f"{path}: {key!r:.60}: a number is infinite or NaN")
    return Embeddings(tuple(data), vectors)
