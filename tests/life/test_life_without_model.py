"""A life without a model quotes with files, shows due orders, and stores answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mindstream.clock import ManualClock
from mindstream.life.life import LifeConfig
from mindstream.life.permission import Permits
from mindstream.life.simulation import ScriptedUser, ScriptLine, Simulation
from mindstream.memory.memory import Memory
from mindstream.tools.documents import open_documents
from mindstream.tools.write_file import write_file_tool

MORNING = 1_777_881_600.0
"""Monday 4 May 2026, 8:00 UTC."""
GOAL = "Ask me which light I mean, then write a brief on the light of Sker"


async def live(root: Path, goal: str, documents: Mapping[str, str]) -> tuple[str, dict[str, str], list[str]]:
    """Run a life for a goal over documents; return the reason it ended, the state of its tasks, and its output."""
    folder = root / "documents"
    folder.mkdir()
    for name, text in documents.items():
        (folder / name).write_text(text, "utf-8")
    config = LifeConfig(permits=Permits(always=("write_file",)))
    async with Memory.open(root / "data", "ann", clock=ManualClock(MORNING)) as stream, open_documents(folder) as docs:
        tools = (*docs.tools(), write_file_tool(root / "out"))
        async with Simulation.open(stream, goal=goal, tools=tools, config=config) as found:
            ended = await found.life.run(60)
            tasks = {task.text: str(task.standing) for task in found.life.state.ledger.ordered()}
        rows = await stream.store.events(stream.key, 0, ["turn_ended"], 500)
        return ended, tasks, [str(getattr(row.event, "words", "")) for row in rows]


async def test_a_goal_is_answered_by_quotes_and_not_marked_done(tmp_path: Path) -> None:
    tower = "# The light of Sker\n\nThe tower of Sker was finished in 1874 by the engineer Anna Breck.\n"
    keepers = "# The keepers\n\nThe last keeper of Sker, Tom Arlow, left in 1983.\n"
    ended, tasks, said = await live(tmp_path, GOAL, {"tower.md": tower, "keepers.md": keepers})
    brief = (tmp_path / "out" / "brief.md").read_text("utf-8")
    assert "> The tower of Sker was finished in 1874 by the engineer Anna Breck." in brief
    assert "— tower.md, lines 1-3" in brief and "No model was there" in brief
    assert ended == "done" and tasks == {GOAL: "stopped"}
    assert said[0].startswith("Not done: without a model it was only looked up. written: brief.md")


@pytest.mark.parametrize("goal", ["写一份关于蜜蜂的简报", "!!!"])
async def test_an_empty_folder_ends_without_invention(tmp_path: Path, goal: str) -> None:
    ended, tasks, said = await live(tmp_path, goal, {})
    assert ended == "done" and set(tasks.values()) == {"stopped"} and not (tmp_path / "out").exists()
    assert said[0].startswith(("Not done", "没有完成"))


async def test_a_standing_order_is_shown_verbatim_and_the_answer_stored(tmp_path: Path) -> None:
    lines = (
        ScriptLine(day=1, asked="due now: ask me how I slept", answers="Six hours, a cat woke me."),
        ScriptLine(day=2, at="12:00", says="What did the cat do?"),
    )
    said: list[str] = []
    async with (
        Memory.open(tmp_path, "ann", clock=ManualClock(MORNING)) as stream,
        Simulation.open(
            stream, goal="Be of help", orders=("every day at 9: ask me how I slept",), user=ScriptedUser(lines)
        ) as found,
    ):
        async for day in found.days(2):
            said += [words for _, words in day.said]
    _, kept, unanswered, quoted = said
    assert kept == "Kept: Six hours, a cat woke me."
    assert unanswered == "Not done: it was shown, and nobody answered."
    assert "> ask me how I slept: Six hours, a cat woke me.\n— 2026-05-04" in quoted
