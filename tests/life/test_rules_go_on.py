"""Rules go on where a life was broken off, and wait for leave."""

from __future__ import annotations

from pathlib import Path

from simulated_life import MORNING, WRITES, live

from mindstream.clock import ManualClock
from mindstream.life import commands
from mindstream.life.budget import LifeBudget
from mindstream.life.life import Habits, Life
from mindstream.memory.stream import Stream
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.tools.documents import open_documents
from mindstream.tools.write_file import write_file_tool

DOCUMENTS = {
    "mill.md": (
        "# The mill of Harrow\n\nThe mill of Harrow was built in 1802 by Joan Pike."
        " It closed in 1930 because the river was moved.\n"
    )
}
GOAL = "Write a brief on the mill of Harrow: who built it, why it closed, and who owns it"


async def test_a_life_that_is_broken_off_at_every_step_comes_to_the_same_brief(tmp_path: Path) -> None:
    whole = await live(tmp_path / "whole", GOAL, DOCUMENTS)
    await live(tmp_path / "parts", "Sleep", DOCUMENTS)  # lays out the folder
    data, ended, opened = tmp_path / "parts" / "again", "", 0
    async with open_documents(tmp_path / "parts" / "documents") as docs:
        tools = (*docs.tools(), write_file_tool(tmp_path / "parts" / "out"))
        while ended != "done":
            opened += 1
            assert opened <= whole.calls + 2
            habits = Habits(budget=LifeBudget(calls=opened), permits=WRITES.permits)
            async with (
                Stream.open(data, "ann", clock=ManualClock(MORNING)) as stream,
                Life.open(
                    stream, Models(Rules()), goal=GOAL if opened == 1 else "", tools=tools, habits=habits
                ) as life,
            ):
                ended = await life.run(20, wait=False)
    assert opened >= whole.calls
    one, other = (tmp_path / name / "out" / "brief.md" for name in ("whole", "parts"))
    assert one.read_text("utf-8") == other.read_text("utf-8")
    assert "Joan Pike" in one.read_text("utf-8")


async def test_without_leave_the_brief_waits_and_is_written_when_it_is_given(tmp_path: Path) -> None:
    await live(tmp_path, "Sleep", DOCUMENTS)  # lays out the folder
    async with (
        open_documents(tmp_path / "documents") as docs,
        Stream.open(tmp_path / "other", "ann", clock=ManualClock(MORNING)) as stream,
        Life.open(stream, Models(Rules()), goal=GOAL, tools=(*docs.tools(), write_file_tool(tmp_path / "out"))) as life,
    ):
        assert await life.run(20, wait=False) == "waiting"
        assert not (tmp_path / "out" / "brief.md").exists()
        await commands.give_leave(stream, yes=True)
        assert await life.run(20, wait=False) == "done"
        assert "Joan Pike" in (tmp_path / "out" / "brief.md").read_text("utf-8")
