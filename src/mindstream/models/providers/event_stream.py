"""A response as JSON values: Server-Sent Events as endpoints really send them, or one whole JSON body.

OpenAI's own decoder reads neither a JSON body under the type of a stream, nor events without a blank line between them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from typing import Any, cast

DONE = "[DONE]"
_scan = cast("Callable[[str, int], tuple[Any, int]]", json.JSONDecoder().scan_once)  # type: ignore[attr-defined]
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class EventReader:
    """Reads a response, some bytes at a time, into the JSON value of each event; DONE where the stream says so."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest = ""
        self._data: list[str] = []
        self._event = ""
        self._other: list[str] = []
        """Lines that are of no event stream, before the first event."""
        self._came = False
        self._found: list[Any] = []
        self._error: ValueError | None = None

    def feed(self, data: bytes) -> list[Any]:
        """Return the values that some more bytes complete.

        Raises:
            ValueError: an event is no JSON; those before it were returned.
        """
        text = self._rest + self._decode(data)
        *lines, self._rest = _LINE_END.split(text) if "\r" in text else text.split("\n")
        return self._values(lines)

    def end(self) -> list[Any]:
        """Return the values that the end of the response completes; once.

        Raises:
            ValueError: an event is no JSON, or the body has no event; those before it were returned.
        """
        rest, self._rest = self._rest, ""
        found = self._values([*_LINE_END.split(rest.removesuffix("\r")), ""])
        other, self._other = self._other, []
        if self._came or not other:
            return found
        body = "\n".join(other)
        if (value := _parsed(body)) is not None:
            return [value]
        if all(line.lstrip().startswith("{") for line in other):
            return [json.loads(line) for line in other]
        raise ValueError(f"neither events nor JSON, but {body[:80]!r}")

    def _values(self, lines: list[str]) -> list[Any]:
        if self._error is not None:
            raise self._error
        try:
            for place, line in enumerate(lines):
                if not self._plain(line, lines, place):
                    self._line(line)
        except ValueError as error:
            if not self._found:
                raise
            self._error = error
        found, self._found = self._found, []
        return found

    def _plain(self, line: str, lines: list[str], place: int) -> bool:
        """Take an event of one line that is a JSON object, as nearly all are; return whether it is one."""
        if line[:7] != "data: {" or self._data or self._event or place + 1 == len(lines) or lines[place + 1]:
            return False
        try:
            value, end = _scan(line, 6)
        except (ValueError, StopIteration):
            return False
        if end == len(line):
            self._found.append(value)
            self._came = True
        return end == len(line)

    def _line(self, line: str) -> None:
        if not line:
            self._dispatch()
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
                self._found.append(whole)
            self._data.append(value.removeprefix(" "))

    def _dispatch(self) -> None:
        if not self._data:
            self._event = ""
            return
        data, event = "\n".join(self._data).strip(), self._event
        self._data, self._event = [], ""
        if not data:
            return
        while data.startswith("data:"):  # a proxy wrapped the event once more
            data = data[5:].strip()
        if data[:1] != "{" and data.strip('"').upper().startswith((DONE, "DONE")):
            self._came = True
            self._found.append(DONE)
            return
        value = _parsed(data)
        if event == "error":
            self._came = True
            whole = isinstance(value, dict) and value.get("error")
            self._found.append(value if whole else {"error": value or data})
        elif isinstance(value, dict | list):
            self._came = True
            self._found.append(value)
        elif value is None and data[:1] in ("{", "["):
            raise ValueError(f"an event is no JSON, but {data[:80]!r}")
        # Anything else keeps the connection open: `null`, a time, `: ping`.


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
