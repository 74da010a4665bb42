"""Days of a town's file, lived without a model: nothing that cannot be; what it says is done there and then."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hamlet import hamlet
from skerry import skerry

from mindstream.town.events import Acted
from mindstream.town.history import History, read_history
from mindstream.town.metrics.conduct import examine_conduct
from mindstream.town.setting import Setting
from mindstream.town.town import Town
from mindstream.town.walk import read_walk


async def live(folder: Path, setting: Setting, days: int = 1) -> History:
    async with Town.open(folder, setting) as town:
        await town.run(until=setting.step_at(days, 0) - 1)
    return await read_history(folder)


def impossible(history: History) -> Iterator[str]:
    """Say what cannot be."""
    conduct = examine_conduct(history)
    for what, count in (
        ("in a wall", conduct.in_walls), ("asleep elsewhere", conduct.asleep_elsewhere),
        ("talks asleep", conduct.talking_asleep), ("closed", conduct.not_believable.get("closed", 0)),
    ):  # fmt: skip
        if count:
            yield f"{what}: {count} times"
    for name in history.names:
        yield from _jumps(history, name)


def _jumps(history: History, name: str) -> Iterator[str]:
    """Say where somebody sets out from a place at which it is not, or makes two steps in one."""
    world = history.setting.world
    for step, acted in history.events(name, Acted):
        tiles = read_walk(acted.act.path)
        if step and world.distance(history.spot(name, step - 1), tiles[0]) > 1:
            yield f"{name} is in two places at {history.clock(step)}"
        if any(world.distance(one, other) > 1 for one, other in pairwise(tiles)):
            yield f"{name} jumps at {history.clock(step)}"


def acts(history: History, name: str, hour: int, day: int = 0) -> str:
    """Say what somebody does at an hour, and where."""
    act = history.state(name, history.setting.step_at(day, hour * 60 + 30)).act
    assert act is not None
    return f"{act.what} @ {act.place}"


@pytest.mark.parametrize("setting", [hamlet(1), skerry(1), skerry(2)], ids=["hamlet", "skerry", "another seed"])
async def test_nothing_happens_that_cannot_be(tmp_path: Path, setting: Setting) -> None:
    assert list(impossible(await live(tmp_path, setting))) == []


async def test_days_of_other_hours_are_lived_as_they_are_written(tmp_path: Path) -> None:
    history = await live(tmp_path, skerry(), days=2)
    lars = [acts(history, "Lars Holm", hour, day=1) for hour in (0, 2, 10, 22)]
    assert all("keeping watch" in each and "lamp room" in each for each in (lars[0], lars[1], lars[3]))
    assert lars[2].startswith("sleeping")
    assert "fishing" in acts(history, "Odd Berg", 6) and "boat" in acts(history, "Odd Berg", 6)
    assert "classroom" in acts(history, "Per Berg", 10) and acts(history, "Per Berg", 21).startswith("sleeping")
    done = {f"{acted.act.what}@{acted.act.place.rpartition(':')[2]}" for _, acted in history.events("Odd Berg", Acted)}
    assert "brushing teeth@basin" in done
