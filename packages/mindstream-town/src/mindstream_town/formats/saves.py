"""Saved simulations of Park 2023: `reverie/meta.json`, steps, and a folder for each resident.

The steps are in folders with one file per step, in `movement+environment.tar.gz`, or in the short form of the authors'
demo. In the short form `master_movement.json` has only the changes of each step, `environment` is missing, and
`meta.json` is next to `personas`.

A resident's associative memory has three files: nodes, embeddings, and keyword strengths. A save that is read and
written again has the same JSON content; unknown keys are kept.
"""

from __future__ import annotations

import csv
import json
import re
import tarfile
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import JsonValue, Strict

from mindstream.arrays import Doubles
from mindstream.errors import InputError
from mindstream.guidance import nearest
from mindstream.json_values import JsonObject
from mindstream_town.formats.files import (
    expect_object,
    load_json,
    load_object,
    load_text,
    make_new_folder,
    parse_json,
    write_text,
)
from mindstream_town.formats.town_file import (
    DATE,
    ClockText,
    DateText,
    Number,
    StampText,
    Whole,
    parse_as,
    parse_time,
    to_plain,
)
from mindstream_town.world.tree import PlaceTree, Spot, parse_tree

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
        """The ids of the nodes that this node is based on. () for a conversation, whose `filling` has its lines instead
        of ids."""
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
    """Count keywords as the published code of Park 2023 does, which ignores idle objects and chats."""
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
                f"{path}: {id}: filling names {missing[0]!r:.60}, but there is no such node: add it, or remove its id"
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


Tile = tuple[Whole, Whole]
Triple = tuple[str | None, str | None, str | None]
Chat = tuple[tuple[str, str], ...]
Schedule = tuple[tuple[str, Number], ...]
"""Pairs of an activity and its minutes."""


@dataclass(frozen=True)
class Scratch:
    """A resident's `scratch.json`: 47 keys in the order of the file. Times are texts (see `parse_time`), and tiles are
    pairs (x, y)."""

    vision_r: Whole
    att_bandwidth: Whole
    retention: Whole
    curr_time: ClockText | None
    curr_tile: Tile | None
    daily_plan_req: str
    name: str
    first_name: str
    last_name: str
    age: Whole
    innate: str
    learned: str
    currently: str
    lifestyle: str
    living_area: str
    concept_forget: Number
    daily_reflection_time: Number
    daily_reflection_size: Number
    overlap_reflect_th: Number
    kw_strg_event_reflect_th: Number
    kw_strg_thought_reflect_th: Number
    recency_w: Number
    relevance_w: Number
    importance_w: Number
    recency_decay: Number
    importance_trigger_max: Number
    importance_trigger_curr: Number
    importance_ele_n: Whole
    thought_count: Whole
    daily_req: tuple[str, ...]
    f_daily_schedule: Schedule
    f_daily_schedule_hourly_org: Schedule
    act_address: str | None
    act_start_time: ClockText | None
    act_duration: Number | None
    act_description: str | None
    act_pronunciatio: str | None
    act_event: Triple
    act_obj_description: str | None
    act_obj_pronunciatio: str | None
    act_obj_event: Triple
    chatting_with: str | None
    chat: Chat | None
    chatting_with_buffer: Mapping[str, Whole]
    chatting_end_time: ClockText | None
    act_path_set: bool
    planned_path: tuple[Tile, ...]
    extra: Mapping[str, JsonValue]


ENVIRONMENT, MOVEMENT = "environment", "movement"
ARCHIVE = "movement+environment.tar.gz"
PLAYED = "master_movement.json"
STEP = re.compile(r"(environment|movement)/(\d{1,9})\.json")
MOST_STEP_BYTES, MOST_ARCHIVE_BYTES, MOST_STEPS = 10_000_000, 512_000_000, 2_000_000
NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class Position:
    """A resident's position at the beginning of a step."""

    maze: str
    x: Whole
    y: Whole
    extra: Mapping[str, JsonValue]

    @property
    def spot(self) -> Spot:
        """The tile as (x, y)."""
        return self.x, self.y


@dataclass(frozen=True)
class Move:
    """A resident's movement and activity in a step; `description`: such as "reading @ the Ville:…"."""

    movement: Tile
    pronunciatio: str | None
    description: str | None
    chat: Chat | None
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class MovementMeta:
    """The time of a step, and the file's further fields (`extra`)."""

    curr_time: ClockText
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class Movement:
    """What a movement file records of a step.

    Attributes:
        persona: the move of each persona.
        meta: the time; None if the file has the short form, without a time.
    """

    persona: Mapping[str, Move]
    meta: MovementMeta | None
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class Recording:
    """The steps of a simulation, read on demand. The mappings give, for each step, its file or the file's content."""

    environments: Mapping[int, Path | bytes] = field(default_factory=dict)
    movements: Mapping[int, Path | bytes] = field(default_factory=dict)

    def environment(self, step: int) -> dict[str, Position]:
        """Return the positions at the beginning of a step.

        Raises:
            InputError: the step is not recorded, or its file is invalid.
        """
        where, data = _load(self.environments, ENVIRONMENT, step)
        return {name: parse_as(Position, each, f"{where}: {name!r:.60}") for name, each in data.items()}

    def movement(self, step: int) -> Movement:
        """Return the recorded moves of a step.

        Raises:
            InputError: the step is not recorded, or its file is invalid.
        """
        where, data = _load(self.movements, MOVEMENT, step)
        people = expect_object(data.get("persona", {}), f"{where}: persona")
        moves = {name: parse_as(Move, each, f"{where}: {name!r:.60}") for name, each in people.items()}
        meta = parse_as(MovementMeta, data["meta"], f"{where}: meta") if data.get("meta") else None
        return Movement(moves, meta, {key: each for key, each in data.items() if key not in ("persona", "meta")})


def read_recording(folder: Path) -> Recording:
    """Find the recorded steps of a saved simulation; there may be none.

    Raises:
        InputError: `movement+environment.tar.gz` or `master_movement.json` cannot be read or is invalid, or there are
            too many steps.
    """
    if (played := folder / PLAYED).is_file() and not (folder / MOVEMENT).is_dir():
        return Recording({}, _read_played(played))
    found: dict[str, dict[int, Path | bytes]] = {ENVIRONMENT: {}, MOVEMENT: {}}
    if (archive := folder / ARCHIVE).is_file():
        _read_archive(archive, found)
    for kind, steps in found.items():
        for path in (folder / kind).glob("*.json"):
            if match := STEP.fullmatch(f"{kind}/{path.name}"):
                steps[int(match[2])] = path
        if len(steps) > MOST_STEPS:
            raise InputError(f"{folder / kind} has more than {MOST_STEPS:,} steps, the maximum")
    return Recording(*(dict(sorted(found[kind].items())) for kind in (ENVIRONMENT, MOVEMENT)))


class Built(Mapping[int, bytes]):
    """The files of steps, whose content is built on demand."""

    def __init__(self, steps: range, build: Callable[[int], JsonValue]) -> None:
        self._steps, self._build = steps, build

    def __getitem__(self, step: int) -> bytes:
        if step not in self._steps:
            raise KeyError(step)
        return json.dumps(self._build(step)).encode()

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _read_played(path: Path) -> Built:
    """Read the short form of a simulation, which contains only changes.

    The movement of a step has, for each resident, the last change up to this step.
    """
    data = load_object(path, MOST_ARCHIVE_BYTES)
    if wrong := [key for key in data if not NUMBER.fullmatch(key)]:
        raise InputError(f"{path}: expected whole numbers (steps) as keys, found {wrong[0]!r:.60}")
    steps = {int(key): expect_object(moves, f"{path}: {key}") for key, moves in data.items()}
    if (last := max(steps, default=-1)) >= MOST_STEPS:
        raise InputError(f"{path}: expected step numbers below {MOST_STEPS:,}, found {last:,}")
    changes: dict[str, tuple[list[int], list[JsonValue]]] = {}
    for step in sorted(steps):
        for name, move in steps[step].items():
            parse_as(Move, move, f"{path}: {step}: {name!r:.60}")
            at, moves = changes.setdefault(name, ([], []))
            at.append(step)
            moves.append(move)

    def movement(step: int) -> JsonValue:
        found = {name: (bisect_right(at, step), moves) for name, (at, moves) in changes.items()}
        return {"persona": {name: moves[n - 1] for name, (n, moves) in found.items() if n}}

    return Built(range(last + 1), movement)


def _load(files: Mapping[int, Path | bytes], kind: str, step: int) -> tuple[str, JsonObject]:
    source = files.get(step)
    if source is None:
        raise InputError(f"{kind}/{step}.json: the step is not recorded")
    if isinstance(source, Path):
        return str(source), expect_object(load_json(source, MOST_STEP_BYTES), str(source))
    where = f"{ARCHIVE}: {kind}/{step}.json"
    try:
        return where, expect_object(parse_json(source.decode("utf-8"), where), where)
    except UnicodeDecodeError:
        raise InputError(f"{where}: the file is not UTF-8 text: save it as UTF-8") from None


def _read_archive(path: Path, found: Mapping[str, dict[int, Path | bytes]]) -> None:
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.size > MOST_STEP_BYTES or member.offset_data > MOST_ARCHIVE_BYTES:
                    raise InputError(f"{path}: {member.name!r:.99}, or the archive up to it, is too large")
                match = STEP.fullmatch("/".join(member.name.split("/")[-2:]))
                if not match or not member.isreg():
                    continue
                file = archive.extractfile(member)
                found[match[1]][int(match[2])] = file.read() if file else b""
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}") from None


MOST_RESIDENTS = 100_000
LONGEST_STEP_S, LAST_STEP = 86_400, 1_000_000_000


@dataclass(frozen=True)
class SaveMeta:
    """The content of `reverie/meta.json`."""

    fork_sim_code: str | None
    start_date: DateText
    curr_time: ClockText
    sec_per_step: Whole
    maze_name: str
    persona_names: tuple[str, ...]
    step: Whole
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class PersonaSave:
    """The saved data of a resident."""

    scratch: Scratch
    places: PlaceTree
    memory: AssociativeMemory

    @property
    def name(self) -> str:
        return self.scratch.name


@dataclass(frozen=True)
class Save:
    """A saved simulation; residents are in the order of the meta file."""

    meta: SaveMeta
    personas: Mapping[str, PersonaSave]
    recording: Recording


def read_save(folder: Path) -> Save:
    """Read a saved simulation.

    Raises:
        InputError: a file is missing or invalid. Or the list of residents is empty or too long, names a resident twice,
            or names a resident without a folder. The message has file and key.
    """
    path = find_meta(folder)
    meta = _read_meta(path, folder)
    names = meta.persona_names
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: persona_names: {twice!r:.60} occurs twice")
    if not names:
        raise InputError(
            f"{path}: persona_names: the list is empty: list at least one resident, by the name of its folder"
        )
    if len(names) > MOST_RESIDENTS:
        raise InputError(f"{path}: persona_names: at most {MOST_RESIDENTS:,} residents are possible")
    for name in names:
        if not is_folder_name(name):
            raise InputError(f"{path}: persona_names: {name!r:.60} cannot be the name of a folder")
        if not (folder / "personas" / name).is_dir():
            raise InputError(f"{path}: persona_names: {_missing_folder(name, folder / 'personas')}")
    personas = {name: _read_persona(folder / "personas" / name / "bootstrap_memory", name) for name in names}
    return Save(meta, personas, read_recording(folder))


def find_meta(folder: Path) -> Path:
    """Return the meta file of a saved simulation.

    Raises:
        InputError: the folder has no meta file.
    """
    for path in (folder / "reverie" / "meta.json", folder / "meta.json"):
        if path.exists():
            return path
    raise InputError(
        f"{folder} is not a saved simulation: it contains neither reverie/meta.json nor meta.json; "
        "name the folder that contains 'personas'"
    )


def write_save(save: Save, folder: Path) -> None:
    """Write a saved simulation, which the published code of Park 2023 can continue, into a new or empty folder.

    Raises:
        InputError: the folder is not empty, or cannot be written.
    """
    folder = make_new_folder(folder)
    _write(folder / "reverie" / "meta.json", to_plain(save.meta), indent=2)
    write_personas(save, folder)
    for step in save.recording.environments:
        _write(folder / ENVIRONMENT / f"{step}.json", to_plain(save.recording.environment(step)))
    for step in save.recording.movements:
        _write(folder / MOVEMENT / f"{step}.json", to_plain(save.recording.movement(step)))


def write_personas(save: Save, folder: Path) -> None:
    """Write the folder of each resident into a folder.

    Raises:
        InputError: a file exists already or cannot be written, or a resident's name cannot be the name of a folder.
    """
    for name, persona in save.personas.items():
        if not is_folder_name(name):
            raise InputError(f"{name!r:.60} cannot be the name of a folder")
        place = folder / "personas" / name / "bootstrap_memory"
        _write(place / "scratch.json", to_plain(persona.scratch), indent=2)
        _write(place / "spatial_memory.json", to_plain(persona.places.to_json()))
        for file, data in plain_memory(persona.memory).items():
            _write(place / "associative_memory" / file, data)


def is_folder_name(name: str) -> bool:
    """Return whether a resident's name can safely be used as the name of a folder."""
    return (
        0 < len(name.encode()) <= 200
        and name.isprintable()
        and not set(name) & set("/\\:")
        and name.strip(". ") == name
    )


def _read_meta(path: Path, folder: Path) -> SaveMeta:
    """Read a meta file.

    Missing keys are derived (start date, residents) or have a default (such as the map).
    """
    data = load_object(path)
    if isinstance(now := data.get("curr_time"), str):
        data.setdefault("start_date", now.rpartition(", ")[0])
    people = sorted(each.name for each in (folder / "personas").glob("*") if each.is_dir())
    known: JsonObject = {"fork_sim_code": None, "maze_name": "the_ville", "persona_names": [*people]}
    meta = parse_as(SaveMeta, {**known, **data}, str(path))
    if not 1 <= meta.sec_per_step <= LONGEST_STEP_S:
        raise InputError(f"{path}: sec_per_step: expected 1 to {LONGEST_STEP_S:,} seconds, found {meta.sec_per_step}")
    if not 0 <= meta.step <= LAST_STEP:
        raise InputError(f"{path}: step: expected a number from 0 to {LAST_STEP:,}, found {meta.step}")
    return meta


def _missing_folder(name: str, people: Path) -> str:
    there = sorted(each.name for each in people.glob("*") if each.is_dir())
    near = nearest(name, there)
    advice = f"; there is a folder {near!r}" if near else ""
    return f"{name!r:.60} has no folder in {people}{advice}: add the folder, or remove the name"


def _read_persona(folder: Path, name: str) -> PersonaSave:
    scratch = parse_as(Scratch, load_json(folder / "scratch.json"), str(folder / "scratch.json"))
    if scratch.name != name:
        raise InputError(
            f"{folder / 'scratch.json'}: name: expected {name!r}, the folder's name, found {scratch.name!r:.60}"
        )
    path = folder / "spatial_memory.json"
    return PersonaSave(scratch, parse_tree(load_json(path), str(path)), read_memory(folder / "associative_memory"))


def _write(path: Path, data: JsonValue, indent: int | None = None) -> None:
    write_text(path, json.dumps(data, indent=indent))


def settle_clock(save: Save, tell: Callable[[str], None]) -> Save:
    """Return the save with a step number and a step length that fit its times. Report a correction with `tell`.

    Step number times step length must be the time from the start of the first day to the current time. If it is not,
    the step length becomes the time from the residents' last time to the current time of the meta file. The save stays
    unchanged if the residents differ in their last time, or if the new number of steps is not a whole number.
    """
    meta = save.meta
    now = parse_time(meta.curr_time)
    lived = now - parse_time(meta.start_date, DATE)
    last = {persona.scratch.curr_time for persona in save.personas.values()} - {None}
    if len(last) != 1 or meta.step * meta.sec_per_step == lived:
        return save
    step_s = int(now - parse_time(str(last.pop())))
    if step_s == meta.sec_per_step or step_s < 1 or lived <= 0 or lived % step_s:
        return save
    step = int(lived) // step_s
    tell(
        f"meta.json: step {meta.step} with {meta.sec_per_step} seconds per step does not fit its times; "
        f"using step {step} with {step_s} seconds"
    )
    return replace(save, meta=replace(meta, step=step, sec_per_step=step_s))


MOST_BYTES = 16_000_000


def read_whispers(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a CSV file with a name and memories (separated by semicolons) in each row. Return the memories for each
    name, in the order of the file; the names need not be those of residents.

    Raises:
        InputError: the file cannot be read, or a row is invalid.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        rows = list(csv.reader(load_text(path, MOST_BYTES).splitlines(), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: {error}") from None
    for number, row in enumerate(rows, start=1):
        if number == 1 and row[:1] == ["Name"]:
            continue
        if len(row) < 2:
            raise InputError(f"{path}: row {number}: expected a name and memories (two cells), found {len(row)} cells")
        whispers = tuple(text for part in ",".join(row[1:]).split(";") if (text := part.strip()))
        found[row[0].strip()] = found.get(row[0].strip(), ()) + whispers
    return found
