"""A streamed reply, read as it comes: what is there is read together, so an endpoint may send word by word."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator
from typing import Any

import httpx2
from openai import APIError

from mindstream.models.providers.adapter import Arrival, Delta

ONE_BY_ONE = 4
"""So many events of a reply are handed on one by one, as they come: the first words wait for nothing."""
GATHER_S = 0.04
"""So long those after them wait for more; nobody reads faster, and each portion costs the same, however long it is."""
DRAIN_S = 0.1
"""So long the end of a connection is waited for behind a reply, so that it can be used again."""
LINE_END = re.compile(rb"\r\n|\r|\n")
DONE = "[DONE]"


class EventReader:
    """Takes server-sent events apart, as HTML's standard has them; only their data counts."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def read(self, portion: bytes) -> Iterator[str]:
        """Give the data of the events that end in a portion.

        Raises:
            UnicodeDecodeError: it is no text.
        """
        waiting = self._rest + portion
        whole = len(waiting) - waiting.endswith(b"\r")  # a line feed may follow, which ends no line of its own
        *lines, rest = LINE_END.split(waiting[:whole])
        self._rest = rest + waiting[whole:]
        for line in lines:
            if line:
                name, _, value = line.decode().partition(":")
                if name == "data":
                    self._data.append(value.removeprefix(" "))
            elif self._data:
                yield "\n".join(self._data)
                self._data = []


async def portions(response: httpx2.Response) -> AsyncGenerator[list[Any]]:
    """Give what is in the events of a response, as many as have come; up to `[DONE]`.

    Raises:
        APIError: the endpoint tells of an error.
        ValueError: it is no JSON.
    """
    reader, count, coming = EventReader(), 0, aiter(_stream(response))
    async for data in coming:
        found: list[Any] = []
        for event in reader.read(data):
            if event.startswith(DONE):
                yield found
                await _drain(coming)
                return
            try:
                found.append(_checked(json.loads(event), response))
            except (APIError, ValueError):
                yield found  # what came before it counts
                raise
            count += 1
            if count <= ONE_BY_ONE:
                yield found
                found = []
        yield found
        if count > ONE_BY_ONE:
            await asyncio.sleep(GATHER_S)


def _stream(response: httpx2.Response) -> AsyncIterable[bytes]:
    stream = response.stream
    assert isinstance(stream, AsyncIterable)
    return stream


async def _drain(coming: AsyncIterable[bytes]) -> None:
    with contextlib.suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in coming:
                pass


def _checked(chunk: Any, response: httpx2.Response) -> Any:
    if isinstance(chunk, dict) and (error := chunk.get("error")):
        message = error.get("message") if isinstance(error, dict) else None
        words = message if isinstance(message, str) and message else "An error occurred during streaming"
        raise APIError(words, request=response.request, body=error)
    return chunk


def joined(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """Give arrivals with the texts put together that follow one another; where reading fails, what came before it."""
    held: Delta | None = None
    try:
        for each in arrivals:
            if held and isinstance(each, Delta) and each.of == held.of:
                held = Delta(held.of, held.text + each.text)
                continue
            if held:
                yield held
            held = each if isinstance(each, Delta) else None
            if held is None:
                yield each
    except Exception:
        if held:
            yield held
        raise
    if held:
        yield held
