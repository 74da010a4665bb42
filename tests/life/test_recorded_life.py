"""Thirty-one turns with language models as M2 and M1, over the documents of the ferry, played back verbatim.

The prompts were improved afterwards; these are the answers to the earlier prompts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keys import key_of

from mindstream.clock import DAY_S, ManualClock, Moment
from mindstream.life.commands import look
from mindstream.life.life import Life, LifeConfig
from mindstream.life.permission import Permits
from mindstream.log.events import Heard
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.models.recording import Playback
from mindstream.models.roles import Models
from mindstream.tools.calculator import calculator
from mindstream.tools.documents import open_documents
from mindstream.tools.tool import tool
from mindstream.tools.write_file import write_file_tool

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "tests" / "recordings"
STORY: list[dict[str, Any]] = json.loads((RECORDINGS / "life.json").read_text("utf-8"))
ANSWERS = ("The museum opens in May; visitors are mostly families.", "Yes, please do it so.", "I don't know.", None)
BEGAN: Moment = 1_780_300_800.0


async def converse(folder: Path, model: Playback, story: dict[str, Any], clock: ManualClock) -> list[str]:
    """Run a sitting: each time no task is due, the user sends the next line; return why turns ended."""
    asked: list[str] = []
    ended: list[str] = []

    async def user(tip: str) -> str | None:
        asked.append(tip)
        return ANSWERS[(len(asked) - 1) % len(ANSWERS)]

    async with (
        open_documents(ROOT / "examples" / "a_month" / "documents") as documents,
        Memory.open(folder, "museum", clock=clock, seed=1) as stream,
    ):
        tools = [*documents.tools(), tool(calculator), write_file_tool(folder / "out")]
        config = LifeConfig(prompt_tokens=8_000, permits=Permits(always=("write_file",)))
        opened = Life.open(stream, Models(model), goal=story["goal"], tools=tools, config=config, user=user)
        async with opened as life:
            says = iter(story["says"])
            while life.state.turn < story["most"]:
                ended.append(await life.run(turns=1, wait=False))
                clock.advance(300)
                if ended[-1] in ("done", "waiting"):
                    line = next(says, None)
                    if line is None and ended[-1] == "done":
                        break
                    if line is None:
                        clock.advance(DAY_S)
                        continue
                    await stream.commit(Entry(Heard(text=line, session="s", record=""), "museum"))
    return ended


async def test_a_recorded_life_runs_for_thirty_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    model, clock = Playback(RECORDINGS / "life.jsonl"), ManualClock(BEGAN)
    for sitting, story in enumerate(STORY):
        if sitting:
            async with Memory.open(tmp_path, "museum") as stream:
                clock = ManualClock((await stream.store.events(key_of("museum"), limit=100_000))[-1].at + DAY_S)
        await converse(tmp_path, model, story, clock)
    async with Memory.open(tmp_path, "museum") as stream:
        state = await look(stream)
        ends = [row.event for row in await stream.store.events(key_of("museum"), kinds=["turn_ended"], limit=1_000)]
    assert state.turn >= 30 and not state.halted and all(not getattr(end, "error", "") for end in ends)
    short = (tmp_path / "out" / "marta_short.md").read_text("utf-8")
    assert len(short.split()) <= 125 and "Aksel Tveit" in short and "Sources" in short
