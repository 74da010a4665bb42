"""Residents who run ahead of each other leave the same journal as in lock-step; a scheduler that is deaf does not."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import numpy as np
import pytest
from hamlet import hamlet, on_roads
from mindstream_town import clockwork
from mindstream_town.events import TownReached
from mindstream_town.forking import fork
from mindstream_town.inspect.estimate import LIVED, Counting
from mindstream_town.journal import read_town, rows_after
from mindstream_town.packs import open_setting
from mindstream_town.residents.plan import ASIDE
from mindstream_town.scheduler import RANK, Group, Scheduler, Slots
from mindstream_town.setting import Setting
from mindstream_town.town import Order, Town
from mindstream_town.world.graph import PlaceWorld
from mindstream_town.world.reach import reach_of
from town_order import Replay, apart, true_path

from mindstream.errors import ModelError, ModelUnavailable
from mindstream.models.model import Part, Request, current_cause
from mindstream.models.roles import Models

NINE, NOON = 9 * 360, 12 * 360


class Slow:
    """Rules that behave like a model, each reply after a random delay; the model fails after a number of calls."""

    name = "scripted"

    def __init__(self, calls: int = 10**9) -> None:
        self.left, self._mind = calls, Counting(name=LIVED)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.left -= 1
        if self.left < 0:
            raise ModelUnavailable("the server has gone")
        await asyncio.sleep(random.uniform(0, 0.003))
        async for part in self._mind.reply(request):
            yield part


async def lines(folder: Path, upto: int) -> list[list[object]]:
    async with Town.open(folder) as town:
        return [row for row in [json.loads(line)[:-1] async for line in town.journal()] if row[0] <= upto]


@pytest.mark.parametrize("town_of", [hamlet, on_roads])
@pytest.mark.parametrize("lives", ["rules", "scenes", "paper"])
async def test_out_of_order_the_journal_is_the_same(
    lives: str, town_of: Callable[..., Setting], tmp_path: Path
) -> None:
    setting = town_of() if lives == "rules" else town_of(lives=lives)
    digests, orders = list[str](), tuple[Order, ...](("lockstep", "free"))
    for order in orders:
        models = "rules" if lives == "rules" else Models(Slow())
        async with Town.open(tmp_path / order, setting, model=models, order=order, slots=2) as town:
            await town.run(until=NOON)
            digests.append(await town.digest())
            ran_ahead = [row async for row in rows_after(town.store) if isinstance(row.event, TownReached)]
            assert bool(ran_ahead) == (order == "free")
    assert digests[0] == digests[1]


class Watched(Slow):
    """Notes which calls of a resident run at the same time, and which of different residents."""

    def __init__(self) -> None:
        super().__init__()
        self._running: list[tuple[str, str]] = []
        self.of_one, self.of_several = set[frozenset[str]](), set[frozenset[str]]()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        who, what = current_cause().resident, request.prompt.label()
        for name, label in self._running:
            (self.of_one if name == who else self.of_several).add(frozenset({what, label}))
        self._running.append((who, what))
        async for part in super().reply(request):
            yield part
        self._running.remove((who, what))


async def test_calls_that_do_not_need_each_other_run_at_the_same_time(tmp_path: Path) -> None:
    model = Watched()
    async with Town.open(tmp_path, hamlet(lives="paper"), model=Models(model), order="lockstep") as town:
        assert model.of_several == {frozenset({"rate_importance"})}  # the memories from before the town began
        await town.run(until=NOON)
    assert frozenset({"take_from_talk"}) in model.of_several
    assert frozenset({"rate_importance", "plan_tasks"}) in model.of_one


async def test_a_scheduler_that_is_deaf_gives_another_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, runs = list[str](), tuple[tuple[str, Order], ...]((("a", "lockstep"), ("b", "free"), ("c", "free")))
    for name, order in runs:
        if name == "c":
            monkeypatch.setattr(clockwork, "reach_of", lambda world, *_: reach_of(world, 0, 0))
        async with Town.open(tmp_path / name, open_setting("smallville", seed=1), order=order) as town:
            await town.run(until=2_100)
            found.append(await town.digest())
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("calls", [5, 17, 30])
async def test_a_town_that_stopped_unevenly_continues_to_the_same_journal(calls: int, tmp_path: Path) -> None:
    setting = hamlet(lives="paper")
    async with Town.open(tmp_path / "calm", setting, model=Models(Slow()), order="lockstep") as town:
        await town.run(until=NOON)
        calm = await town.digest()
    async with Town.open(tmp_path / "wild", setting, model=Models(Slow(calls)), order="free") as town:
        with pytest.raises(ModelError):
            await town.run(until=NOON)
        stopped = town.step
    async with Town.open(tmp_path / "wild", model=Models(Slow()), order="lockstep" if calls == 17 else "free") as town:
        assert town.step == stopped == (await read_town(town.store, town.setting.profile)).step < NOON
        await town.run(until=NOON)
        assert await town.digest() == calm


async def test_an_edit_takes_effect_when_no_resident_has_passed(tmp_path: Path) -> None:
    async with Town.open(tmp_path, hamlet(lives="paper"), model=Models(Slow(30)), order="free") as town:
        with pytest.raises(ModelError):
            await town.run(until=NOON)
        await town.set_object("Hamlet:Oak Cafe:cafe:piano", "out of tune", danger=False)
        state = await read_town(town.store, town.setting.profile)
        changed = town.conditions["Hamlet:Oak Cafe:cafe:piano"].since
        assert changed == max(state.reached.values(), default=state.step) >= town.step
    async with Town.open(tmp_path, model=Models(Slow())) as town:
        await town.run(until=NOON)
        assert town.step == NOON


async def test_a_fork_of_a_town_that_ran_out_of_order_has_the_same_past(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "town", hamlet(lives="paper"), model=Models(Slow()), order="free") as town:
        await town.run(until=NOON)
    await fork(tmp_path / "town", tmp_path / "fork", NINE)
    assert await lines(tmp_path / "fork", NOON) == await lines(tmp_path / "town", NINE)
    async with Town.open(tmp_path / "fork", model=Models(Slow())) as town:
        assert town.step == NINE
        await town.run(until=NOON)
    assert await lines(tmp_path / "fork", NOON) == await lines(tmp_path / "town", NOON)


def test_walkers_who_could_meet_never_run_ahead_of_each_other() -> None:
    draws = np.random.default_rng(3)
    steps = draws.integers(-1, 2, (12, 301, 2)).cumsum(axis=1) + draws.integers(0, 60, (12, 1, 2))
    calls = draws.poisson(0.3, (12, 300))
    replay = Replay(steps, calls, checks=True).run()
    assert replay.pairs > 10_000 and replay.violations == 0
    assert true_path(steps, calls) <= replay.now < calls.max(axis=0).sum()
    assert replay.now <= Replay(steps, calls, slots=4).run().now <= calls.sum()


def test_a_group_that_runs_a_later_step_delays_others_only_from_there() -> None:
    order = Scheduler(apart, {"a": 0, "b": 0}, [(0, 0), (20, 0)])
    a, b = order.groups(100)
    assert a.limit == b.limit == 11
    order.done(b, 11, [(20, 0)])
    assert not [*order.groups(100)]
    order.skip(a, 9)
    assert [*order.groups(100)] == [Group(("b",), 11, 20)]


def test_the_distance_in_steps_is_never_above_the_walk() -> None:
    setting = open_setting("smallville", seed=1)
    world, draws = setting.world, random.Random(1)
    reach = reach_of(world, setting.profile.vision, ASIDE)
    free = [(x, y) for x in range(0, 120, 7) for y in range(0, 80, 7) if world.walkable((x, y))]
    for _ in range(40):
        spot, others = draws.choice(free), draws.sample(free, 20)
        across, down = np.array(others).T
        for other, steps in zip(others, reach(spot, across, down).tolist(), strict=True):
            if world.routes.is_reachable(other, spot):
                assert steps <= world.routes.distance(other, spot)
            sees = world.arena_of(spot) == world.arena_of(other) and world.distance(spot, other) <= 8
            assert steps == 0 or not sees, "residents who see each other run together"


async def test_the_call_on_which_most_wait_gets_the_next_slot() -> None:
    slots, done = Slots(1), list[str]()

    async def call(name: str, waiting: int) -> None:
        RANK.set(lambda: (-waiting, 0))
        async with slots:
            await asyncio.sleep(0)
            done.append(name)

    async with asyncio.TaskGroup() as group:
        for name, waiting in (("first", 0), ("one waits", 1), ("nine wait", 9), ("two wait", 2)):
            group.create_task(call(name, waiting))
    assert done == ["first", "nine wait", "two wait", "one waits"]


def test_on_roads_who_runs_together_is_the_same_from_both_sides() -> None:
    world = on_roads().world
    assert isinstance(world, PlaceWorld)
    reach, spots = reach_of(world, 8, ASIDE), sorted(world.neighbours)
    across, down = np.array(spots).T
    apart = np.array([reach(spot, across, down) for spot in spots])
    assert ((apart == 0) == (apart == 0).T).all() and (apart == 0).sum() > len(spots)
    walks = [[world.routes.distance(other, spot) for other in spots] for spot in spots]
    assert (apart <= np.array(walks)).all()
