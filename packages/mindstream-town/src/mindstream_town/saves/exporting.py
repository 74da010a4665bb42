"""Export the state of a town at a step, in the format of the saved simulations of Park 2023.

The published code and its web pages can read the export.

If the original save is given, its vectors, steps, unknown keys, and all values that have not changed since the import
are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder
from mindstream_town.events import Act, Block, SpokenLine
from mindstream_town.formats.saves import (
    AssociativeMemory,
    Built,
    ConceptNode,
    Embeddings,
    Filling,
    KeywordStrength,
    PersonaSave,
    Recording,
    Save,
    SaveMeta,
    Schedule,
    Scratch,
    plain_strength,
)
from mindstream_town.formats.town_file import CLOCK, DATE, STAMP, parse_as
from mindstream_town.inspect.history import History, read_history
from mindstream_town.residents.person import Person
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.routes import read_walk
from mindstream_town.world.tree import PlaceTree, parse_address

ACT = frozenset(field.name for field in fields(Scratch) if field.name.startswith("act_"))
"""Keys of a scratch that describe the current act. If one of the keys in TOLD has changed since the import, none of
these keys is restored from the original save."""
TOLD = ("act_description", "act_address", "act_start_time", "act_duration")


def restore(now: Save, then: Mapping[str, tuple[Scratch, PlaceTree]], saved: Save) -> Save:
    """Return the export, with the values of the original save wherever nothing has changed.

    Args:
        now: the export.
        then: each resident's scratch and spatial memory, as in an export made directly after the import.
        saved: the original save.
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
    """Return the steps of the recording `before` up to a step (excluded); all other steps are those of `after`."""
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
    return saved if saved and (saved.created, saved.description) == (now.created, now.description) else now


def _restore_vectors(now: Embeddings, saved: Embeddings) -> Embeddings:
    """Return vectors of equal width: the recorded vectors, and for other texts new vectors padded with zeros.

    If nothing was recorded, or the new vectors are wider than the recorded ones, return only new vectors.
    """
    ours, recorded = now.vectors.shape[1], saved.vectors.shape[1]
    if not len(saved.keys) or ours > recorded:
        return now
    held = saved.by_key()
    rows = [held.get(key, np.pad(vector, (0, recorded - ours))) for key, vector in now.by_key().items()]
    return Embeddings(now.keys, np.array(rows, dtype=np.float64).reshape(len(rows), recorded))


EXPIRES = timedelta(days=30)
SAID = 60
"""Maximum characters of a record's text that become the object of its node, if the record has no triple."""
Type = Literal["event", "thought", "chat"]


@dataclass
class _Nodes:
    """Collects the nodes of an export.

    Attributes:
        of: nodes by the ids of their records.
    """

    who: str
    nodes: list[ConceptNode] = field(default_factory=list)
    counts: Counter[Type] = field(default_factory=Counter)
    of: dict[str, ConceptNode] = field(default_factory=dict)
    vectors: dict[str, Sequence[float]] = field(default_factory=dict)

    def add(self, records: Sequence[Record], type_: Type, about: str) -> None:
        """Add the node of one record, or of all lines of a talk."""
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
    """Convert records to nodes: a talk becomes one chat, an observation an event, anything else a thought.

    All vectors must be of one embedder; a record without a vector becomes a node without a vector.
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


EMOJI: Mapping[str, str] = {"talk": "💬", "wait": "⌛"}
ASLEEP, OTHER = "💤", "🙂"


def emoji_of(act: Act) -> str:
    """Return an emoji for an act, as saves contain one."""
    return ASLEEP if act.asleep else EMOJI.get(act.why, OTHER)


def address_of(setting: Setting, act: Act, step: int, partner: str = "") -> str:
    """Return the place of an act as saves write it: an address, or the partner of a talk."""
    if act.why == "talk" and partner:
        return f"<persona> {partner}"
    return act.place or str(setting.world.address_at(act.spot(step)))


def clock_of(setting: Setting, step: int) -> str:
    """Return the time of a step as saves write it."""
    return datetime.fromtimestamp(setting.moment(step), UTC).strftime(CLOCK)


def export_scratch(
    setting: Setting, person: Person, state: ResidentState, step: int, lines: Sequence[SpokenLine]
) -> Scratch:
    """Return the content of a resident's scratch.json after a step; `lines`: the lines of its current talk."""
    first, _, last = person.name.partition(" ")
    profile, act = setting.profile, state.act
    talks = state.is_talking(step + 1)
    left = max(0.0, profile.reflect_at - state.gathered)
    thing = act.place.split(":")[3:] if act else []
    did = None if act is None else act.what
    return Scratch(
        vision_r=profile.vision, att_bandwidth=profile.attention, retention=profile.retention,
        curr_time=clock_of(setting, max(step, 0)), curr_tile=state.spot(max(step, 0)),
        daily_plan_req=person.routine, name=person.name, first_name=first, last_name=last, age=person.age,
        innate=person.innate, learned=person.learned, currently=state.currently or person.currently,
        lifestyle=person.lifestyle, living_area=person.home, concept_forget=100, daily_reflection_time=180,
        daily_reflection_size=5, overlap_reflect_th=4, kw_strg_event_reflect_th=10, kw_strg_thought_reflect_th=9,
        recency_w=1, relevance_w=1, importance_w=1, recency_decay=profile.decay,
        importance_trigger_max=_whole(profile.reflect_at), importance_trigger_curr=_whole(left),
        importance_ele_n=len(state.seen), thought_count=5, daily_req=state.broad,
        f_daily_schedule=tuple((block.what, block.minutes) for block in state.blocks),
        f_daily_schedule_hourly_org=_in_hours(state.blocks),
        act_address=address_of(setting, act, step, state.partner) if act else None,
        act_start_time=clock_of(setting, act.since) if act else None,
        act_duration=_minutes(setting, act) if act else None, act_description=did,
        act_pronunciatio=emoji_of(act) if act else None,
        act_event=(person.name, "chat with", state.partner) if talks else (person.name, "is" if act else None, did),
        act_obj_description="being used" if thing else None, act_obj_pronunciatio=OTHER if thing else None,
        act_obj_event=(thing[0], "is", "being used") if thing else (None, None, None),
        chatting_with=state.partner if talks else None,
        chat=tuple((line.by, line.text) for line in lines) if talks else None,
        chatting_with_buffer={name: until - step for name, until in sorted(state.rested.items()) if until > step},
        chatting_end_time=clock_of(setting, act.until) if act and talks else None,
        act_path_set=act is not None, planned_path=read_walk(act.path)[step + 1 - act.since :] if act else (), extra={},
    )  # fmt: skip


def _in_hours(blocks: Sequence[Block]) -> Schedule:
    """Return a plan as it was before tasks were added: consecutive `task (part)` blocks are combined."""
    merged: list[tuple[str, int]] = []
    for block in blocks:
        task = block.what.partition(" (")[0]
        if merged and merged[-1][0] == task:
            merged[-1] = (task, int(merged[-1][1]) + block.minutes)
        else:
            merged.append((task, block.minutes))
    return tuple(merged)


def _minutes(setting: Setting, act: Act) -> int:
    """Return the duration of an act in minutes; its start and its end are rounded up to whole minutes."""
    begins = -int(-setting.moment(act.since) // 60)
    return max(0, -int(-setting.moment(act.until) // 60) - begins)


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) else number


async def save_of_town(
    store: Store,
    setting: Setting,
    embedder: Embedder,
    *,
    upto: int | None = None,
    maze: str = "the_ville",
    saved: Save | None = None,
) -> Save:
    """Return a town as a saved simulation.

    Args:
        embedder: computes missing vectors. The existing vectors must have been made by the same embedder.
        upto: step after which to save; None: the last one.
        maze: name of the map in the published code of Park 2023.
        saved: the save from which the town was imported. Values that a town does not store are taken from this save.

    Raises:
        InputError: the town was not imported from `saved`.
    """
    history = await read_history(store, upto)
    step = history.step
    meta = SaveMeta(
        fork_sim_code=setting.name,
        start_date=datetime.fromtimestamp(setting.start, UTC).strftime(DATE),
        curr_time=clock_of(setting, step + 1),
        sec_per_step=setting.profile.step_s,
        maze_name=maze,
        persona_names=tuple(setting.people),
        step=step + 1,
        extra={},
    )
    personas = {}
    for name, person in setting.people.items():
        scratch, places = _mind_of(history, person, step)
        records = [each for each in history.records[name] if each.forgotten is None and each.superseded_by is None]
        memory = export_memory(name, await _embedded(_without_description(records, scratch), embedder))
        personas[name] = PersonaSave(scratch, places, memory)
    begun = [next((at for at, state in history.states(name) if state.act), None) for name in history.names]
    first = min((at for at in begun if at is not None), default=0)
    save = Save(meta, personas, _recording(history, range(first, step + 1), maze))
    return save if saved is None else _keep_unchanged(save, saved, history, first)


def _keep_unchanged(save: Save, saved: Save, history: History, first: int) -> Save:
    """Return the export `save`; values that the town has not changed since its import are those of the original save.

    Args:
        saved: the original save.
        first: the step at which the town began.

    Raises:
        InputError: the town was not imported from `saved`.
    """
    setting, last = history.setting, saved.meta.step - 1
    if set(saved.personas) != set(setting.people) or not max(last, 0) == first < save.meta.step:
        raise InputError(
            f"the town was not imported from that save: the save has other residents, or the `step` in its meta.json"
            f" is not {first + 1}"
        )
    then = {name: _mind_of(history, person, last) for name, person in setting.people.items()}
    return restore(save, then, saved)


def _mind_of(history: History, person: Person, step: int) -> tuple[Scratch, PlaceTree]:
    """Return the content of a resident's scratch.json and its known places, after a step."""
    state = history.state(person.name, max(step, 0))
    scratch = export_scratch(history.setting, person, state, step, _talk(history, person.name, state.act)[1])
    return scratch, PlaceTree(parse_address(place) for place in sorted(state.knows))


def _without_description(records: Sequence[Record], scratch: Scratch) -> list[Record]:
    """Remove notes that repeat the resident's description in scratch.json, because an import creates them again. Notes
    that are evidence of other records stay."""
    who = Person(
        name=scratch.name,
        learned=scratch.learned,
        currently=scratch.currently,
        lifestyle=scratch.lifestyle,
        routine=scratch.daily_plan_req,
        home=scratch.living_area,
    )
    said, needed = {each.text for each in who.first_memories()}, {id_ for record in records for id_ in record.evidence}
    return [each for each in records if each.kind != "note" or each.text not in said or each.id in needed]


async def _embedded(records: Sequence[Record], embedder: Embedder) -> list[Record]:
    """Return the records with vectors of this embedder."""
    missing = [each for each in records if each.vector is None or each.embedder != embedder.name]
    if not missing:
        return list(records)
    vectors = (await embedder.embed([each.text for each in missing])).astype(np.float16)
    made = {record.id: vector for record, vector in zip(missing, vectors, strict=True)}
    return [replace(record, vector=made.get(record.id, record.vector)) for record in records]


def _talk(history: History, name: str, act: Act | None) -> tuple[str, tuple[SpokenLine, ...]]:
    """Return partner and lines of a talk. Return "" and () if the act is no talk, or if the talk has not ended yet (in
    a scene, or with a user)."""
    talk = history.talk_at.get((name, act.since)) if act and act.why == "talk" else None
    return (talk.partner, talk.lines) if talk else ("", ())


def _recording(history: History, steps: range, maze: str) -> Recording:
    """Return the files of all steps, and the positions at the beginning of the next step.

    The published code of Park 2023 continues from these positions.
    """
    setting = history.setting

    def environment(step: int) -> JsonValue:
        """Return the positions at the beginning of a step."""
        spots = {name: history.spot(name, max(step - 1, 0)) for name in setting.people}
        return {name: {"maze": maze, "x": x, "y": y} for name, (x, y) in spots.items()}

    def movement(step: int) -> JsonValue:
        """Return the movements and activities in a step."""
        moves = {name: _move(history, name, step) for name in setting.people}
        return {"persona": moves, "meta": {"curr_time": clock_of(setting, step)}}

    return Recording(Built(range(steps.start, steps.stop + 1), environment), Built(steps, movement))


def _move(history: History, name: str, step: int) -> JsonValue:
    state = history.state(name, step)
    if (act := state.act) is None:
        return {"movement": list(state.home), "pronunciatio": None, "description": None, "chat": None}
    partner, lines = _talk(history, name, act)
    return {
        "movement": list(act.spot(step)),
        "pronunciatio": emoji_of(act),
        "description": f"{act.what} @ {address_of(history.setting, act, step, partner)}",
        "chat": [[line.by, line.text] for line in lines] or None,
    }
