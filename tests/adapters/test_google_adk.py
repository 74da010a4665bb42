"""ADK's memory service: growing sessions are not doubled, deletions are permanent, apps are isolated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="google-adk is not installed: `make adapters` has it")

from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from mindstream import InputError, Memory
from mindstream.adapters.google_adk import MindstreamMemoryService

OURS = {
    "from google.adk.memory import InMemoryMemoryService":
        "from mindstream.adapters.google_adk import MindstreamMemoryService",
    "memory_service = InMemoryMemoryService()": 'memory_service = MindstreamMemoryService("data")',
}  # fmt: skip
ANN: Any = {"app_name": "desk", "user_id": "ann"}


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None]) -> None:
    run_program("adk_memory", OURS if replaced else {})


def said(*texts: str, author: str = "user", at: float = 1_700_000_000.0) -> list[Event]:
    parts = [types.Content(role="user", parts=[types.Part(text=text)]) for text in texts]
    return [Event(author=author, content=content, timestamp=at) for content in parts]


async def found(service: MindstreamMemoryService, query: str, **whose: Any) -> list[MemoryEntry]:
    memories: list[MemoryEntry] = (await service.search_memory(query=query, **(whose or ANN))).memories
    return memories


async def test_events_are_stored_once_under_concurrent_additions(tmp_path: Path) -> None:
    service, events = MindstreamMemoryService(tmp_path), said("I want a window seat.", "My dog is called Bruno.")
    session = Session(id="one", events=events, **ANN)
    await asyncio.gather(*(service.add_session_to_memory(session) for _ in range(3)))
    await service.add_events_to_memory(events=[*events, *events], session_id="one", **ANN)
    async with Memory.open(tmp_path, "desk|ann") as memory:
        lines = await memory.latest("chat", 9)
        assert [(each.text, each.created) for each in lines] == [
            ("I want a window seat.", 1_700_000_000.0), ("My dog is called Bruno.", 1_700_000_000.0)
        ]  # fmt: skip
        assert (await memory.sessions())[0].name == "one"


async def test_events_without_text_are_skipped_and_content_is_returned_complete(tmp_path: Path) -> None:
    service = MindstreamMemoryService(tmp_path)
    call = types.Part.from_function_call(name="look", args={"at": "trains"})
    thought = types.Part(text="They are tired.", thought=True)
    whole = types.Content(role="model", parts=[types.Part(text="The train leaves at nine."), call])
    events = [Event(author="desk", content=types.Content(parts=[part])) for part in (call, thought)]
    await service.add_events_to_memory(
        events=[*events, Event(author="desk"), Event(author="desk", content=whole)], **ANN
    )
    (entry,) = await found(service, "When does the train leave?")
    assert entry.content == whole and entry.author == "desk" and entry.timestamp


async def test_deleted_events_leave_the_files_and_do_not_return(tmp_path: Path) -> None:
    service, events = MindstreamMemoryService(tmp_path), said("My passport expires in March.", "I like mountain huts.")
    session = Session(id="one", events=events, **ANN)
    await service.add_session_to_memory(session)
    entry = next(each for each in await found(service, "passport") if "passport" in str(each.content))
    await service.delete_memory(memory_id=entry.id, app_name="desk", user_id="bob")
    assert await found(service, "passport expires")
    for _ in range(2):
        await service.delete_memory(memory_id=entry.id, **ANN)
    await MindstreamMemoryService(tmp_path).add_session_to_memory(session)
    assert [str(each.content.parts[0].text) for each in await found(service, "passport or huts")] == [  # type: ignore[index]
        "I like mountain huts."
    ]
    assert b"passport" not in bytes_of(tmp_path)


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def test_facts_are_notes_and_apps_are_isolated(tmp_path: Path) -> None:
    service = MindstreamMemoryService(tmp_path)
    fact = MemoryEntry(content=types.Content(parts=[types.Part(text="Ann is allergic to peanuts.")]), author="desk")
    for _ in range(2):
        await service.add_memory(memories=[fact], custom_metadata={"source": "form"}, **ANN)
    (entry,) = await found(service, "allergic to peanuts")
    assert entry.custom_metadata == {"source": "form"}
    for app, user in (("other", "ann"), ("desk", "bob")):
        assert await found(service, "allergic to peanuts", app_name=app, user_id=user) == []
    assert await found(service, " ") == []
    with pytest.raises(InputError, match=r"no \|"):
        await found(service, "peanuts", app_name="desk|ann", user_id="x")
