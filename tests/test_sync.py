"""The classes for programs without asyncio do what the asynchronous ones do."""

from __future__ import annotations

import inspect
import threading
from pathlib import Path

import pytest
from chat_talks import talker
from fake_endpoint import FakeEndpoint, Says

import mindstream
from mindstream.errors import InputError, MindstreamError
from mindstream.sync import ChatBot, Memory, wait


def test_a_memory_is_written_and_asked(folder: Path) -> None:
    with Memory(folder, "ann") as memory:
        note = memory.retain("Anna is allergic to peanuts.")
        found = memory.recall("what is Anna allergic to?", limit=1)
        assert [hit.text for hit in found] == ["Anna is allergic to peanuts."] and found[0].confidence > 0.5
        assert memory.correct(note.id, "Anna is allergic to cashews.").record.text.endswith("cashews.")
        assert [record.text for record in memory.list()] == ["Anna is allergic to cashews."]
        assert [row.event.kind for row in memory.log()][-1] == "corrected"
        assert memory.forget(about="cashews").records > 0 and memory.list() == []
    with pytest.raises(InputError, match="open it first"):
        memory.list()


def test_threads_share_a_memory(folder: Path) -> None:
    with Memory(folder, "ann") as memory:
        threads = [threading.Thread(target=memory.retain, args=(f"Note {number}.",)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(memory.list()) == 8


def test_a_chat_bot_answers_streams_and_remembers(folder: Path) -> None:
    with FakeEndpoint() as door:
        door.otherwise = talker("I see, Ann.", {"peanuts": "The user is allergic to peanuts."})
        with ChatBot(folder, user="ann", model=f"{door.url}#any") as bot:
            assert bot.send("I am allergic to peanuts.") == "I see, Ann."
            assert "".join(bot.stream("Hello?")) == "I see, Ann."
            bot.settled()
            assert [note.text for note in bot.memory.list(kinds=["note"])] == ["The user is allergic to peanuts."]


def test_leaving_a_stream_stops_the_answer(folder: Path) -> None:
    said = " ".join(f"word{number}" for number in range(60))
    with FakeEndpoint() as door, ChatBot(folder, model=f"{door.url}#any", settle_s=0) as bot:
        door.will(Says(said, step=True))
        for _ in range(40):
            door.go()
        for _ in bot.stream("Count."):
            break
        kept = bot.memory.latest("chat")[0].text
    assert said.startswith(kept) and len(kept) < len(said)


async def test_an_event_loop_is_not_blocked(folder: Path) -> None:
    with pytest.raises(InputError, match="event loop"):
        Memory(folder, "ann").__enter__()


def test_an_error_is_the_same(folder: Path) -> None:
    async def fails() -> None:
        raise InputError("no")

    with pytest.raises(MindstreamError, match="no"):
        wait(fails())


INTERNAL = {
    *("begin", "close", "commit", "settle", "build_records", "find_same", "belief", "believe", "revision", "version"),
    *("columns", "columns_at_hand", "message_rows", "records_at", "touched", "erasures_at"),
}


@pytest.mark.parametrize(("blocking", "original"), [(Memory, mindstream.Memory), (ChatBot, mindstream.ChatBot)])
def test_every_method_is_there_with_its_signature(blocking: type, original: type) -> None:
    for name, method in inspect.getmembers(original, inspect.isfunction):
        is_async = inspect.iscoroutinefunction(inspect.unwrap(method)) or inspect.isasyncgenfunction(method)
        if is_async and not name.startswith("_") and name not in INTERNAL:
            assert inspect.signature(getattr(blocking, name)) == inspect.signature(method), name
