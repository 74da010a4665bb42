"""The recorded steps of a saved simulation: where everybody stood (`environment/`), where they went (`movement/`).

They stand in folders with a file a step, in `movement+environment.tar.gz` with those folders in it, or in the short
form that the authors' demo plays: `master_movement.json` has of each step only whom it changes, and no `environment`.
"""

from __future__ import annotations

import json
import re
import tarfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.town.formats.files import expect_object, load_json, load_object, parse_json
from mindstream.town.formats.scratch import Chat, Tile
from mindstream.town.formats.typed import ClockText, Whole, parse_as
from mindstream.town.world.world import Spot

ENVIRONMENT, MOVEMENT = "environment", "movement"
ARCHIVE = "movement+environment.tar.gz"
PLAYED = "master_movement.json"
STEP = re.compile(r"(environment|movement)/(\d{1,9})\.json")
MOST_STEP_BYTES, MOST_ARCHIVE_BYTES, MOST_STEPS = 10_000_000, 512_000_000, 2_000_000
NUMBER = re.compile(r"\d{1,9}")


@dataclass(frozen=True)
class Position:
    """Where a resident stands at the beginning of a step."""

    maze: str
    x: Whole
    y: Whole
    extra: Mapping[str, JsonValue]

    @property
    def spot(self) -> Spot:
        """The tile."""
        return self.x, self.y


@dataclass(frozen=True)
class Move:
    """Where a resident goes in a step, and what they do: "reading @ the Ville:…"."""

    movement: Tile
    pronunciatio: str | None
    description: str | None
    chat: Chat | None
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class MovementMeta:
    """When a step was."""

    curr_time: ClockText
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class Movement:
    """What a step came to; the short form does not say when it was."""

    persona: Mapping[str, Move]
    meta: MovementMeta | None
    extra: Mapping[str, JsonValue]


@dataclass(frozen=True)
class Recording:
    """The steps of a simulation, read when they are asked for.

    Attributes:
        environments: the file, or its content, of each recorded step.
        movements: the same.
    """

    environments: Mapping[int, Path | bytes] = field(default_factory=dict)
    movements: Mapping[int, Path | bytes] = field(default_factory=dict)

    def environment(self, step: int) -> dict[str, Position]:
        """Return where everybody stands at the beginning of a step.

        Raises:
            InputError: the step is not recorded, or its file is wrong.
        """
        where, data = _load(self.environments, ENVIRONMENT, step)
        return {name: parse_as(Position, each, f"{where}: {name!r:.60}") for name, each in data.items()}

    def movement(self, step: int) -> Movement:
        """Return what a step came to.

        Raises:
            InputError: the step is not recorded, or its file is wrong.
        """
        where, data = _load(self.movements, MOVEMENT, step)
        people = expect_object(data.get("persona", {}), f"{where}: persona")
        moves = {name: parse_as(Move, each, f"{where}: {name!r:.60}") for name, each in people.items()}
        meta = parse_as(MovementMeta, data["meta"], f"{where}: meta") if data.get("meta") else None
        return Movement(moves, meta, {key: each for key, each in data.items() if key not in ("persona", "meta")})


def read_recording(folder: Path) -> Recording:
    """Find the recorded steps of a saved simulation; none is no fault.

    Raises:
        InputError: the archive or the short form cannot be read, or there are too many steps.
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
            raise InputError(f"{folder / kind}: more than {MOST_STEPS:,} steps")
    return Recording(*(dict(sorted(found[kind].items())) for kind in (ENVIRONMENT, MOVEMENT)))


class _Played(Mapping[int, bytes]):
    """The steps of the short form, each made when it is asked for: what was last said of everybody."""

    def __init__(self, last: int, changes: Mapping[str, tuple[list[int], list[JsonValue]]]) -> None:
        self._steps, self._changes = range(last + 1), changes

    def __getitem__(self, step: int) -> bytes:
        if step not in self._steps:
            raise KeyError(step)
        people = {
            name: moves[at - 1] for name, (steps, moves) in self._changes.items() if (at := bisect_right(steps, step))
        }
        return json.dumps({"persona": people}).encode()

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


def _read_played(path: Path) -> _Played:
    data = load_object(path, MOST_ARCHIVE_BYTES)
    if wrong := [key for key in data if not NUMBER.fullmatch(key)]:
        raise InputError(f"{path}: {wrong[0]!r:.60} is no step: whole numbers are wanted as keys")
    steps = {int(key): expect_object(moves, f"{path}: {key}") for key, moves in data.items()}
    if (last := max(steps, default=-1)) >= MOST_STEPS:
        raise InputError(f"{path}: more than {MOST_STEPS:,} steps")
    changes: dict[str, tuple[list[int], list[JsonValue]]] = {}
    for step in sorted(steps):
        for name, move in steps[step].items():
            parse_as(Move, move, f"{path}: {step}: {name!r:.60}")
            at, moves = changes.setdefault(name, ([], []))
            at.append(step)
            moves.append(move)
    return _Played(last, changes)


def _load(files: Mapping[int, Path | bytes], kind: str, step: int) -> tuple[str, dict[str, JsonValue]]:
    source = files.get(step)
    if source is None:
        raise InputError(f"{kind}/{step}.json: the step is not recorded")
    if isinstance(source, Path):
        return str(source), expect_object(load_json(source, MOST_STEP_BYTES), str(source))
    where = f"{ARCHIVE}: {kind}/{step}.json"
    try:
        return where, expect_object(parse_json(source.decode("utf-8"), where), where)
    except UnicodeDecodeError:
        raise InputError(f"{where}: is not UTF-8 text") from None


def _read_archive(path: Path, found: Mapping[str, dict[int, Path | bytes]]) -> None:
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.size > MOST_STEP_BYTES or member.offset_data > MOST_ARCHIVE_BYTES:
                    raise InputError(f"{path}: {member.name!r:.99} is too large, or all together are")
                match = STEP.fullmatch("/".join(member.name.split("/")[-2:]))
                if not match or not member.isreg():
                    continue
                file = archive.extractfile(member)
                found[match[1]][int(match[2])] = file.read() if file else b""
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
