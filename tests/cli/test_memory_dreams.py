"""`mindstream memory dreams`: inferred sentences, each with the sources of its dream."""

from __future__ import annotations

import asyncio
from pathlib import Path

from running import run

from mindstream.clock import DAY_S, ManualClock
from mindstream.memory.memory import Memory
from mindstream.models.rules import FakeModel

TOLD = "I ride a tram of rye bread; it takes 4.2 hours. Otto squeals at the window!"


async def dreamt(folder: Path) -> None:
    clock = ManualClock()
    async with Memory.open(folder, "you", clock=clock, seed=1, policy="decay") as memory:
        await memory.retain("The tram squeals below the window.", "note", importance=3)
        await memory.retain("Otto bakes rye bread.", "note", importance=3)
        clock.advance(15 * DAY_S)
        assert await memory.sleep(FakeModel({"dream": [TOLD]})) == TOLD


def test_each_sentence_is_shown_with_its_sources(folder: Path) -> None:
    asyncio.run(dreamt(folder))
    rows = run("memory", "dreams", "--json", "--data", folder).rows
    assert [row["sentence"] for row in rows] == [
        "I ride a tram of rye bread; it takes 4.2 hours.",
        "Otto squeals at the window!",
    ]
    assert all(sorted(row["sources"].values()) == ["Otto bakes rye bread.", "The tram squeals below the window."]
               for row in rows)  # fmt: skip
    one = run("memory", "dreams", "-n", "1", "--data", folder)
    assert one.out.startswith("1. ") and one.out.count("    - ") == 2 and "2. " not in one.out
    assert one.out == run("memory", "dreams", "-n", "1", "--data", folder).out, "the same random sample"


def test_without_dreams_a_message_is_printed(folder: Path) -> None:
    assert run("memory", "retain", "Ann likes tea", "--data", folder).code == 0
    assert "there is no dream yet" in run("memory", "dreams", "--data", folder).out
