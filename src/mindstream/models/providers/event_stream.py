"""Read a response as JSON values: Server-Sent Events, also malformed ones, or one complete JSON body.

OpenAI's own decoder reads neither a JSON body with the content type of a stream, nor events without a blank line
between them; some endpoints send these.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

DONE = "[DONE]"
FIELDS = ("data", "event", "id", "retry", "")
_JOINED = re.compile(r"(?<=[}\]])\s*data:\s*(?=[{\[])|(?<=\})\s*(?=\{\"(?:id|choices|object)\")")
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class EventReader:
    """Turns a response, chunk by chunk, into the JSON values of its events; DONE is the announced end of a stream."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._rest = self._event = ""
        self._data, self._other = list[str](), list[str]()
        """The data lines of the current event; lines outside any event, before the first event."""
        self._has_events = False
        self._error: ValueError | None = None

    def feed(self, data: bytes) -> list[Any]:
        """Return the values that further bytes complete.

        Raises:
            ValueError: an event is not JSON; the events before it were returned.
        """
        text = self._rest + self._decode(data)
        *lines, self._rest = _LINE_END.split(text) if "\r" in text else text.split("\n")
        return self._values(lines)

    def end(self) -> list[Any]:
        """Return the values that the end of the response completes; call it once.

        Raises:
            ValueError: an event is not JSON, or the body has no event; the events before it were returned.
        """
        rest, self._rest = self._rest, ""
        found = self._values([*_LINE_END.split(rest.removesuffix("\r")), ""])
        lines, self._other = self._other, []
        if self._has_events or not lines:
            return found
        body = "\n".join(lines)
        if (value := _parsed(body)) is not None:
            return [value]
        if all(line.lstrip().startswith("{") for line in lines):
            return [json.loads(line) for line in lines]
        raise ValueError(f"expected server-sent events or JSON, found {body[:80]!r}")

    def _values(self, lines: list[str]) -> list[Any]:
        if self._error is not None:
            raise self._error
        found: list[Any] = []
        try:
            for line in lines:
                self._take(line, found)
        except ValueError as error:
            if not found:
                raise
            self._error = error
        return found

    def _take(self, line: str, found: list[Any]) -> None:
        name, colon, value = line.partition(":")
        name = name.strip()
        if not line:
            self._dispatch(found)
        elif not self._has_events and not self._data and (name not in FIELDS or not colon):
            self._other.append(line)
        elif name == "event":
            self._event = value.strip()
        elif name == "data":
            self._data.append(value.removeprefix(" "))
            if value.rstrip().endswith(("}", "]")):  # usually the whole event; some servers send no blank line after it
                self._dispatch(found, ended=False)

    def _dispatch(self, found: list[Any], *, ended: bool = True) -> None:
        """Append the value of the current event to `found`; if it has not `ended`, only if it is complete JSON."""
        data = "\n".join(self._data).strip()
        while data.startswith("data:"):  # a proxy wrapped the event once more
            data = data[5:].strip()
        value = _parsed(data) if data else None
        if not ended and not isinstance(value, dict | list):
            return
        event, self._event, self._data = self._event, "", []
        if data[:1] != "{" and data.strip('"').upper().startswith((DONE, "DONE")):
            value = DONE
        elif event == "error" and data:
            value = value if isinstance(value, dict) and value.get("error") else {"error": value or data}
        elif value is None and data[:1] in ("{", "["):
            found += _several(data)
            self._has_events = True
        if value == DONE or isinstance(value, dict | list):  # other values are keep-alives: `null`, a time, `: ping`
            self._has_events = True
            found.append(value)


def _several(data: str) -> list[Any]:
    """Return the values of events that a proxy joined on one line.

    Raises:
        ValueError: they are not JSON.
    """
    values: list[Any] = []
    try:
        for each in _JOINED.split(data):
            values.append(DONE if each.strip().upper() == DONE else json.loads(each))
    except ValueError:
        raise ValueError(f"expected an event with JSON, found {data[:80]!r}") from None
    return values


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
