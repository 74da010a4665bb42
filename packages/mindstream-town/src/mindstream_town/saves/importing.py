"""Import a saved simulation of Park 2023 as a town: people, memories, plans and acts.

Events become observations, thoughts stay thoughts, and a chat becomes one record per utterance. Fields that only a node
has (id, key, expiry) are stored in the record's data. Small differences between names in the files (blanks, letters)
are resolved by similarity and reported to the caller.
"""

from __future__ import annotations

import contextlib
import lzma
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from mindstream.arrays import Doubles
from mindstream.clock import ManualClock, moment_or_none
from mindstream.errors import InputError
from mindstream.guidance import nearest
from mindstream.identifiers import StreamName
from mindstream.json_values import JsonObject
from mindstream.location import AnyData, Location
from mindstream.log.database import FILE
from mindstream.log.events import Event, Remembered
from mindstream.log.files import private_database, private_folder
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore, is_begun, open_store
from mindstream.memory.store.queries import sum_of_vector
from mindstream.memory.store.record import Kind, Record, RecordDraft, Triple
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream.models.embedders.embedder import Embedder, WordLlama, embedder, vectors
from mindstream_town.events import (
    JOURNAL,
    TOWN,
    Act,
    Acted,
    Block,
    BroughtIn,
    DayPlanned,
    MovedIn,
    SpokenLine,
    Talked,
    TownBegan,
    TownImported,
)
from mindstream_town.formats.saves import (
    AssociativeMemory,
    ConceptNode,
    PersonaSave,
    Save,
    Schedule,
    Scratch,
    settle_clock,
)
from mindstream_town.formats.town_file import STAMP, parse_time
from mindstream_town.profile import Profile
from mindstream_town.residents.person import FirstMemory, Person
from mindstream_town.residents.places import find_home
from mindstream_town.setting import Setting
from mindstream_town.source import dump_source, missing_keys
from mindstream_town.world.routes import write_walk
from mindstream_town.world.tree import Spot, parse_address
from mindstream_town.world.world import DAY_MINUTES, World

RECORDED_EMBEDDER = "text-embedding-ada-002"
"""A part of the name of the embedder that computed the vectors in the saves of Park 2023."""
KINDS: Mapping[str, Kind] = {"event": "observation", "thought": "thought", "chat": "chat"}


async def import_memory(stream: Memory, memory: AssociativeMemory) -> None:
    """Write the nodes of a memory into a stream, each after its evidence.

    Vectors are kept if they are of the stream's embedder; else they are computed again.
    """
    held: dict[str, tuple[str, ...]] = {}
    waiting: list[tuple[ConceptNode, list[RecordDraft]]] = []
    vectors = memory.embeddings.by_key() if _is_recorded(stream, memory) else {}
    for node in memory.in_order():
        if any(each not in held for each in node.evidence):
            await _write(stream, waiting, held, vectors)
            waiting = []
        evidence = tuple(id_ for each in node.evidence for id_ in held.get(each, ()))
        waiting.append((node, news_of(node, evidence)))
    await _write(stream, waiting, held, vectors)


def _is_recorded(stream: Memory, memory: AssociativeMemory) -> bool:
    width = memory.embeddings.vectors.shape[1]
    return RECORDED_EMBEDDER in stream.embedder.name and width == stream.embedder.width


async def _write(
    stream: Memory,
    waiting: Sequence[tuple[ConceptNode, list[RecordDraft]]],
    held: dict[str, tuple[str, ...]],
    vectors: Mapping[str, Doubles],
) -> None:
    built = iter(await stream.build_records([new for _, news in waiting for new in news]))
    records: list[Record] = []
    for node, news in waiting:
        made = [replace(next(built), accessed=moment_or_none(news[0].created) or 0.0) for _ in news]
        if node.embedding_key in vectors:
            vector = vectors[node.embedding_key].astype(np.float16)
            made = [replace(record, vector=vector, embedder=stream.embedder.name) for record in made]
        held[node.node_id] = tuple(record.id for record in made)
        records += made
    if records:
        event = Remembered(count=len(records), kinds=dict(Counter[str](record.kind for record in records)))
        entry = Entry(event, stream.name, tuple(records))
        await stream.store.commit(Commit(mind=stream.key, at=stream.clock.now(), entries=(entry,)))


def news_of(node: ConceptNode, evidence: tuple[str, ...]) -> list[RecordDraft]:
    """Return the record drafts of a node; the depth of a thought follows from its evidence."""
    data: JsonObject = {"node": node.node_id}
    if node.embedding_key != node.description:
        data["key"] = node.embedding_key
    if node.expiration is not None:
        data["expires"] = node.expiration
    importance = float(min(10, max(1, node.poignancy)))
    if importance != node.poignancy or isinstance(node.poignancy, bool):
        data["poignancy"] = node.poignancy
    new = RecordDraft(
        text=node.description.strip() or node.embedding_key.strip() or "nothing",
        kind=KINDS[node.type],
        by=node.subject,
        importance=importance,
        about=Triple(node.subject, node.predicate or "", node.object or ""),
        keywords=node.keywords,
        evidence=evidence,
        depth=None if node.type == "thought" and evidence else node.depth,
        created=parse_time(node.created, STAMP),
        data=data,
    )
    if node.type != "chat":
        return [new]
    said = [line for line in node.filling or () if isinstance(line, tuple) and len(line) > 1 and line[1].strip()]
    data["about"] = new.text
    episode = f"talk {node.created} {min(node.subject, node.object or '')}"
    return [replace(new, text=line[1], by=line[0], episode=episode) for line in said] or [new]


ASLEEP = "sleeping"
"""Prefix of sleeping activities in the saves of Park 2023."""


def rows_of_scratch(setting: Setting, persona: PersonaSave, step: int) -> Iterator[Event]:
    """Yield the events that bring a resident to its state after a step.

    For step -1 (no step was simulated yet), yield only the resident's arrival.
    """
    scratch, person = persona.scratch, setting.people[persona.name]
    spot, knows = find_home(setting, person)
    yield MovedIn(step=max(step, 0), spot=spot, knows=knows)
    if step < 0:
        return
    events = [node for node in persona.memory.in_order() if node.type == "event"]
    seen = [(node.subject, node.predicate, node.object) for node in events[-setting.profile.retention :]]
    rested = {name: step + left for name, left in sorted(scratch.chatting_with_buffer.items()) if left > 0}
    gathered = max(0.0, float(scratch.importance_trigger_max - scratch.importance_trigger_curr))
    yield BroughtIn(step=step, seen=tuple(seen), gathered=gathered, rested=rested)
    act = _act(setting, scratch, spot, step)
    if blocks := _blocks(setting, scratch, act.place):
        day = setting.day(step)
        yield DayPlanned(step=step, day=day, currently=scratch.currently, broad=scratch.daily_req, blocks=blocks)
    yield Acted(step=step, act=act)
    if scratch.chatting_with in setting.people and scratch.chatting_end_time is not None:
        lines = tuple(SpokenLine(by=who, text=text) for who, text in scratch.chat or ())
        until = max(_step_of(setting, scratch.chatting_end_time), step + 1)
        yield Talked(step=step, partner=scratch.chatting_with or "", lines=lines, until=until)


def _act(setting: Setting, scratch: Scratch, spot: Spot, step: int) -> Act:
    """Return a saved resident's current act. Its path stays at `spot` up to the step `step`, and then takes the rest of
    the saved walk."""
    began = min(_step_of(setting, scratch.act_start_time), step) if scratch.act_start_time else step
    until = step + 1
    if scratch.act_start_time and scratch.act_duration is not None:
        end = parse_time(scratch.act_start_time) + 59 + 60 * scratch.act_duration
        until = max(until, setting.step_at_moment(end - end % 60))
    place, way = scratch.act_address or "", _way(setting, scratch, spot)
    what = scratch.act_description or "being idle"
    return Act(
        what=what,
        place=place if place in setting.addresses else "",
        since=began,
        until=until,
        path=write_walk([*[spot] * (step - began + 1), *way]),
        asleep=what.startswith(ASLEEP),
    )


def _way(setting: Setting, scratch: Scratch, spot: Spot) -> Sequence[Spot]:
    """Return the rest of a saved walk.

    If the walk is impossible on this map, return a shortest path to its end; () if there is no path.
    """
    way = scratch.planned_path
    apart = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in pairwise((spot, *way))]
    if max(apart, default=0) <= 1 and all(map(setting.world.walkable, way)):
        return way
    if setting.world.walkable(way[-1]) and setting.world.routes.is_reachable(spot, way[-1]):
        return setting.world.routes.path(spot, way[-1])
    return ()


def _step_of(setting: Setting, clock: str) -> int:
    return setting.step_at_moment(parse_time(clock))


def _blocks(setting: Setting, scratch: Scratch, here: str) -> tuple[Block, ...]:
    """Return the day's plan. If the save's plan ends before midnight, sleep is added.

    A save has no places for tasks. The current task is done where the resident is (`here`), sleep is at home, and other
    tasks have no place.
    """
    home = setting.people[scratch.name].home
    blocks: list[Block] = []
    doing = (scratch.act_description or "").partition(" (")[0]
    for what, minutes in _cut(scratch.f_daily_schedule):
        task, inner, _ = what.partition(" (")
        asleep = what.startswith(ASLEEP)
        place = home if asleep else here if task == doing else ""
        start = blocks[-1].end if blocks else 0
        fine = bool(inner) or minutes < 60
        blocks.append(Block(start=start, minutes=minutes, what=what, place=place, asleep=asleep, fine=fine))
    if blocks and (left := DAY_MINUTES - blocks[-1].end) > 0:
        blocks.append(Block(start=blocks[-1].end, minutes=left, what="sleeping", place=home, asleep=True))
    return tuple(blocks)


def _cut(schedule: Schedule) -> Iterator[tuple[str, int]]:
    """Yield a schedule in whole minutes, without empty items and without time after midnight."""
    left = DAY_MINUTES
    for what, minutes in schedule:
        taken = min(round(minutes), left)
        if taken > 0:
            left -= taken
            yield what, taken


Tell = Callable[[str], None]
SCRATCH_KEYS = {
    "vision": "vision_r",
    "attention": "att_bandwidth",
    "retention": "retention",
    "reflect_at": "importance_trigger_max",
    "decay": "recency_decay",
}
IDENTITY = 4.0
"""Importance (1 to 10) of memories from descriptions, for which a save has no rating."""
BED = "bed"
"""Name of beds on the maps of Park 2023."""
CLOSE = 0.6
"""Minimum similarity, from 0 to 1, at which two names count as the same."""


def setting_of_save(
    save: Save,
    world: World,
    *,
    seed: int = 0,
    profile: Profile | None = None,
    whispers: Mapping[str, Iterable[str]] | None = None,
    tell: Tell = lambda _: None,
) -> Setting:
    """Return the setting of the town in a saved simulation, with the same step numbers.

    Args:
        profile: constants of the town; None: the constants of the residents in the save. The step length is always
            taken from the save.
        whispers: memories from before the town began, by resident.
        tell: called with a message about each part of the save that is missing, unknown or interpreted.

    Raises:
        InputError: the world has no home with an equal or similar name, a resident is in a wall or cannot reach the
            home, a constant of the residents is invalid, or the town would begin before 1970.
    """
    save = settle_clock(save, tell)
    start = parse_time(save.meta.curr_time) - save.meta.step * save.meta.sec_per_step
    if start < 0:
        raise InputError(
            f"meta.json: step: {save.meta.step} steps before {save.meta.curr_time} is before 1970; correct the step or"
            " the time"
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
    """Return the most frequent value of each constant among the residents of a save.

    Raises:
        InputError: such a value is not allowed for its constant.
    """
    scratches = [persona.scratch for persona in save.personas.values()]
    if not scratches:
        return Profile()
    constants = {
        name: Counter(getattr(each, key) for each in scratches).most_common(1)[0][0]
        for name, key in SCRATCH_KEYS.items()
    }
    try:
        return Profile.model_validate(constants | {"attention": max(1, constants["attention"])})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = SCRATCH_KEYS[str(first["loc"][0])]
        raise InputError(
            f"scratch.json: {key}: {first['msg']}; the most frequent value is {first['input']!r:.60}"
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
    tell: Tell = lambda _: None,
) -> None:
    """Write a saved simulation as a town into an empty folder; `Town.open` then continues it.

    Raises:
        InputError: the folder contains data already, or the save does not fit to this world (see `setting_of_save`).
        StorageError: the folder cannot be used.
    """
    save = settle_clock(save, tell)
    setting = setting_of_save(save, world, seed=seed, profile=profile, whispers=whispers, tell=tell)
    _tell_absent(save, tell)
    for each in missing_keys(setting):
        tell(f"a town without a model needs keys that a save does not have: {each}")
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
    """Yield a temporary folder whose files are moved into `folder` at the end, so that a failed import leaves no
    files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".import-", dir=folder) as made:
        yield Path(made)
        for file in sorted(Path(made).iterdir()):
            file.replace(folder / file.name)


async def _check_empty(data: Location) -> None:
    """Refuse a data folder that contains events."""
    if is_begun(data):
        async with open_store(data) as store:
            if await store.events(None, 0, limit=1):
                raise InputError("the folder contains data already: import into an empty folder")


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
    """Write a resident's memories from before the town began (description, relations, whispers).

    Texts that a node of the save already has are left out.
    """
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
    """Refuse a resident who is in a wall or off the map, or cannot reach its home."""
    home = parse_address(person.home)
    try:
        spots = world.spots(home)
        if not spots:
            raise InputError("no resident can stand there")
        if person.start is not None and not world.walkable(person.start):
            raise InputError(f"{person.name} is at {person.start}, which is a wall or outside of the map")
        if person.start is not None and not world.routes.is_reachable(person.start, home):
            raise InputError(f"it cannot be reached from {person.start}, where {person.name} is")
    except InputError as error:
        raise InputError(
            f"{person.name}: living_area: {person.home!r}: {error}; correct scratch.json (living_area, curr_tile) or "
            "environment/, or name the right map with --map"
        ) from None


def _tell_absent(save: Save, tell: Tell) -> None:
    """Report missing files of memories, once for all residents."""
    for file in sorted({file for persona in save.personas.values() for file in persona.memory.absent}):
        count = sum(file in persona.memory.absent for persona in save.personas.values())
        tell(f"{file} is missing for {count} of {len(save.personas)} residents: its content is computed")


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
    """The names of a world's places, with a search for similar names."""

    def __init__(self, world: World, tell: Tell) -> None:
        self._name, self._tell = world.name, tell
        self._within: dict[str, dict[str, None]] = {}
        for place in world.places[1:]:
            self._within.setdefault(str(place.parent), {})[place.last] = None

    def has(self, place: str) -> bool:
        """Return whether the map has exactly this address."""
        parent, _, name = place.rpartition(":")
        return name in self._within.get(parent, {})

    def find(self, place: str, where: str) -> str:
        """Return the address on the map that matches a place, level by level.

        At each level, an equal name is used, else the most similar one (similarity at least CLOSE). Return "" if a
        level has no such name.
        """
        found = self._name
        for name in [part.strip() for part in place.split(":")][1:]:
            names = self._within.get(found, {})
            like = name if name in names else nearest(name, names, CLOSE)
            if not like:
                self._tell(f"{where}: {place!r} is not on the map")
                return ""
            found = f"{found}:{like}"
        if place != found:
            self._tell(f"{where}: {place!r} is interpreted as {found!r}")
        return found


def _whispers_of(save: Save, whispers: Mapping[str, Iterable[str]], tell: Tell) -> dict[str, tuple[str, ...]]:
    """Return the whispers of each resident. An unknown name is interpreted as the most similar one, or left out if none
    is similar; `tell` reports both."""
    found: dict[str, tuple[str, ...]] = {}
    for name, texts in whispers.items():
        like = name if name in save.personas else nearest(name, save.personas, 0.8)
        if like != name:
            tell(
                f"whispers: {name!r} is interpreted as {like!r}" if like else f"whispers: there is no resident {name!r}"
            )
        if like:
            found[like] = (*found.get(like, ()), *texts)
    return found


def _standing(save: Save) -> dict[str, Spot]:
    """Return the recorded positions at the beginning of the save's next step, by name; {} if they are not recorded."""
    if save.meta.step in save.recording.environments:
        return {name: each.spot for name, each in save.recording.environment(save.meta.step).items()}
    if save.meta.step - 1 in save.recording.movements:
        moves = save.recording.movement(save.meta.step - 1).persona
        return {name: each.movement for name, each in moves.items()}
    return {}


WORLDS = {
    "recorded": "Ostrovu Cucului, a hamlet of six in the Danube delta, on two days of September; a language model"
    " answered for each resident",
}
"""Descriptions of the recorded worlds; each is stored in `packs` as NAME.db.xz."""


def unpack_world(name: str, folder: Path) -> None:
    """Unpack a recorded world into a data folder.

    Raises:
        InputError: there is no such world, or the folder contains data already.
        StorageError: the folder cannot be used.
    """
    if name not in WORLDS:
        raise InputError(f"there is no recorded world {name!r}; use one of: {', '.join(WORLDS)}")
    if (folder / FILE).exists():
        raise InputError(
            f"{folder} contains data already: see `mindstream town status`, or name another folder with --data"
        )
    unpack(Path(__file__).parents[1] / "packs" / f"{name}.db.xz", folder)


def pack(folder: Path, file: Path) -> int:
    """Write the database of a data folder to a packed file, and return its size in bytes. Vectors that `unpack` can
    compute again are left out.

    Raises:
        InputError: the folder has no database.
    """
    if not (folder / FILE).is_file():
        raise InputError(f"there is no database in {folder}")
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / FILE
        with contextlib.closing(sqlite3.connect(folder / FILE)) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            same = [(number,) for number, vector, computed in _computed(connection) if vector == computed]
            connection.executemany("UPDATE records SET vector = NULL, vector_sum = NULL WHERE number = ?", same)
            connection.execute("VACUUM")
        file.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))
    return file.stat().st_size


def unpack(file: Path, folder: Path) -> None:
    """Unpack a packed file as the database of a data folder. The folder is created if it is missing.

    The vectors that `pack` left out are computed.

    Raises:
        StorageError: the folder cannot be used.
    """
    path = private_folder(folder) / FILE
    private_database(path)
    path.write_bytes(lzma.decompress(file.read_bytes()))
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        missing = [(new, sum_of_vector(new), number) for number, vector, new in _computed(connection) if vector is None]
        connection.executemany("UPDATE records SET vector = ?, vector_sum = ? WHERE number = ?", missing)


def _computed(connection: sqlite3.Connection) -> Iterator[tuple[int, bytes | None, bytes]]:
    """Yield number, stored vector and newly computed vector of each record that uses the bundled embedder."""
    rows = connection.execute(
        "SELECT number, text, vector FROM records WHERE embedder = ?", (WordLlama.name,)
    ).fetchall()
    for (number, _, vector), computed in zip(rows, vectors([text for _, text, _ in rows]), strict=True):
        yield number, vector, computed.astype(np.float16).tobytes()
