"""Check the figures that a replay of the recorded days of Park 2023 must reproduce (the anchors of a town).

    python benchmarks/town_anchors.py --data DIR [--map DIR] [--json]

DIR is a saved simulation, or a folder with several. Unless --map is given, the map of a save is searched by its name in
neighbouring and parent folders. Each anchor reports the number of cases and those that differ; without cases, why.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mindstream_town.formats.files import load_json
from mindstream_town.formats.maps import find_map
from mindstream_town.formats.matrix import MAZES, Matrix, read_matrix, world_of_matrix
from mindstream_town.formats.saves import plain_memory, read_save, settle_clock
from mindstream_town.formats.tiled import matrix_of_tiled, read_tiled
from mindstream_town.formats.town_file import to_plain
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, Spot
from town_minds import MINDS
from town_recorded import Figure, Measure, Recorded, figure, nothing

from mindstream.errors import InputError

NO_STEPS = "no step is recorded: neither movement/ nor its archive nor master_movement.json"


def standing(recorded: Recorded) -> Mapping[str, Spot]:
    """Return the positions of the residents at the first recorded step, otherwise their last known ones."""
    if recorded.standing:
        return recorded.standing[min(recorded.standing)]
    people = recorded.save.personas.items()
    return {name: each.scratch.curr_tile for name, each in people if each.scratch.curr_tile}


def import_counts(recorded: Recorded) -> Figure:
    """A1: the contents of the map, and whether every place is reachable."""
    world, levels = recorded.world, Counter(address.level for address in recorded.world.places)
    positions = standing(recorded)
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
        component=sum(
            world.routes.is_reachable(spot, (x, y))
            for spot in list(positions.values())[:1]
            for x in range(world.width)
            for y in range(world.height)
            if world.walkable((x, y))
        ),
        object_tiles=len(objects),
        blocked_object_tiles=sum(not world.walkable(spot) for spot in objects),
    )


def trips(recorded: Recorded) -> Iterator[tuple[str, list[Spot]]]:
    """Yield the stretches of steps in which a resident moves every time with the same activity: the resident and the
    spots.
    """
    for name in recorded.save.personas:
        run: list[Spot] = []
        doing, last = None, -1
        for step, moves in recorded.moves.items():
            here = recorded.standing.get(step, {}).get(name)
            if here is None or name not in moves:
                continue
            move = moves[name]
            if run and (move.description != doing or run[-1] != here or move.movement == here or step != last + 1):
                yield name, run
                run = []
            last = step
            if move.movement != here:
                run, doing = [*(run or [here]), move.movement], move.description
        if run:
            yield name, run


def path_lengths(recorded: Recorded) -> Figure:
    """A3: recorded trips are as long as the shortest paths of mindstream between their ends."""
    if not recorded.moves:
        return nothing(NO_STEPS)
    cases, differ = 0, []
    for name, spots in trips(recorded):
        cases += 1
        try:
            shortest = recorded.world.routes.distance(spots[0], spots[-1])
        except InputError as error:
            differ.append(f"{name}: {error}")
            continue
        if shortest != len(spots) - 1:
            differ.append(f"{name}: {spots[0]} to {spots[-1]}: {len(spots) - 1} recorded, {shortest} shortest")
    return figure(cases, differ) if cases else nothing("no resident walks in the recorded steps")


def movement_invariants(recorded: Recorded) -> Figure:
    """A4: no resident is in a wall or moves by more than one tile; each move ends where the resident is at the next
    step.
    """
    if not recorded.moves:
        return nothing(NO_STEPS)
    cases, begun, differ = 0, 0, []
    stood = recorded.save.recording.environments
    for step, moves in recorded.moves.items():
        here, after = recorded.standing.get(step, {}), recorded.standing.get(step + 1, {})
        for name, move in moves.items():
            cases += 1
            spot, (i, j) = here.get(name, move.movement), move.movement
            apart = abs(spot[0] - i) + abs(spot[1] - j)
            begins = step + 1 in stood and name in after
            begun += begins
            if not recorded.world.walkable((i, j)) or apart > 1:
                differ.append(f"step {step}: {name} goes from {spot} to {(i, j)}")
            elif begins and after[name] != (i, j):
                differ.append(f"step {step}: {name} goes to {(i, j)} and stands at {after[name]}")
    return figure(cases, differ, next_step_recorded=begun)


def round_trip(recorded: Recorded) -> Figure:
    """A10: every JSON file of a resident is the same after reading and writing, byte for byte with sorted keys."""
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
    """A2: the layers of the Tiled maps next to a matrix equal its mazes; ids that no table contains are counted
    separately.
    """
    if not visuals.is_dir():
        return {str(visuals): nothing("no Tiled map is next to the matrix (visuals/*.tmx, *.json)")}
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
"""The checks of each saved simulation."""


def find_saves(folder: Path) -> list[Path]:
    """Return a saved simulation, or those in a folder, including the short form."""
    if (folder / "personas").is_dir():
        return [folder]
    found = sorted(path.parent for depth in range(1, 5) for path in folder.glob("*/" * depth + "personas"))
    if not found:
        raise InputError(f"{folder}: no saved simulation (a folder with reverie/meta.json or meta.json, and personas)")
    return found


def measure(data: Path, map_folder: Path | None) -> dict[str, Any]:
    """Return each anchor's result, by saved simulation; `refused` are those that cannot be read, and why."""
    results: dict[str, Any] = {"A2 Tiled": {}}
    worlds: dict[Path, TileWorld] = {}
    for folder in find_saves(data):
        key = str(folder.relative_to(data)) if folder != data else folder.resolve().name
        try:
            read = read_save(folder)
            place = map_folder or find_map(folder, read.meta.maze_name)
            if place not in worlds:
                matrix = read_matrix(place / "matrix" if (place / "matrix").is_dir() else place)
                worlds[place] = world_of_matrix(matrix)
                results["A2 Tiled"] |= tiled_equality(matrix, place / "visuals")
            notes: list[str] = []
            recorded = Recorded(folder, settle_clock(read, notes.append), worlds[place])
            _ = recorded.setting
        except InputError as error:
            results.setdefault("refused", {})[key] = str(error)
            continue
        for name, anchor in ANCHORS.items():
            try:
                found = anchor(recorded)
            except InputError as error:
                found = nothing(str(error))
            results.setdefault(name, {})[key] = replace(found, counts={**found.counts, **dict.fromkeys(notes, 1)})
    return {
        name: {key: each if isinstance(each, str) else asdict(each) for key, each in by_save.items()}
        for name, by_save in results.items()
    }  # fmt: skip


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
            if isinstance(found, str):
                print(f"{name:22} {save:24} {found}")
            elif not found["cases"]:
                print(f"{name:22} {save:24} not measured: {found['why']}")
            else:
                counted = f"{found['cases']:>7,} cases, {found['wrong']} differ"
                print(f"{name:22} {save:24} {counted}", found["counts"] or "", *found["differ"][:3])


if __name__ == "__main__":
    main()
