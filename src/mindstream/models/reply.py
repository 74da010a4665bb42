"""Remove unprintable characters from texts, and parse a model's reply strictly: only complete JSON values count.

Removed are characters that no file can store or that control a terminal; surrogate pairs are joined.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from mindstream.errors import ReplyInvalid
from mindstream.models.clean_text import HALF, legible, without_controls
from mindstream.models.model import Call
from mindstream.models.providers.thoughts import SEEN, end_of_thoughts, without_thoughts

MAX_DEPTH = 50
"""Maximum nesting of lists and objects."""
DEEP = f"The JSON is nested deeper than {MAX_DEPTH}."
MAX_INTEGER = 2**63
MAX_SHOWN = 600
"""Maximum length of an error message that the model is shown, in characters."""
OPENS = re.compile(rf"{SEEN.pattern}|[{{\[]", re.IGNORECASE)
ESCAPED = re.compile(r"\\[ubfr]")
"""An escape in JSON that may represent an unprintable character."""
BRACKET = re.compile(r'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.?)*+"?)*+([{}\[\]])', re.DOTALL)
"""Matches up to the next bracket outside strings; an unclosed string extends to the end of the text."""
LOOKS_LIKE_JSON = re.compile(r"\{\s*+(?:[\"'“}/#]|\w++\s*+:)|\[\s*+[\"'{\[\]]")
"""The beginning of JSON, even if it is broken, as opposed to words in brackets."""
OPENING: dict[type | None, str] = {dict: "{", list: "["}
KINDS: dict[type, str] = {dict: "object", list: "list"}


class LegiblePieces:
    """Removes unprintable characters from a reply's text; half of a surrogate pair is kept for the next piece."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return the text of a piece, after the half of a surrogate pair that was kept from the previous piece.

        A half at the end of this piece is kept for the next one.
        """
        if piece.isascii() and not self._half:
            return legible(piece)
        text = self._half + piece
        self._half = text[-1] if HALF.search(text) else ""
        return legible(text.removesuffix(self._half))


def legible_call(call: Call) -> Call:
    """Return a call without unprintable characters."""
    return Call(legible(call.tool), legible(call.arguments), legible(call.id))


def first_json(text: str, kind: type | None = None) -> Any:
    """Return the first JSON object or list in a text, ignoring the text around it.

    If `kind` is dict or list, only that type counts.

    Raises:
        ReplyInvalid: there is none, or one in the text is incomplete.
    """
    return whole_json(text, kind)[0]


def whole_json(text: str, kind: type | None = None) -> list[Any]:
    """Return the outermost JSON objects or lists in a text, in their order, at least one.

    The time is linear in the text. Thoughts between their marks are skipped, and so is all text before a closing mark
    without an opening one.

    Raises:
        ReplyInvalid: there is none, or one is not complete; the message is written for the model.
    """
    text = without_controls(text)
    found: list[Any] = []
    other, wanted = "", OPENING.get(kind, "{[")
    for start, value in _values(text):
        if start is None:  # all text before this was thoughts
            found, other = [], ""
        elif isinstance(value, ValueError):
            wrong = _place(value, text)
            if LOOKS_LIKE_JSON.match(text, start) and text[start] in wanted:
                _refuse(f"The JSON is broken: {wrong}.", kind)
            other = other or f": {wrong}"
        elif text[start] in wanted:
            found.append(value)
        else:
            other = other or f", only {'a list' if kind is dict else 'an object'}"
    if not found:
        empty = not without_thoughts(text)
        name = KINDS.get(kind or dict, "object")
        _refuse("The reply was empty." if empty else f"No whole JSON {name} in the reply{other}.", kind)
    return found


def broken_json(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each outermost bracket pair that looks like JSON but is not valid.

    Raises:
        ReplyInvalid: a bracket is not closed, or the nesting is too deep.
    """
    for start, value in _values(text):
        if start is not None and isinstance(value, ValueError) and LOOKS_LIKE_JSON.match(text, start):
            yield start, _closing(text, start)


def _values(text: str) -> Iterator[tuple[int | None, Any]]:
    """Yield the start of each outermost bracket with its value or parse error; yield (None, None) after thoughts.

    Raises:
        ReplyInvalid: a bracket is not closed, or the nesting is too deep.
    """
    at = 0
    while opening := OPENS.search(text, at):
        at = opening.end()
        if opening.lastgroup == "open" and (at := end_of_thoughts(text, at)) < 0:
            _refuse(f"The reply does not come out of its {opening[0]}.")
        if opening.lastgroup:
            yield None, None
            continue
        start = opening.start()
        try:
            value, at = DECODER.raw_decode(text, start)
        except RecursionError:
            _refuse(DEEP)
        except ValueError as error:
            at = _closing(text, start)
            yield start, error
        else:
            if text.count("{", start, at) + text.count("[", start, at) > MAX_DEPTH:
                check_depth(value)
            yield start, clean(value) if ESCAPED.search(text, start, at) else value


def _closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`; brackets in strings do not count.

    Raises:
        ReplyInvalid: the bracket is not closed, or the nesting is too deep.
    """
    depth, at = 0, start
    while token := BRACKET.match(text, at):
        at = token.end()
        depth += 1 if token[1] in "{[" else -1
        if not depth:
            return at
        if depth > MAX_DEPTH:
            _refuse(DEEP)
    return _refuse(f"The JSON is not finished: {text[start]!r} in {_shown(text, start)} is never closed.")


def check_depth(value: Any) -> None:
    """Check the nesting of a value's lists and objects.

    Raises:
        ReplyInvalid: the nesting is deeper than MAX_DEPTH.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = (item for each in level for item in (each.values() if isinstance(each, dict) else each))
        level = [item for item in inner if isinstance(item, dict | list)]
        if not level:
            return
    _refuse(DEEP)


# The JSON decoder: strings may contain line breaks; numbers must be finite, and integers must fit into 64 bits.


def _int(digits: str) -> int:
    if len(digits) > 20 or not -MAX_INTEGER <= (number := int(digits)) < MAX_INTEGER:
        raise ValueError(f"the number {digits[:20]}… does not fit into 64 bits")
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is not a finite number, as JSON requires")
    return number


DECODER = json.JSONDecoder(strict=False, parse_int=_int, parse_float=_float, parse_constant=_float)


def clean(value: Any) -> Any:
    """Remove unprintable characters from the texts in a value: JSON escapes can represent them."""
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [clean(item) for item in value]
    return {without_controls(key): clean(item) for key, item in value.items()} if isinstance(value, dict) else value


def _place(error: ValueError, text: str) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at {_shown(text, error.pos)}"
    return str(error)


def _shown(text: str, at: int) -> str:
    return repr(legible(text[max(0, at - 20) : at + 20]))


def _refuse(what: str, kind: type | None = dict) -> NoReturn:
    raise ReplyInvalid(f"{what[:MAX_SHOWN]} Answer with one JSON {KINDS.get(kind or dict, 'object')} and nothing else.")
