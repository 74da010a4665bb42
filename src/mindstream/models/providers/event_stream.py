"""A response as JSON values: Server-Sent Events as endpoints really send them, or one whole JSON body.

OpenAI's own decoder reads neither a JSON body under the type of a stream, nor events without a blank line between them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

DONE = "[DONE]"
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yield the JSON value of each event, and DONE where the stream says that it ends.

    Raises:
        ValueError: an event is no JSON, or the body has no event.
    """
    reader = _Events()
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    rest = ""
    async for chunk in chunks:
        *lines, rest = _LINE_END.split(rest + decoder.decode(chunk))
        for line in lines:
            for value in reader.line(line):
                yield value
    for line in (*_LINE_END.split(rest.removesuffix("\r")), ""):
        for value in reader.line(line):
            yield value
    for value in reader.end():
        yield value


class _Events:
    """Puts lines together to events."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._event = ""
        self._other: list[str] = []
        """Lines that are of no event stream, before the first event."""
        self._came = False

    def line(self, line: str) -> Iterator[Any]:
        if not line:
            yield from self._dispatch()
            return
        name, colon, value = line.partition(":")
        name = name.strip()
        if not self._came and not self._data and (name not in ("data", "event", "id", "retry", "") or not colon):
            self._other.append(line)
        elif name == "event":
            self._event = value.strip()
        elif name == "data":
            if self._data and (whole := _parsed("\n".join(self._data))) is not None:
                self._data, self._came = [], True
                yield whole
            self._data.append(value.removeprefix(" "))

    def _dispatch(self) -> Iterator[Any]:
        data, event = "\n".join(self._data).strip(), self._event
        self._data, self._event = [], ""
        if not data:
            return
        while data.startswith("data:"):  # a proxy wrapped the event once more
            data = data[5:].strip()
        if data.strip('"').upper().startswith((DONE, "DONE")):
            self._came = True
            yield DONE
            return
        value = _parsed(data)
        if event == "error":
            self._came = True
            yield value if isinstance(value, dict) and value.get("error") else {"error": value or data}
        elif isinstance(value, dict | list):
            self._came = True
            yield value
        elif value is None and data[:1] in ("{", "["):
            raise ValueError(f"an event is no JSON, but {data[:80]!r}")
        # Anything else keeps the connection open: `null`, a time, `: ping`.

    def end(self) -> Iterator[Any]:
        if self._came or not self._other:
            return
        body = "\n".join(self._other)
        if (value := _parsed(body)) is not None:
            yield value
        elif all(line.lstrip().startswith("{") for line in self._other):
            yield from map(json.loads, self._other)
        else:
            raise ValueError(f"neither events nor JSON, but {body[:80]!r}")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
