"""The anchors of a town: what a reading of the recorded days of Park 2023 must reproduce.

    python benchmarks/town_anchors.py --data DIR [--map DIR] [--json]

DIR is a saved simulation, or a folder with several. The map is `the_ville` in or beside it, unless it is named. Each
figure says how many cases were looked at and which of them differ; an anchor with nothing to look at is left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from town_minds import MINDS
from town_recorded import Figure, Measure, Recorded, figure

from mindstream.errors import InputError
from mindstream.town.formats.files import load_json
from mindstream.town.formats.maps import read_tiled
from mindstream.town.formats.matrix import MAZES, Matrix, read_matrix, world_of_matrix
from mindstream.town.formats.nodes import plain_memory
from mindstream.town.formats.saves import Save, read_save
from mindstream.town.formats.tiled import matrix_of_tiled
from mindstream.town.formats.typed import to_plain
from mindstream.town.world.address import ARENA, OBJECT, SECTOR
from mindstream.town.world.world import Spot


def standing(save: Save) -> dict[str, Spot]:
    """Return where residents stand at the first recorded step, else where they last were."""
    if save.recording.environments:
        first = save.recording.environment(min(save.recording.environments))
        return {name: position.spot for name, position in first.items()}
    return {name: each.scratch.curr_tile for name, each in save.personas.items() if each.scratch.curr_tile}


def import_counts(recorded: Recorded) -> Figure:
    """A1: what is on the map, and that everybody can reach all of it."""
    world, levels = recorded.world, Counter(address.level for address in recorded.world.places)
    positions = standing(recorded.save)
    stuck = [
        f"{name}: {address}"
        for name, spot in positions.items()
        for address in world.places
        if not world.routes.is_reachable(spot, address)
    ]
    objects = [spot for address in world.places if address.level == OBJECT for spot in world.tiles(address)]
    return figure(
        len(world.places) - 1,
        stuck,
        residents=len(recorded.save.personas),
        sectors=levels[SECTOR],
        arenas=levels[ARENA],
        objects=levels[OBJECT],
        blocked=sum(world.walls),
        free=len(world.walls) - sum(world.walls),
        component=world.routes.region(next(iter(positions.values()))).size if positions else 0,
        object_tiles=len(objects),
        blocked_object_tiles=sum(not world.walkable(spot) for spot in objects),
    )


def trips(recorded: Recorded) -> Iterator[tuple[str, list[Spot]]]:
    """Yield the runs of steps in which a resident moves every time, doing the same: who, and the spots."""
    steps = [
        (recorded.save.recording.environment(k), recorded.save.recording.movement(k))
        for k in recorded.save.recording.movements
        if k in recorded.save.recording.environments
    ]
    for name in recorded.save.personas:
        run: list[Spot] = []
        doing: str | None = None
        for positions, movement in steps:
            if name not in positions or name not in movement.persona:
                continue
            here, move = positions[name].spot, movement.persona[name]
            if run and (move.description != doing or run[-1] != here or move.movement == here):
                yield name, run
                run = []
            if move.movement != here:
                run, doing = [*(run or [here]), move.movement], move.description
        if run:
            yield name, run


def path_lengths(recorded: Recorded) -> Figure:
    """A3: recorded trips are as long as our shortest ways between their ends."""
    cases, differ = 0, []
    for name, spots in trips(recorded):
        cases += 1
        shortest = recorded.world.routes.distance(spots[0], spots[-1])
        if shortest != len(spots) - 1:
            differ.append(f"{name}: {spots[0]} to {spots[-1]}: {len(spots) - 1} recorded, {shortest} shortest")
    return figure(cases, differ)


def movement_invariants(recorded: Recorded) -> Figure:
    """A4: nobody is in a wall or moves by more than one tile; who moved stands there at the next step."""
    recording, differ, cases = recorded.save.recording, [], 0
    for k in recording.movements:
        here, after = recording.environment(k), recording.environment(k + 1) if k + 1 in recording.environments else {}
        for name, move in recording.movement(k).persona.items():
            cases += 1
            (x, y), (i, j) = here[name].spot, move.movement
            if not recorded.world.walkable((i, j)) or abs(x - i) + abs(y - j) > 1:
                differ.append(f"step {k}: {name} goes from {(x, y)} to {(i, j)}")
            if name in after and after[name].spot != (i, j):
                differ.append(f"step {k}: {name} goes to {(i, j)} and stands at {after[name].spot}")
    return figure(cases, differ)


def round_trip(recorded: Recorded) -> Figure:
    """A10: every JSON file of a resident is the same after reading, to the byte once its keys are sorted."""
    cases, differ = 0, []
    for name, persona in recorded.save.personas.items():
        folder = recorded.folder / "personas" / name / "bootstrap_memory"
        files = {
            folder / "scratch.json": to_plain(persona.scratch),
            folder / "spatial_memory.json": to_plain(persona.places.to_json()),
            **{folder / "associative_memory" / file: data for file, data in plain_memory(persona.memory).items()},
        }
        for path, data in files.items():
            cases += 1
            if json.dumps(data, sort_keys=True) != json.dumps(load_json(path), sort_keys=True):
                differ.append(str(path.relative_to(recorded.folder)))
    return figure(cases, differ)


def tiled_equality(matrix: Matrix, visuals: Path) -> dict[str, Figure]:
    """A2: the layers of the Tiled maps beside a matrix are its mazes; ids that no table has are counted apart."""
    figures = {}
    for path in sorted([*visuals.glob("*.tmx"), *visuals.glob("*.json")]):
        mazes = matrix_of_tiled(read_tiled(path), matrix.tables).mazes
        pairs = [
            (maze, ours, theirs) for maze in MAZES for ours, theirs in zip(matrix.mazes[maze], mazes[maze], strict=True)
        ]
        known = {maze: {int(row[0]) for row in matrix.tables[maze]} for maze in MAZES[1:]}
        apart = Counter(
            f"{maze} {theirs}"
            for maze, ours, theirs in pairs
            if ours != theirs and ours == 0 and theirs not in known.get(maze, {theirs})
        )
        differ = [
            f"{maze}: {ours} and {theirs}"
            for maze, ours, theirs in pairs
            if ours != theirs and f"{maze} {theirs}" not in apart
        ]
        figures[path.name] = figure(
            len(pairs), differ, **{f"without_a_row_{key.replace(' ', '_')}": n for key, n in apart.items()}
        )
    return figures


ANCHORS: dict[str, Measure] = {
    "A1 import": import_counts,
    "A3 shortest paths": path_lengths,
    "A4 movement": movement_invariants,
    **MINDS,
    "A10 round trip": round_trip,
}
"""What is measured on each saved simulation."""


def find_saves(folder: Path) -> list[Path]:
    """Return a saved simulation, or those in a folder."""
    found = [folder] if (folder / "reverie").is_dir() else sorted(path.parent for path in folder.glob("*/reverie"))
    if not found:
        raise InputError(f"{folder}: no saved simulation (a folder with reverie/meta.json)")
    return found


def measure(data: Path, map_folder: Path | None) -> dict[str, Any]:
    """Return each anchor's figure, by saved simulation."""
    maps = [map_folder] if map_folder else [data / "the_ville", data.parent / "the_ville"]
    place = next((path for path in maps if path.is_dir()), None)
    if place is None:
        raise InputError(f"{data}: no map beside it (the_ville); name one with --map")
    matrix = read_matrix(place / "matrix" if (place / "matrix").is_dir() else place)
    world = world_of_matrix(matrix)
    results: dict[str, Any] = {
        "A2 Tiled": {name: asdict(each) for name, each in tiled_equality(matrix, place / "visuals").items()}
    }
    for folder in find_saves(data):
        recorded = Recorded(folder, read_save(folder), world)
        for name, anchor in ANCHORS.items():
            found = anchor(recorded)
            if found.cases:
                results.setdefault(name, {})[folder.name] = asdict(found)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--map", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure(options.data, options.map)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for name, by_save in results.items():
        for save, found in by_save.items():
            print(
                f"{name:22} {save:24} {found['cases']:>7,} cases, {found['wrong']} differ",
                found["counts"] or "",
                *found["differ"][:3],
            )


if __name__ == "__main__":
    main()
