"""Replies in pieces, as they come over HTTP: events put together from whatever parts, connections that serve again."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator

import pytest
from fake_endpoint import FakeEndpoint, Floods, Says, Streams

from mindstream.models.providers import streaming


@pytest.fixture
async def streams(door: FakeEndpoint) -> AsyncGenerator[streaming.Streams]:
    made = streaming.Streams(door.url, {"Authorization": "Bearer some-key"})
    yield made
    await made.close()


async def test_events_are_put_together_from_whatever_parts_they_come_in(
    door: FakeEndpoint, streams: streaming.Streams
) -> None:
    events = [{"n": 1, "text": "Guten Morgen, schöne Welt 🌙"}, {"n": 2}, {"n": 3}]
    ends = ("\r\n\r\n", "\r\r", "\n\n")
    written = ": still here\n\n" + "".join(
        f"event: x\ndata: {json.dumps(each, ensure_ascii=False)}{end}" for each, end in zip(events, ends, strict=True)
    )

    def parts() -> Iterator[bytes]:
        whole = (written + 'data: {"n":\ndata: 4}\n\ndata: {"n": "not whole"}').encode()
        for at in range(0, len(whole), 3):
            part = whole[at : at + 3]
            yield b"%x\r\n%b\r\n" % (len(part), part)
        yield b"0\r\n\r\n"

    door.will(Floods(parts, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}))
    assert [each async for each in streams.ask("/chat/completions", {})] == [*events, {"n": 4}]


async def test_a_connection_serves_the_next_request_too(door: FakeEndpoint, streams: streaming.Streams) -> None:
    door.will(Says("Hello."), Says("Hello again."))
    for _ in range(2):
        assert [each async for each in streams.ask("/chat/completions", {"stream": True})]
    assert streams._session is not None
    assert len(streams._session.connector._conns) == 1  # type: ignore[union-attr]
    assert [len(each) for each in streams._session.connector._conns.values()] == [1]  # type: ignore[union-attr]


async def test_an_error_within_a_stream_is_told_as_it_came(door: FakeEndpoint, streams: streaming.Streams) -> None:
    door.will(Streams(('data: {"choices": []}', "", 'data: {"error": {"message": "out of memory"}}', "")))
    answer = streams.ask("/chat/completions", {})
    assert await anext(answer) == {"choices": []}
    with pytest.raises(streaming.EndpointError) as raised:
        await anext(answer)
    assert raised.value.body == {"message": "out of memory"} and raised.value.status == 0
