"""A town in lock-step: the same seed gives the same journal; observation and talk can be switched off."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hamlet import hamlet, live
from mindstream_town.events import Perceived, Talked
from mindstream_town.journal import Writing, resident_of, rows_after
from mindstream_town.residents.person import DayItem
from mindstream_town.residents.places import may_use
from mindstream_town.town import Town

from mindstream.errors import InputError
from mindstream.identifiers import StreamName
from mindstream.log.events import Logged, Remembered
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Commit, Entry

NOON = 12 * 360


async def lived(folder: Path, *stops: int, seed: int = 1, **profile: object) -> str:
    """Run up to each of these steps, closing and reopening in between; return the journal's checksum."""
    digests = [await live(folder, None if n else hamlet(seed, **profile), stop) for n, stop in enumerate(stops)]
    return digests[-1]


async def rows(folder: Path, *kinds: type) -> list[tuple[str, object]]:
    async with Town.open(folder) as town:
        return [(resident_of(row), row.event) async for row in rows_after(town.store) if isinstance(row.event, kinds)]


async def test_the_same_seed_gives_the_same_journal(tmp_path: Path) -> None:
    straight = await lived(tmp_path / "a", NOON)
    stops = sorted(random.Random(3).sample(range(5, NOON), 12))
    assert await lived(tmp_path / "b", *stops, NOON) == straight
    assert await lived(tmp_path / "c", NOON, seed=2) != straight


async def test_without_observation_or_talk_no_such_events_occur(tmp_path: Path) -> None:
    await lived(tmp_path / "blind", NOON, observes=False)
    assert not [event for _, event in await rows(tmp_path / "blind", Perceived, Talked) if getattr(event, "seen", 1)]
    await lived(tmp_path / "mute", NOON, talks=False)
    assert not await rows(tmp_path / "mute", Talked)
    await lived(tmp_path / "both", NOON)
    assert await rows(tmp_path / "both", Talked), "the control: residents talk in the same morning"


async def test_a_resident_waits_only_for_its_own_commits(tmp_path: Path) -> None:
    goes_on = asyncio.Event()

    class Slow(SqliteStore):
        async def commit(self, *commits: Commit) -> list[Logged]:
            await goes_on.wait()
            return await super().commit(*commits)

    store = Slow(tmp_path)
    ann, ben = (store.key(StreamName("resident", name)) for name in ("Ann", "Ben"))
    writing, entry = Writing(store), Entry(Remembered(count=0, kinds={}), "test")
    for stream in (ann, ann):
        writing.add([Commit(mind=stream, at=1.0, entries=(entry,))])
        await asyncio.sleep(0)
    await asyncio.wait_for(writing.written(ben), 2)
    waits = asyncio.ensure_future(writing.written(ann))
    await asyncio.wait({waits}, timeout=0.01)
    assert not waits.done()
    goes_on.set()
    await waits
    assert len(await store.events(ann)) == 2
    await store.close()


async def test_usable_places_are_cached_for_each_description_of_a_resident(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=10)
        for person, may in tuple(town.setting.uses.values()):
            place = next(iter(may))
            other = person.model_copy(update={"day": (DayItem(start=0, end=60, what="rest", place=place),)})
            assert may_use(town.setting, other, place), "another description of the same person is checked again"
            assert may_use(town.setting, person, place) == may[place]


async def test_a_folder_contains_one_town(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no town in these data"):
        async with Town.open(tmp_path):
            pass
    await lived(tmp_path, 10)
    with pytest.raises(InputError, match="the folder already contains a town"):
        async with Town.open(tmp_path, hamlet()):
            pass
    async with Town.open(tmp_path) as town:
        for no_object in ("Hamlet:nowhere", "Hamlet:Oak Cafe:cafe"):
            with pytest.raises(InputError, match="has no object"):
                await town.set_object(no_object, "leaking")
