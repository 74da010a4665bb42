"""What a town does not keep of the saved simulation that it began from, put back into an export.

That are its vectors, its steps, the keys that nobody here reads, and all that has not changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from mindstream.town.formats.nodes import AssociativeMemory, ConceptNode, Embeddings
from mindstream.town.formats.recording import Recording
from mindstream.town.formats.saves import PersonaSave, Save
from mindstream.town.formats.scratch import Scratch
from mindstream.town.world.tree import PlaceTree

ACT = frozenset(field.name for field in fields(Scratch) if field.name.startswith("act_"))
"""What is said of an act goes together: it has changed where any of TOLD has."""
TOLD = ("act_description", "act_address", "act_start_time", "act_duration")


def restore(now: Save, then: Mapping[str, tuple[Scratch, PlaceTree]], saved: Save) -> Save:
    """Return an export in which what has not changed is as it was saved.

    Args:
        now: the export. then: what each scratch and spatial memory was right after the import, exported.
        saved: what was imported.
    """
    personas = {
        name: _restore_persona(persona, *then[name], saved.personas[name]) for name, persona in now.personas.items()
    }
    meta = replace(
        now.meta,
        fork_sim_code=saved.meta.fork_sim_code,
        start_date=saved.meta.start_date,
        maze_name=saved.meta.maze_name,
        extra=saved.meta.extra,
    )
    step = saved.meta.step
    recording = Recording(
        _join(saved.recording.environments, now.recording.environments, step + 1),
        _join(saved.recording.movements, now.recording.movements, step),
    )
    return Save(meta, personas, recording)


def _join(before: Mapping[int, Path | bytes], after: Mapping[int, Path | bytes], step: int) -> dict[int, Path | bytes]:
    """Return the steps of one recording before a step, those of another from it on."""
    first = {each: before[each] for each in before if each < step}
    return first | {each: after[each] for each in after if each >= step or each not in first}


def _restore_persona(now: PersonaSave, then: Scratch, known: PlaceTree, saved: PersonaSave) -> PersonaSave:
    same = {
        field.name
        for field in fields(Scratch)
        if field.name == "extra" or getattr(now.scratch, field.name) == getattr(then, field.name)
    }
    if not same.issuperset(TOLD):
        same -= ACT
    scratch = replace(now.scratch, **{name: getattr(saved.scratch, name) for name in sorted(same)})
    places = PlaceTree([*saved.places, *(place for place in now.places if place not in known)])
    return PersonaSave(scratch, places, _restore_memory(now.memory, saved.memory))


def _restore_memory(now: AssociativeMemory, saved: AssociativeMemory) -> AssociativeMemory:
    nodes = {node.node_id: node for node in saved.nodes}
    kept = tuple(_restore_node(node, nodes.get(node.node_id)) for node in now.nodes)
    if kept == saved.nodes:
        return replace(saved, absent=frozenset())
    return replace(now, nodes=kept, embeddings=_restore_vectors(now.embeddings, saved.embeddings))


def _restore_node(now: ConceptNode, saved: ConceptNode | None) -> ConceptNode:
    is_same = saved is not None and (saved.created, saved.description) == (now.created, now.description)
    return saved if saved is not None and is_same else now


def _restore_vectors(now: Embeddings, saved: Embeddings) -> Embeddings:
    """Return vectors of one width: the recorded ones, and ours filled up with zeros; one that is longer stays ours."""
    ours, recorded = now.vectors.shape[1], saved.vectors.shape[1]
    if not len(saved.keys) or ours > recorded:
        return now
    held = saved.by_key()
    rows = [held.get(key, np.pad(vector, (0, recorded - ours))) for key, vector in now.by_key().items()]
    return Embeddings(now.keys, np.array(rows, dtype=np.float64).reshape(len(rows), recorded))
