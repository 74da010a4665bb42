"""An embedder may be silent, slow or wrong: no message waits for it, and its vectors are added later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
from fake_endpoint import Fails, FakeEndpoint
from keys import key_of
from numpy.typing import NDArray
from world import Words

from mindstream import Coach, ManualClock, Memory, Mind, SqliteStore
from mindstream.errors import ModelError, ModelUnavailable
from mindstream.log.events import Failed, Logged
from mindstream.memory.recall import embedding
from mindstream.memory.recall.embedding import Embedding
from mindstream.models.embedders.embedder import embedder

Floats = NDArray[np.float32]


class Moody:
    """An embedder of words that is silent until `awake` is set, and can return scripted answers."""

    name, width = "moody", 96

    def __init__(self, awake: bool = False, answer: Callable[[Floats], object] = lambda rows: rows) -> None:
        self.awake = asyncio.Event()
        self.answer = answer
        self.asked = 0
        self._words = Words()
        if awake:
            self.awake.set()

    async def embed(self, texts: Sequence[str]) -> Floats:
        self.asked += 1
        await self.awake.wait()
        return self.answer(await self._words.embed(texts))  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all timeouts for fast tests."""
    for module, name, seconds in (
        (embedding, "AT_ONCE_S", 0.05), (embedding, "SOON_S", 0.1), (embedding, "REST_S", 0.02),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, seconds)


def a_stream(store: SqliteStore, embedder: Moody) -> Memory:
    return Memory(store, "ann", embedder, ManualClock())


async def eventually(what: Callable[[], Awaitable[bool] | bool]) -> None:
    """Wait until a condition holds."""
    for _ in range(10_000):
        found = what()
        if found if isinstance(found, bool) else await found:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


async def has_vectors(stream: Memory) -> bool:
    return (await stream.columns()).foreign == 0


async def test_messages_are_stored_while_the_embedder_is_silent(store: SqliteStore) -> None:
    moody = Moody()
    async with Mind.open(store, user="ann", embed=moody, responder=Coach.using()) as mind:
        for text in ("I wake at three because of noise.", "What do you know about me?"):
            async with asyncio.timeout(100):
                events = [logged.event.kind async for logged in mind.hear(text)]
            assert events[0] == "heard"
            assert events[-1] == "said"
        await asyncio.wait_for(mind.settled(), 10)
        texts = [record.text for record in await mind.memory.latest("chat", 9)]
        assert "I wake at three because of noise." in texts
        asked = moody.asked
        async for _ in mind.hear("And now?"):
            pass
        assert moody.asked - asked <= 2  # the background task asks, not the caller
        moody.awake.set()
        await eventually(lambda: has_vectors(mind.memory))
        assert (await mind.memory.columns()).width == 96


async def test_a_silent_embedder_is_reported_once_and_keyword_search_works(store: SqliteStore) -> None:
    async with a_stream(store, Moody()) as stream:
        told: list[Logged] = []
        await stream.retain("the trams squeal at night")
        await stream.retain("tea")
        with stream.feed.listening() as events:
            for _ in range(5):
                found = await stream.recall("trams at night", k=1, touch=False)
                assert found[0].record.text == "the trams squeal at night"
            stream.feed.close()
            told = [logged async for logged in events]
        assert [type(logged.event) for logged in told] == [Failed]
        assert isinstance(told[0].event, Failed)
        assert "moody gives no vectors" in told[0].event.text


async def test_a_recovered_embedder_is_used_again(store: SqliteStore) -> None:
    moody = Moody()
    async with a_stream(store, moody) as stream:
        await stream.retain("trams")
        await stream.recall("trams", touch=False)
        moody.awake.set()
        await eventually(lambda: has_vectors(stream))
        await stream.retain("more trams")  # after a late answer, nothing waits for this one
        await eventually(lambda: not stream.embedding.is_slow and not stream.missing._waiting)
        record = await stream.retain("night trams")
        assert record.embedder == "moody"
        assert (await stream.recall("trams", k=1, touch=False))[0].parts["vector"] != 0
        moody.awake.clear()
        with stream.feed.listening() as events:
            await stream.recall("trams", touch=False)
            stream.feed.close()
            assert len([logged async for logged in events]) == 1  # a new silence is reported again


async def test_recall_waits_for_a_slow_embedder(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "SOON_S", 20.0)
    moody = Moody()
    async with a_stream(store, moody) as stream:
        await stream.retain("trams")
        assert (stream.embedding.is_slow, stream.embedding.is_silent) == (True, False)
        asking = asyncio.create_task(stream.recall("trams", touch=False))
        await asyncio.sleep(0.02)
        moody.awake.set()
        assert len(await asking) == 1
        await eventually(lambda: has_vectors(stream))


async def test_an_in_process_embedder_is_awaited(store: SqliteStore) -> None:
    moody = Moody()
    moody.in_process = True  # type: ignore[attr-defined]
    async with a_stream(store, moody) as stream:
        writing = asyncio.create_task(stream.retain("trams"))
        await asyncio.sleep(0.3)  # loading takes long
        moody.awake.set()
        assert (await writing).embedder == "moody"
        assert not stream.embedding.is_slow


BAD: dict[str, Callable[[Floats], object]] = {
    "NaN": lambda rows: np.full_like(rows, np.nan),
    "one NaN in many": lambda rows: np.where(np.arange(96) == 7, np.nan, rows),
    "one less": lambda rows: rows[:-1],
    "narrower": lambda rows: rows[:, :8],
    "nothing": lambda rows: None,
    "ragged": lambda rows: [[0.1] * (n + 1) for n in range(len(rows) + 1)],
}


@pytest.mark.parametrize("way", BAD)
async def test_an_invalid_vector_is_discarded(store: SqliteStore, way: str) -> None:
    moody = Moody(awake=True, answer=BAD[way])
    async with a_stream(store, moody) as stream:
        record = await stream.retain("the trams squeal")
        assert (record.vector, record.embedder) == (None, "")
        found = await stream.recall("trams", touch=False)
        assert np.isfinite(found[0].score)
        assert (await stream.columns()).foreign == 1
        with pytest.raises((ModelError, ValueError, TypeError)):
            await stream.reembed()
        moody.answer = lambda rows: rows
        await eventually(lambda: has_vectors(stream))


@pytest.mark.parametrize("error", [RuntimeError("CUDA"), TimeoutError()])
async def test_an_embedder_error_does_not_lose_text(store: SqliteStore, error: Exception) -> None:
    def fail(_: Floats) -> object:
        raise error

    async with a_stream(store, Moody(awake=True, answer=fail)) as stream:
        await stream.retain("the trams squeal")
        assert len(await stream.recall("trams", touch=False)) == 1


async def test_a_text_that_cannot_be_embedded_does_not_block_others(store: SqliteStore) -> None:
    class Picky(Moody):
        async def embed(self, texts: Sequence[str]) -> Floats:
            if any("poison" in text for text in texts):
                raise ModelUnavailable("not this")
            return await super().embed(texts)

    async with a_stream(store, Picky(awake=True)) as stream:
        poison = await stream.retain("poison")
        others = [await stream.retain(f"trams {n}") for n in range(5)]
        ids = [record.id for record in others]

        async def all_have_vectors() -> bool:
            return (
                all(record.embedder for record in await store.records(key_of("ann"), ids))
                and not stream.missing._waiting
            )

        await eventually(all_have_vectors)
        assert (await store.records(key_of("ann"), [poison.id]))[0].vector is None
        assert (await stream.recall("poison", k=1, touch=False))[0].record.id == poison.id


async def test_a_record_erased_in_the_meantime_is_not_embedded(store: SqliteStore) -> None:
    moody = Moody()
    async with a_stream(store, moody) as stream:
        gone, kept = [await stream.retain(text) for text in ("gone", "kept")]
        await store.erase(key_of("ann"), [gone.id])
        moody.awake.set()
        await eventually(lambda: not stream.missing._waiting)
        assert [record.id for record in (await store.changes(key_of("ann"), 0)).records] == [kept.id]
        assert (await store.records(key_of("ann"), [kept.id]))[0].vector is not None


async def test_closing_does_not_wait_for_a_silent_embedder(store: SqliteStore) -> None:
    stream = a_stream(store, Moody())
    await stream.retain("trams")
    async with asyncio.timeout(100):
        await stream.close()
    assert not [task for task in asyncio.all_tasks() if "MissingVectors" in repr(task)]


async def test_reembed_retries_a_busy_endpoint(store: SqliteStore, door: FakeEndpoint) -> None:
    async with a_stream(store, Moody(awake=True)) as stream:
        await stream.retain("A tram squeals below.")
    async with Memory(store, "ann", embedder(f"{door.url}#small"), ManualClock()) as stream:
        door.will(Fails(429, "slow down", {"Retry-After": "0"}))
        assert await stream.reembed() == 1
        assert await has_vectors(stream)


async def test_the_reason_for_a_missing_vector_is_reported(door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "AT_ONCE_S", 1.0)
    busy = Embedding(embedder(f"{door.url}#small"))
    await busy.patiently(["the adapter is imported"])
    door.will(Fails(429, "slow down", {"Retry-After": "20"}))
    assert await busy.at_once(["A tram squeals below."]) == [None]
    assert busy.is_silent and "asks to wait (HTTP 429: slow down)" in busy.failure
