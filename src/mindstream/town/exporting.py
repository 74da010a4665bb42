"""A town as a saved simulation of Park 2023, as it stands after a step: their code and their pages can take it."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.memory.record import Record
from mindstream.memory.store import Store, read_all
from mindstream.models.embedders.embedder import Embedder
from mindstream.town.events import Act, Line, MovedIn, Talked, TownEvent
from mindstream.town.export_like import restore
from mindstream.town.export_memory import export_memory
from mindstream.town.export_state import address_of, clock_of, emoji_of, export_scratch
from mindstream.town.formats.recording import Recording
from mindstream.town.formats.saves import PersonaSave, Save, SaveMeta
from mindstream.town.formats.scratch import Scratch
from mindstream.town.formats.typed import DATE
from mindstream.town.journal import read_town, rows_after
from mindstream.town.person import Person
from mindstream.town.profile import Profile
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState, applied
from mindstream.town.world.address import parse_address
from mindstream.town.world.tree import PlaceTree
from mindstream.town.world.world import Spot


@dataclass(frozen=True)
class Track:
    """What a resident did, step by step.

    Attributes:
        home: where it stood before it did anything.
        steps: at which step each act began, in order. acts, talks: the act, and what was said with whom in it.
    """

    home: Spot
    steps: list[int]
    acts: list[Act]
    talks: list[tuple[str, tuple[Line, ...]]]

    def at(self, step: int) -> int:
        """Return the number of the act at a step; -1: none yet."""
        return bisect_right(self.steps, step) - 1

    def spot(self, step: int) -> Spot:
        """Return where it stands after a step."""
        number = self.at(step)
        return self.acts[number].spot(step) if number >= 0 else self.home


async def save_of_town(
    store: Store, setting: Setting, embedder: Embedder, *, upto: int | None = None, maze: str = "the_ville",
    saved: Save | None = None,
) -> Save:  # fmt: skip
    """Return a town as a saved simulation.

    Args:
        embedder: makes the vectors that the stream's records have not; those at hand are of the same.
        upto: the step after which it is saved; None: the last one.
        maze: what their code calls the map.
        saved: what the town began from; what a town does not keep of it is put back.

    Raises:
        InputError: `saved` is not what this town began from.
    """
    town = await read_town(store, setting.profile, upto)
    step = town.step if upto is None else upto
    tracks = await _tracks(store, setting.profile, step)
    meta = SaveMeta(
        fork_sim_code=setting.name, start_date=datetime.fromtimestamp(setting.start, UTC).strftime(DATE),
        curr_time=clock_of(setting, step + 1), sec_per_step=setting.profile.step_s, maze_name=maze,
        persona_names=tuple(setting.people), step=step + 1, extra={},
    )  # fmt: skip
    personas = {}
    for name, person in setting.people.items():
        state, track = town.states[name], tracks[name]
        lines = track.talks[track.at(step)][1] if track.acts else ()
        scratch = export_scratch(setting, person, state, step, lines)
        places = PlaceTree(parse_address(place) for place in sorted(state.knows))
        records = [each async for each in _records(store, name, math.inf if upto is None else setting.moment(upto))]
        memory = export_memory(name, await _embedded(_without_description(records, scratch), embedder))
        personas[name] = PersonaSave(scratch, places, memory)
    first = min((track.steps[0] for track in tracks.values() if track.steps), default=0)
    save = Save(meta, personas, _recording(setting, tracks, range(first, step + 1), maze))
    return save if saved is None else await _keep_unchanged(save, saved, store, setting, tracks, first)


async def _keep_unchanged(
    save: Save, saved: Save, store: Store, setting: Setting, tracks: Mapping[str, Track], first: int
) -> Save:
    """Return an export in which what has not changed since the town began is as it was saved.

    Args:
        first: the step at which the town began.
    """
    if set(saved.personas) != set(setting.people) or not max(saved.meta.step - 1, 0) == first < save.meta.step:
        raise InputError(f"this town did not begin from that save: it has other residents, or is not at step {first}")
    past = (await read_town(store, setting.profile, saved.meta.step - 1)).states
    then = {
        name: (
            export_scratch(setting, person, past[name], saved.meta.step - 1, (tracks[name].talks or [("", ())])[0][1]),
            PlaceTree(parse_address(place) for place in sorted(past[name].knows)),
        )
        for name, person in setting.people.items()
    }
    return restore(save, then, saved)


def _bytes(source: Path | bytes) -> bytes:
    return source.read_bytes() if isinstance(source, Path) else source


def _without_description(records: Sequence[Record], scratch: Scratch) -> list[Record]:
    """Leave out the notes that say what the scratch says of a resident: who reads it in has them again."""
    who = Person(
        name=scratch.name, learned=scratch.learned, currently=scratch.currently, lifestyle=scratch.lifestyle,
        routine=scratch.daily_plan_req, home=scratch.living_area,
    )  # fmt: skip
    said, needed = {each.text for each in who.first_memories()}, {id_ for record in records for id_ in record.evidence}
    return [each for each in records if each.kind != "note" or each.text not in said or each.id in needed]


async def _records(store: Store, stream: str, until: float) -> AsyncIterator[Record]:
    async for records in read_all(store, stream):
        for record in records:
            if record.created <= until and record.forgotten is None and record.superseded_by is None:
                yield record


async def _embedded(records: Sequence[Record], embedder: Embedder) -> list[Record]:
    """Return records with a vector each, of this embedder."""
    missing = [each for each in records if each.vector is None or each.embedder != embedder.name]
    if not missing:
        return list(records)
    vectors = (await embedder.embed([each.text for each in missing])).astype(np.float16)
    made = {record.id: vector for record, vector in zip(missing, vectors, strict=True)}
    return [replace(record, vector=made.get(record.id, record.vector)) for record in records]


async def _tracks(store: Store, profile: Profile, upto: int) -> dict[str, Track]:
    """Follow every resident through the log."""
    tracks: dict[str, Track] = {}
    states: dict[str, ResidentState] = {}
    async for row in rows_after(store):
        event = row.event
        if isinstance(event, MovedIn):
            tracks[row.mind] = Track(event.spot, [], [], [])
        elif isinstance(event, TownEvent) and event.step > upto:
            continue
        if row.mind not in tracks:
            continue
        before = states.get(row.mind, ResidentState(name=row.mind))
        after = states[row.mind] = applied(before, event, profile)
        if after.act is not None and after.act is not before.act and isinstance(event, TownEvent):
            track = tracks[row.mind]
            track.steps.append(event.step)
            track.acts.append(after.act)
            track.talks.append((event.partner, event.lines) if isinstance(event, Talked) else ("", ()))
    return tracks


class _Steps(Mapping[int, bytes]):
    """The file of each step, made when it is asked for."""

    def __init__(self, setting: Setting, tracks: Mapping[str, Track], steps: range, maze: str) -> None:
        self._setting, self._tracks, self._steps, self._maze = setting, tracks, steps, maze

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


class _Environments(_Steps):
    """Where everybody stands at the beginning of a step."""

    def __getitem__(self, step: int) -> bytes:
        spots = {name: track.spot(step - 1) for name, track in self._tracks.items()}
        return json.dumps({name: {"maze": self._maze, "x": x, "y": y} for name, (x, y) in spots.items()}).encode()


class _Movements(_Steps):
    """Where everybody goes in a step, and what they do there."""

    def __getitem__(self, step: int) -> bytes:
        moves = {name: self._move(track, step) for name, track in self._tracks.items()}
        return json.dumps({"persona": moves, "meta": {"curr_time": clock_of(self._setting, step)}}).encode()

    def _move(self, track: Track, step: int) -> JsonValue:
        number = track.at(step)
        if number < 0:
            return {"movement": list(track.home), "pronunciatio": None, "description": None, "chat": None}
        act, (partner, lines) = track.acts[number], track.talks[number]
        return {
            "movement": list(act.spot(step)),
            "pronunciatio": emoji_of(act),
            "description": f"{act.what} @ {address_of(self._setting, act, step, partner)}",
            "chat": [[line.by, line.text] for line in lines] or None,
        }


def _recording(setting: Setting, tracks: Mapping[str, Track], steps: range, maze: str) -> Recording:
    """Return all steps; where everybody stands is known of the next one, too: there their code goes on."""
    return Recording(
        _Environments(setting, tracks, range(steps.start, steps.stop + 1), maze),
        _Movements(setting, tracks, steps, maze),
    )
