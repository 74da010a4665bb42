"""A streamed reply is read in portions: the first events one by one, then whatever has come, word for word the same."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import httpx2
import pytest
from openai import APIError

from mindstream.models.model import Usage
from mindstream.models.providers.adapter import Arrival, Delta
from mindstream.models.providers.portions import ONE_BY_ONE, EventReader, joined, portions


class Sent(httpx2.AsyncByteStream):
    """Sends these bytes, one after the other."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._parts, self.ended = parts, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            await asyncio.sleep(0)
            yield part
        self.ended = True


def events(*chunks: Any) -> bytes:
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks)


async def taken(*parts: bytes) -> list[list[Any]]:
    response = httpx2.Response(200, stream=Sent(parts), request=httpx2.Request("POST", "http://door/v1"))
    return [found async for found in portions(response) if found]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_events_are_read_wherever_the_bytes_are_cut(end: str) -> None:
    text = f": a word beside{end}event: x{end}data: één{end}data:two{end}{end}{end}data: three{end}{end}data: cut off"
    sent = text.encode()
    for at in range(len(sent)):
        reader = EventReader()
        assert [*reader.read(sent[:at]), *reader.read(sent[at:]), *reader.read(b"\n")][:2] == ["één\ntwo", "three"]


async def test_the_first_events_come_one_by_one_and_the_rest_together() -> None:
    found = await taken(events(*range(10)), events(10, 11) + b"data: [DONE]\n\n")
    assert found == [*([n] for n in range(ONE_BY_ONE)), list(range(ONE_BY_ONE, 10)), [10, 11]]


async def test_what_follows_the_end_is_read_and_dropped() -> None:
    stream = Sent([events(1) + b"data: [DONE]\n\n", events(2)])
    response = httpx2.Response(200, stream=stream, request=httpx2.Request("POST", "http://door/v1"))
    assert [found async for found in portions(response) if found] == [[1]]
    assert stream.ended, "the connection cannot be used again"


@pytest.mark.parametrize("wrong", [b'data: {"error": {"message": "no"}}\n\n', b"data: {\n\n"])
async def test_what_came_before_an_error_counts(wrong: bytes) -> None:
    response = httpx2.Response(
        200, stream=Sent([events(*range(6)) + wrong]), request=httpx2.Request("POST", "http://door/v1")
    )
    found: list[Any] = []
    with pytest.raises((APIError, ValueError)):
        async for each in portions(response):
            found += each
    assert found == list(range(6))


def test_texts_that_follow_one_another_are_put_together() -> None:
    arrivals: list[Arrival] = [Delta("thought", "a"), Delta("reply", "b"), Delta("reply", "c"), Usage(1, 2)]
    assert list(joined(arrivals)) == [Delta("thought", "a"), Delta("reply", "bc"), Usage(1, 2)]


def test_where_reading_fails_the_text_before_it_is_given() -> None:
    def broken() -> Iterator[Arrival]:
        yield Delta("reply", "a")
        raise TypeError("content")

    found: list[Arrival] = []
    with pytest.raises(TypeError):
        found.extend(joined(broken()))
    assert found == [Delta("reply", "a")]
