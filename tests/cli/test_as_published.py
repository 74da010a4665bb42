"""`--as-published` gathers the settings of each paper."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fake_endpoint import FakeEndpoint, Says
from mindstream_town.journal import read_setting
from running import run

from mindstream.memory.opening import opened_store


def test_a_town_lives_step_by_step(folder: Path) -> None:
    assert run("town", "new", "--as-published", "--data", folder).code == 0

    async def lives() -> str:
        async with opened_store(folder) as store:
            return (await read_setting(store)).profile.lives

    assert asyncio.run(lives()) == "paper"


def test_a_conversation_waits_by_its_belief(folder: Path) -> None:
    with FakeEndpoint() as door:
        door.otherwise = Says("I see.")
        run("chat", "--as-published", "--data", folder, "--model", f"{door.url}#any", said="I lie awake.\n")
        talks = [str(each.body) for each in door.asked if "slower colleague" in str(each.body)]
    assert talks and all("[WAIT]" not in each for each in talks), "the talker is not asked to decide"


def test_a_plan_has_exemplars(folder: Path) -> None:
    with FakeEndpoint() as door:
        door.otherwise = Says("#E1 = calculator[2 * 3]")
        flags = ("--data", folder, "--model", f"{door.url}#any", "--yes")
        run("solve", "How much is twice three?", "--as-published", *flags)
        run("solve", "How much is twice four?", *flags)
        shown = ["<examples>" in str(each.body) for each in door.asked if "Plan the task" in str(each.body)]
    assert shown == [True, False]


def test_a_life_never_ends_and_its_dreams_have_tools(folder: Path) -> None:
    done = run("live", "--as-published", "--goal", "Count.", "--turns", "1", "--data", folder)
    assert "--forever" in done.out + done.err and "--dream-tools R,U,M0" in done.out + done.err
