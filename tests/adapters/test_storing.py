"""After a model has answered, failures of the memory do not lose the answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mindstream import Memory
from mindstream.adapters.storing import fit_text, memory_name, session_name, split_text, storable
from mindstream.memory.store.record import MAX_TEXT, Record

LONG = "The tide turned at noon, and the boats came in. " * (MAX_TEXT // 30)


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else "end"


async def by_pydantic_ai(data: Path, prompt: Any, answer: Any) -> Any:
    ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: `make adapters` has it")
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from mindstream.adapters.pydantic_ai import MemoryCapability

    def reply(*_: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart(answer)])

    capability = MemoryCapability(data, user="u", recalled=0)
    return (await ai.Agent(FunctionModel(reply), capabilities=[capability]).run(prompt)).output


async def by_openai_agents(data: Path, prompt: Any, answer: Any) -> Any:
    pytest.importorskip("agents", reason="openai-agents is not installed: `make adapters` has it")
    from mindstream.adapters.openai_agents import MindstreamSession

    session = MindstreamSession("s", data=data, user="u")
    await session.add_items([{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}])
    return answer


async def by_langchain(data: Path, prompt: Any, answer: Any) -> Any:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import AIMessage, HumanMessage

    from mindstream.adapters.langchain import MindstreamChatMessageHistory

    history = MindstreamChatMessageHistory("s", data, "u")
    said: Any = prompt if isinstance(prompt, str) else [{"type": "text", "text": str(each)} for each in prompt]
    await history.aadd_messages([HumanMessage(said), AIMessage(answer)])
    return answer


RUNS = [by_pydantic_ai, by_openai_agents, by_langchain]


@pytest.mark.parametrize("run", RUNS)
async def test_long_and_unusual_texts_are_kept_and_the_answer_is_returned(
    run: Callable[..., Awaitable[Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = [
        (LONG, "Noon."),
        ("When?", LONG),
        ("潮が" * MAX_TEXT, "正午"),
        ("half \ud83d of it", "\x00"),
        (["a", "b"], "c"),
    ]
    with caplog.at_level(logging.WARNING, "mindstream.adapters"):
        for prompt, answer in said:
            assert await run(tmp_path, prompt, answer) == answer
    assert not caplog.records
    async with Memory.open(tmp_path, "u") as memory:
        found: list[Record] = list(await memory.latest("chat", 1_000))
    words = "\n".join(each.text for each in found)
    assert all(each in words for each in ("tide turned", "Noon.", "When?", "潮が", "正午"))
    if run is by_pydantic_ai:  # only text is stored, so that none is cut off
        assert words.count("turned") == 2 * LONG.count("turned")


@pytest.mark.parametrize("run", RUNS)
async def test_the_answer_is_returned_when_the_memory_cannot_be_opened(
    run: Callable[..., Awaitable[Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    there = tmp_path / "a file"
    there.write_text("no folder")
    with caplog.at_level(logging.WARNING, "mindstream.adapters"):
        assert await run(there, "When?", "Noon.") == "Noon."
    (warned,) = caplog.records
    assert "could not be stored in memory" in warned.getMessage()


def test_any_value_is_made_storable() -> None:
    assert split_text(None) == split_text(" \x00\ud800") == []
    parts = split_text(LONG)
    assert "".join(each.replace(" ", "") for each in parts) == LONG.replace(" ", "")
    assert all(len(each) <= MAX_TEXT for each in parts) and not any(each.endswith("th") for each in parts)
    assert fit_text(7) == "7" and fit_text(b"", "nothing") == "nothing" and fit_text(LONG).endswith(" …")
    form = {1: {2}, "nan": float("nan"), "half": "\udc00", "raw": b"x", "deep": deep(50), "list": (None, True, 2.5)}
    kept = storable(form)
    assert (kept["1"], kept["nan"], kept["half"], kept["list"]) == ("{2}", "nan", "?", [None, True, 2.5])
    assert "end" in str(kept["deep"])


@pytest.mark.parametrize("id_", ["chat/7", "a@b.c", "O’Neill", " ann ", "id:x"])
def test_an_id_that_is_a_valid_name_names_the_memory(id_: str) -> None:
    assert memory_name(id_) == id_.strip().replace("’", "'")


def test_ids_that_are_no_valid_names_get_memories_of_their_own() -> None:
    ids = [
        "50%",
        "#1",
        "+49 170",
        "😀",
        "",
        "x=1;y=2",
        "a\nb",
        "ab",
        "\u202eann",
        "\ud83d",
        "y" * 999,
        f"id:{'0' * 32}",
    ]
    names = [memory_name(each) for each in ids]
    assert len({*names}) == len(ids) and memory_name(names[0]) not in names
    assert len({session_name(each) for each in ("y" * 999, "y" * 998)}) == 2


@pytest.mark.parametrize("id_", ["user#1", "+49 170", "50%", "emoji 😀", "two\nlines", "half \ud83d", "y" * 999, ""])
async def test_a_conversation_with_any_id_is_kept(id_: str, tmp_path: Path) -> None:
    pytest.importorskip("agents", reason="openai-agents is not installed: `make adapters` has it")
    from mindstream.adapters.openai_agents import MindstreamSession

    for user in (None, "ann"):
        for _ in range(2):
            await MindstreamSession(id_, data=tmp_path, user=user).add_items([{"role": "user", "content": "Hello."}])
        session = MindstreamSession(id_, data=tmp_path, user=user)
        assert len(await session.get_items()) == 2
        await session.clear_session()
        assert await session.get_items() == []
