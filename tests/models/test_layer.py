"""The one loop of nested wrappers: order of layers, repeated replies, failures within layers, cancellation."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from asking import parts_of, talk
from fake_endpoint import FakeEndpoint, Says

import mindstream
from mindstream import Models
from mindstream.errors import ModelError, ModelRefused, ModelUnavailable
from mindstream.models.model import Layer, Layered, Model, Part, Piece, Request, Usage
from mindstream.models.wrappers.meter import Meter, Metered

SOURCE = str(Path(mindstream.__file__).parent)


class Source:
    """A model that gives one reply after another; a reply may end with a failure, or wait for ever (None)."""

    name = "source"

    def __init__(self, *replies: Sequence[Part | Exception | None], notes: list[str] | None = None) -> None:
        self.replies, self.notes = list(replies), [] if notes is None else notes

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.notes.append(f"asked {len(request.turns)}")
        try:
            for part in self.replies.pop(0):
                if part is None:
                    await asyncio.sleep(60)
                elif isinstance(part, Exception):
                    raise part
                else:
                    yield part
        finally:
            self.notes.append("source closed")


class Noted(Layered):
    """A wrapper that notes what happens to its layers, and may do one thing in them."""

    def __init__(self, inner: Model, label: str, notes: list[str], does: str = "") -> None:
        super().__init__(inner)
        self.label, self.notes, self.does = label, notes, does

    def layer(self, request: Request) -> Layer:
        return NotedLayer(self.inner, request, self)


class NotedLayer(Layer):
    def __init__(self, inner: Model, request: Request, noted: Noted) -> None:
        super().__init__(inner, request)
        self._noted = noted

    def _note(self, what: str) -> None:
        self._noted.notes.append(f"{self._noted.label} {what}")

    async def begin(self) -> None:
        self._note("begins")
        if self._noted.does == "refuse":
            raise ModelRefused("never")

    async def start(self) -> None:
        if self._noted.does == "stop":
            raise ModelRefused("not this reply")

    def take(self, part: Part) -> Sequence[Part]:
        if self._noted.does == "double":
            return (part, part)
        self.ended = self._noted.does == "cut"
        return (part,)

    async def again(self, failure: Exception | None) -> bool:
        if self._noted.does == "again" and isinstance(failure, ModelUnavailable):
            self._noted.does = ""
            return True
        return False

    def end(self) -> Sequence[Part]:
        return (Piece(f"({self._noted.label})"),)

    def close(self, failure: BaseException | None) -> None:
        self._note(f"closes: {type(failure).__name__}")


def around(source: Source, **does: str) -> Model:
    """Return a source within three wrappers, `a` the innermost."""
    model: Model = source
    for label in ("a", "b", "c"):
        model = Noted(model, label, source.notes, does.get(label, ""))
    return model


async def test_parts_pass_the_layers_from_the_inside_out() -> None:
    source = Source([Piece("1"), Usage(1, 1)])
    parts = await parts_of(around(source, b="double"))
    ends = [Piece("(a)"), Piece("(a)"), Piece("(b)"), Piece("(c)")]
    assert parts == [Piece("1"), Piece("1"), Usage(1, 1), Usage(1, 1), *ends]
    assert source.notes == [
        "c begins", "b begins", "a begins", "asked 0", "source closed",
        "a closes: NoneType", "b closes: NoneType", "c closes: NoneType",
    ]  # fmt: skip


async def test_only_the_layers_within_begin_again() -> None:
    source = Source([ModelUnavailable("busy")], [Piece("here")])
    assert (await parts_of(around(source, b="again")))[0] == Piece("here")
    assert source.notes == [
        "c begins", "b begins", "a begins", "asked 0", "source closed", "a closes: ModelUnavailable",
        "a begins", "asked 0", "source closed", "a closes: NoneType", "b closes: NoneType", "c closes: NoneType",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("does", "closed"),
    [
        ("cut", ["a closes: GeneratorExit", "b closes: NoneType", "c closes: NoneType"]),
        ("stop", ["a closes: GeneratorExit", "b closes: ModelRefused", "c closes: ModelRefused"]),
        ("refuse", ["c closes: ModelRefused"]),
    ],
)
async def test_a_layer_that_ends_a_reply_breaks_off_those_within(does: str, closed: list[str]) -> None:
    source, failed = Source([Piece("1"), Piece("2")]), False
    try:
        assert await parts_of(around(source, b=does)) == [Piece("1"), Piece("(b)"), Piece("(c)")]
    except ModelError:
        failed = True
    assert failed == (does != "cut")
    assert [note for note in source.notes if "closes" in note] == closed
    assert does == "refuse" or source.notes.index("source closed") < source.notes.index("a closes: GeneratorExit")


@pytest.mark.parametrize("leaves", ["reader", "cancelled"])
async def test_a_reply_that_is_broken_off_closes_every_layer_once(leaves: str) -> None:
    source, calls = Source([Piece("1"), None]), list[Metered]()
    async with aclosing(Meter(around(source), calls.append).reply(talk())) as parts:
        assert await anext(parts) == Piece("1")
        if leaves == "cancelled":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(parts)
    name = "GeneratorExit" if leaves == "reader" else "CancelledError"
    assert source.notes[4:] == ["source closed", *(f"{label} closes: {name}" for label in "abc")]
    assert [call.broken_off for call in calls] == [True]


async def test_a_streamed_reply_of_an_endpoint_passes_one_generator() -> None:
    nested: list[int] = []

    class Watching(Layered):
        def layer(self, request: Request) -> Layer:
            return WatchingLayer(self.inner, request)

    class WatchingLayer(Layer):
        def take(self, part: Part) -> Sequence[Part]:
            frame, count = sys._getframe(), 0
            while (frame := frame.f_back) is not None:  # type: ignore[assignment]
                code = frame.f_code
                count += bool(code.co_flags & inspect.CO_ASYNC_GENERATOR) and code.co_filename.startswith(SOURCE)
            nested.append(count)
            return (part,)

    with FakeEndpoint() as endpoint:
        endpoint.otherwise = Says("Hello there.")
        async with Models.named({"default": f"openai:m@{endpoint.url}"}) as models:
            model = models.each(Watching).of("talker")
            assert Piece("Hello there.") in await parts_of(model)
    assert set(nested) == {1}
