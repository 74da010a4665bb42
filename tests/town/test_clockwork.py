"""A town in lock-step: the same seed gives the same journal, whoever dies on the way; what is seen changes deeds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hamlet import hamlet

from mindstream.errors import InputError
from mindstream.town.events import Acted, Perceived, Talked
from mindstream.town.journal import read_town, rows_after
from mindstream.town.town import Town

NOON = 12 * 360


async def lived(folder: Path, *stops: int, seed: int = 1, **profile: object) -> str:
    """Live up to each of these steps, closed and opened again between; return the journal's checksum."""
    digest = ""
    for number, stop in enumerate(stops):
        async with Town.open(folder, None if number else hamlet(seed, **profile)) as town:
            await town.run(until=stop)
            digest = await town.digest()
    return digest


async def rows(folder: Path, *kinds: type) -> list[tuple[str, object]]:
    async with Town.open(folder) as town:
        return [(row.mind, row.event) async for row in rows_after(town.store) if isinstance(row.event, kinds)]


async def test_the_same_seed_gives_the_same_journal(tmp_path: Path) -> None:
    straight = await lived(tmp_path / "a", NOON)
    stops = sorted(random.Random(3).sample(range(5, NOON), 12))
    assert await lived(tmp_path / "b", *stops, NOON) == straight
    assert await lived(tmp_path / "c", NOON, seed=2) != straight


async def test_what_rows_lead_to_is_what_lives(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=NOON)
        states = {name: resident.state for name, resident in town.residents.items()}
        again = await read_town(town.store, town.setting.profile, upto=NOON)
        early = await read_town(town.store, town.setting.profile, upto=6 * 360 - 1)
    assert again.states == states
    assert all(state.asleep for state in early.states.values()), "nobody is up before six"


async def test_who_cannot_see_sees_nothing_and_who_cannot_talk_does_not(tmp_path: Path) -> None:
    await lived(tmp_path / "blind", NOON, observes=False)
    assert not [event for _, event in await rows(tmp_path / "blind", Perceived, Talked) if getattr(event, "seen", 1)]
    await lived(tmp_path / "mute", NOON, talks=False)
    assert not await rows(tmp_path / "mute", Talked)
    await lived(tmp_path / "both", NOON)
    assert await rows(tmp_path / "both", Talked), "the control: in the same morning they talk"


@pytest.mark.parametrize(("observes", "changes"), [(True, True), (False, False)])
async def test_a_leaking_shower_changes_what_is_done(tmp_path: Path, observes: bool, changes: bool) -> None:
    async with Town.open(tmp_path, hamlet(observes=observes)) as town:
        await town.run(until=NOON)
        room = town.setting.world.arena_of(town.residents["Ben Hale"].state.spot(NOON))
        place = str(town.setting.world.places[room])
        thing = town.setting.objects_in(place)[0]
        await town.set_object(thing, "leaking")
        await town.run(until=NOON + 30)
    acts = [event for mind, event in await rows(tmp_path, Acted) if mind == "Ben Hale" and isinstance(event, Acted)]
    assert any(act.act.why == "react" and NOON < act.step <= NOON + 30 for act in acts) is changes


async def test_a_folder_has_one_town(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no town lives in this folder"):
        async with Town.open(tmp_path):
            pass
    await lived(tmp_path, 10)
    with pytest.raises(InputError, match="lives in this folder already"):
        async with Town.open(tmp_path, hamlet()):
            pass
    async with Town.open(tmp_path) as town:
        with pytest.raises(InputError, match="there is no"):
            await town.set_object("Hamlet:nowhere", "leaking")
