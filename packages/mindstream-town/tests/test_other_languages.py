"""Towns in German and Chinese: agreements, dangers and access are typed replies."""

from __future__ import annotations

from pathlib import Path

import pytest
from keys import key_of_resident
from mindstream_town.events import Acted, StoodIn, Talked
from mindstream_town.inspect.history import read_history
from mindstream_town.journal import resident_of, rows_after
from mindstream_town.prompts.conduct import IsDanger, TakeFromTalk
from mindstream_town.prompts.plans import PlanDay
from mindstream_town.residents.person import appointment_of
from mindstream_town.town import Town
from villages import LIUCUN, TAL, Mind, Village

from mindstream.models.roles import Models

villages = pytest.mark.parametrize("village", [TAL, LIUCUN], ids=["German", "Chinese"])
HOUR, EVENING = 360, 21 * 360 + 180


def room_of(town: Town, name: str) -> str:
    """Return the address of a resident's room."""
    world = town.setting.world
    arena = world.arena_of(town.residents[name].state.spot(town.step))
    return str(world.places[arena]) if arena else ""


@villages
async def test_an_agreement_from_a_conversation_is_kept(tmp_path: Path, village: Village) -> None:
    mind = Mind(village)
    async with Town.open(tmp_path, village.setting(), model=Models(mind)) as town:
        await town.run(until=11 * HOUR)
        for name in (village.host, village.guest):
            assert room_of(town, name) != village.inn, "the morning's plan has ended"
        await town.run(until=12 * HOUR + 60)
        for name in (village.host, village.guest):
            act = town.residents[name].state.act
            assert room_of(town, name) == village.inn and act is not None and act.what.startswith(village.lunch)
        await town.run(until=14 * HOUR)
        assert room_of(town, village.host) == village.homes[0], "then the day continues"
        talks = [row async for row in rows_after(town.store) if isinstance(row.event, Talked)]
        kept = await town.store.latest(
            key_of_resident(village.guest), ("thought",), 20, now=town.setting.moment(town.step)
        )
    appointments = [at for each in kept if (at := appointment_of(each.data))]
    (lunch,) = [at for at in appointments if at.what == village.lunch]
    assert lunch.place == village.inn and lunch.who == tuple(sorted((village.host, village.guest)))
    asked = [each for each in mind.asked if isinstance(each, TakeFromTalk)]
    assert len(asked) == len(talks), "no second model call"


@villages
async def test_only_invited_residents_may_enter_until_the_event_ends(tmp_path: Path, village: Village) -> None:
    mind = Mind(village)
    async with Town.open(tmp_path, village.setting(), model=Models(mind)) as town:
        await town.run(until=18 * HOUR + 60)
        assert room_of(town, village.guest) == village.homes[0], "the host admits him"
        await town.run(until=19 * HOUR + 60)
        assert room_of(town, village.guest) != village.homes[0]
        await town.run(until=EVENING)
        rows = [row async for row in rows_after(town.store)]
    hermitage = village.homes[2]
    went = [row.event.act.place for row in rows if isinstance(row.event, Acted) and resident_of(row) != village.hermit]
    assert went and not any(place.startswith(hermitage) for place in went), "he was told of it, and agreed"
    for ask in mind.asked:
        if isinstance(ask, PlanDay) and ask.who != village.hermit:
            assert hermitage not in {place.address for place in ask.places}
        if isinstance(ask, TakeFromTalk):
            assert not any(hermitage.rpartition(":")[2] in place for place in ask.places)
    told = [each.told for each in mind.asked if isinstance(each, TakeFromTalk)]
    assert any(at.what == village.rumour for news in told for each in news if (at := each.appointment))


@villages
async def test_a_fire_wakes_residents_and_a_drip_does_not(tmp_path: Path, village: Village) -> None:
    for condition, wakes in ((village.drip, False), (village.fire, True)):
        mind, folder = Mind(village), tmp_path / str(wakes)
        async with Town.open(folder, village.setting(), model=Models(mind)) as town:
            await town.run(until=3 * HOUR)
            await town.set_object(village.stove, condition)
            await town.run(until=3 * HOUR + 60)
            history = await read_history(town.store)
        acts = [event.act for at, event in history.events(village.host, Acted) if at > 3 * HOUR]
        assert [each.condition for each in mind.asked if isinstance(each, IsDanger)] == [condition]
        assert bool(acts) is wakes and all(act.what == village.says["put out"] for act in acts[:1])
        assert (village.stove in town._clockwork.conditions) is not wakes, "it is put out"
        assert not [at for at, _ in history.events(village.guest, Acted) if at > 3 * HOUR], "he sleeps elsewhere"


@villages
async def test_unusable_replies_cost_decisions_and_interruptions_do_not_change_the_journal(
    tmp_path: Path, village: Village
) -> None:
    async def live(folder: Path, *stops: int) -> tuple[str, int]:
        mind = Mind(village, (9, 14, 20, 23, 27, 30, 33))
        async with Town.open(folder, village.setting(), model=Models(mind)):
            pass
        for stop in stops:
            async with Town.open(folder, model=Models(mind)) as town:
                await town.run(until=stop)
                rows = [row.event async for row in rows_after(town.store)]
                digest = await town.digest()
        return digest, sum(isinstance(each, StoodIn) for each in rows)

    straight, skipped = await live(tmp_path / "straight", 13 * HOUR)
    again = await live(tmp_path / "in parts", 3 * HOUR, 8 * HOUR + 7, 9 * HOUR, 13 * HOUR)
    assert skipped > 4 and again == (straight, skipped)
