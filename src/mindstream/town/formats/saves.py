"""Saved simulations of Park 2023, read and written: `reverie/meta.json`, steps, and a folder for each resident.

Read and written again, every JSON file holds the same; keys that are not known are kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.town.formats.files import load_json, make_new_folder, write_text
from mindstream.town.formats.nodes import AssociativeMemory, plain_memory, read_memory
from mindstream.town.formats.recording import ENVIRONMENT, MOVEMENT, Recording, read_recording
from mindstream.town.formats.scratch import Scratch
from mindstream.town.formats.typed import ClockText, DateText, Whole, parse_as, to_plain
from mindstream.town.world.address import parse_address
from mindstream.town.world.tiles import TileWorld
from mindstream.town.world.tree import PlaceTree, parse_tree

MOST_RESIDENTS = 100_000


@dataclass(frozen=True)
class SaveMeta:
    """What `reverie/meta.json` holds."""

    fork_sim_code: str
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
    path = folder / "reverie" / "meta.json"
    meta = parse_as(SaveMeta, load_json(path), str(path))
    names = meta.persona_names
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: persona_names: {twice!r:.60} stands there twice")
    if len(names) > MOST_RESIDENTS:
        raise InputError(f"{path}: persona_names: more than {MOST_RESIDENTS:,}")
    for name in names:
        if not is_folder_name(name):
            raise InputError(f"{path}: persona_names: {name!r:.60} cannot be the name of a folder")
    personas = {name: _read_persona(folder / "personas" / name / "bootstrap_memory", name) for name in names}
    return Save(meta, personas, read_recording(folder))


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


def check_save(save: Save, world: TileWorld) -> None:
    """Refuse a save whose residents cannot live on a map: their home is not on it, or they stand in a wall.

    Places that they only remember need not be on the map.

    Raises:
        InputError: with the resident, the address or tile.
    """
    first = next(iter(save.recording.environments), None)
    standing = save.recording.environment(first) if first is not None else {}
    for name, persona in save.personas.items():
        try:
            home = parse_address(persona.scratch.living_area)
            world.spots(home)
            if name in standing and not world.routes.is_reachable(standing[name].spot, home):
                raise InputError(f"there is no way from {standing[name].spot} to {persona.scratch.living_area!r}")
        except InputError as error:
            raise InputError(f"{name}: living_area: {error}") from None


def is_folder_name(name: str) -> bool:
    """Tell whether a resident's name can be the name of their folder, and of nothing above it."""
    return (
        0 < len(name.encode()) <= 200
        and name.isprintable()
        and not set(name) & set("/\\:")
        and name.strip(". ") == name
    )


def _read_persona(folder: Path, name: str) -> PersonaSave:
    scratch = parse_as(Scratch, load_json(folder / "scratch.json"), str(folder / "scratch.json"))
    if scratch.name != name:
        raise InputError(f"{folder / 'scratch.json'}: name: {scratch.name!r:.60} is in the folder of {name!r}")
    path = folder / "spatial_memory.json"
    return PersonaSave(scratch, parse_tree(load_json(path), str(path)), read_memory(folder / "associative_memory"))


def _write(path: Path, data: JsonValue, indent: int | None = None) -> None:
    write_text(path, json.dumps(data, indent=indent))
