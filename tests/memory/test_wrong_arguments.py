"""Arguments of the wrong kind are refused with a message, and ids that no record can have are not found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mindstream import InputError, Memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Any]:
    async with Memory(tmp_path, "ann") as memory:
        await memory.retain("Bert plays chess.")
        yield memory


@pytest.mark.parametrize("kinds", ["note", "", ["notes"], [None], 5, b"note"])
async def test_kinds_are_a_list_of_kinds(memory: Any, kinds: Any) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: memory.recall("chess", kinds=kinds),
        lambda: memory.list(kinds=kinds),
        lambda: memory.forget(about="chess", kinds=kinds),
    ]
    for call in calls:
        with pytest.raises(InputError, match="kinds: expected "):
            await call()
    assert len(await memory.list(kinds={"note"})) == len(await memory.recall("chess", kinds=("note", "note"))) == 1


@pytest.mark.parametrize("kind", ["notes", None, 5])
async def test_a_kind_is_one_of_the_known(memory: Any, kind: Any) -> None:
    with pytest.raises(InputError, match="kind"):
        await memory.latest(kind)
    with pytest.raises(InputError, match="kind"):
        await memory.retain("Bert plays go.", kind)


@pytest.mark.parametrize("text", [None, 5, b"chess", ["chess"]])
async def test_a_query_is_a_text(memory: Any, text: Any) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: memory.recall(text),
        lambda: memory.forget(about=text),
        lambda: memory.evidence_of(text),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"expected a text|expected the id"):
            await call()


@pytest.mark.parametrize("fields", ["city", ["city"], 5])
async def test_fields_are_a_mapping(memory: Any, fields: Any) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: memory.recall("chess", where=fields),
        lambda: memory.list(where=fields),
        lambda: memory.retain("Bert plays go.", data=fields),
    ]
    for call in calls:
        with pytest.raises(InputError, match="expected a mapping"):
            await call()


@pytest.mark.parametrize("id_", ["\ud83d", "\udc00abc", "a\0b", "x" * 100_000])
async def test_an_id_that_no_record_can_have_is_not_found(memory: Any, id_: str) -> None:
    assert await memory.get(id_) is None and await memory.records([id_]) == []
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: memory.history(id_),
        lambda: memory.correct(id_, "Bert plays go."),
        lambda: memory.evidence_of(id_),
        lambda: memory.forget(id_),
        lambda: memory.retain("Bert plays go.", evidence=[id_]),
    ]
    for call in calls:
        with pytest.raises(InputError):
            await call()
    assert [record.text for record in await memory.list()] == ["Bert plays chess."]
