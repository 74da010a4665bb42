"""Saved simulations of Park 2023, read and written: `reverie/meta.json`, steps, and a folder for each resident.

Read and written again, every JSON file holds the same; keys that are not known are kept. The short form that the
authors' demo plays has its `meta.json` beside the residents' folders; it is read, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.town.formats.files import load_json, load_object, make_new_folder, write_text
from mindstream.town.formats.nodes import AssociativeMemory, plain_memory, read_memory
from mindstream.town.formats.recording import ENVIRONMENT, MOVEMENT, Recording, read_recording
from mindstream.town.formats.scratch import Scratch
from mindstream.town.formats.typed import ClockText, DateText, Whole, parse_as, to_plain
from mindstream.town.world.tree import PlaceTree, parse_tree

MOST_RESIDENTS = 100_000
LONGEST_STEP_S, LAST_STEP = 86_400, 1_000_000_000


@dataclass(frozen=True)
class SaveMeta:
    """What `reverie/meta.json` holds."""

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
    """What is saved of a resident."""

    scratch: Scratch
    places: PlaceTree
    memory: AssociativeMemory

    @property
    def name(self) -> str:
        """Who it is."""
        return self.scratch.name


@dataclass(frozen=True)
class Save:
    """A saved simulation; residents in the order of the meta file."""

    meta: SaveMeta
    personas: Mapping[str, PersonaSave]
    recording: Recording


def read_save(folder: Path) -> Save:
    """Read a saved simulation.

    Raises:
        InputError: a file is missing or wrong, a resident twice or without a folder; with the file and what is in it.
    """
    path = find_meta(folder)
    meta = _read_meta(path, folder)
    names = meta.persona_names
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: persona_names: {twice!r:.60} stands there twice")
    if not names:
        raise InputError(f"{path}: persona_names: nobody is named: name at least one resident, as its folder is called")
    if len(names) > MOST_RESIDENTS:
        raise InputError(f"{path}: persona_names: more than {MOST_RESIDENTS:,}")
    for name in names:
        if not is_folder_name(name):
            raise InputError(f"{path}: persona_names: {name!r:.60} cannot be the name of a folder")
        if not (folder / "personas" / name).is_dir():
            raise InputError(f"{path}: persona_names: {_missing_folder(name, folder / 'personas')}")
    personas = {name: _read_persona(folder / "personas" / name / "bootstrap_memory", name) for name in names}
    return Save(meta, personas, read_recording(folder))


def find_meta(folder: Path) -> Path:
    """Return where a saved simulation says what it is.

    Raises:
        InputError: nothing there does.
    """
    for path in (folder / "reverie" / "meta.json", folder / "meta.json"):
        if path.exists():
            return path
    raise InputError(
        f"{folder}: no saved simulation is there: reverie/meta.json is missing (in the short form: meta.json); "
        "name the folder that holds 'personas'"
    )


def write_save(save: Save, folder: Path) -> None:
    """Write a saved simulation into a folder, which must be new or empty; the authors' code can go on from it.

    Raises:
        InputError: it is not, or cannot be written.
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
        InputError: they are there, or cannot be written.
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
    """Tell whether a resident's name can be the name of their folder, and of nothing above it."""
    return (
        0 < len(name.encode()) <= 200
        and name.isprintable()
        and not set(name) & set("/\\:")
        and name.strip(". ") == name
    )


def _read_meta(path: Path, folder: Path) -> SaveMeta:
    """Read a meta file; what is known without it (its first day, who is there, the map's usual name) may be missing."""
    data = load_object(path)
    if isinstance(now := data.get("curr_time"), str):
        data.setdefault("start_date", now.rpartition(", ")[0])
    people = sorted(each.name for each in (folder / "personas").glob("*") if each.is_dir())
    known: dict[str, JsonValue] = {"fork_sim_code": None, "maze_name": "the_ville", "persona_names": [*people]}
    meta = parse_as(SaveMeta, {**known, **data}, str(path))
    if not 1 <= meta.sec_per_step <= LONGEST_STEP_S:
        raise InputError(f"{path}: sec_per_step: 1 to {LONGEST_STEP_S:,} seconds are wanted, not {meta.sec_per_step}")
    if not 0 <= meta.step <= LAST_STEP:
        raise InputError(f"{path}: step: a number from 0 on is wanted, not {meta.step}")
    return meta


def _missing_folder(name: str, people: Path) -> str:
    there = sorted(each.name for each in people.glob("*") if each.is_dir())
    near = get_close_matches(name, there, 1)
    advice = f"; {near[0]!r} is there" if near else ""
    return f"{name!r:.60} has no folder in {people}{advice}: add it, or take the name out"


def _read_persona(folder: Path, name: str) -> PersonaSave:
    scratch = parse_as(Scratch, load_json(folder / "scratch.json"), str(folder / "scratch.json"))
    if scratch.name != name:
        raise InputError(f"{folder / 'scratch.json'}: name: {scratch.name!r:.60} is in the folder of {name!r}")
    path = folder / "spatial_memory.json"
    return PersonaSave(scratch, parse_tree(load_json(path), str(path)), read_memory(folder / "associative_memory"))


def _write(path: Path, data: JsonValue, indent: int | None = None) -> None:
    write_text(path, json.dumps(data, indent=indent))
