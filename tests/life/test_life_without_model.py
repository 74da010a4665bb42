"""A life without a model: it quotes with the files, shows orders when they are due, keeps what it is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_life import MORNING, WRITES, live, simulation

from mindstream.clock import ManualClock
from mindstream.life import commands
from mindstream.life.budget import LifeBudget
from mindstream.life.life import Habits, Life
from mindstream.life.simulation import ScriptLine
from mindstream.memory.stream import Stream
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.tools.documents import open_documents
from mindstream.tools.write_file import write_file_tool

LIGHTHOUSE = {
    "tower.md": "# The light of Sker\n\nThe tower of Sker was finished in 1874 by the engineer Anna Breck.\n",
    "keepers.md": "# The keepers\n\nThe last keeper of Sker, Tom Arlow, left in 1983.\n",
}
GOAL = "Ask me which light I mean, then write a brief on the light of Sker"


async def said_on(data: Path, lines: list[ScriptLine], orders: tuple[str, ...] = (), days: int = 1) -> list[str]:
    said: list[str] = []
    async with simulation(data, "Be of help", orders, lines) as found:
        async for day in found.days(days):
            said += [words for _, words in day.said]
    return said[1:]  # of the goal itself


async def test_a_goal_is_looked_up_quoted_with_files_and_not_said_to_be_done(tmp_path: Path) -> None:
    lived = await live(tmp_path, GOAL, LIGHTHOUSE)
    brief = (tmp_path / "out" / "brief.md").read_text("utf-8")
    assert "> # The light of Sker The tower of Sker was finished in 1874 by the engineer Anna Breck." in brief
    assert "— tower.md, lines 1-3" in brief
    assert "No model was there" in brief
    assert lived.tasks == {GOAL: "stopped"}
    assert lived.said[0].startswith("Not done: without a model it was only looked up. written: brief.md")
    assert lived.ended == "done"


async def test_what_documents_say_in_chinese_is_quoted(tmp_path: Path) -> None:
    lived = await live(tmp_path, "写一份关于老茶馆的简报", {"茶馆.md": "# 老茶馆\n\n老茶馆由陈守义在1921年开办。\n"})
    brief = (tmp_path / "out" / "brief.md").read_text("utf-8")
    assert "老茶馆由陈守义在1921年开办。" in brief
    assert "没有模型来回答" in brief
    assert lived.said[0].startswith("没有完成")


@pytest.mark.parametrize(
    "goal", ["Write a brief on bees", "写一份关于蜜蜂的简报", "Who keeps bees?", "!!!", "x" * 5_000]
)
async def test_an_empty_folder_gives_no_invention_and_an_end(tmp_path: Path, goal: str) -> None:
    lived = await live(tmp_path, goal, {})
    assert lived.ended == "done"
    assert set(lived.tasks.values()) == {"stopped"}
    assert not (tmp_path / "out").exists()
    assert lived.said[0].startswith(("Not done", "没有完成"))


async def test_without_a_tool_for_files_the_quotations_are_said(tmp_path: Path) -> None:
    lived = await live(tmp_path, GOAL, LIGHTHOUSE, writes=False)
    assert "— tower.md, lines 1-3" in lived.said[0]


async def test_a_standing_order_is_shown_in_its_own_words_and_the_answer_kept(tmp_path: Path) -> None:
    lines = [
        ScriptLine(day=1, asked="due now: ask me how I slept", answers="Six hours, a cat woke me."),
        ScriptLine(day=2, at="12:00", says="What did the cat do?"),
    ]
    said = await said_on(tmp_path, lines, ("every day at 9: ask me how I slept",), days=2)
    assert said[0] == "Kept: Six hours, a cat woke me."
    assert said[1] == "Not done: it was shown, and nobody answered."
    assert "> ask me how I slept: Six hours, a cat woke me.\n— 2026-05-04" in said[2]


async def test_what_is_told_is_kept_and_what_ends_in_a_question_mark_is_looked_up(tmp_path: Path) -> None:
    lines = [
        ScriptLine(day=1, at="10:00", says="My sister Ada moved to Turin."),
        ScriptLine(day=1, at="10:10", says="Where did Ada move?"),
        ScriptLine(day=1, at="10:20", says="钥匙放在蓝色的罐子后面。"),
        ScriptLine(day=1, at="10:30", says="钥匙放在哪里？"),
    ]
    said = await said_on(tmp_path, lines)
    assert said[0] == said[2] == "Noted."
    assert "> My sister Ada moved to Turin.\n— 2026-05-04" in said[1]
    assert "蓝色的罐子" in said[3]


async def test_a_late_answer_is_kept_with_its_question(tmp_path: Path) -> None:
    clock = ManualClock(MORNING)
    orders = ["every day at 9: ask me how the bees are"]
    async with Stream.open(tmp_path, "ann", clock=clock) as stream:
        async with Life.open(stream, Models(Rules()), goal="Keep bees", orders=orders) as life:
            await life.run(until=MORNING + 3 * 3_600)
            await commands.answer(stream, "two swarms")
            await life.run(wait=False)
        texts = [record.text for record in await stream.latest("note", 9)]
    assert texts == ["“Due now: ask me how the bees are”: two swarms"]


async def test_a_life_that_is_broken_off_at_every_step_comes_to_the_same_brief(tmp_path: Path) -> None:
    whole = await live(tmp_path / "whole", GOAL, LIGHTHOUSE)
    await live(tmp_path / "parts", "Rest", LIGHTHOUSE)  # lays out the folder
    data, ended, opened = tmp_path / "parts" / "again", "", 0
    async with open_documents(tmp_path / "parts" / "documents") as docs:
        tools = (*docs.tools(), write_file_tool(tmp_path / "parts" / "out2"))
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
    one, other = (tmp_path / name / "brief.md" for name in ("whole/out", "parts/out2"))
    assert one.read_text("utf-8") == other.read_text("utf-8")


async def test_without_leave_the_brief_waits_and_is_written_when_it_is_given(tmp_path: Path) -> None:
    await live(tmp_path, "Rest", LIGHTHOUSE, writes=False)  # lays out the folder
    async with (
        open_documents(tmp_path / "documents") as docs,
        Stream.open(tmp_path / "other", "ann", clock=ManualClock(MORNING)) as stream,
        Life.open(stream, Models(Rules()), goal=GOAL, tools=(*docs.tools(), write_file_tool(tmp_path / "out"))) as life,
    ):
        assert await life.run(20, wait=False) == "waiting"
        assert not (tmp_path / "out" / "brief.md").exists()
        await commands.give_leave(stream, yes=True)
        assert await life.run(20, wait=False) == "done"
        assert "Anna Breck" in (tmp_path / "out" / "brief.md").read_text("utf-8")
