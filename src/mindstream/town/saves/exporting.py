"""A town as a saved simulation of Park 2023, as it stands after a step: their code and their pages can take it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from pydantic import JsonValue

from mindstream.errors import InputError
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder
from mindstream.town.events import Act, SpokenLine
from mindstream.town.formats.recording import Recording
from mindstream.town.formats.saves import PersonaSave, Save, SaveMeta
from mindstream.town.formats.scratch import Scratch
from mindstream.town.formats.typed import DATE
from mindstream.town.inspect.history import History, read_history
from mindstream.town.residents.person import Person
from mindstream.town.saves.export_like import restore
from mindstream.town.saves.export_memory import export_memory
from mindstream.town.saves.export_state import address_of, clock_of, emoji_of, export_scratch
from mindstream.town.setting import Setting
from mindstream.town.world.address import parse_address
from mindstream.town.world.tree import PlaceTree


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
        embedder: makes the vectors that the stream's records have not; those at hand are of the same.
        upto: the step after which it is saved; None: the last one.
        maze: what their code calls the map.
        saved: what the town began from; what a town does not keep of it is put back.

    Raises:
        InputError: `saved` is not what this town began from.
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
        state = history.state(name, max(step, 0))
        scratch = export_scratch(setting, person, state, step, _talk(history, name, state.act)[1])
        places = PlaceTree(parse_address(place) for place in sorted(state.knows))
        records = [each for each in history.records[name] if each.forgotten is None and each.superseded_by is None]
        memory = export_memory(name, await _embedded(_without_description(records, scratch), embedder))
        personas[name] = PersonaSave(scratch, places, memory)
    begun = [next((at for at, state in history.states(name) if state.act), None) for name in history.names]
    first = min((at for at in begun if at is not None), default=0)
    save = Save(meta, personas, _recording(history, range(first, step + 1), maze))
    return save if saved is None else _keep_unchanged(save, saved, history, first)


def _keep_unchanged(save: Save, saved: Save, history: History, first: int) -> Save:
    """Return an export in which what has not changed since the town began is as it was saved.

    Args:
        first: the step at which the town began.
    """
    setting, last = history.setting, saved.meta.step - 1
    if set(saved.personas) != set(setting.people) or not max(last, 0) == first < save.meta.step:
        raise InputError(f"this town did not begin from that save: it has other residents, or is not at step {first}")
    then = {}
    for name, person in setting.people.items():
        state = history.state(name, max(last, 0))
        scratch = export_scratch(setting, person, state, last, _talk(history, name, state.act)[1])
        then[name] = scratch, PlaceTree(parse_address(place) for place in sorted(state.knows))
    return restore(save, then, saved)


def _without_description(records: Sequence[Record], scratch: Scratch) -> list[Record]:
    """Leave out the notes that say what the scratch says of a resident: who reads it in has them again."""
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
    """Return records with a vector each, of this embedder."""
    missing = [each for each in records if each.vector is None or each.embedder != embedder.name]
    if not missing:
        return list(records)
    vectors = (await embedder.embed([each.text for each in missing])).astype(np.float16)
    made = {record.id: vector for record, vector in zip(missing, vectors, strict=True)}
    return [replace(record, vector=made.get(record.id, record.vector)) for record in records]


def _talk(history: History, name: str, act: Act | None) -> tuple[str, tuple[SpokenLine, ...]]:
    """Return with whom somebody talks in an act, and what is said."""
    talk = history.talk_at.get((name, act.since)) if act and act.why == "talk" else None
    return (talk.partner, talk.lines) if talk else ("", ())


class _Steps(Mapping[int, bytes]):
    """The file of each step, made when it is asked for."""

    def __init__(self, history: History, steps: range, maze: str) -> None:
        self._history, self._steps, self._maze = history, steps, maze

    def __iter__(self) -> Iterator[int]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


class _Environments(_Steps):
    """Where everybody stands at the beginning of a step."""

    def __getitem__(self, step: int) -> bytes:
        spots = {name: self._history.spot(name, max(step - 1, 0)) for name in self._history.setting.people}
        return json.dumps({name: {"maze": self._maze, "x": x, "y": y} for name, (x, y) in spots.items()}).encode()


class _Movements(_Steps):
    """Where everybody goes in a step, and what they do there."""

    def __getitem__(self, step: int) -> bytes:
        moves = {name: self._move(name, step) for name in self._history.setting.people}
        return json.dumps({"persona": moves, "meta": {"curr_time": clock_of(self._history.setting, step)}}).encode()

    def _move(self, name: str, step: int) -> JsonValue:
        state = self._history.state(name, step)
        if (act := state.act) is None:
            return {"movement": list(state.home), "pronunciatio": None, "description": None, "chat": None}
        partner, lines = _talk(self._history, name, act)
        return {
            "movement": list(act.spot(step)),
            "pronunciatio": emoji_of(act),
            "description": f"{act.what} @ {address_of(self._history.setting, act, step, partner)}",
            "chat": [[line.by, line.text] for line in lines] or None,
        }


def _recording(history: History, steps: range, maze: str) -> Recording:
    """Return all steps; where everybody stands is known of the next one, too: there their code goes on."""
    return Recording(_Environments(history, range(steps.start, steps.stop + 1), maze), _Movements(history, steps, maze))
