"""A life without an end: if no task is open, M2 proposes work or rests; daily costs are limited."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

from fake_endpoint import Asked, Behaviour, Calls, FakeEndpoint, Says
from lives import rows

from mindstream.clock import DAY_S, HOUR_S, ManualClock
from mindstream.life import commands
from mindstream.life.events import Proposed, Replied
from mindstream.life.life import Life, LifeConfig
from mindstream.life.schedule import ActiveHours, Rhythm
from mindstream.life.state import LifeBudget
from mindstream.log.events import Logged
from mindstream.memory.memory import Memory
from mindstream.models.roles import Models

BEATS = 1_000
NOTHING: dict[str, object] = {"because": "What is left waits for the user."}
LOOKS = "nothing in your ledger can be done now"


def lives(looks: Callable[[int], Mapping[str, object]]) -> Callable[[Asked], Behaviour]:
    """Script M2: `looks(n)` is the n-th proposal; a turn finishes the first task of its ledger."""
    asked_to_look = 0

    def behave(asked: Asked) -> Behaviour:
        nonlocal asked_to_look
        messages = asked.body["messages"]
        if LOOKS in messages[0]["content"]:
            asked_to_look += 1
            return Says(json.dumps(dict(looks(asked_to_look))))
        if "about to fade from view" in messages[0]["content"]:
            return Says("Pages were written and read.")
        if messages[-1]["role"] == "tool":
            return Says("It is done.")
        ledger = re.search(r"<ledger>\n(\d+)\. ", messages[-1]["content"])
        assert ledger, "a turn starts only if a task is open"
        return Calls((("finish_task", json.dumps({"task": int(ledger[1]), "result": "done"})),))

    return behave


@asynccontextmanager
async def living(door: FakeEndpoint, folder: Path, clock: ManualClock, **config: object) -> AsyncIterator[Life]:
    hours = config.pop("hours", None)
    led = LifeConfig(rhythm=Rhythm(hours, beat_s=HOUR_S), **config)  # type: ignore[arg-type]
    async with Memory.open(folder, "keeper", clock=clock, seed=1) as memory, Models.named(
        {"default": f"{door.url}#m"}
    ) as models, Life.open(memory, models, goal="Keep the lighthouse.", config=led) as life:  # fmt: skip
        yield life


async def proposals(memory: Memory) -> list[tuple[float, Proposed]]:
    found: list[Logged] = await memory.store.events(memory.key, kinds=["proposed"], limit=100_000)
    return [(row.at, row.event) for row in found if isinstance(row.event, Proposed)]


async def test_a_thousand_heartbeats_stay_within_the_daily_budget(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: {"because": "It is worth it.", "tasks": [f"Write page {n}.", f"Read page {n}."]})
    async with living(door, folder, clock, budget=LifeBudget(tokens_per_day=60)) as life:
        assert await life.run(until=clock.now() + BEATS * HOUR_S) == "time"
        memory = life.memory
        looks, done = await proposals(memory), [each.text for each in await rows(memory, "task_changed")
                                             if each.standing == "done"]  # fmt: skip
        spent = Counter[int]()
        for row in await memory.store.events(memory.key, kinds=["replied"], limit=100_000):
            assert isinstance(row.event, Replied)
            spent[int(row.at // DAY_S)] += row.event.tokens
    assert len(spent) == 43 and max(spent.values()) <= 60 + 10, "exceeded by at most one call"
    assert min(spent.values()) >= 50, "it works on each day"
    assert {"Write page 1.", "Read page 1.", "Write page 30."} <= set(done)
    moments = [at for at, _ in looks]
    assert min(b - a for a, b in pairwise(moments)) >= HOUR_S, "at most one proposal per heartbeat"


async def test_idle_heartbeats_call_the_model_about_once_a_day(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: NOTHING | ({"until": "in 3 hours"} if n % 3 == 0 else {}))
    async with living(door, folder, clock) as life:
        assert await life.run(until=clock.now() + BEATS * HOUR_S) == "time"
        looks = await proposals(life.memory)
        assert life.state.idle == NOTHING["because"]
    assert len(door.chats) == len(looks) + 2, "one call per proposal, and the work on the goal"
    assert 42 <= len(looks) <= 65, "once a day, and at the times that M2 named"
    gaps = {round((b[0] - a[0]) / HOUR_S) for a, b in pairwise(looks)}
    assert min(gaps) >= 2, "between two calls lies a heartbeat without one"
    assert 3 in gaps, "M2's time for the next proposal is kept"


async def test_a_time_that_has_passed_or_does_not_exist_does_not_end_the_life(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    times = ("yesterday", "Feb 30", "25:00", "2020-01-01", "when the sea is calm")
    door.otherwise = lives(lambda n: NOTHING | {"until": times[n % len(times)]})
    async with living(door, folder, clock) as life:
        assert await life.run(until=clock.now() + 8 * DAY_S) == "time"
        looks = await proposals(life.memory)
    assert 7 <= len(looks) <= 9, "it looks again on each day, as if M2 had named no time"
    assert all(event.until is None for _, event in looks)


async def test_new_work_ends_the_rest(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: NOTHING | {"until": "in 5 days"})
    async with living(door, folder, clock) as life:
        await life.run(until=clock.now() + 3 * HOUR_S)
        assert len(await proposals(life.memory)) == 1
        await commands.add_task(life.memory, "Trim the wick.")
        await life.run(until=clock.now() + 2 * HOUR_S)
        assert len(await proposals(life.memory)) == 2


async def test_the_proposal_prompt_contains_goal_memories_and_finished_tasks(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    replies: list[Mapping[str, object]] = [{"because": "The wick is low.", "tasks": ["Trim the wick."]}, NOTHING]
    door.otherwise = lives(lambda n: replies[n - 1])
    async with living(door, folder, clock, budget=LifeBudget(tokens_per_day=5_000)) as life:
        await life.memory.retain("The wick of the lighthouse is low.", "note", data={"life": True})
        before = await life.memory.latest("note")
        await life.run(until=clock.now() + 3 * HOUR_S)
        after = await life.memory.latest("note")
    asked = [chat.body["messages"] for chat in door.chats if LOOKS in chat.body["messages"][0]["content"]]
    shown = asked[1][-1]["content"]
    assert "<goal>\nKeep the lighthouse.\n</goal>" in shown and "The wick of the lighthouse is low." in shown
    assert "Trim the wick. (done): done" in shown and "tokens</room_today>" in shown
    assert before == after, "a proposal does not strengthen memories"


async def test_finished_work_is_not_proposed_again(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: {"because": "Again.", "tasks": ["Trim the wick."]})
    async with living(door, folder, clock) as life:
        await life.run(until=clock.now() + 30 * HOUR_S)
        found = [event.tasks for _, event in await proposals(life.memory)]
    assert found[0] == ("Trim the wick.",) and set(found[1:]) == {()}, "existing tasks are not proposed"


async def test_proposals_are_made_only_in_active_hours_and_invalid_ones_rest(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: {"tasks": "none at all"})
    async with living(door, folder, clock, hours=ActiveHours("08:00-10:00")) as life:
        await life.run(until=clock.now() + 4 * DAY_S)
        looks = await proposals(life.memory)
    assert 3 <= len(looks) <= 5 and all(8 <= at % DAY_S / HOUR_S <= 10 for at, _ in looks)
    assert all(not event.tasks and event.because for _, event in looks)


async def test_a_resumed_life_keeps_its_heartbeat(door: FakeEndpoint, folder: Path) -> None:
    clock = ManualClock()
    door.otherwise = lives(lambda n: NOTHING)
    for _ in range(3):
        async with living(door, folder, clock) as life:
            await life.run(until=clock.now() + HOUR_S / 2)
    assert len(proposal_requests(door)) == 1


def proposal_requests(door: FakeEndpoint) -> list[Asked]:
    return [chat for chat in door.chats if LOOKS in chat.body["messages"][0]["content"]]
