"""A forked town is the same up to the step; afterwards only its own acts make it differ."""

from __future__ import annotations

import json
from pathlib import Path

import postgres_server
import pytest
from fake_endpoint import FakeEndpoint
from hamlet import hamlet
from mindstream_town.forking import fork
from mindstream_town.town import Town
from over_http import over_http
from paper_mind import PaperMind, village_of

from mindstream import Memory
from mindstream.errors import InputError
from mindstream.location import Location
from mindstream.memory.store.store import read_all

EIGHT, NINE, NOON = (hour * 360 for hour in (8, 9, 12))


async def lines(folder: Path | Location, upto: int) -> list[str]:
    async with Town.open(folder) as town:
        told = [line.decode() async for line in town.journal()]
    return [line for line in told if json.loads(line)[0] <= upto]


async def digest(folder: Path | Location, until: int) -> str:
    async with Town.open(folder) as town:
        await town.run(until=until)
        return await town.digest()


@pytest.fixture
async def lived(tmp_path: Path) -> Path:
    """A hamlet at noon, after a whisper and a broken object at nine."""
    async with Town.open(tmp_path / "lived", hamlet()) as town:
        await town.run(until=NINE)
        await town.whisper("Ben Hale", "There is a fox in the garden.")
        await town.set_object("Hamlet:Oak Cafe:cafe:piano", "out of tune", danger=False)
        await town.run(until=NOON)
    return tmp_path / "lived"


@pytest.mark.parametrize("step", [0, EIGHT, EIGHT + 7, NINE, NOON])
async def test_a_fork_equals_the_town_up_to_its_step(lived: Path, tmp_path: Path, step: int) -> None:
    before = await digest(lived, NOON)
    assert (await fork(lived, tmp_path / "fork", step)).seed == 1
    async with Town.open(tmp_path / "fork") as town:
        assert town.step == step
        assert ("out of tune" in [each.text for each in town.conditions.values()]) == (
            step == NINE
        )  # by noon it is repaired
    assert await lines(tmp_path / "fork", NOON) == await lines(lived, step)
    assert await digest(lived, NOON) == before


async def test_texts_are_withheld_also_without_another_seed(lived: Path, tmp_path: Path) -> None:
    withheld = {"Ben Hale": ("There is a fox in the garden.",)}
    setting = await fork(lived, tmp_path / "fork", NINE, withheld=withheld)
    assert setting.withheld == withheld
    assert setting.seed == 1


async def test_a_fork_of_a_database_copies_only_the_town(tmp_path: Path) -> None:
    database = Location.of(postgres_server.fresh_url())
    async with Memory.open(database, "ann") as memory:
        await memory.retain("The key is under the mat.")
    place, target = database.part("town"), tmp_path / "fork"
    async with Town.open(place, hamlet()) as town:
        await town.run(until=NINE)
    assert (await fork(place, target, EIGHT)).seed == 1
    forked = Location(target, tenant=place.tenant)
    assert await lines(forked, NOON) == await lines(place, EIGHT)
    assert await digest(forked, NINE) == await digest(place, NINE)
    assert not any(b"under the mat" in each.read_bytes() for each in target.iterdir())


async def test_an_unchanged_fork_has_the_same_journal(lived: Path, tmp_path: Path) -> None:
    await fork(lived, tmp_path / "fork", NINE)
    assert await digest(tmp_path / "fork", NOON) == await digest(lived, NOON)


async def test_changes_of_a_fork_do_not_affect_the_town(lived: Path, tmp_path: Path) -> None:
    await fork(lived, tmp_path / "fork", EIGHT)
    async with Town.open(tmp_path / "fork") as town:
        await town.whisper("Ada Brook", "The bridge is closed.")
        await town.run(until=NOON)
    here, there = "\n".join(await lines(tmp_path / "fork", NOON)), "\n".join(await lines(lived, NOON))
    assert "The bridge is closed." in here and "fox" not in here
    assert "The bridge is closed." not in there and "fox" in there


async def test_impossible_forks_are_refused(lived: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has run up to"):
        await fork(lived, tmp_path / "fork", NOON + 1)
    with pytest.raises(InputError, match="already contains data"):
        await fork(lived, lived, NINE)
    assert not (tmp_path / "fork" / "mindstream.db").exists()


async def test_later_importance_ratings_are_not_in_a_fork(tmp_path: Path) -> None:
    half_past = 8 * 360 + 180
    with FakeEndpoint() as door:
        async with over_http(PaperMind(), door) as models:
            async with Town.open(tmp_path / "lived", village_of(), model=models) as town:
                await town.run(until=10 * 360)
                rated = await importance(town)
            await fork(tmp_path / "lived", tmp_path / "fork", half_past)
            async with Town.open(tmp_path / "fork", model=models) as town:
                waiting = {id_ for one in town.residents.values() for id_ in one.state.unrated}
                now = await importance(town)
                assert waiting and all(now[each] is None and rated[each] is not None for each in waiting)
                assert all(now[each] == rated[each] for each in now if each not in waiting)
                await town.run(until=10 * 360)
                assert not [each for each in waiting if (await importance(town))[each] is None]
    assert await lines(tmp_path / "fork", half_past) == await lines(tmp_path / "lived", half_past)


async def importance(town: Town) -> dict[str, float | None]:
    return {
        each.id: each.importance
        for one in town.residents.values()
        async for part in read_all(town.store, one.memory.key)
        for each in part
    }
