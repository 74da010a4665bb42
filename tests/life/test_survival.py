"""A repeatedly killed life has the journal of an uninterrupted one; one heartbeat per period, in any process."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from keys import key_of
from kill_life import compare
from life import live
from lives import FINISH, living, rows, script

from mindstream import Coach
from mindstream.clock import ManualClock
from mindstream.life import life as lifes
from mindstream.life import schedule
from mindstream.life.events import Beat, LifeBegan
from mindstream.life.life import LifeConfig, LifeReasoner
from mindstream.life.permission import Permits
from mindstream.memory.memory import Memory
from mindstream.minds.mind import Mind
from mindstream.models.model import Call
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel
from mindstream.tools.tool import tool

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
FORK = multiprocessing.get_context("fork")


@linux
def test_a_repeatedly_killed_life_has_the_same_journal() -> None:
    found = compare(turns=24, points=6)
    assert found["same_journal"], found["first_difference"]
    assert int(str(found["killed"])) >= 2 and found["keyed_repeated"] == 0 and found["keyed_lines"] == found["lines"]
    assert found["plain_lines"] == found["lines"] and int(str(found["plain_repeated"])) <= 6


@linux
def test_a_killed_life_without_logged_steps_differs() -> None:
    tries = (compare(turns=24, points=6, forgets=True) for _ in range(12))  # a kill between two turns costs nothing
    assert any(not found["same_journal"] for found in tries)


async def test_a_long_life_has_bounded_prompts_and_keeps_rehearsed_facts(tmp_path: Path) -> None:
    """The benchmark itself, shortened: the bounded prompt, the rehearsed fact, the day without calls."""
    found = await live(tmp_path, turns=130, sleeps=True, told=False)
    assert int(str(found["prompt_tokens_max"])) <= int(str(found["prompt_limit"]))
    assert found["rehearsed_answered"] and found["idle_24h_calls"] == 0 and found["ledger_worked_on_at_once"]


def keeper() -> Models:
    """Return a model for a life that sets the clock forward on demand."""

    def answer(n: int) -> list[list[Call] | str]:
        return [[Call("finish_task", f'{{"task": {n}}}')], "wound"]

    return Models(
        FakeModel({"live": [line for n in range(1, 200) for line in answer(n)], "is_worth_turn": ["yes"] * 200})
    )


CONFIG = LifeConfig(lease_s=1.0, hears=False)
ORDER = "every 2 seconds: wind the clock"
ENOUGH = "enough"


async def sessions(folder: Path, n: int) -> None:
    """Open a number of sessions of one mind in this process, each with a life, until the count is reached."""

    async def session(name: int) -> None:
        life = LifeReasoner(keeper(), goal="Wind the clock.", orders=[ORDER], config=CONFIG)
        opened = Mind.open(folder, user="keeper", session=f"{os.getpid()}-{name}", responder=None, reasoners=[life])
        async with opened:
            while not (folder / ENOUGH).exists():  # noqa: ASYNC110 (another process says it)
                await asyncio.sleep(0.05)

    await asyncio.gather(*(session(name) for name in range(n)))


def process(folder: Path, n: int) -> None:
    asyncio.run(sessions(folder, n))


def wait_for_beats(folder: Path, n: int, since: float = 0.0) -> None:
    """Wait until a number of rows were written since a time."""
    while sum(at > since for _, at in asyncio.run(beats_and_turns(folder))[0]) < n:
        time.sleep(0.2)


@linux
def test_several_processes_run_one_heartbeat_per_period(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the processes is killed; the others continue."""
    monkeypatch.setattr(schedule, "SHORTEST_S", 1.0)  # otherwise a test of periods takes minutes
    monkeypatch.setattr(lifes, "POLL_S", 0.5)
    processes = [FORK.Process(target=process, args=(tmp_path, n)) for n in (4, 3, 3)]
    for each in processes:
        each.start()
    try:
        wait_for_beats(tmp_path, 2)
        assert processes[0].pid is not None
        os.kill(processes[0].pid, signal.SIGKILL)
        wait_for_beats(tmp_path, 2, since=time.time())
    finally:
        (tmp_path / ENOUGH).touch()
        for each in processes:
            each.join()
    assert [each.exitcode for each in processes] == [-signal.SIGKILL, 0, 0]
    beats, turns = asyncio.run(beats_and_turns(tmp_path))
    periods = Counter(due for due, _ in beats)
    assert len(periods) >= 4 and set(periods.values()) == {1}, periods
    assert turns == list(range(1, len(turns) + 1))


async def beats_and_turns(folder: Path) -> tuple[list[tuple[float, float]], list[int]]:
    """Return the due and actual times of each heartbeat, and the numbers of the turns."""
    async with Memory.open(folder, "keeper") as stream:
        kept = await stream.store.events(key_of("keeper"), kinds=["beat"], limit=1000)
        beats = [(row.event.due, row.at) for row in kept if isinstance(row.event, Beat)]
        return beats, [event.turn for event in await rows(stream, "turn_began")]


async def test_a_conversation_and_a_life_share_one_stream(tmp_path: Path) -> None:
    """A coach with a goal of its own: the coach answers the user; the life continues next to it."""
    life = LifeReasoner(Models(script([FINISH, "tidied"])), goal="Tidy the notes.")
    async with Mind.open(tmp_path, user="keeper", reasoners=[life], responder=Coach.using()) as mind:
        answer = await mind.send("Hello!")
        async with asyncio.timeout(100):
            thoughts: list[str] = []
            while not thoughts:
                await asyncio.sleep(0.05)
                thoughts = [event.text for event in await rows(mind.memory, "thought") if event.slot == "living"]
    assert answer and thoughts == ["lived 1 turn"]


async def test_a_goal_given_twice_starts_once(tmp_path: Path) -> None:
    """Two sessions begin the same life at once: a past heartbeat is not due again."""
    clock = ManualClock()
    event = LifeBegan(goal="Wind the clock.", language="en", orders=("every hour: wind the clock",))
    model = script([FINISH, "wound", [Call("finish_task", '{"task": 2}')], "again", "nothing more"])
    async with living(tmp_path, model, clock=clock, goal=event.goal, orders=event.orders) as life:
        await life.run(until=clock.now() + 3600)
        await life.memory.commit(event)
    async with living(tmp_path, model, clock=clock, goal="") as life:
        await life.run(turns=1, wait=False)
        assert len(await rows(life.memory, "beat")) == 1


async def test_a_life_next_to_a_conversation_asks_for_approval_itself(tmp_path: Path) -> None:
    wound = list[str]()

    @tool(changes=True)
    def wind(clock: str) -> str:
        """Wind a clock."""
        wound.append(clock)
        return "wound"

    task, call = Call("M1", '{"task": "Wind the clock."}'), Call("wind", '{"clock": "hall"}')
    models = Models(script([[task], FINISH, "tidied"], [[call], "wound"]))
    config = LifeConfig(hears=False, permits=Permits(tools=("wind",)))
    life = LifeReasoner(models, goal="Wind the clocks.", config=config)
    async with Mind.open(tmp_path, user="keeper", reasoners=[life], responder=None, tools=[wind]) as mind:
        async with asyncio.timeout(100):
            while not wound:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert wound == ["hall"] and not await rows(mind.memory, "leave_asked")
