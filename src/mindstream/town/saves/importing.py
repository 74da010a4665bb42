"""A town from a saved simulation of Park 2023: its people, what each remembers, has planned and does.

What differs a little between the files (a blank too much, a place or a name in other letters) is matched by closeness,
and whoever imports is told.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from mindstream.clock import ManualClock
from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.log.events import Remembered
from mindstream.log.names import StreamName
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore, is_begun, open_store
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder
from mindstream.town.events import JOURNAL, TOWN, TownBegan, TownImported
from mindstream.town.formats.save_clock import settle_clock
from mindstream.town.formats.saves import PersonaSave, Save
from mindstream.town.formats.typed import parse_clock
from mindstream.town.missing_keys import missing_keys
from mindstream.town.profile import Profile
from mindstream.town.residents.person import FirstMemory, Person
from mindstream.town.saves.import_memory import import_memory
from mindstream.town.saves.import_state import rows_of_scratch
from mindstream.town.setting import Setting
from mindstream.town.source import dump_source
from mindstream.town.world.address import parse_address
from mindstream.town.world.world import Spot, World

Tell = Callable[[str], None]
Value = TypeVar("Value")
SCRATCH_KEYS = {
    "vision": "vision_r",
    "attention": "att_bandwidth",
    "retention": "retention",
    "reflect_at": "importance_trigger_max",
    "decay": "recency_decay",
}
IDENTITY = 4.0
"""How important it is who somebody is: no node says it, and nobody is asked at an import."""
BED = "bed"
"""What people sleep in is called on the authors' maps."""
CLOSE = 0.6
"""So alike, of 1, names must be to be taken for the same."""


def _ignore(_: str) -> None:
    return None


def setting_of_save(
    save: Save,
    world: World,
    *,
    seed: int = 0,
    profile: Profile | None = None,
    whispers: Mapping[str, Iterable[str]] | None = None,
    tell: Tell = _ignore,
) -> Setting:
    """Return the town that a saved simulation describes; its steps are counted as there.

    Args:
        profile: None: as residents' scratch has it; a step is as long as the save says in any case.
        whispers: what residents have been told before, by name.
        tell: is called with what did not fit and what it was taken for.

    Raises:
        InputError: a home is not in this world, and nothing is like it; somebody stands where nobody can, or where no
            way home begins.
    """
    save = settle_clock(save, tell)
    start = parse_clock(save.meta.curr_time).replace(tzinfo=UTC).timestamp() - save.meta.step * save.meta.sec_per_step
    if start < 0:
        raise InputError(
            f"meta.json: step: {save.meta.step} steps before {save.meta.curr_time} nothing is counted: 1970"
        )
    spots, told = _standing(save), _whispers_of(save, whispers or {}, tell)
    names = PlaceNames(world, tell)
    people = {
        name: _person(persona, names, spots.get(name), told.get(name, ())) for name, persona in save.personas.items()
    }
    constants = (profile or profile_of_save(save)).model_copy(update={"step_s": save.meta.sec_per_step})
    for person in people.values():
        _check_standing(world, person)
    return Setting(world.name, world, people, profile=constants, seed=seed, start=start)


def profile_of_save(save: Save) -> Profile:
    """Return the constants that most residents of a save have."""
    scratches = [persona.scratch for persona in save.personas.values()]
    if not scratches:
        return Profile()
    constants = {
        "vision": _commonest(each.vision_r for each in scratches),
        "attention": max(1, _commonest(each.att_bandwidth for each in scratches)),
        "retention": _commonest(each.retention for each in scratches),
        "reflect_at": _commonest(each.importance_trigger_max for each in scratches),
        "decay": _commonest(each.recency_decay for each in scratches),
    }
    try:
        return Profile.model_validate(constants)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = SCRATCH_KEYS[str(first["loc"][0])]
        raise InputError(
            f"scratch.json: {key}: {first['msg']}, and most residents have {first['input']!r:.60}"
        ) from None


async def begin_from_save(
    data: AnyStore,
    save: Save,
    world: World,
    *,
    seed: int = 0,
    profile: Profile | None = None,
    whispers: Mapping[str, Iterable[str]] | None = None,
    embed: Embedder | str = "wordllama",
    tell: Tell = _ignore,
) -> None:
    """Write a saved simulation as a town into an empty folder: `Town.open` goes on from there.

    Raises:
        InputError: something is in that folder, or a resident cannot live in this world.
        StorageError: the folder cannot be used.
    """
    save = settle_clock(save, tell)
    setting = setting_of_save(save, world, seed=seed, profile=profile, whispers=whispers, tell=tell)
    _tell_absent(save, tell)
    for each in missing_keys(setting):
        tell(f"a save does not say what a town without a model lives on: {each}")
    vectors = embedder(embed) if isinstance(embed, str) else embed
    if not isinstance(data, AnyData):
        await _begin(data, save, setting, vectors)
        return
    where = Location.of(data)
    await _check_empty(where)
    with contextlib.nullcontext(where) if where.folder is None else _folder_beside(where.folder) as made:
        async with open_store(made) as store:
            await _begin(store, save, setting, vectors)


@contextlib.contextmanager
def _folder_beside(folder: Path) -> Iterator[Path]:
    """Give a folder to write into, whose files are then moved: an import that fails leaves nothing half-written."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=folder) as made:
        yield Path(made)
        for file in sorted(Path(made).iterdir()):
            file.replace(folder / file.name)


async def _check_empty(data: Location) -> None:
    """Refuse data in which something lives."""
    if is_begun(data):
        async with open_store(data) as store:
            if await store.events(None, 0, limit=1):
                raise InputError("something lives there already: import where nothing does")


async def _begin(store: Store, save: Save, setting: Setting, vectors: Embedder) -> None:
    step, seed = save.meta.step - 1, setting.seed
    async with contextlib.AsyncExitStack() as stack:
        commits = []
        for name, persona in save.personas.items():
            clock = ManualClock(setting.moment(step))
            stream = Memory(store, StreamName("resident", name), vectors, clock, strength=None, seed=f"{seed} {name}")
            stack.push_async_callback(stream.close)
            await _remember_who(stream, setting, persona)
            await import_memory(stream, persona.memory)
            entries = tuple(Entry(row, name) for row in rows_of_scratch(setting, persona, step))
            commits.append(Commit(mind=stream.key, at=clock.now(), entries=entries))
        told = TownImported(step=step, source=save.meta.fork_sim_code or "")
        constants = setting.profile.dump()
        began = TownBegan(step=0, seed=seed, start=setting.start, profile=constants, source=dump_source(setting))
        entries = (Entry(began, TOWN), Entry(told, TOWN))
        own = Commit(mind=store.key(JOURNAL), at=setting.start, entries=entries, unique="began")
        await store.commit(own, *commits)


async def _remember_who(stream: Memory, setting: Setting, persona: PersonaSave) -> None:
    """Write who a resident is, and whispers, into its stream, unless a node says it."""
    there = {node.description for node in persona.memory.nodes}
    texts = [each.text for each in setting.people[persona.name].first_memories() if each.text not in there]
    if not texts:
        return
    word = (persona.name.lower(),)
    records = await stream.build_records(
        [
            RecordDraft(
                text=text, kind="note", by=persona.name, importance=IDENTITY, keywords=word, created=setting.start
            )
            for text in texts
        ]
    )
    entry = Entry(Remembered(count=len(records), kinds={"note": len(records)}), persona.name, tuple(records))
    await stream.store.commit(Commit(mind=stream.key, at=setting.start, entries=(entry,)))


def _check_standing(world: World, person: Person) -> None:
    """Refuse a resident who stands in a wall or off the map, or cannot get home from there."""
    home = parse_address(person.home)
    try:
        spots = world.spots(home)
        if not spots:
            raise InputError("nobody can stand there")
        if person.start is not None and not world.walkable(person.start):
            raise InputError(f"{person.start}, where {person.name} stands, is a wall or not on the map")
        if person.start is not None and not world.routes.is_reachable(person.start, home):
            raise InputError(f"no way leads there from {person.start}, where {person.name} stands")
    except InputError as error:
        raise InputError(
            f"{person.name}: living_area: {person.home!r}: {error}; mend scratch.json (living_area, curr_tile) or "
            "environment/, or name the right map by --map"
        ) from None


def _tell_absent(save: Save, tell: Tell) -> None:
    """Say which files were not there, once for all residents."""
    for file in sorted({file for persona in save.personas.values() for file in persona.memory.absent}):
        count = sum(file in persona.memory.absent for persona in save.personas.values())
        tell(f"{file} is missing for {count} of {len(save.personas)} residents: it is made anew")


def _person(persona: PersonaSave, names: PlaceNames, spot: Spot | None, told: Iterable[str]) -> Person:
    scratch = persona.scratch
    home = names.find(scratch.living_area, f"{scratch.name}: living_area")
    known = [names.find(str(place), f"{scratch.name}: spatial memory") for place in persona.places]
    bed = f"{home}:{BED}"
    return Person(
        name=scratch.name,
        age=scratch.age,
        innate=scratch.innate,
        learned=scratch.learned,
        currently=scratch.currently,
        lifestyle=scratch.lifestyle,
        routine=scratch.daily_plan_req,
        home=home or scratch.living_area,
        bed=bed if names.has(bed) else "",
        start=spot or scratch.curr_tile,
        knows=tuple(dict.fromkeys(place for place in known if place)),
        memories=tuple(FirstMemory(text=each) for each in told),
    )


class PlaceNames:
    """The names of a world's places, to find what is meant by one that is written a little otherwise."""

    def __init__(self, world: World, tell: Tell) -> None:
        self._name, self._tell = world.name, tell
        self._within: dict[str, dict[str, None]] = {}
        for place in world.places[1:]:
            self._within.setdefault(str(place.parent), {})[place.last] = None

    def has(self, place: str) -> bool:
        """Tell whether the map has a place of exactly this address."""
        parent, _, name = place.rpartition(":")
        return name in self._within.get(parent, {})

    def find(self, place: str, where: str) -> str:
        """Return the address that is meant, name by name; "" where nothing is like it."""
        found = self._name
        for name in [part.strip() for part in place.split(":")][1:]:
            names = self._within.get(found, {})
            like = name if name in names else next(iter(get_close_matches(name, names, 1, CLOSE)), "")
            if not like:
                self._tell(f"{where}: {place!r} is not on the map")
                return ""
            found = f"{found}:{like}"
        if place != found:
            self._tell(f"{where}: {place!r} is taken for {found!r}")
        return found


def _whispers_of(save: Save, whispers: Mapping[str, Iterable[str]], tell: Tell) -> dict[str, tuple[str, ...]]:
    """Return whispers by the names of residents; a name that is written otherwise is the one most like it."""
    found: dict[str, tuple[str, ...]] = {}
    for name, texts in whispers.items():
        like = name if name in save.personas else next(iter(get_close_matches(name, save.personas, 1, 0.8)), "")
        if like != name:
            tell(f"whispers: {name!r} is taken for {like!r}" if like else f"whispers: nobody is called {name!r}")
        if like:
            found[like] = (*found.get(like, ()), *texts)
    return found


def _standing(save: Save) -> dict[str, Spot]:
    """Return where residents stand before the next step, as far as it is recorded."""
    if save.meta.step in save.recording.environments:
        return {name: each.spot for name, each in save.recording.environment(save.meta.step).items()}
    if save.meta.step - 1 in save.recording.movements:
        moves = save.recording.movement(save.meta.step - 1).persona
        return {name: each.movement for name, each in moves.items()}
    return {}


def _commonest(values: Iterable[Value]) -> Value:
    return Counter(values).most_common(1)[0][0]
