"""Pieces of an answer are delivered in groups: the first at once, nothing lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from mindstream.models.model import Usage
from mindstream.models.providers.adapter import MAX_GATHERED, Arrival, Delta, gathered, joined
from mindstream.models.providers.provider import GAP_S


async def test_the_first_piece_is_delivered_at_once() -> None:
    going_on = asyncio.Event()

    async def stream() -> AsyncGenerator[Arrival]:
        yield Delta("reply", "Good ")
        await going_on.wait()
        yield Delta("reply", "morning.")

    async with gathered(stream()) as coming:
        assert await coming.next() == [Delta("reply", "Good ")]
        going_on.set()
        assert await coming.next() == [Delta("reply", "morning.")]
        assert await coming.next() == []


async def test_later_pieces_are_joined_in_order() -> None:
    async def stream() -> AsyncGenerator[Arrival]:
        yield Delta("reply", "x")
        for word in ("a ", "b "):
            await asyncio.sleep(0)
            yield Delta("reply", word)
        yield Delta("thought", "hm")
        yield Delta("reply", "c")
        yield Usage(1, 2)

    async with gathered(stream()) as coming:
        assert await coming.next() == [Delta("reply", "x")]
        rest = [Delta("reply", "a b "), Delta("thought", "hm"), Delta("reply", "c"), Usage(1, 2)]
        assert await coming.next(GAP_S) == rest
        assert await coming.next() == []


async def test_an_error_of_a_stream_follows_its_text() -> None:
    async def stream() -> AsyncGenerator[Arrival]:
        yield Delta("reply", "Good ")
        raise ValueError("broken off")

    async with gathered(stream()) as coming:
        assert await coming.next() == [Delta("reply", "Good ")]
        with pytest.raises(ValueError, match="broken off"):
            await coming.next()


async def test_a_stream_is_closed_with_the_block_and_read_ahead_is_limited() -> None:
    given = 0
    closed = False

    async def stream() -> AsyncGenerator[Arrival]:
        nonlocal given, closed
        try:
            while True:
                given += 1
                yield Delta("reply", "on and ")
        finally:
            closed = True

    async with gathered(stream()) as coming:
        await coming.next()
        for _ in range(3):
            await asyncio.sleep(0.01)
        assert given <= 2 * MAX_GATHERED
    assert closed


def test_only_adjacent_parts_of_one_kind_are_joined() -> None:
    parts: list[Arrival] = [Delta("reply", "a"), Usage(1, 1), Delta("reply", "b"), Delta("reply", "c")]
    assert joined(parts) == [Delta("reply", "a"), Usage(1, 1), Delta("reply", "bc")]
