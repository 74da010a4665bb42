"""A real model in the process: SmolLM2-135M, small and silly, on every path that models take."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from asking import Talk, parts_of, talk
from pydantic import BaseModel, Field

from mindstream.errors import ModelRefused, PromptTooLong, SettingsError
from mindstream.models.decide import Choice, Predicate, decide
from mindstream.models.model import Piece, Request, Usage
from mindstream.models.prompt import Prompt, ask
from mindstream.models.providers import gguf
from mindstream.models.providers.adapter import Arrival, Arrivals, Delta, gathered, one_by_one
from mindstream.models.providers.address import WINDOW, address, local_file
from mindstream.models.providers.provider import Provider, provider
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered

has_model = pytest.mark.skipif(
    local_file() is None or find_spec("xllamacpp") is None,
    reason="the model `local` is not installed: mindstream model get",
)


def needs_model(test: Callable[..., object]) -> Callable[..., object]:
    """Mark a test that computes with the model: slow, and skipped where there is none."""
    marked: Callable[..., object] = pytest.mark.slow(pytest.mark.usefixtures("loaded")(has_model(test)))
    return marked


LONG = "You are a coach for people who sleep badly. " * 20


@pytest.fixture(scope="module")
def loaded() -> Iterator[None]:
    """Hold the engine, so that it is loaded once for all tests."""
    engine = gguf.engine(address("local"))
    yield
    del engine


@pytest.fixture
async def model() -> AsyncIterator[Provider]:
    model = provider("local")
    yield model
    await model.aclose()


class Note(BaseModel):
    topic: str
    sure: bool
    people: list[str] = []
    number: int | None = None
    extra: dict[str, str] = {}


class Notes(BaseModel):
    notes: list[Note] = Field(max_length=3)
    summary: str = ""


class TakeNotes(Prompt[Notes]):
    text: str

    @classmethod
    def words(cls) -> str:
        return "# system\nTake notes as JSON. {{ schema }}\n# user\n{{ text }}"


class Told(Talk):
    """Words that begin alike and end differently."""

    @classmethod
    def words(cls) -> str:
        return f"# system\n{LONG}\n# user\n{{{{ text }}}}"


@needs_model
async def test_the_model_streams_text_and_usage(model: Provider) -> None:
    *pieces, used = await parts_of(model, replace(talk("Say hello to Ann."), longest_reply=24))
    assert all(isinstance(piece, Piece) for piece in pieces) and len(pieces) > 1
    assert isinstance(used, Usage) and used.input_tokens > 10 and used.output_tokens >= len(pieces)


@needs_model
async def test_a_common_prompt_prefix_is_processed_once(model: Provider) -> None:
    async def used(text: str) -> Usage:
        last = (await parts_of(model, Request(Told(text=text), options=("a", "b"))))[-1]
        assert isinstance(last, Usage)
        return last

    first, second = await used("I lie awake."), await used("Noise wakes me.")
    assert first.cached_tokens < 20 < 200 < second.cached_tokens < second.input_tokens


@needs_model
async def test_every_structured_reply_is_valid() -> None:
    calls: list[Metered] = []
    async with Models.named({"default": "local"}, on_call=calls.append, repair=0) as models:
        for text in ("Ann has two children.", "", "Ben is 40 and Mia 7; they met on the 3rd of May.", "我叫果果"):
            notes: Notes = await ask(models.of(""), TakeNotes(text=text))
            assert isinstance(notes, Notes)
    assert [call.error for call in calls] == [None] * 4
    assert all(call.usage and call.usage.output_tokens <= gguf.MAX_LOCAL_TOKENS for call in calls)


@needs_model
async def test_a_decision_takes_one_token() -> None:
    calls: list[Metered] = []
    async with Models.named({"default": "local"}, on_call=calls.append) as models:
        for n in range(5):
            wet = await decide(models.of(""), Predicate(text=f"It rained for {n} days.", question="Is it wet?"))
            which = await decide(
                models.of(""),
                Choice(text=f"I ran {n} miles.", question="What is it about?", options=("sport", "food", "money")),
            )
            for likely in (wet, which):
                assert likely.basis == "logprobs" and likely.covered > 0.02
                assert sum(p for _, p in likely.weights) == pytest.approx(1)
    assert len(calls) == 10
    assert all(call.usage and call.usage.output_tokens == 1 and call.error is None for call in calls)


@needs_model
async def test_a_too_long_prompt_is_reported(model: Provider) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await parts_of(model, talk("night " * 6_000))
    assert caught.value.window == WINDOW and (caught.value.counted or 0) > 6_000


@needs_model
async def test_closing_the_stream_stops_the_model(model: Provider) -> None:
    async with aclosing(model.reply(talk("Count from one to five hundred, in words."))) as parts:
        assert await anext(parts)
    engine = gguf.engine(address("local"))

    def busy() -> bool:
        return "requests_processing 0" not in engine.server.handle_metrics()

    while busy():  # noqa: ASYNC110 (a thread of the engine ends it)
        await asyncio.sleep(0.05)


@needs_model
async def test_a_request_without_the_key_is_refused(model: Provider) -> None:
    from mindstream.models.providers.wire import Client, EndpointError

    await parts_of(model, Request(Told(), options=("a", "b")))
    at = gguf.engine(address("local"))
    async with Client(address(f"{at.url}#local")) as stranger:
        with pytest.raises(EndpointError) as refused:
            await stranger.ask("POST", "/chat/completions", {"messages": []})
    assert refused.value.status == 401


@needs_model
async def test_requests_bypass_proxies(model: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await parts_of(model, Request(Talk(), options=("a", "b")))


@needs_model
async def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    model = provider(f"gguf:{broken}")
    with pytest.raises(ModelRefused, match="cannot load"):
        await parts_of(model)
    await model.aclose()


@needs_model
def test_a_process_that_never_closes_the_model_exits() -> None:
    code = """
import asyncio
from mindstream.models.prompt import speak
from mindstream.models.providers.provider import provider
from mindstream.memory.lifecycle.sleep import Dream
async def main():
    async for piece in speak(provider("local"), Dream(fragments=("A dog barked.",))):
        return
asyncio.run(main())
print("ended")
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout.strip() == "ended" and done.returncode == 0, done.stderr


# Tests that need no model file.


def test_a_missing_or_invalid_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        provider(f"gguf:{tmp_path / 'nowhere.gguf'}")
    with pytest.raises(SettingsError, match="cannot be read"):
        provider(f"gguf:{tmp_path}")
    (tmp_path / "words.gguf").write_text("hello")
    with pytest.raises(SettingsError, match="is not a GGUF file"):
        provider(f"gguf:{tmp_path / 'words.gguf'}")


class Hesitant:
    """A chat that says nothing a few times, before it says something."""

    def __init__(self, silences: int) -> None:
        self.left, self.asked = silences, 0

    def stream(self, _: Request) -> AbstractAsyncContextManager[Arrivals]:
        return gathered(self._say())

    async def _say(self) -> AsyncGenerator[Arrival]:
        self.asked += 1
        self.left -= 1
        if self.left < 0:
            yield Delta("reply", "Hello")
            yield Delta("reply", " Ann")
        yield Usage(10, 2)


@pytest.mark.parametrize(
    ("silences", "said", "asked"), [(0, "Hello Ann", 1), (2, "Hello Ann", 3), (5, "", gguf.MAX_ATTEMPTS)]
)
async def test_a_model_that_says_nothing_is_asked_again(silences: int, said: str, asked: int) -> None:
    model, chat = object.__new__(gguf.Gguf), Hesitant(silences)
    model._engine, model._longest, model._chat = None, 0, chat  # type: ignore[assignment]
    found = [arrival async for arrival in one_by_one(model.stream(Request(Talk(text="Hello"), "talker")))]
    assert "".join(each.text for each in found if isinstance(each, Delta)) == said
    assert chat.asked == asked and sum(isinstance(each, Usage) for each in found) == 1
