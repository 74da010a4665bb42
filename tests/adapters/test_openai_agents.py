"""A session of the OpenAI Agents SDK returns its items unchanged, and its messages are in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: `make adapters` has it")

from agents import SessionSettings
from agents.memory import Session

from mindstream import Memory
from mindstream.adapters.openai_agents import MindstreamSession

OURS = {
    "from agents import SQLiteSession": "from mindstream.adapters.openai_agents import MindstreamSession",
    "open_session = SQLiteSession ": "open_session = MindstreamSession ",
}
ITEMS: list[Any] = [
    {"role": "user", "content": "Grüß Gott 🌱\x00  "},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "two\nlines"}, {"type": "input_image", "file_id": "f"}],
    },
    {"type": "function_call", "call_id": "c1", "name": "order", "arguments": '{"plant": "thyme"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "1 x thyme"},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": None},
    {"role": "assistant", "content": "", "n": [1, 2.5, None, True, {"deep": {"er": []}}]},
    {"role": "user", "content": "x" * 50_000},
]


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None]) -> None:
    run_program("openai_agents_session", OURS if replaced else {})


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_items_are_returned_unchanged_in_every_session_object(tmp_path: Path) -> None:
    session = MindstreamSession("monday", data=tmp_path, user="ann")
    assert isinstance(session, Session)
    await session.add_items(ITEMS)
    assert await session.get_items() == ITEMS
    again = MindstreamSession("monday", data=tmp_path, user="ann", session_settings=SessionSettings(limit=2))
    assert await again.get_items() == ITEMS[-2:] and await again.get_items(limit=3) == ITEMS[-3:]
    assert await again.get_items(limit=0) == []
    (await session.get_items())[2]["name"] = "changed by its reader"
    assert await session.get_items() == ITEMS
    assert await MindstreamSession("tuesday", data=tmp_path, user="ann").get_items() == []


async def test_items_are_recalled_in_other_sessions_until_cleared(tmp_path: Path) -> None:
    monday, tuesday = (MindstreamSession(name, data=tmp_path, user="ann") for name in ("monday", "tuesday"))
    await monday.add_items([{"role": "user", "content": "My cat is called Tom."}])
    await tuesday.add_items([{"role": "user", "content": "I bake on Fridays."}])
    async with Memory.open(tmp_path, "ann") as memory:
        found = await memory.recall("What is the cat called?", k=1)
        assert found[0].record.text == "My cat is called Tom." and found[0].record.data["by_user"] is True
    await monday.clear_session()
    await monday.clear_session()
    assert await monday.get_items() == [] and len(await tuesday.get_items()) == 1
    assert b"called Tom" not in bytes_of(tmp_path)


async def test_each_item_is_popped_once(tmp_path: Path) -> None:
    session = MindstreamSession("monday", data=tmp_path)
    await session.add_items(ITEMS[2:4])
    popped = await asyncio.gather(*(session.pop_item() for _ in range(2)))
    assert popped == [ITEMS[3], ITEMS[2]] and await session.pop_item() is None
